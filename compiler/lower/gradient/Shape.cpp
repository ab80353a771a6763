// Shape: what the op says, and the sizes of copies that fit the caches.

#include "compiler/lower/gradient/Shape.h"

#include "compiler/mechanism/convolution/FilterGradient.h"

#include <numeric>

using namespace mlir;

namespace heddle::lower {

/// Elements of the image that a position meets in one strip after the other, at most.
static constexpr int64_t kChunk = 512;
static constexpr int64_t kAlignment = 64; // bytes

LogicalResult GradientShape::read(const KernelBuilder &kernel, Block *group,
                                  const Schedule &schedule) {
  auto op = dyn_cast<graph::ConvFilterGradientOp>(group->front());
  if (!op)
    return failure();
  element = graph::storageOf(op.getResult());
  result = op.getResult();
  image = op.getX();
  slopes = op.getDy();
  x = graph::dimsOf(image);
  dy = graph::dimsOf(slopes);
  DimVector w = graph::dimsOf(op.getResult());
  for (const Dim &size : ArrayRef<Dim>(w).drop_front(2))
    window.push_back(*size.constant());
  strides.assign(op.getStrides().begin(), op.getStrides().end());
  dilations.assign(op.getDilations().begin(), op.getDilations().end());
  low.assign(op.getLow().begin(), op.getLow().end());
  groups = op.getGroups();
  channels = *w[1].constant();
  filters = *w[0].constant() / groups;
  places = std::accumulate(window.begin(), window.end(), int64_t(1), std::multiplies<>());
  if (mechanism::meetsOnePixel(op)) {
    flatten();
    isTurned = schedule.knob("turned", 0) != 0;
  }
  if (isTurned) {
    std::swap(image, slopes);
    std::swap(x, dy);
    std::swap(channels, filters);
  }
  int64_t lanes = kernel.machine.lanes;
  n = isDepthwise() ? 0 : llvm::alignTo(schedule.knob("n", 2 * lanes), lanes);
  m = std::min(schedule.knob("m", 8), std::max<int64_t>(channels, 1));
  parts = schedule.knob("parts", 1);
  copiesImage = !isDepthwise() && schedule.knob("strips", 0) != 0;
  copiesSlopes = !isDepthwise() && schedule.knob("panels", 0) != 0;
  if (isDepthwise()) {
    atOnce = kLineColumns;
    return success();
  }
  // Few enough channels for many positions of them in the L2.
  int64_t copies = copiesImage ? outerPlaces() * slotStep() : 1; // elements for each position
  int64_t most = std::max(kChunk / copies, m), least = llvm::divideCeil(channels, most);
  int64_t count = std::max(least, schedule.knob("chunks", 1));
  chunk = llvm::alignTo(llvm::divideCeil(channels, count), m);
  // Their image and a panel of dy have a quarter of the L2.
  int64_t bytes = (n + copies * chunk) * (int64_t)sizeof(float);
  atOnce = std::max(kLineColumns, kernel.machine.l2Bytes / 4 / bytes);
  return success();
}

/// All positions are columns of one line.
void GradientShape::flatten() {
  for (DimVector *sizes : {&x, &dy}) {
    Dim pixels = graph::elementCount(ArrayRef<Dim>(*sizes).drop_back());
    *sizes = {Dim(1), pixels, sizes->back()};
  }
  window = strides = dilations = {1};
  low = {0};
}

Dim GradientShape::positions() const { return graph::elementCount(ArrayRef<Dim>(dy).drop_back()); }

int64_t GradientShape::imageSlots() const {
  return outerPlaces() * (atOnce * slotStep() + reach());
}

int64_t GradientShape::panelAt() const {
  return llvm::alignTo(kTableLines * fields() * (int64_t)sizeof(int64_t), kAlignment);
}

int64_t GradientShape::imageAt() const {
  return panelAt() + (copiesSlopes ? atOnce * n * (int64_t)sizeof(float) : 0);
}

int64_t GradientShape::sumsAt() const {
  return imageAt() + (copiesImage ? strips() * imageSlots() * m * (int64_t)sizeof(float) : 0);
}

} // namespace heddle::lower
