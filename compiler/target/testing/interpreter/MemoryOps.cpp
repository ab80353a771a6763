// MemoryOps: addresses, loads and stores, each of which is looked up; copies, arrays on the stack;
// what processors have instructions for.

#include "compiler/target/testing/interpreter/Interpreter.h"
#include "compiler/target/testing/interpreter/Numbers.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace heddle::interpreter {

static int64_t bytesOf(Type element) { return (widthOf(element) + 7) / 8; }

static uint64_t read(uint64_t address, int64_t bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, reinterpret_cast<const void *>(address), bytes);
  return bits;
}
static void write(uint64_t address, uint64_t bits, int64_t bytes) {
  std::memcpy(reinterpret_cast<void *>(address), &bits, bytes);
}

static void at(Run &, Activation &activation, const Step &step) {
  int64_t bytes = bytesOf(cast<program::AtOp>(step.op).getElement());
  activation.values[step.results[0]] =
      Bits{wordOf(activation, step, 0) + wordOf(activation, step, 1) * bytes};
}

static void load(Run &run, Activation &activation, const Step &step) {
  auto op = cast<program::LoadOp>(step.op);
  uint64_t address = wordOf(activation, step, 0);
  int64_t bytes = bytesOf(step.resultElement);
  if (!run.isFine(step, op.getPointer(), address, bytes * step.lanes, op.getAlignment()))
    return;
  Bits &result = activation.values[step.results[0]];
  result.resize(step.lanes);
  for (size_t i = 0; i < step.lanes; ++i)
    result[i] = read(address + i * bytes, bytes);
}

static void store(Run &run, Activation &activation, const Step &step) {
  auto op = cast<program::StoreOp>(step.op);
  const Bits &value = activation.values[step.operands[0]];
  uint64_t address = wordOf(activation, step, 1);
  int64_t bytes = bytesOf(step.element);
  if (!run.isFine(step, op.getPointer(), address, bytes * value.size(), op.getAlignment()))
    return;
  for (size_t i = 0; i < value.size(); ++i)
    write(address + i * bytes, value[i], bytes);
}

/// Reads the lanes whose mask is true: neighbours, or where `indices` say.
template <typename Op>
static void readLanes(Run &run, Activation &activation, const Step &step, Op op,
                      const Bits *indices, unsigned mask) {
  const Bits &isRead = activation.values[step.operands[mask]];
  uint64_t address = wordOf(activation, step, 0);
  int64_t bytes = bytesOf(step.resultElement);
  Bits result = activation.values[step.operands[mask + 1]];
  for (size_t i = 0; i < step.lanes; ++i) {
    uint64_t place = address + (indices ? (*indices)[i] : i) * bytes;
    if (!isRead[i])
      continue;
    if (!run.isFine(step, op.getPointer(), place, bytes))
      return;
    result[i] = read(place, bytes);
  }
  activation.values[step.results[0]] = std::move(result);
}

template <typename Op>
static void writeLanes(Run &run, Activation &activation, const Step &step, Op op,
                       const Bits *indices, unsigned mask) {
  const Bits &value = activation.values[step.operands[0]];
  const Bits &isWritten = activation.values[step.operands[mask]];
  uint64_t address = wordOf(activation, step, 1);
  int64_t bytes = bytesOf(step.element);
  for (size_t i = 0; i < value.size(); ++i) {
    uint64_t place = address + (indices ? (*indices)[i] : i) * bytes;
    if (!isWritten[i])
      continue;
    if (!run.isFine(step, op.getPointer(), place, bytes))
      return;
    write(place, value[i], bytes);
  }
}

/// program.copy and program.transfer.
static void copy(Run &run, Activation &activation, const Step &step) {
  uint64_t target = wordOf(activation, step, 0), source = wordOf(activation, step, 1);
  int64_t bytes = wordOf(activation, step, 2);
  if (bytes < 0)
    return run.stop(step, std::to_string(bytes) + " bytes");
  if (run.isFine(step, step.op->getOperand(0), target, bytes) &&
      run.isFine(step, step.op->getOperand(1), source, bytes) && bytes > 0)
    std::memmove(reinterpret_cast<void *>(target), reinterpret_cast<void *>(source), bytes);
}

static void array(Run &run, Activation &activation, const Step &step) {
  int64_t words = cast<program::ArrayOp>(step.op).getWords();
  auto made = std::make_unique<int64_t[]>(words);
  run.memory.add(made.get(), 8 * words);
  activation.values[step.results[0]] = bitsOf(made.get());
  activation.arrays.push_back(std::move(made));
}

static void addChecked(Run &, Activation &activation, const Step &step) {
  int64_t x = wordOf(activation, step, 0), y = wordOf(activation, step, 1), result;
  bool overflow = isa<program::AddOp>(step.op) ? __builtin_add_overflow(x, y, &result)
                                               : __builtin_mul_overflow(x, y, &result);
  activation.values[step.results[0]] = Bits{uint64_t(result)};
  activation.values[step.results[1]] = Bits{overflow};
}

static void dot(Run &, Activation &activation, const Step &step) {
  using Kind = program::DotKind;
  Kind kind = cast<program::DotOp>(step.op).getKind();
  unsigned width = kind == Kind::Pairs ? 16 : 8;
  const Bits &left = activation.values[step.operands[0]];
  const Bits &right = activation.values[step.operands[1]];
  Bits result = activation.values[step.operands[2]];
  if (kind == Kind::ShortFloats)
    for (size_t i = 0; i < step.lanes; ++i) {
      auto number = [](uint64_t bits) { return llvm::bit_cast<float>(uint32_t(bits)); };
      float sum = number(result[i]);
      sum = std::fma(number(left[i] << 16), number(right[i] << 16), sum);
      sum = std::fma(number(left[i] & 0xffff0000), number(right[i] & 0xffff0000), sum);
      result[i] = llvm::bit_cast<uint32_t>(sum);
    }
  for (size_t i = 0; i < step.lanes && kind != Kind::ShortFloats; ++i)
    for (unsigned bit = 0; bit < 32; bit += width) {
      uint64_t x = narrowed(left[i] >> bit, width), y = narrowed(right[i] >> bit, width);
      int64_t number = kind == Kind::UnsignedBytes ? int64_t(x) : withSign(x, width);
      result[i] = narrowed(result[i] + uint64_t(number * withSign(y, width)), 32);
    }
  activation.values[step.results[0]] = std::move(result);
}

static void permute(Run &run, Activation &activation, const Step &step) {
  const Bits &x = activation.values[step.operands[0]];
  const Bits &places = activation.values[step.operands[1]];
  Bits &result = activation.values[step.results[0]];
  result.resize(step.lanes);
  for (size_t i = 0; i < step.lanes; ++i) {
    if (places[i] >= x.size())
      return run.stop(step,
                      "lane " + std::to_string(places[i]) + " of " + std::to_string(x.size()));
    result[i] = x[places[i]];
  }
}

static void lookup(Run &run, Activation &activation, const Step &step) {
  uint64_t table = wordOf(activation, step, 0);
  const Bits &places = activation.values[step.operands[1]];
  if (!run.isFine(step, step.op->getOperand(0), table, 256))
    return;
  Bits &result = activation.values[step.results[0]];
  result.resize(step.lanes);
  for (size_t i = 0; i < step.lanes; ++i)
    result[i] = read(table + places[i], 1);
}

void addMemory(Actions &actions) {
  actions["program.at"] = at;
  actions["program.load"] = load;
  actions["program.store"] = store;
  actions["program.masked_load"] = [](Run &run, Activation &activation, const Step &step) {
    readLanes(run, activation, step, cast<program::MaskedLoadOp>(step.op), nullptr, 1);
  };
  actions["program.gather"] = [](Run &run, Activation &activation, const Step &step) {
    readLanes(run, activation, step, cast<program::GatherOp>(step.op),
              &activation.values[step.operands[1]], 2);
  };
  actions["program.masked_store"] = [](Run &run, Activation &activation, const Step &step) {
    writeLanes(run, activation, step, cast<program::MaskedStoreOp>(step.op), nullptr, 2);
  };
  actions["program.scatter"] = [](Run &run, Activation &activation, const Step &step) {
    writeLanes(run, activation, step, cast<program::ScatterOp>(step.op),
               &activation.values[step.operands[2]], 3);
  };
  actions["program.copy"] = actions["program.transfer"] = copy;
  actions["program.prefetch"] = [](Run &, Activation &, const Step &) {};
  actions["program.array"] = array;
  actions["program.null"] = [](Run &, Activation &activation, const Step &step) {
    activation.values[step.results[0]] = Bits{0};
  };
  actions["program.word"] = actions["program.pointer"] = actions["program.freeze"] = pass;
  actions["program.add"] = actions["program.mul"] = addChecked;
  actions["program.dot"] = dot;
  actions["program.permute"] = permute;
  actions["program.lookup"] = lookup;
}

} // namespace heddle::interpreter
