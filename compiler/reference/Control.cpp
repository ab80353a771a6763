// Control: if, loop and scan. Symbols that a region binds hold for one run of the region.

#include "compiler/reference/Interpreter.h"

using namespace mlir;

namespace heddle::reference {

using namespace graph;

/// Results of an op with regions, held against the types, which may bind symbols.
static llvm::Expected<Tensors> checked(Operation *op, Tensors results, Environment &environment) {
  for (auto [tensor, result] : llvm::zip(results, op->getResults()))
    if (llvm::Error error = environment.bind(op, result.getType(), tensor.shape))
      return error;
  return results;
}

static llvm::Error bindArguments(Operation *op, Block &block, ArrayRef<Tensor> arguments,
                                 Environment &environment) {
  for (auto [argument, tensor] : llvm::zip(block.getArguments(), arguments))
    if (llvm::Error error = environment.bind(op, argument.getType(), tensor.shape))
      return error;
  return llvm::Error::success();
}

static llvm::Expected<int64_t> scalar(Operation *op, const Tensor &tensor, StringRef name) {
  if (tensor.count() != 1)
    return opError(op, name + " must have one element, but has shape " + textOf(tensor.shape));
  return integerAt(tensor, 0);
}

llvm::Expected<Tensors> Interpreter::runIf(IfOp op) {
  auto condition = scalar(op, values.lookup(op.getCondition()), "the condition");
  if (!condition)
    return condition.takeError();
  auto results = [&] {
    Environment::Scope scope(environment);
    return runBlock(*condition ? op.getThenRegion().front() : op.getElseRegion().front(), {});
  }();
  if (!results)
    return results;
  return checked(op, std::move(*results), environment);
}

/// Slices one after the other along a new first dimension.
llvm::Expected<Tensor> Interpreter::stack(Operation *op, unsigned number, const Tensors &slices) {
  auto type = cast<RankedTensorType>(op->getResult(number).getType());
  SmallVector<int64_t> shape{static_cast<int64_t>(slices.size())};
  if (slices.empty()) {
    // No slice says how large slices are; what the type leaves open is 0.
    DimVector dims = dimsOf(type);
    for (const Dim &dim : ArrayRef<Dim>(dims).drop_front())
      shape.push_back(environment.evaluate(dim).value_or(0));
  } else {
    shape.append(slices.front().shape.begin(), slices.front().shape.end());
  }
  auto result = environment.allocate(op, type.getElementType(), shape);
  if (!result)
    return result.takeError();
  char *to = result->data();
  for (const Tensor &slice : slices) {
    if (slice.shape != slices.front().shape)
      return opError(op, "slices of shape " + textOf(slices.front().shape) + " and " +
                             textOf(slice.shape) + " cannot be stacked");
    to = std::copy(slice.bytes().begin(), slice.bytes().end(), to);
  }
  return result;
}

llvm::Expected<Tensors> Interpreter::runLoop(LoopOp op) {
  auto trips = scalar(op, values.lookup(op.getTripCount()), "the trip count");
  auto condition = scalar(op, values.lookup(op.getCondition()), "the condition");
  if (!trips || !condition)
    return llvm::joinErrors(trips.takeError(), condition.takeError());
  Block &body = op.getBody().front();
  Tensors carried;
  for (Value init : op.getInits())
    carried.push_back(values.lookup(init));
  std::vector<Tensors> slices(op.getScanCount());
  bool goesOn = *condition != 0;
  for (int64_t trip = 0; trip < *trips && goesOn; ++trip) {
    if (trip >= environment.limits.trips)
      return opError(op, "the loop runs more than " + Twine(environment.limits.trips) + " times",
                     ErrorCode::Limit);
    Environment::Scope scope(environment);
    Tensors arguments{Tensor::zeros(elementOf(body.getArgument(0)), {}),
                      Tensor::zeros(elementOf(body.getArgument(1)), {})};
    store<int64_t>(arguments[0], {trip});
    store<int64_t>(arguments[1], {1});
    for (int i : {0, 1})
      arguments[i].shape.assign(rankOf(body.getArgument(i)), 1);
    llvm::append_range(arguments, carried);
    if (llvm::Error error = bindArguments(op, body, arguments, environment))
      return error;
    auto yielded = runBlock(body, arguments);
    if (!yielded)
      return yielded;
    auto next = scalar(op, yielded->front(), "the condition");
    if (!next)
      return next.takeError();
    goesOn = *next != 0;
    carried.assign(yielded->begin() + 1, yielded->begin() + 1 + carried.size());
    for (size_t i = 0; i < slices.size(); ++i)
      slices[i].push_back((*yielded)[1 + carried.size() + i]);
  }
  for (const Tensors &all : slices) {
    auto stacked = stack(op, carried.size(), all);
    if (!stacked)
      return stacked.takeError();
    carried.push_back(*stacked);
  }
  return checked(op, std::move(carried), environment);
}

llvm::Expected<Tensors> Interpreter::runScan(ScanOp op) {
  Block &body = op.getBody().front();
  size_t stateCount = op.getStateCount();
  Tensors states, scanned;
  for (auto [i, input] : llvm::enumerate(op.getInputs()))
    (i < stateCount ? states : scanned).push_back(values.lookup(input));
  int64_t length = scanned.empty() || scanned[0].rank() == 0 ? 0 : scanned[0].shape[0];
  for (const Tensor &tensor : scanned)
    if (tensor.rank() == 0 || tensor.shape[0] != length)
      return opError(op, "scanned tensors must have one first size");
  std::vector<Tensors> slices(op->getNumResults() - stateCount);
  for (int64_t trip = 0; trip < length; ++trip) {
    Environment::Scope scope(environment);
    Tensors arguments = states;
    for (auto [i, tensor] : llvm::enumerate(scanned)) {
      bool isReverse = llvm::is_contained(op.getReverseInputs(), static_cast<int64_t>(i));
      arguments.push_back(tensor.row(isReverse ? length - 1 - trip : trip));
    }
    if (llvm::Error error = bindArguments(op, body, arguments, environment))
      return error;
    auto yielded = runBlock(body, arguments);
    if (!yielded)
      return yielded;
    states.assign(yielded->begin(), yielded->begin() + stateCount);
    for (size_t i = 0; i < slices.size(); ++i)
      slices[i].push_back((*yielded)[stateCount + i]);
  }
  for (auto [i, all] : llvm::enumerate(slices)) {
    if (llvm::is_contained(op.getReverseOutputs(), static_cast<int64_t>(i)))
      std::reverse(all.begin(), all.end());
    auto stacked = stack(op, stateCount + i, all);
    if (!stacked)
      return stacked.takeError();
    states.push_back(*stacked);
  }
  return checked(op, std::move(states), environment);
}

} // namespace heddle::reference
