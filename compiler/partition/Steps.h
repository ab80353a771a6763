// Steps: what makes the groups of one block, in this order; each is a file of its name.
#ifndef HEDDLE_PARTITION_STEPS_H
#define HEDDLE_PARTITION_STEPS_H

#include "compiler/partition/Groups.h"
#include "compiler/partition/Growth.h"

namespace heddle::partition {

/// Copies what costs nothing to compute again, for each of its users.
void copyFreeOps(Groups &groups);
/// Makes the groups that a plan has op by op.
void takeGiven(Groups &groups);
/// Makes groups of subgraphs that cards claim.
void takeClaims(Groups &groups);
/// Copies a transpose that only products read, each of which can do without it in memory.
void copyTransposes(Groups &groups);
/// Puts all other ops into groups: into that of their users where that may be and pays.
void joinOps(Groups &groups);
/// Computes what is cheap in each group that reads it.
void recompute(Groups &groups);
/// Makes a product that is read in parts one with what reads these.
void joinGates(Groups &groups);
/// Makes a product one with the reductions over the rows of its result, Apollo's Layer II.
void stitch(Groups &groups);
/// Makes groups that walk the same elements one with several results.
void joinSiblings(Groups &groups);

/// Makes groups of these claims that nothing joins. Claims are left out if their ops cannot stand
/// together.
void addClaims(Groups &groups, std::vector<Claim> claims);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_STEPS_H
