// Lanes: the parts of the policy for processors with vector registers and caches.
#ifndef HEDDLE_PARTITION_POLICY_LANES_H
#define HEDDLE_PARTITION_POLICY_LANES_H

#include "compiler/partition/policy/FusionPolicy.h"

namespace heddle::partition {

/// Whether the op takes many instructions an element, elementwise or not.
bool isExpensive(mlir::Operation *op);
bool paysOnLanes(mlir::Operation *op, const Group &group, const Surroundings &around);
bool joinsOnLanes(const SiblingPair &pair);
std::string whyApartOnLanes(const estimate::Stitching &kernel, const program::Machine &machine);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_POLICY_LANES_H
