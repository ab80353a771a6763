// WinogradRule: the times of a 3x3 convolution, direct and in tiles, in multiply-adds
// (bench/notes/2026-11-21-winograd.md).
//
//     direct   9 pixels in out + 9 in out f
//     tiles    places (tiles (in out + t (in + out)) + in out f),  places = (m + 2)^2
//
// t is what a number of a tile costs to be transformed, and f what a number of the filters costs to
// be read, both in multiply-adds.

#include "compiler/plan/WinogradRule.h"

namespace heddle::plan {

using graph::Dim;

namespace {
constexpr double kTransform = 24, kFilter = 13;
// Of images and of their rows, where only the run knows.
constexpr int64_t kLikelyImages = 1, kLikelySize = 56;
} // namespace

int64_t winogradTile(graph::ConvOp conv) {
  graph::DimVector w = graph::dimsOf(conv.getW()), y = graph::dimsOf(conv.getResult());
  if (w.size() != 4 || !w[0].constant() || !w[1].constant())
    return 0;
  auto out = static_cast<double>(*w[0].constant()), in = static_cast<double>(*w[1].constant());
  auto likely = [](const Dim &dim, int64_t size) {
    return std::max<int64_t>(1, dim.constant().value_or(size));
  };
  int64_t images = likely(y[0], kLikelyImages);
  int64_t height = likely(y[1], kLikelySize), width = likely(y[2], kLikelySize);
  int64_t best = 0;
  double least = 9 * in * out * (static_cast<double>(images * height * width) + kFilter);
  for (int64_t m : {2, 4}) {
    auto places = static_cast<double>((m + 2) * (m + 2));
    auto tiles =
        static_cast<double>(images * llvm::divideCeil(height, m) * llvm::divideCeil(width, m));
    double cost = places * (tiles * (in * out + kTransform * (in + out)) + kFilter * in * out);
    if (cost < least) {
      best = m;
      least = cost;
    }
  }
  return best;
}

} // namespace heddle::plan
