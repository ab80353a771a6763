// Backend: see Backend.h.

#include "compiler/target/cpu/Backend.h"

#include "compiler/target/cpu/Clang.h"
#include "compiler/target/cpu/Jit.h"
#include "compiler/target/cpu/Lower.h"
#include "compiler/target/cpu/artefact/Artefact.h"

#include <dlfcn.h>

namespace heddle::cpu {
namespace {

class MachineCode final : public target::Code {
public:
  MachineCode(Target target, int optLevel, Objects made, int64_t found)
      : target(std::move(target)), optLevel(optLevel), objects(std::move(made)) {
    parts = objects.size();
    for (const auto &object : objects)
      bytes += object->getBufferSize();
    fromCache = found;
  }

  llvm::Expected<std::string> text(const program::Program &program) const override {
    return emitText(program, target, optLevel, TextKind::Assembly);
  }
  llvm::Expected<std::shared_ptr<LoadedProgram>>
  load(const program::Program &program) const override {
    return cpu::load(program, target, objects);
  }

  Target target;
  int optLevel;
  Objects objects;
};

class Cpu final : public target::Target {
public:
  explicit Cpu(cpu::Target described)
      : Target(cpu::backend(), described.name, described.identity()),
        described(std::move(described)) {}

  program::Machine machine(int64_t workers) const override { return machineOf(described, workers); }
  std::string fingerprint() const override {
    return identity + " " + described.features + " " + std::to_string(described.l1Bytes) + " " +
           std::to_string(described.l2Bytes);
  }
  std::vector<std::string> required() const override { return described.required; }
  std::string whyNoLibrary(llvm::StringRef file) const override {
    return cpu::whyNoLibrary(described, file);
  }
  std::string whyNoSources() const override { return whyNoClang(); }
  llvm::StringRef subnormals() const override {
    return described.keepsSubnormals ? "keep" : "flush";
  }
  std::string whyNotHere() const override {
    return described.isOwnArchitecture()
               ? ""
               : "which is of another architecture than this machine\nnote: 'heddle compile' "
                 "writes it to a file for one that is";
  }
  llvm::Expected<std::unique_ptr<target::Code>>
  emit(program::Program &program, const target::EmitOptions &options) const override {
    CodeCache code;
    code.objects = options.cache;
    auto objects = emitObjects(program, described, options.optLevel, options.jobs, code);
    if (!objects)
      return objects.takeError();
    return std::make_unique<MachineCode>(described, options.optLevel, std::move(*objects),
                                         code.found);
  }

  cpu::Target described;
};

/// The static runtime lies beside the library that this code is in.
llvm::Expected<std::string> archiveBeside(const std::string &name) {
  Dl_info self;
  if (!dladdr(reinterpret_cast<void *>(&archiveBeside), &self))
    return makeError(ErrorCode::Internal, "internal error: cannot find libheddle's own path");
  llvm::SmallString<256> path(self.dli_fname);
  llvm::sys::fs::make_absolute(path);
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::append(path, name);
  if (!llvm::sys::fs::exists(path))
    return makeError(ErrorCode::Usage,
                     "error: cannot find '" + path +
                         "', which a shared library needs\nnote: it is installed beside "
                         "libheddle.so, for aarch64 where the build found "
                         "'libc6-dev-arm64-cross'; '--emit o' needs no runtime");
  return path.str().str();
}

/// The runtime for a shared library; its pool unless the run has one thread.
llvm::Expected<std::vector<std::string>> archivesFor(const Target &target, int threads) {
  std::vector<std::string> archives, names{"libheddle_runtime.a"};
  if (threads != 1)
    names.push_back("libheddle_pool.a");
  for (const std::string &name : names) {
    auto archive = archiveBeside(target.isOwnArchitecture() ? name : "aarch64/" + name);
    if (!archive)
      return archive.takeError();
    archives.push_back(*archive);
  }
  return archives;
}

class CpuBackend final : public target::Backend {
public:
  llvm::StringRef name() const override { return "cpu"; }
  llvm::ArrayRef<llvm::StringRef> cards() const override {
    static const llvm::StringRef folders[] = {"cpu"};
    return folders;
  }
  llvm::ArrayRef<llvm::StringRef> kinds() const override {
    static const llvm::StringRef kinds[] = {"so", "o", "h", "ll", "asm"};
    return kinds;
  }
  llvm::StringRef example() const override { return "host"; }
  std::vector<std::string> targetNames() const override { return cpu::targetNames(); }
  bool isMeant(llvm::StringRef) const override { return true; } // LLVM knows many CPUs

  llvm::Expected<target::Targets> targetsFor(llvm::StringRef names,
                                             const target::Request &request) const override {
    auto described = cpu::targetsFor(names);
    if (!described)
      return described.takeError();
    target::Targets targets;
    for (Target &each : *described) {
      each.keepsSubnormals = request.keepsSubnormals;
      each.oneDnn = request.oneDnn;
      targets.push_back(std::make_shared<Cpu>(std::move(each)));
    }
    return targets;
  }

  llvm::Error write(const target::Form &form, llvm::ArrayRef<target::Form> variants,
                    const target::WriteOptions &given, llvm::StringRef path) const override {
    auto codeOf = [](const target::Form &each) -> const MachineCode & {
      return static_cast<const MachineCode &>(*each.code);
    };
    const MachineCode &code = codeOf(form);
    ArtefactOptions options;
    options.kind = given.kind;
    options.optLevel = code.optLevel;
    if (given.kind == "so") {
      auto archives = archivesFor(code.target, given.threads);
      if (!archives)
        return archives.takeError();
      options.archives = std::move(*archives);
    }
    for (const target::Form &each : variants)
      options.variants.push_back({each.program, &codeOf(each).target, &codeOf(each).objects});
    return writeArtefact(*form.program, code.target, code.objects, options, path);
  }

  std::string header(const program::Program &program) const override { return headerOf(program); }
  void registerPasses() const override { cpu::registerPasses(); }
};

} // namespace

const target::Backend &backend() {
  static const CpuBackend only;
  return only;
}

} // namespace heddle::cpu
