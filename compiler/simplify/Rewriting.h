// Rewriting: what rules ask of values, and how they are applied.
#ifndef HEDDLE_SIMPLIFY_REWRITING_H
#define HEDDLE_SIMPLIFY_REWRITING_H

#include "compiler/graph/Constants.h"
#include "compiler/graph/edit/Build.h"
#include "compiler/reference/Tensor.h"

namespace heddle::simplify {

using graph::Build;
using graph::splatOf;
inline bool isSplat(mlir::Value value, double number) { return splatOf(value) == number; }

/// The constant itself, or the constant that a broadcast repeats; null when there is none.
graph::ConstantOp constantUnder(mlir::Value value);
inline bool isConstant(mlir::Value value) { return constantUnder(value) != nullptr; }

/// Smallest (of those not 0) and largest |element| of a floating point constant; nullopt when an
/// element is not finite, or when the constant is too large to look at.
struct Magnitudes {
  double smallest, largest;
  bool hasZero;
};
std::optional<Magnitudes> magnitudesOf(mlir::Value constant);
/// Whether a * b does not overflow, whichever elements meet; where it underflows, a weight too
/// small to matter is lost. Integers wrap.
bool isProductFinite(mlir::Value a, mlir::Value b);

/// The numbers of a value that depends on constants alone; nullopt for others.
std::optional<reference::Tensor> numbersOf(mlir::Value value);
/// Whether no element is below zero; NaN counts as not below.
bool isNeverNegative(mlir::Value value);

bool isFloat(mlir::Value value);
/// Whether TransposedConv makes a convolution of it, where channels are last.
bool hasPhases(graph::ConvTransposeOp op);

/// A large constant with its dimensions, and its bytes, in another order.
mlir::ElementsAttr permuted(mlir::DenseResourceElementsAttr constant,
                            llvm::ArrayRef<int64_t> permutation);
/// `op` with other operands and result types; regions are not copied.
mlir::Operation *rebuild(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange operands,
                         mlir::TypeRange results);

/// Applies patterns to everything below `root` until none matches.
mlir::LogicalResult applyRules(mlir::Operation *root, mlir::RewritePatternSet &&patterns);

/// Replacements of symbols of the types below a module.
using Refinement = llvm::StringMap<graph::Dim>;
/// Notes that the symbols of `was` are the sizes of `is`. The result is `is` where a symbol of
/// `was` was replaced, and the size of `was` elsewhere.
graph::DimVector refine(Refinement &refinement, llvm::ArrayRef<graph::Dim> was,
                        llvm::ArrayRef<graph::Dim> is);
/// The sizes with every symbol that is known replaced.
graph::DimVector resolve(const Refinement &refinement, llvm::ArrayRef<graph::Dim> sizes);
/// Writes a refinement into all types and attributes. An op whose sizes contradict each other then
/// becomes a failure of the run.
void applyRefinement(mlir::ModuleOp module, const Refinement &refinement);

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_REWRITING_H
