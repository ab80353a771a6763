// Chain: ops that make of each element of one value an element of another, whatever the others are.
#ifndef HEDDLE_SIMPLIFY_CHAIN_H
#define HEDDLE_SIMPLIFY_CHAIN_H

#include "compiler/reference/Tensor.h"
#include "compiler/simplify/Rewriting.h"

namespace heddle::simplify {

struct Chain {
  mlir::Value source;
  llvm::SmallVector<mlir::Operation *> ops; // in their order; their other operands are constant

  mlir::Value result() const { return ops.back()->getResult(0); }
};

/// Whether the ops of a chain may read this beside its source: the same number everywhere.
inline bool isUniform(mlir::Value value) { return graph::splatOf(value).has_value(); }

/// The results for these elements of the source, a vector, by the interpreter; nullopt if it
/// cannot say.
std::optional<reference::Tensor> resultsOf(const Chain &chain, const reference::Tensor &elements);

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_CHAIN_H
