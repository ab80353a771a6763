// Mutation: a group with one op made wrong, which a proof has to notice.
//
// A comparison that passes whatever the kernel computes proves nothing; so each proof is held
// against a kernel that is known to be wrong (mutation testing).
#ifndef HEDDLE_CARDS_MUTATION_H
#define HEDDLE_CARDS_MUTATION_H

#include "compiler/cards/Trial.h"

namespace heddle::cards {

/// How many ops of a trial can be made wrong.
int64_t countMutations(mlir::ModuleOp module);

/// Makes one of them wrong, and says how: "'graph.add' becomes 'graph.sub'".
std::string mutate(mlir::ModuleOp module, int64_t number);

} // namespace heddle::cards

#endif // HEDDLE_CARDS_MUTATION_H
