// Shape: the gradient of a convolution's filters as sums over positions: sizes, and what of them
// lies where in a worker's scratch.
#ifndef HEDDLE_LOWER_GRADIENT_SHAPE_H
#define HEDDLE_LOWER_GRADIENT_SHAPE_H

#include "compiler/lower/Schedule.h"

namespace heddle::lower {

class GradientShape {
public:
  /// Fails where the group is no such gradient.
  mlir::LogicalResult read(const KernelBuilder &kernel, mlir::Block *group,
                           const Schedule &schedule);

  bool isDepthwise() const { return channels == 1 && filters == 1 && groups > 1; }
  int64_t panels() const { return llvm::divideCeil(filters, n); }
  int64_t chunks() const { return llvm::divideCeil(channels, chunk); }
  int64_t strips() const { return llvm::divideCeil(chunk, m); }
  int64_t outerCount() const { return window.size() - 1; }
  int64_t outerPlaces() const { return places / window.back(); }
  Dim positions() const; // of dy

  /// Columns of dy are as many pixels apart in a strip.
  int64_t slotStep() const { return window.back() == 1 ? 1 : strides.back(); }
  int64_t reach() const { return (window.back() - 1) * dilations.back(); }
  int64_t imageSlots() const;

  // Lines of the table, which are in the scratch together.
  static constexpr int64_t kLineColumns = 256; // of one at most
  static constexpr int64_t kTableLines = 512;  // at most
  int64_t fields() const { return 4 + outerCount(); }
  int64_t positionsAtOnce() const { return atOnce; }

  // A worker's scratch: the table, the panel of dy, the image, then sums; in bytes.
  int64_t panelAt() const;
  int64_t imageAt() const;
  int64_t sumsAt() const;

  Value result;
  Type element;
  Value image, slopes; // x and dy; the other way round where the product is turned
  DimVector x, dy;     // [n, spatial..., c]
  using Ints = llvm::SmallVector<int64_t, 3>;
  Ints window, strides, dilations, low; // of each spatial dimension, the columns last
  int64_t groups = 1, places = 1;
  int64_t channels = 0, filters = 0; // of a group
  int64_t m = 0, n = 0, parts = 1;
  int64_t chunk = 0; // channels of a task
  bool copiesImage = false, copiesSlopes = false, isTurned = false;

private:
  void flatten();

  int64_t atOnce = 0;
};

} // namespace heddle::lower

#endif // HEDDLE_LOWER_GRADIENT_SHAPE_H
