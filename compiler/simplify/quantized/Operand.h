// Operand: what a product reads, seen as an 8-bit tensor, its zero point and its scale.
#ifndef HEDDLE_SIMPLIFY_QUANTIZED_OPERAND_H
#define HEDDLE_SIMPLIFY_QUANTIZED_OPERAND_H

#include "compiler/simplify/Rewriting.h"

namespace heddle::simplify {

/// (cast(x) - zero) * scale, then moved. Axes are those of the moved tensor.
struct QuantizedOperand {
  static constexpr int64_t kUniform = -1; // one number for all elements
  mlir::Value x;                          // at most 8 bits wide
  mlir::Value zero, scale;                // in x's shape; null for 0 and 1
  int64_t zeroAxis = kUniform, scaleAxis = kUniform;
  llvm::SmallVector<mlir::Operation *> moves; // from the product to x

  bool isUniform() const { return variesAlong(kUniform); }
  bool variesAlong(int64_t axis) const {
    return (zeroAxis == kUniform || zeroAxis == axis) &&
           (scaleAxis == kUniform || scaleAxis == axis);
  }
};

// Each of these leaves in `why` what keeps it from reading something that is quantised; nothing
// where the ops are no quantisation at all.

/// Integers: cast<i32>(x) - zero.
std::optional<QuantizedOperand> readCentred(mlir::Value value, std::string *why = nullptr);
/// Floats: cast<f32>(cast<i32>(x) - zero) * scale.
std::optional<QuantizedOperand> readDequantized(mlir::Value value, std::string *why = nullptr);

/// cast(min(max(rounded + zero, low), high)) to 8 bits, whose bounds are those of the type.
struct Quantization {
  mlir::Value rounded;
  std::optional<double> zero; // none if it is computed at run time, or where it varies
};
std::optional<Quantization> readQuantization(graph::CastOp op);

/// Both sides of a float product whose scales can be taken out of it.
struct QuantizedSides {
  QuantizedOperand left, right;
  int64_t axis; // the result's axis along which the scale of the right side runs
};
/// The sides of a matmul, conv or conv_transpose.
std::optional<QuantizedSides> readSides(mlir::Operation *product, std::string *why = nullptr);
/// The quantised operand that a max pool can read directly.
std::optional<QuantizedOperand> readPooled(graph::PoolOp op, std::string *why = nullptr);
/// The quantised operand that a quantisation restores, dequantised just before.
std::optional<QuantizedOperand> readRequantized(graph::CastOp op, std::string *why = nullptr);

/// The one number that every element equals, also before constants are folded: seen through moves
/// and through casts of small integers, as importers spell zero points.
std::optional<double> numberOf(mlir::Value value);

/// Writes a reason; false.
bool refuse(std::string *why, const llvm::Twine &text);
/// "the result of 'conv1'", "the input 'x'" or "the constant 'w'", as the model calls it.
std::string nameOf(mlir::Value value);

/// A zero point or scale as [], or as [n] where it varies along an axis.
mlir::Value parameterOf(mlir::OpBuilder &builder, mlir::Value wide);

/// The tensor of 8 bits, with its movement.
mlir::Value storedOf(mlir::OpBuilder &builder, const QuantizedOperand &operand);
/// The stored tensor minus its zero point, in i32.
mlir::Value centredOf(mlir::OpBuilder &builder, const QuantizedOperand &operand);
mlir::Value castTo(mlir::OpBuilder &builder, mlir::Value x, mlir::Type element);
/// One number for each element of `like`.
mlir::Value splatLike(mlir::OpBuilder &builder, mlir::Value like, double number);

/// (cast<f32>(i) * s + b) / c = cast<f32>(i) * (s / c) + b / c, also with bounds around the sum.
mlir::LogicalResult quotientOfDequantized(graph::DivOp op, mlir::PatternRewriter &rewriter);
/// max_pool(d(x)) = d(max_pool(x)), where d dequantises with one scale above 0.
mlir::LogicalResult poolOfDequantized(graph::PoolOp op, mlir::PatternRewriter &rewriter);
/// max_pool(max(d(x), c)) = max(max_pool(d(x)), c)
mlir::LogicalResult poolOfBounded(graph::PoolOp op, mlir::PatternRewriter &rewriter);
/// quantise(d(x)) = x, where both have one scale and one zero point.
mlir::LogicalResult quantisedOfDequantized(graph::CastOp op, mlir::PatternRewriter &rewriter);
/// quantise(concat(x, y)) = concat(quantise(x), quantise(y)), where nothing else reads the concat.
mlir::LogicalResult quantisedOfConcat(graph::CastOp op, mlir::PatternRewriter &rewriter);

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_QUANTIZED_OPERAND_H
