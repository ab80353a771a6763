// WinogradRule: the times of a 3x3 convolution, direct and in tiles, in multiply-adds
// (bench/notes/2026-11-21-winograd.md).
//
//     direct   9 in out (pixels + f)
//     tiles    places (tiles (in out + t (in + out)) + f in out),   places = (m + 2)^2
//
// f is what a number of the filters costs to be read, more where they do not stay in the cache, and
// t what a number of a tile costs to be transformed.

#include "compiler/plan/WinogradRule.h"

namespace heddle::plan {

using graph::Dim;

namespace {
constexpr double kNear = 4, kFar = 24, kTransform = 3; // t = 3 (m + 2)
constexpr double kFarBytes = 12 << 20;
/// Tiles of 2x2 read V more often for what they compute; and what is about as fast as the direct
/// form is left to it, which takes less memory.
constexpr double kSmallTiles = 1.25, kGain = 1.1;
/// What transformed filters may take beyond the plain ones: some, and more where images are large.
constexpr double kRoomBytes = 1 << 18, kRoomPerImageByte = 4;
/// Of images and of their rows, where only the run knows.
constexpr int64_t kLikelyImages = 1, kLikelySize = 56;
} // namespace

static double costOfFilters(double numbers) {
  return numbers * (numbers * sizeof(float) > kFarBytes ? kFar : kNear);
}

int64_t winogradTile(graph::ConvOp conv, const loop::Machine &machine) {
  graph::DimVector w = graph::dimsOf(conv.getW()), y = graph::dimsOf(conv.getResult());
  if (w.size() != 4 || !w[0].constant() || !w[1].constant())
    return 0;
  auto out = static_cast<double>(*w[0].constant()), in = static_cast<double>(*w[1].constant());
  auto vectors = static_cast<double>(llvm::alignTo(*w[0].constant(), machine.lanes) +
                                     llvm::alignTo(*w[1].constant(), machine.lanes));
  auto likely = [](const Dim &dim, int64_t size) {
    return std::max<int64_t>(1, dim.constant().value_or(size));
  };
  int64_t images = likely(y[0], kLikelyImages);
  int64_t height = likely(y[1], kLikelySize), width = likely(y[2], kLikelySize);
  auto pixels = static_cast<double>(images * height * width);
  double room = kRoomBytes + kRoomPerImageByte * sizeof(float) * (in + out) * pixels;
  double least = (9 * in * out * pixels + costOfFilters(9 * in * out)) / kGain;
  int64_t best = 0;
  for (int64_t m : {4, 2}) {
    auto places = static_cast<double>((m + 2) * (m + 2));
    if ((places - 9) * in * out * sizeof(float) > room)
      continue;
    auto tiles =
        static_cast<double>(images * llvm::divideCeil(height, m) * llvm::divideCeil(width, m));
    double transforms = kTransform * static_cast<double>(m + 2) * vectors;
    double cost = places * tiles * (in * out + transforms) + costOfFilters(places * in * out);
    cost *= m == 2 ? kSmallTiles : 1;
    if (cost < least) {
      best = m;
      least = cost;
    }
  }
  return best;
}

} // namespace heddle::plan
