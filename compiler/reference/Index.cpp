// Index: gather and scatter. An index outside of its dimension is an error.

#include "compiler/reference/Families.h"

using namespace mlir;

namespace heddle::reference {

using namespace graph;

/// Indices as numbers in 0 .. size - 1; negative ones count from the end.
static llvm::Expected<std::vector<int64_t>> indicesInto(const Call &call, const Tensor &indices,
                                                        int64_t size) {
  std::vector<int64_t> places = load<int64_t>(indices);
  for (int64_t &place : places) {
    if (place < -size || place >= size)
      return call.error("index " + Twine(place) + " is outside of " + Twine(-size) + " to " +
                        Twine(size - 1));
    place += place < 0 ? size : 0;
  }
  return places;
}

Results compute(GatherOp op, const Call &call) {
  const Tensor &x = call[0], &indices = call[1];
  int64_t axis = op.getAxis();
  auto places = indicesInto(call, indices, x.shape[axis]);
  if (!places)
    return places.takeError();
  ArrayRef<int64_t> from = x.shape;
  SmallVector<int64_t> shape(from.take_front(axis));
  shape.append(indices.shape.begin(), indices.shape.end());
  shape.append(from.begin() + axis + 1, from.end());
  auto result = call.allocate(shape);
  if (!result)
    return result.takeError();
  int64_t inner = countOf(from.drop_front(axis + 1)) * x.width();
  char *to = result->data();
  for (int64_t outer = 0, count = countOf(from.take_front(axis)); outer < count; ++outer)
    for (int64_t place : *places) {
      if (inner > 0)
        std::memcpy(to, x.bytes().data() + (outer * x.shape[axis] + place) * inner, inner);
      to += inner;
    }
  return single(*result);
}

/// The place in x that indices name, for each index of `indices`; used by ops on elements.
static llvm::Expected<std::vector<int64_t>> elementPlaces(const Call &call, const Tensor &x,
                                                          const Tensor &indices, int64_t axis) {
  if (indices.rank() != x.rank())
    return call.error("indices must have the rank of x");
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis && indices.shape[i] > x.shape[i])
      return call.error("indices of shape " + textOf(indices.shape) + " leave x of shape " +
                        textOf(x.shape));
  auto places = indicesInto(call, indices, x.shape[axis]);
  if (!places)
    return places;
  SmallVector<int64_t> strides = stridesOf(x.shape);
  forEachIndex(indices.shape, [&](ArrayRef<int64_t> index, int64_t number) {
    int64_t place = (*places)[number] * strides[axis];
    for (int64_t i = 0; i < x.rank(); ++i)
      place += i == axis ? 0 : index[i] * strides[i];
    (*places)[number] = place;
  });
  return places;
}

Results compute(GatherElementsOp op, const Call &call) {
  auto places = elementPlaces(call, call[0], call[1], op.getAxis());
  if (!places)
    return places.takeError();
  auto result = call.allocate(call[1].shape);
  if (!result)
    return result.takeError();
  int64_t width = result->width();
  for (auto [i, place] : llvm::enumerate(*places))
    std::memcpy(result->data() + i * width, call[0].bytes().data() + place * width, width);
  return single(*result);
}

/// The first element of x's slice that each tuple names; used by ops on tuples.
static llvm::Expected<std::vector<int64_t>> slicePlaces(const Call &call, const Tensor &x,
                                                        const Tensor &indices, int64_t batchDims) {
  int64_t depth = indices.rank() == 0 ? -1 : indices.shape.back();
  if (depth < 0 || batchDims < 0 || batchDims >= indices.rank() || batchDims + depth > x.rank())
    return call.error("the last size of indices of shape " + textOf(indices.shape) +
                      " must be at most the rank of x less batch_dims");
  for (int64_t i = 0; i < batchDims; ++i)
    if (indices.shape[i] != x.shape[i])
      return call.error("batch sizes of x and indices differ");
  SmallVector<int64_t> strides = stridesOf(x.shape);
  std::vector<int64_t> numbers = load<int64_t>(indices), places;
  int64_t bad = -1;
  forEachIndex(ArrayRef<int64_t>(indices.shape).drop_back(),
               [&](ArrayRef<int64_t> index, int64_t number) {
                 int64_t place = 0;
                 for (int64_t i = 0; i < batchDims; ++i)
                   place += index[i] * strides[i];
                 for (int64_t i = 0; i < depth; ++i) {
                   int64_t size = x.shape[batchDims + i], entry = numbers[number * depth + i];
                   if (entry < -size || entry >= size)
                     bad = number * depth + i;
                   place += (entry + (entry < 0 ? size : 0)) * strides[batchDims + i];
                 }
                 places.push_back(place);
               });
  if (bad >= 0)
    return call.error("index " + Twine(numbers[bad]) + " is outside of x of shape " +
                      textOf(x.shape));
  return places;
}

Results compute(GatherNdOp op, const Call &call) {
  const Tensor &x = call[0], &indices = call[1];
  auto places = slicePlaces(call, x, indices, op.getBatchDims());
  if (!places)
    return places.takeError();
  ArrayRef<int64_t> slice =
      ArrayRef<int64_t>(x.shape).drop_front(op.getBatchDims() + indices.shape.back());
  SmallVector<int64_t> shape(ArrayRef<int64_t>(indices.shape).drop_back());
  shape.append(slice.begin(), slice.end());
  auto result = call.allocate(shape);
  if (!result)
    return result.takeError();
  int64_t size = countOf(slice) * x.width();
  for (auto [i, place] : llvm::enumerate(*places))
    if (size > 0)
      std::memcpy(result->data() + i * size, x.bytes().data() + place * x.width(), size);
  return single(*result);
}

/// x with `size` elements of updates at each place, one after the other.
static Results scatter(const Call &call, ArrayRef<int64_t> places, int64_t size,
                       StringRef reduction) {
  const Tensor &x = call[0], &updates = call[2];
  if (updates.element != x.element)
    return call.error("updates must have the element type of x");
  auto result = call.allocate(x.shape);
  if (!result)
    return result.takeError();
  std::copy(x.bytes().begin(), x.bytes().end(), result->data());
  if (reduction == "none") {
    int64_t width = x.width();
    for (auto [i, place] : llvm::enumerate(places))
      if (size > 0)
        std::memcpy(result->data() + place * width, updates.bytes().data() + i * size * width,
                    size * width);
    return single(*result);
  }
  return withNumber(x.element, [&](auto zero) -> Results {
    using T = decltype(zero);
    T (*combine)(T, T) = reduction == "add"   ? plus<T>
                         : reduction == "mul" ? times<T>
                         : reduction == "max" ? larger<T>
                         : reduction == "min" ? smaller<T>
                                              : nullptr;
    if (!combine)
      return call.error("reduction is '" + reduction + "', but must be none, add, mul, max or min");
    std::vector<T> values = load<T>(x), with = load<T>(updates);
    for (auto [i, place] : llvm::enumerate(places))
      for (int64_t j = 0; j < size; ++j)
        values[place + j] = combine(values[place + j], with[i * size + j]);
    store<T>(*result, values);
    return single(*result);
  });
}

Results compute(ScatterElementsOp op, const Call &call) {
  auto places = elementPlaces(call, call[0], call[1], op.getAxis());
  if (!places)
    return places.takeError();
  if (call[2].shape != call[1].shape)
    return call.error("updates must have the shape of indices");
  return scatter(call, *places, 1, op.getReduction());
}

Results compute(ScatterNdOp op, const Call &call) {
  const Tensor &x = call[0], &indices = call[1];
  auto places = slicePlaces(call, x, indices, 0);
  if (!places)
    return places.takeError();
  ArrayRef<int64_t> slice = ArrayRef<int64_t>(x.shape).drop_front(indices.shape.back());
  SmallVector<int64_t> needed(ArrayRef<int64_t>(indices.shape).drop_back());
  needed.append(slice.begin(), slice.end());
  if (call[2].shape != needed)
    return call.error("updates have shape " + textOf(call[2].shape) + ", but must have " +
                      textOf(needed));
  return scatter(call, *places, countOf(slice), op.getReduction());
}

} // namespace heddle::reference
