// MemoryOps: addresses, loads and stores, each of which is looked up; copies, arrays on the stack;
// what processors have instructions for.

#include "compiler/program/Machine.h"
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

/// The sum and the product of two pairs of bf16.
static float addPairs(float sum, uint64_t left, uint64_t right) {
  auto number = [](uint64_t bits) { return llvm::bit_cast<float>(uint32_t(bits)); };
  sum = std::fma(number(left << 16), number(right << 16), sum);
  return std::fma(number(left & 0xffff0000), number(right & 0xffff0000), sum);
}

/// The sum and the products of integers of `width` bits in two words.
static uint64_t addIntegers(program::DotKind kind, unsigned width, uint64_t sum, uint64_t left,
                            uint64_t right) {
  for (unsigned bit = 0; bit < 32; bit += width) {
    uint64_t x = narrowed(left >> bit, width), y = narrowed(right >> bit, width);
    int64_t number = kind == program::DotKind::UnsignedBytes ? int64_t(x) : withSign(x, width);
    sum = narrowed(sum + uint64_t(number * withSign(y, width)), 32);
  }
  return sum;
}

static void dot(Run &, Activation &activation, const Step &step) {
  using Kind = program::DotKind;
  Kind kind = cast<program::DotOp>(step.op).getKind();
  unsigned width = kind == Kind::Pairs ? 16 : 8;
  const Bits &left = activation.values[step.operands[0]];
  const Bits &right = activation.values[step.operands[1]];
  Bits result = activation.values[step.operands[2]];
  if (kind == Kind::ShortFloats)
    for (size_t i = 0; i < step.lanes; ++i)
      result[i] = llvm::bit_cast<uint32_t>(
          addPairs(llvm::bit_cast<float>(uint32_t(result[i])), left[i], right[i]));
  for (size_t i = 0; i < step.lanes && kind == Kind::HalfBytes; ++i)
    for (unsigned bit = 0; bit < 32; bit += width) {
      int64_t number =
          narrowed(left[i] >> bit, width) * withSign(narrowed(right[i] >> bit, width), width);
      uint64_t half = bit < 16 ? 0xffff : 0xffff0000;
      uint64_t more = narrowed(uint64_t(number), 16) << (bit < 16 ? 0 : 16);
      result[i] = (((result[i] & half) + more) & half) | (result[i] & ~half);
    }
  for (size_t i = 0; i < step.lanes && kind != Kind::ShortFloats && kind != Kind::HalfBytes; ++i)
    result[i] = addIntegers(kind, width, result[i], left[i], right[i]);
  activation.values[step.results[0]] = std::move(result);
}

static void multiplyMatrices(Run &run, Activation &activation, const Step &step) {
  auto op = cast<program::MultiplyMatricesOp>(step.op);
  int64_t words = op.getWords();
  uint64_t result = wordOf(activation, step, 0), left = wordOf(activation, step, 1),
           right = wordOf(activation, step, 4);
  int64_t pieces = wordOf(activation, step, 5), steps = wordOf(activation, step, 6),
          rows = op.getRows(), columns = op.getColumns();
  if (pieces < 0 || steps < 0)
    return run.stop(step,
                    std::to_string(pieces) + " pieces of " + std::to_string(steps) + " steps");
  if (!run.isFine(step, op.getResult(), result, rows * columns * 4) ||
      !run.isFine(step, op.getRight(), right, pieces * steps * words * columns * 4))
    return;
  bool areFloats = op.getKind() == program::DotKind::ShortFloats;
  std::vector<uint32_t> sums(rows * columns, 0);
  for (int64_t i = 0; i < pieces * steps * rows; ++i) {
    int64_t row = i % rows, number = i / rows;
    uint64_t from = left + number / steps * wordOf(activation, step, 2) +
                    number % steps * op.getLeftStep() + row * wordOf(activation, step, 3);
    if (!run.isFine(step, op.getLeft(), from, words * 4))
      return;
    for (int64_t j = 0; j < words * columns; ++j) {
      uint32_t &sum = sums[row * columns + j % columns];
      uint64_t x = read(from + 4 * (j / columns), 4),
               y = read(right + 4 * (number * words * columns + j), 4);
      sum = areFloats ? llvm::bit_cast<uint32_t>(addPairs(llvm::bit_cast<float>(sum), x, y))
                      : uint32_t(addIntegers(op.getKind(), 8, sum, x, y));
    }
  }
  for (auto [i, sum] : llvm::enumerate(sums))
    write(result + 4 * i, sum, 4);
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
  actions["program.multiply_matrices"] = multiplyMatrices;
  actions["program.permute"] = permute;
  actions["program.lookup"] = lookup;
}

} // namespace heddle::interpreter
