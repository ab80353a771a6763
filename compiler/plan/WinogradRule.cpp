// WinogradRule: the times of a 3x3 convolution, direct and in tiles, in multiply-adds
// (bench/notes/2026-11-21-winograd.md).
//
//     direct   taps in columns pixels + f 9 in out
//     tiles    places (tiles (in columns + t (in + out)) + f in out),   places = (m + 2)^2
//
// taps are those that are in the image, 9 but for dilations; columns are filters in whole vectors.
// Few filters have a form of their own, whose cost is NarrowRule's
// (bench/notes/2026-11-25-plans.md). f is the cost of reading a number of the filters, more if they
// do not stay in the cache, or of transforming it in each task; t that of transforming a number of
// a tile, in cycles, each of which has one or two multiply-adds.

#include "compiler/plan/WinogradRule.h"

#include "compiler/graph/Typical.h"
#include "compiler/plan/NarrowRule.h"

namespace heddle::plan {

using graph::Dim;

namespace {
constexpr double kNear = 4, kFar = 24, kTransform = 1.5; // cycles; t = 1.5 (m + 2)
constexpr int64_t kMostFmas = 2; // for late filters, transforms were not measured with fewer
constexpr double kLate = 5, kLateTiles = 64; // f, and the tiles of a task
/// Tiles of 2x2 read V more often for what they compute; and what is about as fast as the direct
/// form is left to it.
constexpr double kSmallTiles = 1.25, kGain = 1.1;
/// Limit of transformed filters beyond the plain ones: some, and more for large images.
constexpr double kRoomBytes = 1 << 19, kRoomPerImageByte = 4, kMostRoomBytes = 4 << 20;
/// Number of images and their rows, if nothing says a typical size.
constexpr int64_t kLikelyImages = 1, kLikelySize = 56;

/// A layer in numbers.
struct Layer {
  double in, out, images, height, width;
  double apart[2]; // dilations

  double pixels() const { return images * height * width; }
  double tiles(int64_t m) const {
    auto along = [&](double size, double step) {
      return step * std::ceil(std::ceil(size / step) / static_cast<double>(m));
    };
    return images * along(height, apart[0]) * along(width, apart[1]);
  }
  /// Taps of a pixel, the mean: the direct form leaves out those that are beyond the border where a
  /// dilation makes them many.
  double taps() const {
    auto along = [](double size, double step) {
      return step > 1 ? 1 + 2 * std::max(0.0, size - step) / size : 3;
    };
    return along(height, apart[0]) * along(width, apart[1]);
  }
};
} // namespace

static double costOfFilters(double numbers, const program::Machine &machine) {
  bool isFar = numbers * sizeof(float) > static_cast<double>(machine.nearBytes);
  return numbers * (isFar ? kFar : kNear);
}

static std::optional<Layer> layerOf(graph::ConvOp conv) {
  graph::DimVector w = graph::dimsOf(conv.getW()), y = graph::dimsOf(conv.getResult());
  if (w.size() != 4 || !w[0].constant() || !w[1].constant())
    return std::nullopt;
  auto likely = [&](const Dim &dim, int64_t size) {
    return static_cast<double>(
        std::max<int64_t>(1, graph::knownTypicalSize(conv, dim).value_or(size)));
  };
  return Layer{
      static_cast<double>(*w[1].constant()),
      static_cast<double>(*w[0].constant()),
      likely(y[0], kLikelyImages),
      likely(y[1], kLikelySize),
      likely(y[2], kLikelySize),
      {static_cast<double>(conv.getDilations()[0]), static_cast<double>(conv.getDilations()[1])}};
}

WinogradForm winogradForm(graph::ConvOp conv, const program::Machine &machine) {
  std::optional<Layer> layer = layerOf(conv);
  if (!layer)
    return {};
  double in = layer->in, out = layer->out, pixels = layer->pixels();
  auto lanes = static_cast<double>(machine.lanes);
  double columns = std::ceil(out / lanes) * lanes;
  double vectors = (std::ceil(in / lanes) + std::ceil(out / lanes)) * lanes;
  double room = kRoomBytes + kRoomPerImageByte * sizeof(float) * (in + out) * pixels;
  double ofPixel = layer->taps() * in * columns;
  if (auto narrow = narrowCost(conv, machine))
    ofPixel = std::min(ofPixel, lanes * *narrow);
  double least = (ofPixel * pixels + costOfFilters(9 * in * out, machine)) / kGain;
  bool isKnown = conv.getW().getDefiningOp<graph::ConstantOp>() != nullptr;
  WinogradForm best;
  for (int64_t m : {4, 2}) {
    auto places = static_cast<double>((m + 2) * (m + 2));
    double tiles = layer->tiles(m), numbers = places * in * out;
    auto transforms = [&](int64_t fmas) {
      return kTransform * static_cast<double>((m + 2) * fmas) * vectors;
    };
    auto offer = [&](bool isLate, double filters) {
      double ofTile = in * columns + transforms(isLate ? kMostFmas : machine.fmas);
      double cost = places * tiles * ofTile + filters;
      cost *= m == 2 ? kSmallTiles : 1;
      if (cost < least) {
        best = {m, isLate};
        least = cost;
      }
    };
    offer(true, kLate * numbers * std::ceil(tiles / kLateTiles));
    if (isKnown && (places - 9) * in * out * sizeof(float) <= std::min(room, kMostRoomBytes))
      offer(false, costOfFilters(numbers, machine));
  }
  return best;
}

} // namespace heddle::plan
