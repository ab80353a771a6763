// Writer: what the code of each part of the host begins with.

#include "compiler/lower/host/Writer.h"

using namespace mlir;

namespace heddle::lower {

Writer::Writer(func::FuncOp model, program::Program &program, StringRef name, unsigned pointerCount)
    : model(model), program(program), builder(model.getContext()), entry(model.getContext()),
      code(builder, model.getLoc(), 1), entryCode(entry, model.getLoc(), 1) {
  SmallVector<Type> pointers(pointerCount, code.pointerType());
  builder.setInsertionPointToEnd(program.module->getBody());
  function = builder.create<func::FuncOp>(code.loc, name,
                                          builder.getFunctionType(pointers, builder.getI32Type()));
  builder.setInsertionPointToEnd(function.addEntryBlock());
  Operation *marker = builder.create<arith::ConstantOp>(code.loc, builder.getI64IntegerAttr(0));
  entry.setInsertionPoint(marker);
}

Value Writer::area(program::Area which, int64_t space) {
  return entry.create<program::AreaOp>(code.loc, call(), which, nameOf(space));
}

Value Writer::weightsAt(int64_t place, int64_t space) {
  Value weights = area(program::Area::Weights, space);
  return entryCode.at(weights, entry.getI8Type(), entryCode.number(place));
}

Value Writer::array(int64_t words) { return entry.create<program::ArrayOp>(code.loc, words); }

Value Writer::alloc(Value bytes, int64_t space) {
  return builder.create<program::AllocOp>(code.loc, call(), bytes, nameOf(space));
}

Value Writer::allocOutput(int64_t output, Value bytes) {
  return builder.create<program::AllocOutputOp>(code.loc, call(), output, bytes);
}

void Writer::copy(Value target, Value source, Value bytes) {
  code.when(isFine(), [&] {
    if (target.getType() == source.getType())
      builder.create<program::CopyOp>(code.loc, target, source, bytes, /*overlapping=*/true);
    else
      builder.create<program::TransferOp>(code.loc, target, source, bytes);
  });
}

Value Writer::loadInteger(Type element, Value memory, int64_t index) {
  Value value = code.load(element, memory, code.number(index));
  if (element.getIntOrFloatBitWidth() == 64)
    return value;
  Type i64 = builder.getI64Type();
  if (element.isSignlessInteger(1) || element.isUnsignedInteger())
    return builder.create<arith::ExtUIOp>(code.loc, i64, value);
  return builder.create<arith::ExtSIOp>(code.loc, i64, value);
}

Value Writer::isFine() {
  Value status = builder.create<program::StatusOp>(code.loc, call());
  return builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, status,
                                       code.integerOf(builder.getI32Type(), 0));
}

void Writer::fail(StringRef message, Value value, Value limit) {
  program.messages.push_back(message.str());
  Value number = code.number(program.messages.size() - 1);
  builder.create<program::FailOp>(code.loc, call(), number, value, limit);
}

void Writer::failIf(Value overflow, const Twine &what) {
  if (overflow)
    code.when(overflow, [&] { fail(node + what.str(), code.number(0), code.number(0)); });
}

Value Writer::messages(ArrayRef<StringRef> texts) {
  int64_t first = program.messages.size();
  for (StringRef text : texts)
    program.messages.push_back(node + text.str());
  return code.number(first);
}

Value Writer::callOn(program::Service service, ArrayRef<Value> words) {
  Type i64 = builder.getI64Type();
  Value frame = array(words.size());
  for (auto [i, word] : llvm::enumerate(words))
    code.store(i64, word, frame, code.number(i));
  Value services = area(program::Area::Services);
  code.when(isFine(), [&] {
    builder.create<program::ServiceOp>(code.loc, service, services, call(), frame);
  });
  return frame;
}

} // namespace heddle::lower
