// Interpreter: one op after the other; a tensor is dropped after its last use.

#include "compiler/reference/Interpreter.h"

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/reference/Families.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace heddle::reference {

using namespace graph;

llvm::Expected<Tensors> evaluate(Operation *op, ArrayRef<Tensor> operands,
                                 Environment &environment) {
  Call call{op, operands, environment};
  for (auto [operand, value] : llvm::zip(operands, op->getOperands()))
    if (operand.element != elementOf(value))
      return call.error("an operand does not have the element type of its type");
  Results results = [&]() -> Results {
    if (op->hasTrait<Elementwise>())
      return computeElementwise(call);
    return llvm::TypeSwitch<Operation *, Results>(op)
#define HEDDLE_CASE(OP) .Case<OP>([&](OP casted) { return compute(casted, call); })
        HEDDLE_FOR_EACH_OP(HEDDLE_CASE)
#undef HEDDLE_CASE
            .Default([&](Operation *) -> Results {
              return call.error("cannot be evaluated on its own");
            });
  }();
  if (!results)
    return results;
  for (auto [tensor, result] : llvm::zip(*results, op->getResults()))
    if (llvm::Error error = environment.bind(op, result.getType(), tensor.shape))
      return error;
  return results;
}

ArrayRef<Value> Interpreter::diesAfter(Operation *op) {
  Block *block = op->getBlock();
  if (analysed.insert(block).second) {
    llvm::DenseSet<Value> seen;
    for (Operation &user : llvm::reverse(*block)) {
      auto note = [&](Value value) {
        if (value.getParentBlock() == block && seen.insert(value).second)
          lastUses[&user].push_back(value);
      };
      llvm::for_each(user.getResults(), note); // unused results die at once
      user.walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), note); });
    }
  }
  return lastUses[op];
}

llvm::Expected<Tensors> Interpreter::runBlock(Block &block, ArrayRef<Tensor> arguments) {
  if (arguments.size() != block.getNumArguments())
    return opError(block.getParentOp(), "needs " + Twine(block.getNumArguments()) +
                                            " values, but is given " + Twine(arguments.size()));
  if (++environment.depth > environment.limits.depth)
    return opError(block.getParentOp(),
                   "regions are nested more than " + Twine(environment.limits.depth) + " deep",
                   ErrorCode::Limit);
  auto leave = llvm::make_scope_exit([&] { --environment.depth; });
  for (auto [argument, tensor] : llvm::zip(block.getArguments(), arguments))
    values[argument] = tensor;
  Operation *terminator = block.getTerminator();
  for (Operation &op : block.without_terminator()) {
    auto results = runOp(&op);
    if (!results)
      return results.takeError();
    if (observer)
      observer(&op, *results);
    for (auto [result, tensor] : llvm::zip(op.getResults(), *results))
      values[result] = tensor;
    for (Value dead : diesAfter(&op))
      values.erase(dead);
  }
  Tensors results;
  for (Value value : terminator->getOperands())
    results.push_back(values.lookup(value));
  for (Operation &op : block)
    for (Value value : op.getResults())
      values.erase(value);
  for (Value argument : block.getArguments())
    values.erase(argument);
  return results;
}

llvm::Expected<Tensors> Interpreter::runOp(Operation *op) {
  if (auto group = dyn_cast<GroupOp>(op))
    return runBlock(group.getBody().front(), {});
  if (auto branch = dyn_cast<IfOp>(op))
    return runIf(branch);
  if (auto loop = dyn_cast<LoopOp>(op))
    return runLoop(loop);
  if (auto scan = dyn_cast<ScanOp>(op))
    return runScan(scan);
  if (!isa_and_nonnull<GraphDialect>(op->getDialect()))
    return opError(op, "is not an op of the graph dialect");
  Tensors operands;
  for (Value value : op->getOperands())
    operands.push_back(values.lookup(value));
  if (std::string of = rowsOf(op); !of.empty())
    return evaluateRows(op, of, operands, environment);
  return evaluate(op, operands, environment);
}

llvm::Expected<Tensors> Interpreter::run(ArrayRef<Tensor> inputs, Observer newObserver) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main || main.isExternal() || !main.getBody().hasOneBlock())
    return makeError(ErrorCode::Refused, "error: the module has no function @main of one block");
  observer = newObserver;
  values.clear();
  Environment::Scope scope(environment);
  if (inputs.size() != main.getNumArguments())
    return opError(main, "@main has " + Twine(main.getNumArguments()) +
                             " arguments, but is given " + Twine(inputs.size()));
  // Twice: an expression may name a symbol that a later argument binds.
  for (int pass = 0; pass < 2; ++pass)
    for (auto [i, input] : llvm::enumerate(inputs)) {
      auto type = cast<RankedTensorType>(main.getArgumentTypes()[i]);
      if (input.element != type.getElementType() ||
          static_cast<int64_t>(input.bytes().size()) != input.count() * input.width())
        return opError(main, "argument " + Twine(i) + " has the wrong element type or size");
      if (llvm::Error error = environment.bind(main, type, input.shape))
        return error;
    }
  return runBlock(main.getBody().front(), inputs);
}

} // namespace heddle::reference
