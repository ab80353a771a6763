// Ragged: an op on ragged tensors is the op, once for each row.

#include "compiler/graph/ragged/Ragged.h"

#include "compiler/reference/Families.h"
#include "compiler/reference/Interpreter.h"

using namespace mlir;

namespace heddle::reference {

using namespace graph;

Results compute(RowLengthsOp op, const Call &call) {
  auto rows = call.environment.lookup(op.getOf()), size = call.environment.lookup(op.getSize());
  if (!rows || !size)
    return call.error("the sizes '" + op.getOf() + "' and '" + op.getSize() + "' are not known");
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < *rows; ++row) {
    int64_t length = 0;
    if (call[0].rank() == 1) {
      length = integerAt(call[0], row);
      if (length < 0 || length > *size)
        return call.error("row " + Twine(row) + " has the length " + Twine(length) +
                          ", which must be from 0 to " + Twine(*size));
    } else {
      auto isOne = [&](int64_t i) { return numberAt(call[0], row * *size + i) != 0; };
      while (length < *size && isOne(length))
        ++length;
      for (int64_t i = length; i < *size; ++i)
        if (isOne(i))
          return call.error("row " + Twine(row) +
                            " has ones after a zero: a mask that gives "
                            "lengths must be ones and then zeros");
    }
    lengths.push_back(length);
  }
  auto result = call.allocate({*rows});
  if (!result)
    return result.takeError();
  store<int64_t>(*result, lengths);
  call.environment.setRows(op.getOf(), op.getSize(), std::move(lengths));
  return single(*result);
}

/// A view of all rows as one, or back.
static llvm::Expected<Tensors> evaluateView(ReshapeOp op, const Tensor &x,
                                            Environment &environment) {
  if (!rowsOf(op.getResult().getType()).empty())
    return Tensors{x.reshaped({x.count()})};
  auto shape = environment.shapeOf(op, op.getResult().getType());
  if (!shape)
    return shape.takeError();
  if (countOf(*shape) != x.count())
    return opError(op, "cannot reshape " + Twine(x.count()) + " elements to " + textOf(*shape));
  return Tensors{x.reshaped(*shape)};
}

llvm::Expected<Tensors> evaluateRows(Operation *op, StringRef of, ArrayRef<Tensor> operands,
                                     Environment &environment) {
  if (joinsRows(op))
    return evaluateView(cast<ReshapeOp>(op), operands[0], environment);
  auto rows = environment.lookup(of);
  if (!rows)
    return opError(op, "the size '" + of + "' is not known");
  auto isOfRows = [&](Value value) { return hasRows(dimsOf(value), of); };
  SmallVector<int64_t> places(operands.size(), 0);
  std::vector<std::vector<char>> made(op->getNumResults());
  for (int64_t row = 0; row < *rows; ++row) {
    Environment::Row alone(environment, of, row);
    Environment::Scope scope(environment);
    Tensors parts;
    for (auto [i, value] : llvm::enumerate(op->getOperands())) {
      if (!isOfRows(value)) {
        parts.push_back(operands[i]);
        continue;
      }
      auto shape = environment.shapeOf(op, value.getType());
      if (!shape)
        return shape.takeError();
      int64_t bytes = countOf(*shape) * operands[i].width();
      ArrayRef<char> all = operands[i].bytes();
      if (places[i] + bytes > static_cast<int64_t>(all.size()))
        return opError(op, "row " + Twine(row) + " of an operand ends after it");
      parts.push_back(Tensor::borrow(operands[i].element, *shape, all.slice(places[i], bytes)));
      places[i] += bytes;
    }
    auto results = evaluate(op, parts, environment);
    if (!results)
      return results.takeError();
    for (auto [result, bytes] : llvm::zip(*results, made))
      bytes.insert(bytes.end(), result.bytes().begin(), result.bytes().end());
  }
  Tensors results;
  for (auto [result, bytes] : llvm::zip(op->getResults(), made)) {
    if (!isOfRows(result))
      return opError(op, "a result has no rows of '" + of + "'");
    Type element = elementOf(result);
    SmallVector<int64_t> shape = {static_cast<int64_t>(bytes.size()) / graph::bytesOf(element)};
    if (rowsOf(result.getType()).empty()) {
      auto whole = environment.shapeOf(op, result.getType());
      if (!whole)
        return whole.takeError();
      shape = *whole;
    }
    auto tensor = environment.allocate(op, element, shape);
    if (!tensor)
      return tensor.takeError();
    llvm::copy(bytes, tensor->data());
    results.push_back(std::move(*tensor));
  }
  return results;
}

} // namespace heddle::reference
