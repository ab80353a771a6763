// Tiling: see Tiling.h. Tails of rows, which have smaller tiles, are counted as whole ones.

#include "compiler/estimate/Tiling.h"

#include "compiler/estimate/Sharing.h"

#include <cmath>

namespace heddle::estimate {

namespace {
class Estimate {
public:
  Estimate(const Extents &extents, const mechanism::Mechanism *mechanism,
           const std::map<std::string, int64_t> &knobs, const program::Machine &machine,
           double elements)
      : extents(extents), mechanism(mechanism), knobs(knobs), machine(machine), elements(elements),
        workers(std::max<double>(1, static_cast<double>(machine.workers))),
        sharer(extents.root, knobs, machine) {}

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
    auto found = knobs.find(name.str());
    return found == knobs.end() ? otherwise : static_cast<double>(found->second);
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
    panels = static_cast<double>(
        sharer.mostPanels(static_cast<int64_t>(panel), dimOf(tiling.columnTiles)));
    tiling.l1 = (panel + strip) / std::max(1.0, static_cast<double>(machine.l1Bytes));
    tiling.l2 = (panels * panel + strip) / std::max(1.0, static_cast<double>(machine.l2Bytes));
  }
  static graph::Dim dimOf(double count) { return {static_cast<int64_t>(std::min(count, 0x1p62))}; }

  double tasks(bool hasTile) const {
    if (mechanism && mechanism->takesRows) {
      double rows = knob("rows", 0);
      return extents.batches * (rows > 0 ? tiles(extents.rows, rows) : 1);
    }
    if (double chunk = knob("chunk", 0); chunk > 0)
      return tiles(elements, chunk);
    if (!hasTile)
      return extents.batches * extents.rows;
    Sharing sharing = sharer.share(dimOf(extents.batches * tiling.rowTiles),
                                   dimOf(tiling.columnTiles), static_cast<int64_t>(panels));
    return countOf(sharing.chunks) * countOf(sharing.blocks);
  }

  const Extents &extents;
  const mechanism::Mechanism *mechanism;
  const std::map<std::string, int64_t> &knobs;
  const program::Machine &machine;
  double elements, workers, panels = 1;
  Sharer sharer;
  Tiling tiling;
};
} // namespace

Tiling tilingOf(const Extents &extents, const mechanism::Mechanism *mechanism,
                const std::map<std::string, int64_t> &knobs, const program::Machine &machine,
                double flops, double elements) {
  return Estimate(extents, mechanism, knobs, machine, elements).of(flops);
}

} // namespace heddle::estimate
