// AttentionGradients: what an attention's gradient is made of, as a claim of its own.
#ifndef HEDDLE_PARTITION_ATTENTIONGRADIENTS_H
#define HEDDLE_PARTITION_ATTENTIONGRADIENTS_H

#include "compiler/partition/Growth.h"

namespace heddle::partition {

/// Claims that hold a gradient of scores, as far as a card takes it and it is wanted. What it reads
/// of the way forward, from the product that makes scores on, is computed again in it, so that the
/// attention itself need not store what lies between its products either (Dao et al., NeurIPS 2022,
/// section 3.1).
std::vector<Claim> beginAttentionGradients(mlir::Block &block, const warehouse::Warehouse &cards,
                                           IsWanted isWanted);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_ATTENTIONGRADIENTS_H
