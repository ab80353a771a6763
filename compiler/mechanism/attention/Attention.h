// Attention: a set of graph ops read as two products with a softmax between them.
//
//   scores  = Q x K              any batch dimensions
//   logits  = elementwise of scores: scale, mask, cap
//   powers  = exp(logits - max of the row)
//   weights = powers / sum of the row, and what follows element by element
//   values  = weights x V
//   result  = elementwise ops, transposes and reshapes of values; the division by the sum may be
//             one of these
//
// Q, K, V, masks and other operands may be computed by ops of the set: their elements are asked for
// one by one. A value "depends on the scores" when it is computed from the first product.
#ifndef HEDDLE_MECHANISM_ATTENTION_ATTENTION_H
#define HEDDLE_MECHANISM_ATTENTION_ATTENTION_H

#include "compiler/mechanism/Mechanism.h"

namespace heddle::mechanism {

struct AttentionParts {
  graph::MatmulOp scores, values;
  graph::ReduceMaxOp max;
  graph::ReduceSumOp sum;
  mlir::Value logits, powers, weights; // [batch..., queries, keys]
  mlir::Value result;
  /// weights is powers / sum and nothing else: the division can wait for the product's rows.
  bool dividesLast = false;
  /// Transposes and reshapes between values and result, in order.
  llvm::SmallVector<mlir::Operation *> moves;
};

/// The parts of ops that fit in full.
std::optional<AttentionParts> readAttention(Ops ops, std::string &why);

/// Columns of values that blocks of threads have registers for.
inline constexpr int64_t kMostColumnsOfBlocks = 256;
/// Whether there are at most so many, as far as is known before the run.
bool fitsBlocks(const AttentionParts &parts);

/// Whether blocks can multiply fragments in it: numbers of f32, depth and columns of values known
/// and at most kMostOfFragments, and nothing after the exponentials but the division.
inline constexpr int64_t kMostOfFragments = 128;
bool fitsFragments(const AttentionParts &parts);
/// The type of 16 bits whose fragments serve these ops, an attention (factorsInThreads); null where
/// numbers do.
mlir::Type fragmentsOf(Ops ops, bool isShort);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_ATTENTION_ATTENTION_H
