// HostInputs: code that reads symbols from values of inputs, before anything is allocated, and that
// saves inputs whose memory outputs take.

#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

/// heddle_program_bind.
void Host::writeBind() {
  beginFunction("heddle_program_bind", 1);
  call = function.getArgument(0);
  Type i64 = builder.getI64Type(), pointer = code->pointerType();
  Value inputs = area(program::Area::Inputs), given = area(program::Area::Symbols);
  for (auto &[op, elements] : storage.boundByValues) {
    auto bind = cast<graph::BindSizesOp>(op);
    std::string message = graph::nodeText(op->getLoc()) + ": " + bind.getMessage().str();
    for (auto [symbol, element] : llvm::zip(graph::dimsOf(bind.getSymbols()), elements)) {
      Value address = code->at(inputs, pointer, code->number(element.input.getArgNumber()));
      Value memory = builder.create<program::LoadOp>(code->loc, pointer, address, 8);
      Value size = loadInteger(graph::elementOf(element.input), memory, element.index);
      code->when(code->less(size, code->number(0)), [&] { fail(message, size, size); });
      code->store(i64, code->max(size, code->number(0)), given,
                  code->number(storage.inputSymbols.at(*symbol.symbolName())));
    }
  }
  bindTotals(inputs, given);
  Value status = builder.create<program::StatusOp>(code->loc, call);
  builder.create<func::ReturnOp>(code->loc, status);
}

/// In heddle_program_sizes: whether nobody has bound the symbols that values are, since the caller
/// asks without them; they count as 0 then. Null if there are none.
Value Host::areUnbound() {
  Value isUnbound;
  for (const std::string &name : storage.symbolsOfValues) {
    Value &symbol = sizeCode->symbols[name], isNegative = code->less(symbol, code->number(0));
    isUnbound =
        isUnbound ? builder.create<arith::OrIOp>(code->loc, isUnbound, isNegative) : isNegative;
    symbol = code->max(symbol, code->number(0));
  }
  return isUnbound;
}

/// Copies of inputs that are outputs themselves, where others take the place of the input: one an
/// output, most of them null.
Values Host::savedInputs(func::ReturnOp op) {
  Values saved(op.getNumOperands());
  for (auto [i, output] : llvm::enumerate(op.getOperands())) {
    auto input = dyn_cast<BlockArgument>(storage.rootOf(output));
    bool isOverwritten = false;
    for (int64_t other = 0; input && other < (int64_t)op.getNumOperands(); ++other)
      isOverwritten |= other != (int64_t)i && storage.sharedInput(other) == input.getArgNumber();
    if (!isOverwritten)
      continue;
    Value bytes = checkedBytes(output);
    saved[i] = alloc(bytes);
    copy(saved[i], pointerOf(output), bytes);
  }
  return saved;
}

} // namespace heddle::lower
