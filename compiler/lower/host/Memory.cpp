// Memory: pointers to tensors, and the arena's buffers.

#include "compiler/lower/host/Memory.h"

#include "compiler/support/Mapped.h"

using namespace mlir;

namespace heddle::lower {

Places placeBuffers(Code &code, SizeCode &sizeCode, const Storage &storage, Value *overflow) {
  SizeArithmetic arithmetic{code, overflow};
  std::map<std::string, Value> sizes; // many are alike
  auto alignedSize = [&](const Dim &bytes) {
    Value &size = sizes[bytes.str()];
    if (!size) {
      Value last = arithmetic.add(sizeCode.of(bytes, overflow), code.number(kAlignment - 1));
      size = code.mul(code.div(last, code.number(kAlignment)), code.number(kAlignment));
    }
    return size;
  };
  Value zero = code.number(0);
  Places places{SmallVector<Value>(storage.buffers.size(), zero),
                SmallVector<Value>(storage.spaces, zero)};
  for (size_t i : storage.plan.order) {
    Value &offset = places.offsets[i];
    for (size_t below : storage.plan.below[i])
      offset = code.max(
          offset, arithmetic.add(places.offsets[below], alignedSize(storage.buffers[below].bytes)));
    Value &total = places.totals[storage.buffers[i].space];
    total = code.max(total, arithmetic.add(offset, alignedSize(storage.buffers[i].bytes)));
  }
  return places;
}

std::optional<DimVector> sizesIn(Value x) {
  if (auto group = x.getDefiningOp<graph::GroupOp>())
    x = group.getBody().front().getTerminator()->getOperand(cast<OpResult>(x).getResultNumber());
  return graph::shapeValue(x);
}

void Memory::bindEntry() {
  Code &code = host.entryCode;
  Type pointer = code.pointerType();
  auto bind = [&](Value tensor, Value given, int64_t number) {
    Value address = code.at(given, pointer, code.number(number));
    pointers[tensor] = host.entry.create<program::LoadOp>(host.code.loc, pointer, address, 8);
  };
  Value inputs = host.area(program::Area::Inputs);
  for (BlockArgument input : host.model.getArguments())
    bind(input, inputs, input.getArgNumber());
  Value outputs = host.area(program::Area::Outputs);
  for (auto &[value, index] : storage.outputOf)
    bind(value, outputs, index);
}

Value Memory::buffer(int64_t number) {
  Value arena = arenas[storage.buffers[number].space];
  return host.code.at(arena, host.builder.getI8Type(), places.offsets[number]);
}

/// Among the weights.
int64_t Memory::placeOf(graph::ConstantOp constant) {
  auto [known, isNew] = weightOf.try_emplace(constant.getValue(), 0);
  if (!isNew)
    return known->second;
  program::Weights &weights = host.program.weights;
  std::vector<char> storage;
  ArrayRef<char> bytes = graph::constantBytes(constant.getValue(), storage);
  bool isBorrowed = storage.empty();
  known->second = isBorrowed ? weights.borrow(bytes) : weights.own(std::move(storage));
  if (isBorrowed)
    support::letPagesGo(bytes); // until they are written
  return known->second;
}

/// Whether the code that is written now follows all that is in the block so far.
static bool isWithin(Block *block, OpBuilder &builder) {
  Block *each = builder.getInsertionBlock();
  while (each && each != block)
    each = each->getParentOp() ? each->getParentOp()->getBlock() : nullptr;
  return each != nullptr;
}

Value Memory::copyOf(Value root, int64_t space) {
  if (Copy known = copies.lookup({root, space});
      known.memory && isWithin(known.block, host.builder))
    return known.memory;
  Value source = pointerOf(root, storage.spaceOf(root));
  Value bytes = sizes.dim(Storage::bytesOf(root));
  auto *planned = storage.copyOf.find({root, space});
  Value memory =
      planned == storage.copyOf.end() ? host.alloc(bytes, space) : buffer(planned->second);
  host.copy(memory, source, bytes);
  copies[{root, space}] = {memory, host.builder.getInsertionBlock()};
  return memory;
}

Value Memory::pointerOf(Value value, int64_t space) {
  value = storage.rootOf(value);
  if (auto constant = value.getDefiningOp<graph::ConstantOp>(); constant && !pointers.count(value))
    return host.weightsAt(placeOf(constant), space);
  if (int64_t own = storage.spaceOf(value); own != space)
    return copyOf(value, space);
  if (auto known = pointers.find(value); known != pointers.end())
    return known->second;
  if (auto known = storage.bufferOf.find(value); known != storage.bufferOf.end())
    return buffer(known->second);
  // Made now: its size became known while running.
  Value bytes = sizes.checkedBytes(value);
  auto late = storage.lateOutputOf.find(value);
  Value memory = late == storage.lateOutputOf.end() ? host.alloc(bytes, space)
                                                    : host.allocOutput(late->second, bytes);
  pointers[value] = memory;
  return memory;
}

Value Memory::makeRoom(Value tensor, const Dim &bytes) {
  auto known = storage.bufferOf.find(tensor);
  Value room =
      known == storage.bufferOf.end() ? host.alloc(sizes.dim(bytes)) : buffer(known->second);
  pointers[tensor] = room;
  return room;
}

Value Memory::addressOf(Value tensor) {
  return host.builder.create<program::WordOp>(host.code.loc, pointerOf(tensor));
}

Value Memory::readInteger(Value tensor, int64_t index) {
  if (auto known = sizesIn(tensor))
    return sizes.dim((*known)[index]);
  Code &code = host.code;
  Type element = graph::storageOf(tensor);
  Value memory = pointerOf(tensor);
  return code.choose(
      host.isFine(), host.builder.getI64Type(),
      [&] { return Values{host.loadInteger(element, memory, index)}; },
      [&] { return Values{code.number(0)}; })[0];
}

} // namespace heddle::lower
