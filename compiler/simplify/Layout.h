// Layout: what it means for one op to work on channels-last tensors.
#ifndef HEDDLE_SIMPLIFY_LAYOUT_H
#define HEDDLE_SIMPLIFY_LAYOUT_H

#include "compiler/simplify/Rewriting.h"

namespace heddle::simplify {

/// [n, c, spatial...] -> [n, spatial..., c], as a permutation.
llvm::SmallVector<int64_t> channelsLastOrder(int64_t rank);

enum class Role {
  Fixed,    // works on the layout that it was written for
  Flexible, // works on any layout, with its axes mapped
  Anchor    // wants channels last: convolutions and pools
};
Role roleOf(mlir::Operation *op);

/// Whether this operand, or this result, of a flexible op or an anchor in channels-last form is
/// channels last, too. Others (weights, indices, reduced results) stay as they are.
bool isPermutedOperand(mlir::Operation *op, unsigned number);
bool isPermutedResult(mlir::Operation *op);

/// Whether a value is remade in either layout at no cost when the model runs.
bool hasBothLayouts(mlir::Value value);
/// Such a value in channels-last form.
mlir::Value remakeChannelsLast(mlir::OpBuilder &builder, mlir::Value value);

/// The op in channels-last form, on operands that are channels last where isPermutedOperand.
mlir::Operation *rebuildChannelsLast(mlir::OpBuilder &builder, mlir::Operation *op,
                                     llvm::ArrayRef<mlir::Value> operands);

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_LAYOUT_H
