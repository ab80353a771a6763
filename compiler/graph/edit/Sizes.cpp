// Sizes: types without a size that changes stay the same objects.

#include "compiler/graph/edit/Sizes.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace heddle::graph {

void replaceDims(Operation *root, llvm::function_ref<Dim(const Dim &)> replacement) {
  MLIRContext *context = root->getContext();
  auto replaced = [&](ArrayRef<Dim> dims) { return DimVector(llvm::map_range(dims, replacement)); };
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](RankedTensorType type) -> std::pair<Type, WalkResult> {
    return {tensorOf(context, replaced(dimsOf(type)), type.getElementType()), WalkResult::skip()};
  });
  replacer.addReplacement([&](DimsAttr attr) -> std::pair<Attribute, WalkResult> {
    return {dimsAttr(context, replaced(dimsOf(attr))), WalkResult::skip()};
  });
  replacer.recursivelyReplaceElementsIn(root, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

void substituteSymbols(Operation *root,
                       llvm::function_ref<std::optional<Dim>(StringRef)> replacement) {
  replaceDims(root, [&](const Dim &dim) { return dim.substitute(replacement); });
}

} // namespace heddle::graph
