// Write: the forms in which a compiled model leaves the process.

#include "compiler/api/Status.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/target/c/Emit.h"
#include "compiler/target/cpu/Artefact.h"
#include "compiler/target/cpu/Files.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>

namespace heddle {

/// The static runtime lies beside the library that this code is in.
static llvm::Expected<std::string> archiveBeside(const std::string &name) {
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

llvm::Error writeKind(const Compiled &compiled, int threads, llvm::StringRef kind,
                      llvm::StringRef path) {
  bool isArtefact = llvm::is_contained({"so", "o", "h"}, kind);
  if (!compiled.variants.empty() && !isArtefact)
    return makeError(ErrorCode::Usage, "error: '" + kind +
                                           "' is of one CPU, but the model is compiled for " +
                                           llvm::Twine(compiled.variants.size() + 1) +
                                           "\nnote: name one of them with '--target', such as '" +
                                           compiled.target.name + "'");
  if (kind == "graph")
    return cpu::writeFile(path, graphText(compiled));
  if (kind == "plan")
    return cpu::writeFile(path, compiled.planJson);
  if (kind == "loops") {
    auto loops = loopsText(compiled);
    return loops ? cpu::writeFile(path, *loops) : loops.takeError();
  }
  if (!llvm::is_contained({"so", "o", "h", "ll", "asm", "c"}, kind))
    return makeError(ErrorCode::Usage,
                     "error: cannot write '" + kind +
                         "'\nnote: known: so, o, h, ll, asm, c, plan, graph, loops");
  if (compiled.plansOnly)
    return makeError(ErrorCode::Usage, "error: cannot write '" + kind +
                                           "': the model was only planned (plan_only), which "
                                           "gives plan, graph and loops");
  bool isC = c::isTarget(compiled.target.name);
  if (isC != (kind == "c"))
    return makeError(
        ErrorCode::Usage,
        "error: cannot write '" + kind + "' for target '" + compiled.target.name + "'\nnote: " +
            (isC ? "'--target c' gives c, plan, graph and loops" : "'--target c' gives a C file"));
  if (isC)
    return cpu::writeFile(path, compiled.source);
  cpu::ArtefactOptions options;
  options.kind = kind.str();
  options.optLevel = compiled.optLevel;
  if (kind == "so") {
    bool isForeign = !compiled.target.isOwnArchitecture();
    std::vector<std::string> archives{"libheddle_runtime.a"};
    if (threads != 1)
      archives.push_back("libheddle_pool.a");
    for (const std::string &name : archives) {
      auto archive = archiveBeside(isForeign ? "aarch64/" + name : name);
      if (!archive)
        return archive.takeError();
      options.archives.push_back(*archive);
    }
  }
  for (const std::unique_ptr<Compiled> &variant : compiled.variants)
    options.variants.push_back({&variant->program, &variant->target, &variant->objects});
  return cpu::writeArtefact(compiled.program, compiled.target, compiled.objects, options, path);
}

} // namespace heddle
