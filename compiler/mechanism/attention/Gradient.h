// Gradient: a set of graph ops read as an attention's gradient: products that make scores, ops on
// these row by row, and products that take the result.
//
//   scores  = A x B                      one or more; [batch..., queries, keys], all of one shape
//   weights = of scores and of other tensors, element by element and by reductions of rows
//   sums    = weights x B                [batch..., queries, n]: the gradient of queries
//             transposed weights x B     [batch..., keys, n]: of keys and values
//             A x weights                [batch..., n, keys]: the same, transposed
//   result  = elementwise ops, transposes and reshapes of sums, one for each
//
// A, B and other operands may be computed by ops of the set: their elements are asked for one by
// one. The scheme is that of FlashAttention's backward pass (Dao et al., NeurIPS 2022, B.2): scores
// are computed once more, and neither they nor their gradients reach memory.
#ifndef HEDDLE_MECHANISM_ATTENTION_GRADIENT_H
#define HEDDLE_MECHANISM_ATTENTION_GRADIENT_H

#include "compiler/mechanism/Shapes.h"

namespace heddle::mechanism {

/// A product that takes weights.
struct WeightProduct {
  enum class Side {
    Left,       // weights x other
    Transposed, // transposed weights x other
    Right       // other x weights
  };

  graph::MatmulOp product;
  Side side;
  mlir::Value weights, other; // weights: before the transpose
  mlir::Value result;         // read outside
  /// Transposes and reshapes between the product and the result, in order.
  llvm::SmallVector<mlir::Operation *> moves;

  bool sumsQueries() const { return side != Side::Left; }
};

struct AttentionGradientParts {
  Rows rows; // rows of the scores
  llvm::SmallVector<graph::MatmulOp> scores;
  llvm::SmallVector<WeightProduct> sums;
  /// Scores, and what is computed of them row by row.
  llvm::SmallVector<mlir::Operation *> between;

  /// Weights that the products take, each once.
  llvm::SmallVector<mlir::Value> weights() const;
};

/// The parts of ops that are one.
std::optional<AttentionGradientParts> readAttentionGradient(llvm::ArrayRef<mlir::Operation *> ops,
                                                            std::string &why);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_ATTENTION_GRADIENT_H
