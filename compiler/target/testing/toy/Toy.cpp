// Toy: see Toy.h.

#include "compiler/target/testing/toy/Toy.h"

#include "compiler/program/build/Instructions.h"
#include "compiler/target/Register.h"
#include "compiler/target/testing/interpreter/Executable.h"

#include "mlir/Parser/Parser.h"

namespace heddle::toy {
namespace {

const target::Backend &backend();

/// The instructions of toy0.
constexpr const char *kInstructions = R"mlir(
func.func private @toy.mac(%x: vector<4xf32>, %y: vector<4xf32>, %sum: vector<4xf32>)
    -> vector<4xf32> attributes {program.instruction = "mac.4 $0, $1, $2"} {
  %result = math.fma %x, %y, %sum : vector<4xf32>
  return %result : vector<4xf32>
}
)mlir";

/// Kernels of toy0 call its instructions.
void useInstructions(mlir::ModuleOp module) {
  auto known = mlir::parseSourceString<mlir::ModuleOp>(kInstructions, module.getContext());
  for (auto instruction : llvm::make_early_inc_range(known->getOps<mlir::func::FuncOp>())) {
    instruction->remove();
    module.push_back(instruction);
    for (auto kernel : module.getOps<mlir::func::FuncOp>())
      if (program::spaceOf(kernel) == "toy0")
        program::useInstruction(kernel, instruction);
  }
}

/// The program as it is.
class Same final : public target::Code {
public:
  explicit Same(const target::Target &target) : target(target) { parts = 1; }
  llvm::Expected<std::string> text(const program::Program &program) const override {
    std::string text;
    llvm::raw_string_ostream(text) << program.module.get();
    return text;
  }
  llvm::Expected<std::shared_ptr<target::LoadedProgram>>
  load(const program::Program &program) const override {
    return interpreter::load(program, target);
  }

private:
  const target::Target &target;
};

class Toy final : public target::Target {
public:
  Toy() : Target(toy::backend(), "toy", "toy") {}

  program::Machine machine(int64_t) const override {
    program::Machine host;
    host.device = "host";
    host.lanes = 4;
    host.hasMatrices = true;
    host.dot = program::Dot::Bytes;
    host.registers = 16;
    host.workers = 3;
    program::Machine lanes = host, threads = host;
    lanes.dot = threads.dot = program::Dot::Words;
    lanes.device = lanes.space = "toy0";
    threads.device = threads.space = "toy1";
    threads.form = program::Form::Threads;
    threads.lanes = 1;
    host.others = {lanes, threads};
    return host;
  }
  std::string whyNoLibrary(llvm::StringRef file) const override {
    return ("target 'toy' calls no library such as '" + file + "'").str();
  }
  std::string whyNoSources() const override {
    return "target 'toy' takes only kernels that heddle writes itself";
  }
  llvm::StringRef subnormals() const override { return "flush"; }
  std::string whyNotHere() const override { return ""; }
  llvm::Expected<std::unique_ptr<target::Code>> emit(program::Program &program,
                                                     const target::EmitOptions &) const override {
    useInstructions(*program.module);
    return std::make_unique<Same>(*this);
  }
};

class ToyBackend final : public target::Backend {
public:
  llvm::StringRef name() const override { return "toy"; }
  llvm::ArrayRef<llvm::StringRef> cards() const override {
    static const llvm::StringRef folders[] = {"cpu"};
    return folders;
  }
  llvm::ArrayRef<llvm::StringRef> kinds() const override { return {}; }
  llvm::StringRef example() const override { return "toy"; }
  std::vector<std::string> targetNames() const override { return {"toy"}; }
  bool isMeant(llvm::StringRef names) const override { return names == "toy"; }
  llvm::Expected<target::Targets> targetsFor(llvm::StringRef,
                                             const target::Request &) const override {
    static const auto only = std::make_shared<Toy>();
    return target::Targets{only};
  }
  llvm::Error write(const target::Form &, llvm::ArrayRef<target::Form>,
                    const target::WriteOptions &, llvm::StringRef path) const override {
    return makeError(ErrorCode::Usage,
                     "error: cannot write '" + path + "': target 'toy' has no files");
  }
  std::string header(const program::Program &) const override { return ""; }
};

const target::Backend &backend() {
  static const ToyBackend only;
  return only;
}

} // namespace

void add() { target::addBackend(backend()); }

} // namespace heddle::toy
