// Rules: the sets of equations, one function a set, so that passes can combine them.
//
// A set is exact, bit by bit but for the sign of a zero, where it does not say otherwise; RulesTest
// holds each of its cases to that, on numbers of all magnitudes.
#ifndef HEDDLE_SIMPLIFY_RULES_H
#define HEDDLE_SIMPLIFY_RULES_H

#include "compiler/simplify/Rewriting.h"

namespace heddle::simplify {

/// x + 0 = x and its kin: arithmetic of one element.
void addArithmeticRules(mlir::RewritePatternSet &patterns);
/// reshape(reshape x) = reshape x and its kin: movement of elements.
void addMovementRules(mlir::RewritePatternSet &patterns);
/// transpose(reshape(transpose x)) with one transpose.
void addRegroupRules(mlir::RewritePatternSet &patterns);
/// matmul(reshape x, c) = reshape(matmul(x, c)) and its kin: rows that are only counted
/// differently.
void addRowRules(mlir::RewritePatternSet &patterns);
/// f(broadcast x) = broadcast(f x) and its kin: compute once what is then repeated.
void addBroadcastRules(mlir::RewritePatternSet &patterns);
/// Products of the steps of a scan as one before or after it.
void addScanRules(mlir::RewritePatternSet &patterns);
/// argmax(x) = the first place of max(x), of long rows.
void addExtremeRules(mlir::RewritePatternSet &patterns);
/// f(x)[i] = f(x[i]) and its kin: one element of each row.
void addPickRules(mlir::RewritePatternSet &patterns);
/// slice(f(x)) = f(slice x) and its kin: elements that nothing reads.
void addSliceRules(mlir::RewritePatternSet &patterns);
/// conv(x, w) = conv(x, w without taps that only meet the border).
void addTapRules(mlir::RewritePatternSet &patterns);
/// conv(x, w) * s = conv(x, w * s) and its kin. Results differ by roundings of the parts of their
/// sums: by 4 ulp of the largest part for each.
void addConvScaleRules(mlir::RewritePatternSet &patterns);
/// matmul(dequantised a, dequantised b) = dequantised(matmul(a, b)) and its kin: 8-bit products.
void addQuantizedRules(mlir::RewritePatternSet &patterns);
/// round(x / s) = round(x * (1 / s)) where that holds of all values of x, and its kin.
void addStepRules(mlir::RewritePatternSet &patterns);

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_RULES_H
