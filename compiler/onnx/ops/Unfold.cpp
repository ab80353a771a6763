// Unfold: windows by gathers along each dimension, then one matrix product a group.

#include "compiler/onnx/ops/Unfold.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Value unfoldedConvolution(Emitter &e, Value x, Value w, const Sliding &sliding) {
  DimVector filters = dimsOf(w);
  size_t count = filters.size() - 2;
  Dim groups(sliding.groups);
  DimVector low(2, Dim(0)), high(2, Dim(0));
  low.append(sliding.low);
  high.append(sliding.high);
  x = e.pad(x, e.scalar(elementOf(x), 0), low, high);
  DimVector dims = dimsOf(x), places, windows;
  for (size_t i = 0; i < count; ++i) {
    Dim reach = (filters[2 + i] - Dim(1)) * Dim(sliding.dilations[i]) + Dim(1);
    places.push_back((dims[2 + i] - reach).floorDiv(Dim(sliding.strides[i])) + Dim(1));
    windows.push_back(filters[2 + i]);
  }
  // [N, C, place, window, place, window ...]
  for (size_t i = count; i-- > 0;) {
    DimVector box = {places[i], windows[i]};
    Value start = e.mul(e.iota(box, 0, e.i64()), sliding.strides[i]);
    Value step = e.mul(e.iota(box, 1, e.i64()), sliding.dilations[i]);
    x = e.gather(x, e.add(start, step), 2 + i);
  }
  Dim images = dims[0], depth = filters[1] * elementCount(windows), all = elementCount(places);
  DimVector apart = {images, groups, filters[1]};
  Ints order = {0, 1};
  for (size_t i = 0; i < count; ++i) {
    apart.append({places[i], windows[i]});
    order.push_back(3 + 2 * i);
  }
  order.push_back(2);
  for (size_t i = 0; i < count; ++i)
    order.push_back(4 + 2 * i);
  Value rows = e.reshape(e.transpose(e.reshape(x, apart), order), {images, groups, all, depth});
  Dim outputs = filters[0].floorDiv(groups);
  Value columns = e.transpose(e.reshape(w, {groups, outputs, depth}), {0, 2, 1});
  Value product = e.transpose(e.matmul(rows, columns), {0, 1, 3, 2});
  DimVector result = {images, groups * outputs};
  result.append(places);
  return e.reshape(product, result);
}

/// stride - 1 zeros between neighbours.
static Value spreadOut(Emitter &e, Value x, ArrayRef<int64_t> strides) {
  DimVector dims = dimsOf(x), apart = {dims[0], dims[1]}, wide = apart, sizes = apart;
  DimVector none(2 + 2 * strides.size(), Dim(0)), high = none;
  for (auto [i, stride] : llvm::enumerate(strides)) {
    Dim size = dims[2 + i];
    apart.append({size, Dim(1)});
    high[3 + 2 * i] = Dim(stride - 1);
    wide.push_back(size * Dim(stride));
    sizes.push_back(Dim::max((size - Dim(1)) * Dim(stride) + Dim(1), Dim(0)));
  }
  Value padded = e.pad(e.reshape(x, apart), e.scalar(elementOf(x), 0), none, high);
  return e.slice(e.reshape(padded, wide), DimVector(dims.size(), Dim(0)), sizes,
                 Ints(dims.size(), 1));
}

Value unfoldedTransposedConvolution(Emitter &e, Value x, Value w, const Sliding &sliding) {
  DimVector filters = dimsOf(w);
  size_t count = filters.size() - 2;
  Dim groups(sliding.groups), inputs = filters[0].floorDiv(groups);
  DimVector starts = {Dim(0), Dim(0)};
  Ints steps = {1, 1};
  Sliding turned{Ints(count, 1), sliding.dilations, {}, {}, sliding.groups};
  for (size_t i = 0; i < count; ++i) {
    Dim reach = (filters[2 + i] - Dim(1)) * Dim(sliding.dilations[i]);
    turned.low.push_back(reach - sliding.low[i]);
    turned.high.push_back(reach - sliding.high[i]);
    starts.push_back(filters[2 + i] - Dim(1));
    steps.push_back(-1);
  }
  Value flipped = e.slice(w, starts, filters, steps);
  DimVector apart = {groups, inputs, filters[1]}, joined = {groups * filters[1], inputs};
  Ints order = {0, 2, 1};
  for (size_t i = 0; i < count; ++i) {
    apart.push_back(filters[2 + i]);
    joined.push_back(filters[2 + i]);
    order.push_back(3 + i);
  }
  Value swapped = e.reshape(e.transpose(e.reshape(flipped, apart), order), joined);
  return unfoldedConvolution(e, spreadOut(e, x, sliding.strides), swapped, turned);
}

} // namespace heddle::onnx
