// Maker: the adjoints of movement.

#include "compiler/grad/Maker.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

DimsAttr attributeOf(Maker &maker, ArrayRef<Dim> dims) {
  return dimsAttr(maker.builder.getContext(), dims);
}

std::string textOf(ArrayRef<Dim> dims) {
  return "[" + llvm::join(llvm::map_range(dims, [](const Dim &dim) { return dim.str(); }), ", ") +
         "]";
}

Value Maker::numbering(ArrayRef<Dim> dims) { return reshape(iota(elementCount(dims), 0), dims); }

Value Maker::sumTo(Value x, ArrayRef<Dim> dims) {
  DimVector from = dimsOf(x);
  size_t added = from.size() - dims.size();
  Ints repeated;
  for (size_t i = 0; i < from.size(); ++i)
    if (i < added || (dims[i - added].isConstant(1) && !from[i].isConstant(1)))
      repeated.push_back(i);
  DimVector kept(from.begin() + added, from.end());
  for (auto [to, dim] : llvm::zip(kept, dims))
    if (dim.isConstant(1))
      to = dim;
  x = reshape(sum(x, repeated, /*keepDims=*/true), kept);
  // A size with a name of its own is 1 or that of the result: the run folds element i onto the last
  // element, or onto itself.
  for (size_t i = 0; i < dims.size(); ++i) {
    DimVector now = dimsOf(x), to = now;
    if (now[i] == dims[i] || dims[i].constant() || now[i].isConstant(1))
      continue;
    to[i] = dims[i];
    Value last = typed<SizesOp>({}, builder.getI64Type(), attributeOf(*this, dims[i] - Dim(1)));
    Value places = binary<MinOp>(iota(now[i], 0), broadcast(last, now[i]));
    x = ungather(x, places, i, to);
  }
  return reshape(x, dims);
}

Value Maker::spread(Value x, ArrayRef<int64_t> axes, ArrayRef<Dim> dims) {
  DimVector kept(dims);
  for (int64_t axis : axes)
    kept[axis] = Dim(1);
  return broadcast(reshape(x, kept), dims);
}

Value Maker::productOfOthers(Value x, Value product, Value zeros) {
  Value isLastZero = compare<EqualOp>(zeros, whereZero(x));
  return select(isLastZero, div(product, withoutZeros(x)), this->zeros(x));
}

Value Maker::unslice(Value x, ArrayRef<Dim> starts, ArrayRef<int64_t> steps, ArrayRef<Dim> dims) {
  int64_t rank = rankOf(x);
  DimVector sizes = dimsOf(x), firsts(starts), backwards(rank, Dim(0)), none(rank, Dim(0));
  Ints signs(rank, 1);
  for (int64_t i = 0; i < rank; ++i)
    if (steps[i] < 0) {
      signs[i] = -1;
      backwards[i] = sizes[i] - Dim(1);
      firsts[i] = starts[i] + backwards[i] * Dim(steps[i]);
    }
  x = slice(x, backwards, sizes, signs);
  // Zeros between the elements: each becomes the first of a row of |step|.
  DimVector low(rank, Dim(0)), high(rank, Dim(0));
  for (int64_t i = 0; i < rank; ++i) {
    int64_t step = std::abs(steps[i]);
    if (step != 1) {
      DimVector rows = dimsOf(x), flat = rows;
      rows.insert(rows.begin() + i + 1, Dim(1));
      flat[i] = flat[i] * Dim(step);
      DimVector before(rank + 1, Dim(0)), after(rank + 1, Dim(0));
      after[i + 1] = Dim(step - 1);
      x = reshape(pad(reshape(x, rows), before, after), flat);
    }
    low[i] = firsts[i];
    high[i] = dims[i] - firsts[i] - sizes[i] * Dim(step);
  }
  return reshape(pad(x, low, high), dims);
}

Value Maker::ungather(Value x, Value indices, int64_t axis, ArrayRef<Dim> dims) {
  if (axis == 0) { // whole slices, each with one index
    Dim count = elementCount(dimsOf(indices));
    DimVector slices(dims);
    slices[0] = count;
    return make<ScatterNdOp>(full(dims, elementOf(x), 0), reshape(indices, {count, Dim(1)}),
                             reshape(x, slices), "add");
  }
  DimVector flat(dims), along(dims.size() - axis, Dim(1));
  flat[axis] = along[0] = elementCount(dimsOf(indices));
  Value places = broadcast(reshape(indices, along), flat);
  Value zero = full(dims, elementOf(x), 0);
  return make<ScatterElementsOp>(zero, places, reshape(x, flat), static_cast<uint64_t>(axis),
                                 "add");
}

} // namespace heddle::grad
