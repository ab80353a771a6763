// Definitions: what one element of each op that is not elementwise is, in terms of its operands'
// elements.
#ifndef HEDDLE_LOWER_ELEMENTS_DEFINITIONS_H
#define HEDDLE_LOWER_ELEMENTS_DEFINITIONS_H

#include "compiler/lower/elements/Elements.h"

namespace heddle::lower {

/// Code for the element of `tensor`, a result of `op`, at a place.
Value defineElement(Elements &elements, mlir::Operation *op, Value tensor,
                    llvm::ArrayRef<Index> place);

// Definitions by family; a null result means that the op is not of the family.
Value defineMovement(Elements &, mlir::Operation *, llvm::ArrayRef<Index>);
Value defineIndexed(Elements &, mlir::Operation *, llvm::ArrayRef<Index>);
Value defineReduction(Elements &, mlir::Operation *, llvm::ArrayRef<Index>);
Value defineWindow(Elements &, mlir::Operation *, llvm::ArrayRef<Index>);
Value defineResize(Elements &, mlir::Operation *, llvm::ArrayRef<Index>);
/// Whether the places of an axis are those of x.
bool keepsAxis(graph::ResizeOp op, size_t axis);

/// A loop whose body is a scope of its own.
Values foldScoped(Elements &elements, Value low, Value high, mlir::ValueRange initial,
                  Code::Step body);
/// `value` where the condition holds, else `otherwise`; what `value` reads is only read there. The
/// condition is i1, or a vector of i1.
Value guarded(Elements &elements, Value condition, Type element, llvm::function_ref<Value()> value,
              llvm::function_ref<Value()> otherwise);
/// A position in row-major order as indices.
Indices indicesOf(Elements &elements, llvm::ArrayRef<Dim> dims, Value position);
/// The index into a dimension of size `from` that is broadcast to `to`; if known only at run time
/// whether `from` is 1, it decides.
Index broadcastIndex(Elements &elements, const Index &index, const Dim &from, const Dim &to);
/// The place in the operand of a broadcast of what is at `place` in its result.
Indices broadcastPlace(Elements &elements, mlir::Operation *broadcast, llvm::ArrayRef<Index> place);
/// The place in a tensor of sizes `from` of what is at `place` in its reshape to `to`.
Indices reshapedPlace(Elements &elements, llvm::ArrayRef<Dim> from, llvm::ArrayRef<Dim> to,
                      llvm::ArrayRef<Index> place);
/// Ends the run if what `op` gathers lies outside of a dimension, where no phase before has.
void checkRead(Elements &elements, mlir::Operation *op, Value index, Value size);
/// 0 <= index < size.
Value inside(Elements &elements, const Index &index, Value size);
/// The type sums of this element type are kept in.
Type accumulatorType(Type element);
Value widen(Elements &elements, Value value, Type accumulator, bool isUnsigned = false);
Value narrow(Elements &elements, Value value, Type element);
/// Floats as bf16 that only products read: those that were widened are as they were.
Value roundedFactor(Code &code, Value floats);

/// How a block of a product's left rows becomes integers of 8 bits (graph.matmul's `block`):
/// numbers, or lanes with a block each.
struct BlockRounding {
  Value kept;        // bits of numbers that count: none where a number is not finite
  Value scale, step; // to integers and back; from blocks that are not finite to NaN
};
/// The bits of |x|, which are ordered as the numbers are.
Value magnitudeBits(Code &code, Value x);
BlockRounding roundingOf(Code &code, Value largestBits);
/// Integers from -127 to 127 as floats; the scalars of a rounding serve vectors, too.
Value roundedBy(Code &code, const BlockRounding &rounding, Value x);

} // namespace heddle::lower

#endif // HEDDLE_LOWER_ELEMENTS_DEFINITIONS_H
