// FilterGradientRule: the cost of a column of dy for all channels and filters, in vector
// instructions (bench/notes/2026-11-25-convolution-backward.md).
//
//     tile of m x v vectors    max(m v, m + v, latency) + loop
//
// m v multiply-adds and m + v reads go through as many ports; fewer accumulators than an addition
// takes steps wait for each other.

#include "compiler/plan/FilterGradientRule.h"

#include "compiler/graph/Typical.h"
#include "compiler/mechanism/convolution/FilterGradient.h"

using namespace mlir;

namespace heddle::plan {

namespace {
constexpr int64_t kLatency = 8, kLoop = 2;
constexpr int64_t kTasks = 8;            // that keep threads busy
constexpr int64_t kLeastPositions = 512; // of a part: its sums are written and read once more
constexpr int64_t kLeastChannels = 64;   // of a chunk: it copies all of dy
constexpr int64_t kFar = 256;            // elements between columns: few lines of a cache's set
constexpr int64_t kMostOfSize = 1 << 16; // of a dimension, so that no product wraps

struct Sizes {
  int64_t groups, channels, filters, places; // channels and filters of a group
};
} // namespace

static int64_t stepCost(int64_t rows, int64_t vectors) {
  return std::max({rows * vectors, rows + vectors, kLatency}) + kLoop;
}

static int64_t costOf(const Sizes &sizes, int64_t m, int64_t n, const program::Machine &machine) {
  int64_t vectors = n / machine.lanes, panels = llvm::divideCeil(sizes.filters, n);
  int64_t cost = sizes.channels / m * stepCost(m, vectors);
  if (sizes.channels % m != 0)
    cost += stepCost(sizes.channels % m, vectors);
  int64_t copied = 2 * vectors; // into the panel
  return panels * (sizes.places * cost + copied);
}

/// Positions of all images.
static int64_t positionsOf(graph::ConvFilterGradientOp op) {
  graph::DimVector dims = graph::dimsOf(op.getDy());
  dims.erase(op.getChannelsLast() ? dims.end() - 1 : dims.begin() + 1);
  int64_t positions = 1;
  for (const graph::Dim &size : dims)
    positions *= std::clamp<int64_t>(graph::typicalSize(op, size), 1, kMostOfSize);
  return positions;
}

namespace {
struct Tile {
  int64_t m = 1, n = 1, cost = std::numeric_limits<int64_t>::max();
};
} // namespace

static Tile bestTile(const Sizes &sizes, const warehouse::Card &card,
                     const program::Machine &machine) {
  Tile best;
  for (int64_t m : card.knob("m")->domain)
    for (int64_t n : card.knob("n")->domain)
      if (machine.holdsTile(m, n))
        if (int64_t cost = costOf(sizes, m, n, machine); cost < best.cost)
          best = {m, n, cost};
  return best;
}

void chooseFilterGradient(graph::ConvFilterGradientOp op, const warehouse::Card &card,
                          const program::Machine &machine, warehouse::KnobValues &knobs) {
  for (const char *name : {"m", "n", "parts", "chunks", "strips", "panels", "turned"})
    if (!card.knob(name))
      return;
  graph::DimVector w = graph::dimsOf(op.getResult());
  int64_t groups = op.getGroups(), filters = *w[0].constant() / groups;
  int64_t places = *graph::elementCount(ArrayRef<graph::Dim>(w).drop_front(2)).constant();
  Sizes sizes{groups, *w[1].constant(), filters, places};
  Sizes turned{groups, sizes.filters, sizes.channels, places};
  Tile tile = bestTile(sizes, card, machine), other = bestTile(turned, card, machine);
  bool isTurned = mechanism::meetsOnePixel(op) && other.cost < tile.cost;
  if (isTurned) {
    std::swap(sizes, turned);
    std::swap(tile, other);
  }
  bool isDepthwise = sizes.channels == 1 && sizes.filters == 1;
  int64_t wanted = kTasks / (isDepthwise ? 1 : std::min(groups, kTasks));
  knobs["m"] = tile.m;
  knobs["n"] = tile.n;
  knobs["turned"] = isTurned;
  knobs["strips"] = sizes.channels * groups * op.getStrides().back() >= kFar;
  knobs["panels"] = places > 1 || sizes.filters * groups >= kFar;
  knobs["parts"] = card.knob("parts")->atMost(std::min(wanted, positionsOf(op) / kLeastPositions));
  knobs["chunks"] = card.knob("chunks")->atMost(
      std::min(wanted / knobs["parts"], sizes.channels / kLeastChannels));
}

} // namespace heddle::plan
