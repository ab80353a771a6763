// Places: NonZero, Compress and Unique, whose results are as long as is found at run time.

#include "compiler/onnx/ops/Places.h"

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// i64 [rank, found]: where flags hold.
static Value nonzero(Emitter &e, Value flags) {
  DimVector dims = {Dim(rankOf(flags)), e.freshSymbol("found")};
  return e.typed<NonzeroOp>(e.tensor(dims, e.i64()), flags);
}

Value placesOf(Emitter &e, Value flags) {
  Value places = nonzero(e, flags);
  return e.reshape(places, dimsOf(places)[1]);
}

std::pair<Value, Value> topK(Emitter &e, Value x, int64_t axis, const Dim &count, bool largest) {
  DimVector dims = dimsOf(x);
  dims[axis] = count;
  OperationState state(e.location, TopkOp::getOperationName(), x,
                       {e.tensor(dims, elementOf(x)), e.tensor(dims, e.i64())},
                       {e.integer("axis", axis), e.flag("largest", largest)});
  Operation *op = e.emit(state);
  return {op->getResult(0), op->getResult(1)};
}

static void importNonZero(Node &n) {
  Value x = n.in(0);
  if (!elementOf(x).isInteger(1))
    x = n.compare<NotEqualOp>(x, n.scalar(elementOf(x), 0));
  n.set(nonzero(n, x));
}

static void importCompress(Node &n) {
  Value x = n.in(0), condition = n.in(1);
  int64_t axis = 0;
  if (n.hasAttribute("axis"))
    axis = n.axis(n.getInt("axis", 0), rankOf(x));
  else
    x = n.reshape(x, elementCount(dimsOf(x)));
  if (!elementOf(condition).isInteger(1) || rankOf(condition) != 1)
    refuse("the condition must be a vector of bool");
  n.set(n.gather(x, placesOf(n, condition), axis));
}

static void importUnique(Node &n) {
  Value x = n.in(0), rows;
  int64_t axis = 0, rank = rankOf(x);
  if (n.hasAttribute("axis")) {
    axis = n.axis(n.getInt("axis", 0), rank);
    Ints order = {axis};
    for (int64_t i = 0; i < rank; ++i)
      if (i != axis)
        order.push_back(i);
    rows = n.transpose(x, order);
  } else {
    rows = x = n.reshape(x, elementCount(dimsOf(x)));
  }
  DimVector sizes = dimsOf(rows);
  rows = n.reshape(rows, {sizes[0], elementCount(ArrayRef<Dim>(sizes).drop_front())});
  Type found = n.tensor(n.freshSymbol("found"), n.i64());
  OperationState state(n.location, UniqueOp::getOperationName(), rows,
                       {found, n.tensor(sizes[0], n.i64()), found},
                       {n.flag("sorted", n.getInt("sorted", 1))});
  Operation *unique = n.emit(state);
  n.set(0, n.gather(x, unique->getResult(0), axis));
  for (size_t i = 0; i < 3; ++i)
    if (n.wants(i + 1))
      n.set(i + 1, unique->getResult(i));
}

OpRows placeRows() {
  static const OpRow rows[] = {
      {"NonZero", "", 9, 27, importNonZero},
      {"Compress", "", 9, 27, importCompress},
      {"Unique", "", 11, 27, importUnique},
  };
  return rows;
}

} // namespace heddle::onnx
