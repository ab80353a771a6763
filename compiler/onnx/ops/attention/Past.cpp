// Past: buffers are scattered to, slice by slice, which lowers to writes where they lie.

#include "compiler/onnx/ops/attention/Past.h"

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Value extendBuffer(Node &n, Value buffer, Value fresh, int64_t axis, Value places) {
  DimVector all = dimsOf(fresh), tuples(all.begin(), all.begin() + axis + 1);
  tuples.push_back(Dim(1));
  SmallVector<Value> tuple;
  for (int64_t i = 0; i < axis; ++i)
    tuple.push_back(n.iota(tuples, i, n.i64()));
  tuple.push_back(n.broadcast(n.unsqueeze(places, {rankOf(places)}), tuples));
  return n.infer<ScatterNdOp>({buffer, n.concat(tuple, axis + 1), fresh},
                              {n.text("reduction", "none")});
}

Value appendToPast(Node &n, Value past, Value fresh, int64_t axis) {
  Value buffer = n.reader.buffers.lookup(past);
  if (!buffer || !n.reader.extenders.contains(&n.message))
    return n.concat({past, fresh}, axis);
  DimVector lead = dimsOf(fresh);
  lead.truncate(axis + 1);
  Dim before = dimsOf(past)[axis];
  Value places = n.add(n.iota(lead, axis, n.i64()), sizeNumber(n, before, n.i64()));
  return n.sliceAlong(extendBuffer(n, buffer, fresh, axis, places), axis, Dim(0),
                      before + dimsOf(fresh)[axis]);
}

} // namespace heddle::onnx
