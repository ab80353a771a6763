// Past: buffers are scattered to, slice by slice, which lowers to writes where they lie. Numbers of
// int8 have the largest of a slice's last axis as 127.

#include "compiler/onnx/ops/attention/Past.h"

#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Quantization.h"

#include <limits>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Value writeSlices(Node &n, Value x, Value fresh, int64_t axis, Value places) {
  DimVector all = dimsOf(fresh), tuples(all.begin(), all.begin() + axis + 1);
  tuples.push_back(Dim(1));
  SmallVector<Value> tuple;
  for (int64_t i = 0; i < axis; ++i)
    tuple.push_back(n.iota(tuples, i, n.i64()));
  tuple.push_back(n.broadcast(n.unsqueeze(places, {rankOf(places)}), tuples));
  return n.infer<ScatterNdOp>({x, n.concat(tuple, axis + 1), fresh}, {n.text("reduction", "none")});
}

const Buffer *bufferOf(Node &n, Value past) {
  auto found = n.reader.buffers.find(past);
  bool isExtended = found != n.reader.buffers.end() && n.reader.extenders.contains(&n.message);
  return isExtended ? &found->second : nullptr;
}

Value readBuffer(Emitter &e, const Buffer &buffer, int64_t axis, const Dim &size, Type element) {
  Value numbers = e.sliceAlong(buffer.numbers, axis, Dim(0), size);
  if (!buffer.scales)
    return e.cast(numbers, element);
  Value scales = e.sliceAlong(buffer.scales, axis, Dim(0), size);
  return e.cast(e.mul(e.cast(numbers, e.f32()), e.unsqueeze(scales, {rankOf(scales)})), element);
}

Value extendBuffer(Node &n, const Buffer &buffer, Value fresh, int64_t axis, Value places,
                   const Dim &size) {
  Type element = elementOf(fresh), stored = elementOf(buffer.numbers);
  auto write = [&](Value x, Value what) { return writeSlices(n, x, what, axis, places); };
  if (!buffer.scales)
    return readBuffer(n, {write(buffer.numbers, n.cast(fresh, stored)), {}}, axis, size, element);
  int64_t last = rankOf(fresh) - 1;
  Value wide = n.cast(fresh, n.f32());
  Value scales = n.div(n.reduce<ReduceMaxOp>(n.unary<AbsOp>(wide), {last}), 127);
  Value least = n.max(scales, std::numeric_limits<float>::min()); // a vector of zeros has scale 0
  Value codes = quantize(n, wide, least, {}, stored, last);
  Buffer next{write(buffer.numbers, codes), write(buffer.scales, n.squeeze(scales, {last}))};
  return readBuffer(n, next, axis, size, element);
}

Value appendToPast(Node &n, Value past, Value fresh, int64_t axis) {
  const Buffer *buffer = bufferOf(n, past);
  if (!buffer)
    return n.concat({past, fresh}, axis);
  DimVector lead = dimsOf(fresh);
  lead.truncate(axis + 1);
  Dim before = dimsOf(past)[axis];
  Value places = n.add(n.iota(lead, axis, n.i64()), sizeNumber(n, before, n.i64()));
  return extendBuffer(n, *buffer, fresh, axis, places, before + dimsOf(fresh)[axis]);
}

} // namespace heddle::onnx
