// Sharing: how the register tiles of a product are shared among tasks. lower/contraction emits what
// this says, and models of costs are told the same.
#ifndef HEDDLE_ESTIMATE_SHARING_H
#define HEDDLE_ESTIMATE_SHARING_H

#include "compiler/graph/Graph.h"
#include "compiler/program/Machine.h"

#include <map>

namespace heddle::estimate {

/// Tasks are chunks of panels by blocks of tiles.
struct Sharing {
  graph::Dim chunk, chunks; // panels of a task, and tasks along them
  graph::Dim block, blocks; // tiles of a task, and tasks along them
};

/// Shares by the knobs `panels` and `tiles` where they are set, else by the machine and the
/// thresholds around `at`, which may be null.
class Sharer {
public:
  Sharer(mlir::Operation *at, const std::map<std::string, int64_t> &knobs,
         const program::Machine &machine);

  /// The panels that a task takes at most: those that stay in the L2, in chunks of one size.
  int64_t mostPanels(int64_t panelBytes, const graph::Dim &panels) const;
  /// Panels of such a task where tiles read so many bytes of rows: the knob is for rows that stay
  /// in the L2. Others come from further away for each chunk, which is as large as the L2 holds.
  graph::Dim mostPanels(int64_t panelBytes, const graph::Dim &panels,
                        const graph::Dim &rowBytes) const;
  /// The panels of a chunk, if each chunk is met by `apart` tasks. Workers get equal numbers of
  /// neighbouring tasks, which are small beside that share: single panels if tiles are few.
  graph::Dim chunkOf(const graph::Dim &apart, const graph::Dim &panels,
                     const graph::Dim &most) const;
  /// Shares tiles, too, single ones if these are not many.
  Sharing share(const graph::Dim &tiles, const graph::Dim &panels, const graph::Dim &most) const;

private:
  int64_t fittingPanels(int64_t panelBytes) const;

  int64_t workers, l2Bytes;
  int64_t enough;    // tasks that keep all workers busy
  int64_t mostTiles; // of a task
  int64_t panelsKnob = 0, tilesKnob = 0;
};

} // namespace heddle::estimate

#endif // HEDDLE_ESTIMATE_SHARING_H
