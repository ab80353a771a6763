// Growth: subgraphs that cards claim, grown around skeleton ops.
#ifndef HEDDLE_PARTITION_GROWTH_H
#define HEDDLE_PARTITION_GROWTH_H

#include "compiler/warehouse/Warehouse.h"

namespace heddle::partition {

/// Of a group, however it came about.
inline constexpr size_t kMostOps = 256;

/// Ops that are computed again for each reader, and readers that do so.
inline constexpr size_t kMostCopied = 4;

/// A subgraph that some card takes as a whole. Results of several of its ops may be read elsewhere
/// if the card's mechanism stores them; then no such reader leads back into it.
struct Claim {
  llvm::SmallVector<mlir::Operation *> ops;        // operands first
  const mechanism::Mechanism *mechanism = nullptr; // of the card
};

/// What growth asks of an op or of a claim.
using IsHost = llvm::function_ref<bool(mlir::Operation *)>;
using IsWanted = llvm::function_ref<bool(const Claim &)>;

/// PluS's algorithms 1 and 2 (Wu et al., USENIX ATC 2025, 4.3) on one block: from each op with a
/// loop that is not parallel, last to first, the subgraph grows by producers all of whose users are
/// inside and by the one consumer of its result, as long as a card's nest may still match; what
/// matched last is kept, what came after it is given back. For cards whose mechanism stores several
/// results it grows by all producers and readers instead, and matches where no path leads out of it
/// and back.
///
/// What is begun already comes first, and grows by all producers and readers as well.
///
/// So no grouping can close a cycle. Ops that are `isHost` belong to no group. Readers of a claim
/// that are between its ops are moved after the last of them.
std::vector<Claim> growClaims(mlir::Block &block, const warehouse::Warehouse &cards, IsHost isHost,
                              std::vector<Claim> begun);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_GROWTH_H
