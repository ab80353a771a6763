// Lists: ops on lists of tensors, which the environment keeps.

#include "compiler/reference/Families.h"

using namespace mlir;

namespace heddle::reference {

using namespace graph;

static Results handle(const Call &call, int64_t number) {
  Tensor result = Tensor::zeros(call.elementOfResult(), {});
  std::memcpy(result.data(), &number, sizeof number);
  return single(result);
}

static int64_t handleIn(const Tensor &tensor) {
  int64_t number = 0;
  std::memcpy(&number, tensor.bytes().data(), sizeof number);
  return number;
}

static const Tensors &listIn(const Call &call, const Tensor &tensor) {
  static const Tensors none;
  const Tensors *list = call.environment.list(handleIn(tensor));
  return list ? *list : none;
}

/// The position that operand `i` says, counted from 0, or `otherwise` if there is none.
static llvm::Expected<int64_t> positionIn(const Call &call, size_t i, int64_t count, int64_t limit,
                                          int64_t otherwise) {
  int64_t position = call.operands.size() > i ? integerAt(call[i], 0) : otherwise;
  int64_t found = position < 0 ? position + count : position;
  if (found < 0 || found >= limit)
    return call.error("position " + Twine(position) + " is outside of a sequence of " +
                      Twine(count) + " tensors");
  return found;
}

Results compute(ListMakeOp op, const Call &call) {
  if (op.getXs().empty() && listOf(op.getResult()).getKind() != "sequence")
    return handle(call, 0);
  return handle(call, call.environment.addList(call.operands.vec()));
}

Results compute(ListInsertOp, const Call &call) {
  Tensors list = listIn(call, call[0]);
  int64_t count = list.size();
  auto place = positionIn(call, 2, count, count + 1, count);
  if (!place)
    return place.takeError();
  list.insert(list.begin() + *place, call[1]);
  return handle(call, call.environment.addList(std::move(list)));
}

Results compute(ListEraseOp, const Call &call) {
  Tensors list = listIn(call, call[0]);
  int64_t count = list.size();
  auto place = positionIn(call, 1, count, count, count - 1);
  if (!place)
    return place.takeError();
  list.erase(list.begin() + *place);
  return handle(call, call.environment.addList(std::move(list)));
}

Results compute(ListAtOp, const Call &call) {
  const Tensors &list = listIn(call, call[0]);
  int64_t count = list.size();
  auto place = positionIn(call, 1, count, count, 0);
  if (!place)
    return place.takeError();
  return single(list[*place]);
}

Results compute(ListLengthOp, const Call &call) {
  const Tensors *list = call.environment.list(handleIn(call[0]));
  return handle(call, list ? static_cast<int64_t>(list->size()) : -1);
}

Results compute(ListRankOp, const Call &call) {
  return handle(call, listIn(call, call[0])[0].shape.size());
}

Results compute(ListConcatOp op, const Call &call) {
  Tensors list = listIn(call, call[0]);
  size_t axis = op.getAxis();
  if (list.empty())
    return call.error("the sequence is empty");
  if (op.getNewAxis())
    for (Tensor &tensor : list) {
      if (tensor.shape.size() < axis)
        return call.error("a tensor of the sequence has too few dimensions");
      tensor.shape.insert(tensor.shape.begin() + axis, 1);
    }
  SmallVector<int64_t> shape = list.front().shape;
  if (shape.size() <= axis)
    return call.error("a tensor of the sequence has too few dimensions");
  shape[axis] = 0;
  for (const Tensor &tensor : list) {
    SmallVector<int64_t> other = tensor.shape;
    if (other.size() == shape.size())
      other[axis] = shape[axis];
    if (other != shape)
      return call.error("tensors of shape " + textOf(list.front().shape) + " and " +
                        textOf(tensor.shape) + " cannot be joined");
    shape[axis] += tensor.shape[axis];
  }
  auto result = call.allocate(shape);
  if (!result)
    return result.takeError();
  int64_t rows = countOf(ArrayRef<int64_t>(shape).take_front(axis));
  char *to = result->data();
  for (int64_t row = 0; row < rows; ++row)
    for (const Tensor &tensor : list) {
      int64_t bytes = tensor.bytes().size() / rows;
      to = std::copy_n(tensor.bytes().data() + row * bytes, bytes, to);
    }
  return single(*result);
}

Results compute(ListSplitOp op, const Call &call) {
  const Tensor &x = call[0];
  size_t axis = op.getAxis();
  int64_t whole = x.shape[axis], sum = 0;
  std::vector<int64_t> sizes;
  if (call.operands.size() > 1 && call[1].rank() == 1) {
    sizes = load<int64_t>(call[1]);
    for (int64_t size : sizes)
      sum = size < 0 || sum > whole ? whole + 1 : sum + size;
    if (sum != whole)
      return call.error("sizes do not split a size of " + Twine(whole));
  } else {
    int64_t each = call.operands.size() > 1 ? integerAt(call[1], 0) : 1;
    if (each < 1)
      return call.error("a size of " + Twine(each) + " does not split a size of " + Twine(whole));
    for (; sum < whole; sum += each)
      sizes.push_back(std::min(each, whole - sum));
  }
  Tensors list;
  SmallVector<int64_t> strides = stridesOf(x.shape);
  int64_t start = 0;
  for (int64_t size : sizes) {
    SmallVector<int64_t> shape = x.shape;
    shape[axis] = size;
    auto piece = call.environment.allocate(op, x.element, shape);
    if (!piece)
      return piece.takeError();
    moveElements(*piece, x, start * strides[axis], strides);
    if (!op.getKeepDims())
      piece->shape.erase(piece->shape.begin() + axis);
    list.push_back(*piece);
    start += size;
  }
  return handle(call, call.environment.addList(std::move(list)));
}

Results compute(ListCastOp op, const Call &call) {
  int64_t number = handleIn(call[0]);
  if (number == 0 && listOf(op.getResult()).getKind() == "sequence")
    return call.error("the optional is absent");
  return handle(call, number);
}

} // namespace heddle::reference
