// Operand: what a product reads, seen as an 8-bit tensor, its zero point and its scale.
#ifndef HEDDLE_SIMPLIFY_QUANTIZED_OPERAND_H
#define HEDDLE_SIMPLIFY_QUANTIZED_OPERAND_H

#include "compiler/simplify/Rewriting.h"

namespace heddle::simplify {

/// (cast(x) - zero) * scale, then moved. Axes are those of the moved tensor.
struct QuantizedOperand {
  static constexpr int64_t kUniform = -1; // one number for all elements
  mlir::Value x;                          // of at most 8 bits
  mlir::Value zero, scale;                // of x's shape; null for 0 and 1
  int64_t zeroAxis = kUniform, scaleAxis = kUniform;
  llvm::SmallVector<mlir::Operation *> moves; // from the product to x

  bool isUniform() const { return variesAlong(kUniform); }
  bool variesAlong(int64_t axis) const {
    return (zeroAxis == kUniform || zeroAxis == axis) &&
           (scaleAxis == kUniform || scaleAxis == axis);
  }
};

/// Integers: cast<i32>(x) - zero.
std::optional<QuantizedOperand> readCentred(mlir::Value value);
/// Floats: cast<f32>(cast<i32>(x) - zero) * scale.
std::optional<QuantizedOperand> readDequantized(mlir::Value value);
/// A zero point or scale as [], or as [n] where it varies along an axis.
mlir::Value parameterOf(mlir::OpBuilder &builder, mlir::Value wide);

/// The tensor of 8 bits, with its movement.
mlir::Value storedOf(mlir::OpBuilder &builder, const QuantizedOperand &operand);
/// That minus the zero point, in i32.
mlir::Value centredOf(mlir::OpBuilder &builder, const QuantizedOperand &operand);
mlir::Value castTo(mlir::OpBuilder &builder, mlir::Value x, mlir::Type element);

/// (cast<f32>(i) * s + b) / c = cast<f32>(i) * (s / c) + b / c, also with bounds around the sum.
mlir::LogicalResult quotientOfDequantized(graph::DivOp op, mlir::PatternRewriter &rewriter);
/// max_pool(d(x)) = d(max_pool(x)), where d dequantises with one scale above 0.
mlir::LogicalResult poolOfDequantized(graph::PoolOp op, mlir::PatternRewriter &rewriter);
/// quantise(d(x)) = x, where both have one scale and one zero point.
mlir::LogicalResult quantisedOfDequantized(graph::CastOp op, mlir::PatternRewriter &rewriter);

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_QUANTIZED_OPERAND_H
