// Maker: constants, movement, and the adjoints of movement.

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

Ints inverseOf(ArrayRef<int64_t> permutation) {
  Ints inverse(permutation.size());
  for (auto [i, axis] : llvm::enumerate(permutation))
    inverse[axis] = i;
  return inverse;
}

Value Maker::cast(Value x, Type element) {
  return elementOf(x) == element ? x : typed<CastOp>(dimsOf(x), element, x);
}

Value Maker::scalar(Type element, double number) {
  auto type = RankedTensorType::get({}, element);
  if (auto floating = dyn_cast<FloatType>(element)) {
    llvm::APFloat value(number);
    bool loses;
    value.convert(floating.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
    return make<ConstantOp>(DenseElementsAttr::get(type, value));
  }
  llvm::APInt value(element.getIntOrFloatBitWidth(), static_cast<int64_t>(number), true);
  return make<ConstantOp>(DenseElementsAttr::get(type, value));
}

Value Maker::full(ArrayRef<Dim> dims, Type element, double number) {
  return broadcast(scalar(element, number), dims);
}

Value Maker::iota(ArrayRef<Dim> dims, int64_t axis) {
  return typed<IotaOp>(dims, builder.getI64Type(), static_cast<uint64_t>(axis));
}

Value Maker::numbering(ArrayRef<Dim> dims) { return reshape(iota(elementCount(dims), 0), dims); }

Value Maker::reshape(Value x, ArrayRef<Dim> dims) {
  return dimsOf(x) == DimVector(dims) ? x : typed<ReshapeOp>(dims, elementOf(x), x);
}

Value Maker::broadcast(Value x, ArrayRef<Dim> dims) {
  return dimsOf(x) == DimVector(dims) ? x : typed<BroadcastOp>(dims, elementOf(x), x);
}

Value Maker::transpose(Value x, ArrayRef<int64_t> permutation) {
  bool isIdentity = llvm::equal(permutation, llvm::seq<int64_t>(0, rankOf(x)));
  return isIdentity ? x : make<TransposeOp>(x, permutation);
}

Value Maker::slice(Value x, ArrayRef<Dim> starts, ArrayRef<Dim> sizes, ArrayRef<int64_t> steps) {
  bool isWhole = llvm::all_of(starts, [](const Dim &dim) { return dim.isConstant(0); }) &&
                 llvm::all_of(steps, [](int64_t step) { return step == 1; }) &&
                 dimsOf(x) == DimVector(sizes);
  if (isWhole)
    return x;
  return typed<SliceOp>(sizes, elementOf(x), x, attributeOf(*this, starts), steps);
}

Value Maker::pad(Value x, ArrayRef<Dim> low, ArrayRef<Dim> high) {
  auto isZero = [](const Dim &dim) { return dim.isConstant(0); };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return x;
  return make<PadOp>(x, scalar(elementOf(x), 0), attributeOf(*this, low), attributeOf(*this, high),
                     "constant");
}

Value Maker::sum(Value x, ArrayRef<int64_t> axes, bool keepDims) {
  return axes.empty() ? x : make<ReduceSumOp>(x, axes, keepDims);
}

Value Maker::matmul(Value a, Value b) {
  DimVector left = dimsOf(a), right = dimsOf(b), dims;
  size_t rank = left.size();
  for (size_t i = 0; i + 2 < rank; ++i)
    dims.push_back(left[i].isConstant(1) ? right[i] : left[i]);
  dims.push_back(left[rank - 2]);
  dims.push_back(right[rank - 1]);
  return typed<MatmulOp>(dims, elementOf(a), a, b);
}

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
      DimVector before(rank + 1, Dim(0)), behind(rank + 1, Dim(0));
      behind[i + 1] = Dim(step - 1);
      x = reshape(pad(reshape(x, rows), before, behind), flat);
    }
    low[i] = firsts[i];
    high[i] = dims[i] - firsts[i] - sizes[i] * Dim(step);
  }
  return reshape(pad(x, low, high), dims);
}

Value Maker::ungather(Value x, Value indices, int64_t axis, ArrayRef<Dim> dims) {
  DimVector flat(dims), along(dims.size() - axis, Dim(1));
  flat[axis] = along[0] = elementCount(dimsOf(indices));
  Value places = broadcast(reshape(indices, along), flat);
  Value zero = full(dims, elementOf(x), 0);
  return make<ScatterElementsOp>(zero, places, reshape(x, flat), static_cast<uint64_t>(axis),
                                 "add");
}

} // namespace heddle::grad
