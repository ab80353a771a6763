// Instructions: bodies of instructions are looked for in kernels, from their results upwards.

#include "compiler/program/build/Instructions.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace heddle::program {

std::string whyNoInstruction(func::FuncOp function) {
  if (function.isExternal() || !llvm::hasSingleElement(function.getBody()))
    return "an instruction has a body of one block, which is what it means";
  Block &body = function.getBody().front();
  if (function.getNumResults() != 1 || !body.getTerminator()->getOperand(0).getDefiningOp())
    return "an instruction has one result, which an op of its body makes";
  for (Operation &op : body.without_terminator())
    if (!isMemoryEffectFree(&op) || op.getNumRegions() || op.getNumResults() != 1)
      return ("an instruction has ops of one result without effects, but this one has '" +
              op.getName().getStringRef() + "'")
          .str();
  return "";
}

/// Attributes but for how freely floats may be rounded: an instruction is one way of it.
static NamedAttrList attributesOf(Operation *op) {
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase("fastmath");
  return attributes;
}

/// Whether `found` is what the instruction computes as `wanted`; arguments are bound on the way.
static bool matches(Value wanted, Value found, MutableArrayRef<Value> arguments) {
  if (wanted.getType() != found.getType())
    return false;
  if (auto argument = dyn_cast<BlockArgument>(wanted)) {
    Value &bound = arguments[argument.getArgNumber()];
    if (!bound)
      bound = found;
    return bound == found;
  }
  Operation *pattern = wanted.getDefiningOp(), *op = found.getDefiningOp();
  return op && op->getName() == pattern->getName() &&
         op->getNumOperands() == pattern->getNumOperands() &&
         attributesOf(op) == attributesOf(pattern) &&
         llvm::all_of(llvm::zip(pattern->getOperands(), op->getOperands()), [&](auto pair) {
           return matches(std::get<0>(pair), std::get<1>(pair), arguments);
         });
}

int64_t useInstruction(func::FuncOp kernel, func::FuncOp instruction) {
  Value meaning = instruction.getBody().front().getTerminator()->getOperand(0);
  OperationName last = meaning.getDefiningOp()->getName();
  int64_t count = 0;
  kernel.walk([&](Operation *op) {
    SmallVector<Value> arguments(instruction.getNumArguments());
    if (op->getName() != last || !matches(meaning, op->getResult(0), arguments) ||
        !llvm::all_of(arguments, [](Value value) { return bool(value); }))
      return;
    OpBuilder b(op);
    auto call = b.create<func::CallOp>(op->getLoc(), instruction, arguments);
    op->getResult(0).replaceAllUsesWith(call.getResult(0));
    op->erase();
    ++count;
  });
  return count;
}

} // namespace heddle::program
