// Chain: the function of its elements, as a module that the interpreter runs.

#include "compiler/simplify/Chain.h"
#include "compiler/reference/Interpreter.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

/// The chain as a function of a vector.
static OwningOpRef<ModuleOp> functionOf(const Chain &chain, int64_t count) {
  MLIRContext *context = chain.source.getContext();
  Location location = chain.source.getLoc();
  auto typeOf = [&](Value value) { return RankedTensorType::get({count}, elementOf(value)); };
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto type = FunctionType::get(context, {typeOf(chain.source)}, {typeOf(chain.result())});
  auto function = builder.create<func::FuncOp>(location, "main", type);
  Block *body = function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping copies;
  copies.map(chain.source, body->getArgument(0));
  for (Operation *op : chain.ops) {
    if (isa<ReshapeOp>(op)) {
      copies.map(op->getResult(0), copies.lookup(op->getOperand(0)));
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : op->getOperands()) {
      Value copy = copies.lookupOrNull(operand);
      if (!copy && isa<GatherOp>(op))
        copy = builder.clone(*operand.getDefiningOp())->getResult(0);
      operands.push_back(
          copy
              ? copy
              : Build(builder, location).full({Dim(count)}, elementOf(operand), *splatOf(operand)));
    }
    copies.map(op->getResult(0),
               rebuild(builder, op, operands, typeOf(op->getResult(0)))->getResult(0));
  }
  builder.create<func::ReturnOp>(location, copies.lookup(chain.result()));
  return module;
}

std::optional<reference::Tensor> resultsOf(const Chain &chain, const reference::Tensor &elements) {
  auto results = reference::Interpreter(*functionOf(chain, elements.count())).run({elements});
  if (results)
    return std::move(results->front());
  llvm::consumeError(results.takeError());
  return std::nullopt;
}

} // namespace heddle::simplify
