// Write: the forms in which a compiled model leaves the process.

#include "compiler/api/Status.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/support/Files.h"

#include "llvm/ADT/SetVector.h"

namespace heddle {

/// Kinds that all targets have.
static constexpr llvm::StringLiteral kPlain[] = {"plan", "graph", "loops"};

/// A list for messages: "so, o, h, ll, asm".
static std::string listed(llvm::ArrayRef<llvm::StringRef> kinds) { return llvm::join(kinds, ", "); }

/// A backend that writes files of this kind, or null.
static const target::Backend *writerOf(llvm::StringRef kind) {
  for (const target::Backend *backend : target::backends())
    if (llvm::is_contained(backend->kinds(), kind))
      return backend;
  return nullptr;
}

static llvm::Error unknownKind(llvm::StringRef kind) {
  llvm::SetVector<llvm::StringRef> known; // several backends write some
  for (const target::Backend *backend : llvm::reverse(target::backends()))
    known.insert(backend->kinds().begin(), backend->kinds().end());
  return makeError(ErrorCode::Usage, "error: cannot write '" + kind + "'\nnote: known: " +
                                         listed(known.getArrayRef()) + ", plan, graph, loops");
}

llvm::Error writeKind(const Compiled &compiled, int threads, llvm::StringRef kind,
                      llvm::StringRef path) {
  const target::Backend *writer = writerOf(kind), &backend = compiled.target->backend;
  if (!writer && !llvm::is_contained(kPlain, kind))
    return unknownKind(kind);
  bool isOfOne = !writer || kind == "ll" || kind == "asm" || kind == "ptx";
  if (!compiled.variants.empty() && isOfOne)
    return makeError(ErrorCode::Usage, "error: '" + kind +
                                           "' is of one CPU, but the model is compiled for " +
                                           llvm::Twine(compiled.variants.size() + 1) +
                                           "\nnote: name one of them with '--target', such as '" +
                                           compiled.target->name + "'");
  if (kind == "graph")
    return support::writeFile(path, graphText(compiled));
  if (kind == "plan")
    return support::writeFile(path, compiled.planJson);
  if (kind == "loops") {
    auto loops = loopsText(compiled);
    return loops ? support::writeFile(path, *loops) : loops.takeError();
  }
  if (compiled.plansOnly)
    return makeError(ErrorCode::Usage, "error: cannot write '" + kind +
                                           "': the model was only planned (plan_only), which "
                                           "gives plan, graph and loops");
  if (!llvm::is_contained(backend.kinds(), kind))
    return makeError(ErrorCode::Usage,
                     "error: cannot write '" + kind + "' for target '" + compiled.target->name +
                         "', which gives " + listed(backend.kinds()) +
                         ", plan, graph and loops\nnote: '--target " + writer->example() +
                         "' gives " + listed(writer->kinds()));
  auto formOf = [](const Compiled &each) {
    return target::Form{&each.program, each.target.get(), each.code.get()};
  };
  std::vector<target::Form> variants;
  for (const std::unique_ptr<Compiled> &variant : compiled.variants)
    variants.push_back(formOf(*variant));
  return backend.write(formOf(compiled), variants, {kind.str(), threads}, path);
}

} // namespace heddle
