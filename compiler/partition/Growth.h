// Growth: subgraphs that cards claim, grown around skeleton ops.
#ifndef HEDDLE_PARTITION_GROWTH_H
#define HEDDLE_PARTITION_GROWTH_H

#include "compiler/partition/Groups.h"

namespace heddle::partition {

/// A subgraph that some card takes as a whole. Results of several of its ops may be read elsewhere
/// if the card's mechanism stores them; then no such reader leads back into it.
struct Claim {
  llvm::SmallVector<mlir::Operation *> ops; // operands first
  const Mechanism *mechanism = nullptr;     // of the card
};

/// The question that growth asks of a claim.
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
/// So no grouping can close a cycle. Ops of groups, and those that are `isHost`, are in none. What
/// the policy finds better outside is given back.
std::vector<Claim> growClaims(Groups &groups, const warehouse::Warehouse &cards,
                              std::vector<Claim> begun);

/// Moves what reads claims between their ops after the last of them. Leaves out claims if that
/// would close a cycle, or move something to the other side of an op that others may not pass.
void moveReadersBehind(std::vector<Claim> &claims, Groups &groups);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_GROWTH_H
