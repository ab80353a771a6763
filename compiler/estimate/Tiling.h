// Tiling: what a candidate's knobs make of a group's extents: tiles, tasks, and how full registers
// and caches get.
#ifndef HEDDLE_ESTIMATE_TILING_H
#define HEDDLE_ESTIMATE_TILING_H

#include "compiler/estimate/Extents.h"
#include "compiler/mechanism/Mechanism.h"
#include "compiler/program/Machine.h"

#include <map>

namespace heddle::estimate {

struct Tiling {
  double m = 1, n = 1;                  // rows and columns of a tile
  double rowTiles = 1, columnTiles = 1; // of a matrix
  double rowsFill = 1, columnsFill = 1; // the share of their elements that is not padding
  double lanesFill = 1;                 // the share of a tile's vectors that is columns
  double registers = 0;                 // that a tile takes, of those that there are
  double loads = 1;                     // vectors that are read for each multiply-add
  double l1 = 0, l2 = 0;                // bytes that are read again and again, of each cache
  double tasks = 1;                     // that workers share
  double balance = 1;                   // the share of workers' time that is work
  double arithmetic = 0;                // scalar operations with those of padding
};

/// `mechanism`: that carries the group out, or null. `flops` and `elements`: of the group, and of
/// its largest result.
Tiling tilingOf(const Extents &extents, const mechanism::Mechanism *mechanism,
                const std::map<std::string, int64_t> &knobs, const program::Machine &machine,
                double flops, double elements);

} // namespace heddle::estimate

#endif // HEDDLE_ESTIMATE_TILING_H
