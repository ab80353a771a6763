// Movement: ops that make tensors or move elements, as bytes of one width.

#include "compiler/reference/Families.h"

#include <cmath>

using namespace mlir;

namespace heddle::reference {

using namespace graph;

llvm::Expected<SmallVector<int64_t>> Call::sizesOf(DimsAttr attr) const {
  SmallVector<int64_t> sizes;
  for (const Dim &dim : dimsOf(attr)) {
    auto size = environment.evaluate(dim);
    if (!size)
      return error("size '" + dim.str() + "' is not known here");
    sizes.push_back(*size);
  }
  return sizes;
}

void moveElements(Tensor &result, const Tensor &x, int64_t offset, ArrayRef<int64_t> strides) {
  int64_t width = x.width();
  const char *from = x.bytes().data();
  char *to = result.data();
  forEachIndex(result.shape, [&](ArrayRef<int64_t> index, int64_t number) {
    int64_t place = offset;
    for (auto [i, stride] : llvm::zip(index, strides))
      place += i * stride;
    std::memcpy(to + number * width, from + place * width, width);
  });
}

Results compute(ConstantOp op, const Call &call) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(op.getValue(), storage);
  if (static_cast<int64_t>(bytes.size()) != type.getNumElements() * bytesOf(type.getElementType()))
    return call.error("the constant has " + Twine(bytes.size()) + " bytes, its type needs " +
                      Twine(type.getNumElements() * bytesOf(type.getElementType())));
  Tensor tensor = Tensor::borrow(type.getElementType(), type.getShape(), bytes);
  if (bytes.data() == storage.data()) {
    tensor.owned = std::make_shared<std::vector<char>>(std::move(storage));
    tensor.borrowed = {};
  }
  return single(tensor);
}

/// A result of the type's shape whose elements are function(index).
template <typename Function> static Results fill(const Call &call, Function function) {
  auto shape = call.shapeOfResult();
  if (!shape)
    return shape.takeError();
  auto result = call.allocate(*shape);
  if (!result)
    return result.takeError();
  std::vector<int64_t> values(result->count());
  forEachIndex(*shape,
               [&](ArrayRef<int64_t> index, int64_t number) { values[number] = function(index); });
  store<int64_t>(*result, values);
  return single(*result);
}

Results compute(IotaOp op, const Call &call) {
  return fill(call, [&](ArrayRef<int64_t> index) { return index[op.getAxis()]; });
}

Results compute(SizesOp op, const Call &call) {
  auto values = call.sizesOf(op.getValues());
  if (!values)
    return values.takeError();
  return fill(call,
              [&](ArrayRef<int64_t> index) { return (*values)[index.empty() ? 0 : index[0]]; });
}

static Results reshape(const Call &call, ArrayRef<int64_t> shape) {
  int64_t count = 1;
  bool isTooLarge = false;
  for (int64_t size : shape)
    isTooLarge |= size < 0 || __builtin_mul_overflow(count, size, &count);
  if (isTooLarge || count != call[0].count())
    return call.error("a tensor of shape " + textOf(call[0].shape) + " cannot have shape " +
                      textOf(shape));
  return single(call[0].reshaped(shape));
}

Results compute(ReshapeOp, const Call &call) {
  auto shape = call.shapeOfResult();
  return shape ? reshape(call, *shape) : Results(shape.takeError());
}

Results compute(DynamicReshapeOp op, const Call &call) {
  const Tensor &x = call[0];
  SmallVector<int64_t> shape;
  int64_t known = 1, open = -1;
  for (auto [i, size] : llvm::enumerate(load<int64_t>(call[1]))) {
    if (size == 0 && !op.getAllowZero()) {
      if (static_cast<int64_t>(i) >= x.rank())
        return call.error("size 0 at " + Twine(i) + " copies a size of x, which has rank " +
                          Twine(x.rank()));
      size = x.shape[i];
    }
    if (size < -1 || (size == -1 && open >= 0))
      return call.error("sizes must be at least 0, or -1 once");
    if (size == -1)
      open = i;
    else if (__builtin_mul_overflow(known, size, &known))
      return call.error("the sizes are too large");
    shape.push_back(size);
  }
  if (open >= 0) {
    if (known == 0 ? x.count() != 0 : x.count() % known != 0)
      return call.error(Twine(x.count()) + " elements cannot be split by " + Twine(known));
    shape[open] = known == 0 ? 0 : x.count() / known;
  }
  return reshape(call, shape);
}

static Results broadcast(const Call &call, ArrayRef<int64_t> shape) {
  const Tensor &x = call[0];
  SmallVector<int64_t> strides(shape.size(), 0), own = stridesOf(x.shape);
  size_t lead = shape.size() - x.shape.size();
  if (x.shape.size() > shape.size())
    return call.error("rank " + Twine(x.rank()) + " cannot broadcast to rank " +
                      Twine(shape.size()));
  for (size_t i = 0; i < x.shape.size(); ++i) {
    if (x.shape[i] != 1 && x.shape[i] != shape[lead + i])
      return call.error("shape " + textOf(x.shape) + " cannot broadcast to " + textOf(shape));
    strides[lead + i] = x.shape[i] == 1 ? 0 : own[i];
  }
  auto result = call.allocate(shape);
  if (!result)
    return result.takeError();
  moveElements(*result, x, 0, strides);
  return single(*result);
}

Results compute(BroadcastOp, const Call &call) {
  auto shape = call.shapeOfResult();
  return shape ? broadcast(call, *shape) : Results(shape.takeError());
}

Results compute(DynamicBroadcastOp, const Call &call) {
  const Tensor &x = call[0];
  std::vector<int64_t> asked = load<int64_t>(call[1]);
  SmallVector<int64_t> shape(std::max(asked.size(), x.shape.size()), 1);
  std::copy(asked.rbegin(), asked.rend(), shape.rbegin());
  for (size_t i = 0; i < x.shape.size(); ++i) {
    int64_t &size = shape[shape.size() - 1 - i];
    if (size == 1)
      size = x.shape[x.shape.size() - 1 - i];
  }
  return broadcast(call, shape);
}

Results compute(TransposeOp op, const Call &call) {
  SmallVector<int64_t> shape, strides, own = stridesOf(call[0].shape);
  for (int64_t axis : op.getPermutation()) {
    shape.push_back(call[0].shape[axis]);
    strides.push_back(own[axis]);
  }
  auto result = call.allocate(shape);
  if (!result)
    return result.takeError();
  moveElements(*result, call[0], 0, strides);
  return single(*result);
}

/// result[i] = x[starts + i * steps].
static Results slice(const Call &call, ArrayRef<int64_t> shape, ArrayRef<int64_t> starts,
                     ArrayRef<int64_t> steps) {
  const Tensor &x = call[0];
  SmallVector<int64_t> strides = stridesOf(x.shape);
  int64_t offset = 0;
  bool isEmpty = llvm::is_contained(shape, 0);
  for (int64_t i = 0; i < x.rank() && !isEmpty; ++i) {
    int64_t last = 0;
    if (__builtin_mul_overflow(shape[i] - 1, steps[i], &last) ||
        __builtin_add_overflow(last, starts[i], &last) || starts[i] < 0 || last < 0 ||
        starts[i] >= x.shape[i] || last >= x.shape[i])
      return call.error("elements " + Twine(starts[i]) + " to " + Twine(last) + " of dimension " +
                        Twine(i) + " are asked for, but its size is " + Twine(x.shape[i]));
    offset += starts[i] * strides[i];
    strides[i] *= shape[i] == 1 ? 0 : steps[i];
  }
  auto result = call.allocate(shape);
  if (!result)
    return result.takeError();
  moveElements(*result, x, offset, strides);
  return single(*result);
}

Results compute(SliceOp op, const Call &call) {
  auto shape = call.shapeOfResult();
  auto starts = call.sizesOf(op.getStarts());
  if (!shape || !starts)
    return llvm::joinErrors(shape.takeError(), starts.takeError());
  return slice(call, *shape, *starts, op.getSteps());
}

Results compute(DynamicSliceOp op, const Call &call) {
  const Tensor &x = call[0];
  SmallVector<int64_t> shape(x.shape), starts(x.rank(), 0), steps(x.rank(), 1);
  std::vector<int64_t> asked[3];
  for (int i = 0; i < 3; ++i) {
    asked[i] = load<int64_t>(call[i + 1]);
    if (asked[i].size() != op.getAxes().size())
      return call.error("starts, ends and steps need " + Twine(op.getAxes().size()) + " entries");
  }
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    if (axis < 0 || axis >= x.rank())
      return call.error("axis " + Twine(axis) + " is outside of rank " + Twine(x.rank()));
    int64_t size = x.shape[axis], start = asked[0][i], end = asked[1][i], step = asked[2][i];
    if (step == 0)
      return call.error("a step must not be 0");
    start += start < 0 ? size : 0;
    end += end < 0 ? size : 0;
    start = std::clamp<int64_t>(start, 0, step > 0 ? size : std::max<int64_t>(size - 1, 0));
    end = std::clamp<int64_t>(end, step > 0 ? 0 : -1, size);
    // A step larger than the tensor takes one element, as would one of its size.
    step = std::clamp<int64_t>(step, -std::max<int64_t>(size, 1), std::max<int64_t>(size, 1));
    int64_t distance = step > 0 ? end - start : start - end;
    shape[axis] = size == 0 || distance <= 0 ? 0 : llvm::divideCeil(distance, std::abs(step));
    starts[axis] = start;
    steps[axis] = step;
  }
  return slice(call, shape, starts, steps);
}

Results compute(ConcatOp op, const Call &call) {
  int64_t axis = op.getAxis();
  SmallVector<int64_t> shape(call[0].shape);
  shape[axis] = 0;
  for (const Tensor &x : call.operands) {
    for (int64_t i = 0; i < call[0].rank(); ++i)
      if (i != axis && x.shape[i] != shape[i])
        return call.error("operands of shape " + textOf(call[0].shape) + " and " + textOf(x.shape) +
                          " cannot be joined along " + Twine(axis));
    shape[axis] += x.shape[axis];
  }
  auto result = call.allocate(shape);
  if (!result)
    return result.takeError();
  int64_t outer = countOf(ArrayRef<int64_t>(shape).take_front(axis));
  char *to = result->data();
  for (int64_t i = 0; i < outer; ++i)
    for (const Tensor &x : call.operands) {
      int64_t size = x.bytes().size() / outer;
      if (size > 0)
        std::memcpy(to, x.bytes().data() + i * size, size);
      to += size;
    }
  return single(*result);
}

/// The index in x of an index of a padded dimension; -1 for the pad value.
static int64_t unpadded(int64_t i, int64_t size, StringRef mode) {
  if (i >= 0 && i < size)
    return i;
  if (mode == "edge")
    return std::clamp<int64_t>(i, 0, size - 1);
  auto modulo = [](int64_t a, int64_t b) { return ((a % b) + b) % b; };
  if (mode == "wrap")
    return modulo(i, size);
  if (mode == "reflect") {
    if (size == 1)
      return 0;
    int64_t place = modulo(i, 2 * (size - 1));
    return place < size ? place : 2 * (size - 1) - place;
  }
  return -1;
}

Results compute(PadOp op, const Call &call) {
  const Tensor &x = call[0];
  StringRef mode = op.getMode();
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    return call.error("mode is '" + mode + "', but must be constant, edge, reflect or wrap");
  auto low = call.sizesOf(op.getLow()), high = call.sizesOf(op.getHigh());
  if (!low || !high)
    return llvm::joinErrors(low.takeError(), high.takeError());
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < x.rank(); ++i)
    shape.push_back(x.shape[i] + (*low)[i] + (*high)[i]);
  if (call[1].count() != 1 || call[1].element != x.element)
    return call.error("the value must be one element of the type of x");
  auto result = call.allocate(shape);
  if (!result)
    return result.takeError();
  if (mode != "constant" && x.count() == 0 && result->count() > 0)
    return call.error("mode '" + mode + "' needs an element to repeat, but x has none");
  SmallVector<int64_t> strides = stridesOf(x.shape);
  int64_t width = x.width();
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t number) {
    int64_t place = 0;
    for (size_t d = 0; d < index.size() && place >= 0; ++d) {
      int64_t i = unpadded(index[d] - (*low)[d], x.shape[d], mode);
      place = i < 0 ? -1 : place + i * strides[d];
    }
    const char *from = place < 0 ? call[1].bytes().data() : x.bytes().data() + place * width;
    std::memcpy(result->data() + number * width, from, width);
  });
  return single(*result);
}

Results compute(ReverseSequenceOp op, const Call &call) {
  const Tensor &x = call[0];
  int64_t time = op.getTimeAxis(), batch = op.getBatchAxis();
  if (time < 0 || batch < 0 || time >= x.rank() || batch >= x.rank() || time == batch)
    return call.error("time_axis and batch_axis must be two axes of x");
  std::vector<int64_t> lengths = load<int64_t>(call[1]);
  if (static_cast<int64_t>(lengths.size()) != x.shape[batch])
    return call.error("there are " + Twine(lengths.size()) + " lengths for " +
                      Twine(x.shape[batch]) + " batch entries");
  for (int64_t length : lengths)
    if (length < 0 || length > x.shape[time])
      return call.error("length " + Twine(length) + " is outside of 0 to " + Twine(x.shape[time]));
  auto result = call.allocate(x.shape);
  if (!result)
    return result.takeError();
  int64_t stride = stridesOf(x.shape)[time], width = x.width();
  forEachIndex(x.shape, [&](ArrayRef<int64_t> index, int64_t number) {
    int64_t length = lengths[index[batch]], from = number;
    if (index[time] < length)
      from += (length - 1 - 2 * index[time]) * stride;
    std::memcpy(result->data() + number * width, x.bytes().data() + from * width, width);
  });
  return single(*result);
}

Results compute(RangeOp, const Call &call) {
  for (const Tensor &operand : call.operands)
    if (operand.count() != 1)
      return call.error("start, limit and delta must have one element each");
  return withNumber(call[0].element, [&](auto zero) -> Results {
    using T = decltype(zero);
    T start = load<T>(call[0])[0], limit = load<T>(call[1])[0], delta = load<T>(call[2])[0];
    if (delta == T(0) || delta != delta)
      return call.error("delta must not be 0");
    double steps = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                             static_cast<double>(delta));
    if (!(steps < 0x1p62))
      return call.error("the range is too long");
    auto result = call.allocate({static_cast<int64_t>(std::max(steps, 0.0))});
    if (!result)
      return result.takeError();
    std::vector<T> values(result->count());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = plus(start, times(static_cast<T>(i), delta));
    store<T>(*result, values);
    return single(*result);
  });
}

/// The op's message with its numbers.
static std::string refusalOf(BindSizesOp op, const Call &call, int64_t element) {
  std::string text = op.getMessage().str();
  for (int64_t i = 0; i < 2; ++i)
    if (size_t place = text.find("%lld"); place != std::string::npos)
      text.replace(place, 4, std::to_string(op.getTold() ? integerAt(call[1], i) : element));
  return text;
}

Results compute(BindSizesOp op, const Call &call) {
  SmallVector<int64_t> sizes;
  for (int64_t i = 0; i < call[0].count(); ++i)
    sizes.push_back(integerAt(call[0], i));
  for (int64_t size : sizes)
    if (size < 0)
      return call.error(refusalOf(op, call, size));
  Type type = tensorOf(op.getContext(), dimsOf(op.getSymbols()), call[0].element);
  if (llvm::Error error = call.environment.bind(op, type, sizes))
    return error;
  return Tensors();
}

Results compute(RunSeedOp, const Call &call) {
  auto result = call.allocate({});
  if (!result)
    return result.takeError();
  store<uint64_t>(*result, {call.environment.seed});
  return single(*result);
}

} // namespace heddle::reference
