// Regions: independent groups that are launched at once.
#ifndef HEDDLE_PARTITION_ORDER_REGIONS_H
#define HEDDLE_PARTITION_ORDER_REGIONS_H

#include "compiler/graph/Graph.h"

namespace heddle::partition {

/// Apollo's Layer III (Zhao et al., MLSys 2022): neighbouring groups that do not read each other
/// share one parallel region. The gain is a barrier, and that small groups run beside large ones;
/// nothing is lost, since memory lives hardly longer. Sets their region, of at most `mostAtOnce`.
/// `wanted`, when given, says instead which groups shall share one, by name; those that cannot do
/// not.
void packRegions(mlir::Block &block, const std::map<std::string, int64_t> *wanted,
                 size_t mostAtOnce);

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_ORDER_REGIONS_H
