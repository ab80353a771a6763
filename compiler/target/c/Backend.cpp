// Backend: see Backend.h.

#include "compiler/target/c/Backend.h"

#include "compiler/support/Files.h"
#include "compiler/target/c/Emit.h"

namespace heddle::c {
namespace {

class Source final : public target::Code {
public:
  explicit Source(std::string text) : file(std::move(text)) {
    parts = 1;
    bytes = file.size();
  }
  llvm::Expected<std::string> text(const program::Program &) const override { return file; }
  llvm::Expected<std::shared_ptr<target::LoadedProgram>>
  load(const program::Program &program) const override;

  std::string file;
};

/// No CPU: instructions and libraries are what the C compiler of another day has.
class Language final : public target::Target {
public:
  Language() : Target(c::backend(), "c", "c") {}

  /// Short vectors, which C compilers turn into those that a processor has, and one worker.
  program::Machine machine(int64_t) const override {
    program::Machine machine;
    machine.lanes = 8;
    machine.registers = 16;
    machine.l2Bytes = 256 << 10;
    machine.workers = 1;
    machine.dot = program::Dot::Words; // plain arithmetic
    return machine;
  }
  std::string whyNoLibrary(llvm::StringRef file) const override {
    return ("target 'c' calls no library such as '" + file + "'").str();
  }
  std::string whyNoSources() const override {
    return "target 'c' takes only kernels that heddle writes itself";
  }
  llvm::StringRef subnormals() const override { return "caller"; }
  std::string whyNotHere() const override {
    return "which is a C file to be compiled elsewhere\nnote: 'heddle compile --target c -o "
           "model.c' writes it, and a C compiler makes a program of it (docs/guide/c.md); without "
           "'--target c' heddle runs, times and tunes the model on this machine";
  }
  llvm::Expected<std::unique_ptr<target::Code>> emit(program::Program &program,
                                                     const target::EmitOptions &) const override {
    auto source = c::emit(program);
    if (!source)
      return source.takeError();
    return std::make_unique<Source>(std::move(*source));
  }
};

llvm::Expected<std::shared_ptr<target::LoadedProgram>>
Source::load(const program::Program &program) const {
  return target::checkRunsHere(Language(), program.model);
}

class CBackend final : public target::Backend {
public:
  llvm::StringRef name() const override { return "c"; }
  /// Loop schedules are the same in C; targets say that they lack cards of machine code.
  llvm::ArrayRef<llvm::StringRef> cards() const override {
    static const llvm::StringRef folders[] = {"cpu"};
    return folders;
  }
  llvm::ArrayRef<llvm::StringRef> kinds() const override {
    static const llvm::StringRef kinds[] = {"c"};
    return kinds;
  }
  llvm::StringRef example() const override { return "c"; }
  std::vector<std::string> targetNames() const override { return {"c"}; }
  bool isMeant(llvm::StringRef names) const override {
    llvm::SmallVector<llvm::StringRef> parts;
    names.split(parts, '+');
    return llvm::is_contained(parts, "c");
  }

  llvm::Expected<target::Targets> targetsFor(llvm::StringRef names,
                                             const target::Request &request) const override {
    if (names != "c")
      return makeError(ErrorCode::Usage,
                       "error: target '" + names +
                           "': 'c' stands alone, since only CPUs share an artefact");
    const char *wrong =
        request.threads > 1  ? "'--threads': a C file runs in its caller's thread\n"
                               "note: several threads may each run it, with arenas of their own"
        : request.isProfiled ? "profiles: they need heddle's runtime\n"
                               "note: without '--target c' groups are measured on this machine"
        : request.isSanitized
            ? "sanitized code: the C compiler makes that\nnote: ask it for '-fsanitize=address'"
            : nullptr;
    if (wrong)
      return makeError(ErrorCode::Usage, llvm::Twine("error: target 'c' has no ") + wrong);
    return target::Targets{std::make_shared<Language>()};
  }

  llvm::Error write(const target::Form &form, llvm::ArrayRef<target::Form>,
                    const target::WriteOptions &, llvm::StringRef path) const override {
    return support::writeFile(path, static_cast<const Source &>(*form.code).file);
  }

  std::string header(const program::Program &) const override { return ""; } // it is in the file
  void registerPasses() const override { c::registerPasses(); }
};

} // namespace

const target::Backend &backend() {
  static const CBackend only;
  return only;
}

} // namespace heddle::c
