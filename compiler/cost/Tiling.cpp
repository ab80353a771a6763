// Tiling: see Tiling.h. The tasks of products are those of lower/contraction/Contraction.cpp, but
// for tails of rows, which have smaller tiles there.

#include "compiler/cost/Tiling.h"

#include "compiler/graph/cost/Thresholds.h"
#include "compiler/mechanism/Mechanism.h"

#include <cmath>

namespace heddle::cost {

namespace {
class Estimate {
public:
  Estimate(const Extents &extents, const Candidate &candidate, const program::Machine &machine,
           double elements)
      : extents(extents), candidate(candidate), machine(machine), elements(elements),
        workers(std::max<double>(1, static_cast<double>(machine.workers))) {}

  Tiling of(double flops) {
    double lanes =
        std::max(1.0, static_cast<double>(machine.lanes) * 4 / std::max(1.0, extents.elementBytes));
    bool hasTile = extents.isProduct && !(mechanism && !mechanism->hasTiles);
    tiling.m = hasTile ? knob("m", 1) : 1;
    tiling.n = hasTile ? knob("n", lanes) : lanes;
    tiling.rowTiles = tiles(extents.rows, tiling.m);
    tiling.columnTiles = tiles(extents.columns, tiling.n);
    tiling.rowsFill = share(extents.rows, tiling.rowTiles * tiling.m);
    tiling.columnsFill = share(extents.columns, tiling.columnTiles * tiling.n);
    double vectors = tiles(tiling.n, lanes);
    tiling.lanesFill = share(tiling.n, vectors * lanes);
    if (hasTile) {
      tiling.registers = (tiling.m * vectors + vectors + 1) /
                         std::max(1.0, static_cast<double>(machine.registers));
      tiling.loads = (tiling.m + vectors) / (tiling.m * vectors);
      addCaches();
    }
    tiling.arithmetic = flops * savings() / std::max(1e-3, fill(hasTile));
    tiling.tasks = std::max(1.0, tasks(hasTile));
    tiling.balance = share(tiling.tasks, workers * tiles(tiling.tasks, workers));
    return tiling;
  }

private:
  double knob(llvm::StringRef name, double otherwise) const {
    auto found = candidate.knobs.find(name.str());
    return found == candidate.knobs.end() ? otherwise : static_cast<double>(found->second);
  }
  static double tiles(double size, double tile) {
    return std::max(1.0, std::ceil(size / std::max(1.0, tile)));
  }
  static double share(double part, double whole) {
    return whole > 0 ? std::min(1.0, part / whole) : 1;
  }
  double fill(bool hasTile) const {
    return tiling.columnsFill * tiling.lanesFill * (hasTile ? tiling.rowsFill : 1);
  }

  /// Winograd's F(t x t, 3 x 3) multiplies (t + 2)^2 times for t^2 results.
  double savings() const {
    if (mechanism != &mechanism::kWinograd)
      return 1;
    double t = knob("tile", 2);
    return (t + 2) * (t + 2) / (extents.taps * t * t);
  }

  void addCaches() {
    double column = extents.depth * extents.elementBytes; // bytes
    double panel = tiling.n * column, strip = tiling.m * column;
    panels =
        std::min(tiling.columnTiles, knob("panels", 0) > 0 ? knob("panels", 0) : fitting(panel));
    panels = tiles(tiling.columnTiles, tiles(tiling.columnTiles, panels)); // equal chunks
    tiling.l1 = (panel + strip) / std::max(1.0, static_cast<double>(machine.l1Bytes));
    tiling.l2 = (panels * panel + strip) / std::max(1.0, static_cast<double>(machine.l2Bytes));
  }
  double fitting(double panel) const {
    return std::max(
        1.0, std::floor(static_cast<double>(machine.l2Bytes) * 3 / 8 / std::max(1.0, panel)));
  }

  double tasks(bool hasTile) const {
    if (mechanism && mechanism->takesRows) {
      double rows = knob("rows", 0);
      return extents.batches * (rows > 0 ? tiles(extents.rows, rows) : 1);
    }
    if (double chunk = knob("chunk", 0); chunk > 0)
      return tiles(elements, chunk);
    if (!hasTile)
      return extents.batches * extents.rows;
    double tileCount = extents.batches * tiling.rowTiles;
    double enough = static_cast<double>(kProductTasks.value) * workers;
    double most = panels;
    if (workers > 1) // single panels where tiles are few
      most = std::clamp((tileCount * tiles(tiling.columnTiles, panels) - enough) * panels, 1.0,
                        panels);
    double chunks = tiles(tiling.columnTiles, most);
    double block = knob("tiles", 0);
    if (block <= 0)
      block = std::clamp(std::floor(tileCount * chunks / (2 * enough)), 1.0,
                         static_cast<double>(kProductTiles.value));
    return chunks * tiles(tileCount, block);
  }

  const Extents &extents;
  const Candidate &candidate;
  const mechanism::Mechanism *mechanism = mechanism::find(candidate.mechanism);
  const program::Machine &machine;
  double elements, workers, panels = 1;
  Tiling tiling;
};
} // namespace

Tiling tilingOf(const Extents &extents, const Candidate &candidate, const program::Machine &machine,
                double flops, double elements) {
  return Estimate(extents, candidate, machine, elements).of(flops);
}

} // namespace heddle::cost
