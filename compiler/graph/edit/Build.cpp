// Build: constants and movement.

#include "compiler/graph/edit/Build.h"

using namespace mlir;

namespace heddle::graph {

ElementsAttr scalarAttr(Type element, double number) {
  auto type = RankedTensorType::get({}, element);
  if (auto floating = dyn_cast<FloatType>(element)) {
    llvm::APFloat value(number);
    bool loses;
    value.convert(floating.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &loses);
    return DenseElementsAttr::get(type, value);
  }
  Type storage = storageOf(element);
  llvm::APInt code(storage.getIntOrFloatBitWidth(), static_cast<int64_t>(number), true);
  return constantAttr(type, DenseElementsAttr::get(RankedTensorType::get({}, storage), code));
}

DimVector permuted(ArrayRef<Dim> sizes, ArrayRef<int64_t> permutation) {
  DimVector result;
  for (int64_t axis : permutation)
    result.push_back(sizes[axis]);
  return result;
}

SmallVector<int64_t> inverse(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> result(permutation.size());
  for (auto [to, from] : llvm::enumerate(permutation))
    result[from] = to;
  return result;
}

bool isIdentity(ArrayRef<int64_t> permutation) {
  return llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size()));
}

bool isReshape(ArrayRef<Dim> sizes, ArrayRef<int64_t> permutation) {
  int64_t last = -1;
  for (int64_t axis : permutation) {
    if (sizes[axis].isConstant(1))
      continue;
    if (axis < last)
      return false;
    last = axis;
  }
  return true;
}

Value Build::scalar(Type element, double number) {
  return make<ConstantOp>(scalarAttr(element, number));
}

Value Build::full(ArrayRef<Dim> dims, Type element, double number) {
  return broadcast(scalar(element, number), dims);
}

Value Build::iota(ArrayRef<Dim> dims, int64_t axis) {
  return typed<IotaOp>(dims, builder.getI64Type(), static_cast<uint64_t>(axis));
}

Value Build::cast(Value x, Type element) {
  return elementOf(x) == element ? x : typed<CastOp>(dimsOf(x), element, x);
}

Value Build::reshape(Value x, ArrayRef<Dim> dims) {
  return dimsOf(x) == DimVector(dims) ? x : typed<ReshapeOp>(dims, elementOf(x), x);
}

Value Build::broadcast(Value x, ArrayRef<Dim> dims) {
  return dimsOf(x) == DimVector(dims) ? x : typed<BroadcastOp>(dims, elementOf(x), x);
}

Value Build::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (isIdentity(permutation))
    return x;
  DimVector from = dimsOf(x);
  if (isReshape(from, permutation))
    return reshape(x, permuted(from, permutation));
  return make<TransposeOp>(x, permutation);
}

Value Build::slice(Value x, ArrayRef<Dim> starts, ArrayRef<Dim> sizes, ArrayRef<int64_t> steps) {
  bool isWhole = llvm::all_of(starts, [](const Dim &dim) { return dim.isConstant(0); }) &&
                 llvm::all_of(steps, [](int64_t step) { return step == 1; }) &&
                 dimsOf(x) == DimVector(sizes);
  if (isWhole)
    return x;
  return typed<SliceOp>(sizes, elementOf(x), x, dimsAttr(builder.getContext(), starts), steps);
}

Value Build::pad(Value x, ArrayRef<Dim> low, ArrayRef<Dim> high) {
  auto isZero = [](const Dim &dim) { return dim.isConstant(0); };
  if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero))
    return x;
  MLIRContext *context = builder.getContext();
  return make<PadOp>(x, scalar(elementOf(x), 0), dimsAttr(context, low), dimsAttr(context, high),
                     "constant");
}

Value Build::withoutOnes(Value x) {
  DimVector sizes = dimsOf(x);
  llvm::erase_if(sizes, [](const Dim &size) { return size.isConstant(1); });
  return reshape(x, sizes);
}

Value Build::along(Value vector, int64_t axis, ArrayRef<Dim> dims) {
  DimVector aligned;
  if (rankOf(vector) == 1) {
    aligned.assign(dims.size() - axis, Dim(1));
    aligned[0] = dimsOf(vector)[0];
  }
  return broadcast(reshape(vector, aligned), dims);
}

Value Build::sum(Value x, ArrayRef<int64_t> axes, bool keepDims) {
  return axes.empty() ? x : make<ReduceSumOp>(x, axes, keepDims);
}

Value Build::matmul(Value a, Value b) {
  DimVector left = dimsOf(a), right = dimsOf(b), dims;
  size_t rank = left.size();
  for (size_t i = 0; i + 2 < rank; ++i)
    dims.push_back(left[i].isConstant(1) ? right[i] : left[i]);
  dims.push_back(left[rank - 2]);
  dims.push_back(right[rank - 1]);
  return typed<MatmulOp>(dims, elementOf(a), a, b);
}

} // namespace heddle::graph
