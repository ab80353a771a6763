// GroupText: a group from the text that records keep of it (records::GroupKey), so that features
// are the same whether a file or a model asks for them.
#ifndef HEDDLE_LEARN_GROUPTEXT_H
#define HEDDLE_LEARN_GROUPTEXT_H

#include "compiler/graph/Graph.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace heddle::learn {

/// A module with the group alone. The context must know the dialects of a graph.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> parseGroup(mlir::MLIRContext &context,
                                                             llvm::StringRef text);
/// Sets the sizes of the symbols of the text, in their order.
void setSizes(mlir::ModuleOp module, llvm::ArrayRef<int64_t> sizes);
/// Null if there is none.
graph::GroupOp groupOf(mlir::ModuleOp module);

} // namespace heddle::learn

#endif // HEDDLE_LEARN_GROUPTEXT_H
