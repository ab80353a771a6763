// FragmentAttention: FlashAttention-2 (Dao, 2023) in fragments of f16 or bf16.
//
// Threads in step have 16 query rows, whose fragments they keep. Of a tile of keys they have the
// scores as sums of fragments: these become exponentials, and left operands of the second product,
// without leaving the registers. Keys lie in memory with their depth side by side, values with
// their keys.

#include "compiler/lower/attention/Operands.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/threads/Attention.h"
#include "compiler/lower/threads/Fragments.h"

using namespace mlir;

namespace heddle::lower {

namespace {

class FragmentAttention : public BlocksOfAttention {
public:
  FragmentAttention(KernelBuilder &kernel, Block *group, const Schedule &schedule)
      : BlocksOfAttention(kernel, group), isShort(schedule.isShort) {}

  LogicalResult prepare();
  void emit();

private:
  /// State of the two rows of a thread, and its part of the second product.
  struct State {
    Values largest, sums, values;
  };

  void emitTask(Elements &e);
  void copyOperand(Elements &e, graph::MatmulOp product, unsigned operand, const FragmentLines &to,
                   int64_t lines, int64_t steps, Value firstKey);
  Values loadQueries(Elements &e);
  Values scoresOf(ValueRange queries);
  State addTile(Elements &e, ValueRange queries, Value firstKey, const State &state);
  Value exponentialOf(Elements &e, Value logit, Value base);
  Value ofRow(Operation *reduction, Value value);
  Value pairOf(Value low, Value high);
  Value leftOf(ArrayRef<Value> weights, int64_t first);
  void emitResults(Elements &e, const State &state);

  /// The row, among those of the block, of the thread's first or second one, and the column of an
  /// element of a tile of 8.
  Value rowOf(int64_t number);
  Value columnOf(int64_t tile, int64_t element);
  int64_t threads() const { return rows / kRowsOfFragment * kInStep; }

  static constexpr int64_t kTiles = kKeys / kColumnsOfFragment;

  const bool isShort;
  Type element;
  int64_t steps = 0, width = 0; // of the two products, filled up
  FragmentLines keyLines, valueLines;
  Value factors;
};

LogicalResult FragmentAttention::prepare() {
  if (failed(read()))
    return failure();
  element = mechanism::fragmentsOf(mechanism::opsOf(*group), isShort);
  if (!element)
    return kernel.refuse("fragments do not serve such an attention");
  auto known = queries.constant();
  rows = known && *known <= 32 ? 32 : 64;
  auto filled = [](const Dim &size) {
    return std::max<int64_t>(16, llvm::PowerOf2Ceil(*size.constant()));
  };
  steps = filled(depth);
  width = filled(columns);
  return success();
}

Value FragmentAttention::rowOf(int64_t number) {
  Code &code = kernel.code();
  Value part = code.mul(code.div(team->rank(), code.number(kInStep)), code.number(kRowsOfFragment));
  Value own = code.div(lane(code, *team), code.number(4));
  return code.add(code.add(part, own), code.number(8 * number));
}

Value FragmentAttention::columnOf(int64_t tile, int64_t element) {
  Code &code = kernel.code();
  Value pair = code.mul(code.rem(lane(code, *team), code.number(4)), code.number(2));
  return code.add(pair, code.number(tile * kColumnsOfFragment + element % 2));
}

/// Copies a tile of queries, keys or values; zeros beyond them.
void FragmentAttention::copyOperand(Elements &e, graph::MatmulOp product, unsigned operand,
                                    const FragmentLines &to, int64_t lines, int64_t steps,
                                    Value firstKey) {
  Code &code = kernel.code();
  bool areQueries = operand == 0, areValues = product == parts.values;
  Value tensor = product->getOperand(operand);
  bool isAlongRows = !isTransposed(group, tensor); // neighbours are in the last dimension
  auto valueOf = [&](const Slot &slot) {
    Value isThere, row, column;
    if (areQueries) {
      isThere = code.less(slot.step, kernel.dim(depth));
      row = rowNumber(slot.line);
      column = slot.step;
    } else {
      Value key = code.add(firstKey, areValues ? slot.step : slot.line);
      Value other = areValues ? slot.line : slot.step;
      isThere = code.both(code.less(key, kernel.dim(keys)),
                          code.less(other, kernel.dim(areValues ? columns : depth)));
      row = areValues ? key : other;
      column = areValues ? other : key;
    }
    Value value = operandAt(e, product, operand, row, column, isThere);
    return code.b.create<arith::TruncFOp>(code.loc, element, value).getResult();
  };
  // A loop, since registers hold the addresses of few.
  constexpr int64_t kAtOnce = 4;
  int64_t count = lines * steps / team->threads;
  code.forEach(code.number(0), code.number(count), kAtOnce, [&](Value first) {
    Elements::Scope scope(e);
    SmallVector<Slot> slots;
    Values copied;
    for (int64_t i = 0; i < kAtOnce; ++i) {
      // Steps are the last dimension of queries, and the one before of keys and values.
      slots.push_back(slotAt(code, *team, lines, steps, areQueries == isAlongRows,
                             code.add(first, code.number(i))));
      copied.push_back(valueOf(slots.back()));
    }
    for (auto [slot, value] : llvm::zip(slots, copied))
      code.store(element, value, to.memory,
                 code.add(code.mul(slot.line, code.number(to.length)), slot.step));
  });
}

/// The rows of the block, as left operands of all steps.
Values FragmentAttention::loadQueries(Elements &e) {
  Code &code = kernel.code();
  {
    Elements::Scope scope(e);
    copyOperand(e, parts.scores, 0, keyLines, rows, steps, Value());
  }
  team->barrier();
  Value row = code.mul(code.div(team->rank(), code.number(kInStep)), code.number(kRowsOfFragment));
  Values loaded;
  for (int64_t step = 0; step < steps; step += kStepsOfFragment)
    loaded.push_back(loadRows(code, *team, keyLines, row, code.number(step)));
  team->barrier();
  return loaded;
}

Values FragmentAttention::scoresOf(ValueRange queries) {
  Code &code = kernel.code();
  Values sums(kTiles, zeroFragment(code));
  for (auto [i, left] : llvm::enumerate(queries))
    for (int64_t tile = 0; tile < kTiles; tile += 2) {
      Values right = loadColumns(code, *team, keyLines, code.number(tile * kColumnsOfFragment),
                                 code.number(i * kStepsOfFragment));
      for (int64_t half = 0; half < 2; ++half)
        sums[tile + half] = multiplyFragments(code, left, right[half], sums[tile + half], element);
    }
  return sums;
}

/// Combines what the four threads of a row have.
Value FragmentAttention::ofRow(Operation *reduction, Value value) {
  Code &code = kernel.code();
  for (int64_t distance : {2, 1}) {
    Value other = code.b.create<program::ShuffleOp>(code.loc, value, distance);
    value = combine(code, reduction, value, other);
  }
  return value;
}

Value FragmentAttention::pairOf(Value low, Value high) {
  Code &code = kernel.code();
  OpBuilder &b = code.b;
  auto bits = [&](Value number) {
    Value rounded = b.create<arith::TruncFOp>(code.loc, element, number);
    Value word = b.create<arith::BitcastOp>(code.loc, b.getI16Type(), rounded);
    return b.create<arith::ExtUIOp>(code.loc, b.getI32Type(), word);
  };
  Value upper = b.create<arith::ShLIOp>(code.loc, bits(high), code.integerOf(b.getI32Type(), 16));
  return b.create<arith::OrIOp>(code.loc, bits(low), upper);
}

/// Weights of 16 keys as a left operand: sums and left operands have the same places.
Value FragmentAttention::leftOf(ArrayRef<Value> weights, int64_t first) {
  Code &code = kernel.code();
  Values words;
  for (int64_t tile : {first, first + 1})
    for (int64_t row : {0, 1})
      words.push_back(pairOf(weights[tile * 4 + row * 2], weights[tile * 4 + row * 2 + 1]));
  return code.b.create<vector::FromElementsOp>(code.loc, VectorType::get({4}, code.b.getI32Type()),
                                               words);
}

FragmentAttention::State FragmentAttention::addTile(Elements &e, ValueRange queries, Value firstKey,
                                                    const State &state) {
  Code &code = kernel.code();
  Value product = parts.scores.getResult();
  copyOperand(e, parts.scores, 1, keyLines, kKeys, steps, firstKey);
  copyOperand(e, parts.values, 1, valueLines, width, kKeys, firstKey);
  team->barrier();
  Values scores = scoresOf(queries), weights(kTiles * 4);
  Values largest(state.largest);
  for (int64_t tile = 0; tile < kTiles; ++tile)
    for (int64_t i = 0; i < 4; ++i) {
      Elements::Scope scope(e);
      Value score = code.b.create<vector::ExtractOp>(code.loc, scores[tile], i);
      bindNumber(e, product, score);
      weights[tile * 4 + i] = valueAt(e, parts.logits, rowNumber(rowOf(i / 2)),
                                      code.add(firstKey, columnOf(tile, i)), kLowest);
      e.unbind(product);
      largest[i / 2] = combine(code, parts.max, largest[i / 2], weights[tile * 4 + i]);
    }
  State next;
  Values factors, bases;
  for (int64_t row : {0, 1}) {
    next.largest.push_back(ofRow(parts.max, largest[row]));
    bases.push_back(baseOf(next.largest[row]));
    Value less = code.b.create<arith::SubFOp>(code.loc, state.largest[row], bases[row]);
    factors.push_back(code.b.create<math::ExpOp>(code.loc, less));
    next.sums.push_back(
        code.b.create<arith::MulFOp>(code.loc, state.sums[row], factors[row]).getResult());
  }
  for (int64_t i = 0; i < kTiles * 4; ++i) {
    Elements::Scope scope(e);
    int64_t row = i % 4 / 2;
    bindNumber(e, parts.max, bases[row]);
    bindNumber(e, parts.logits, weights[i]);
    weights[i] =
        valueAt(e, parts.sum.getX(), rowNumber(rowOf(row)), code.add(firstKey, columnOf(i / 4, i)));
    e.unbind(parts.max);
    e.unbind(parts.logits);
    next.sums[row] = code.b.create<arith::AddFOp>(code.loc, next.sums[row], weights[i]);
  }
  Value both = code.b.create<vector::FromElementsOp>(
      code.loc, VectorType::get({4}, code.b.getF32Type()),
      ValueRange{factors[0], factors[0], factors[1], factors[1]});
  for (Value sum : state.values)
    next.values.push_back(code.b.create<arith::MulFOp>(code.loc, sum, both));
  for (int64_t tile = 0; tile < kTiles; tile += 2) {
    Value left = leftOf(weights, tile);
    for (int64_t j = 0; j < width / kColumnsOfFragment; j += 2) {
      Values right = loadColumns(code, *team, valueLines, code.number(j * kColumnsOfFragment),
                                 code.number(tile * kColumnsOfFragment));
      for (int64_t half = 0; half < 2; ++half)
        next.values[j + half] =
            multiplyFragments(code, left, right[half], next.values[j + half], element);
    }
  }
  team->barrier();
  return next;
}

void FragmentAttention::emitTask(Elements &e) {
  Code &code = kernel.code();
  Values queries = loadQueries(e);
  int64_t count = width / kColumnsOfFragment;
  Values all(2, numberOf(kLowest));
  all.append(2, numberOf(0));
  all.append(count, zeroFragment(code));
  auto stateOf = [](ValueRange all) {
    return State{Values(all.take_front(2)), Values(all.slice(2, 2)), Values(all.drop_front(4))};
  };
  all = code.fold(code.number(0), kernel.dim(keys), kKeys, all, [&](Value firstKey, ValueRange in) {
    Elements::Scope scope(e);
    State next = addTile(e, queries, firstKey, stateOf(in));
    Values packed(next.largest);
    llvm::append_range(packed, next.sums);
    llvm::append_range(packed, next.values);
    return packed;
  });
  emitResults(e, stateOf(all));
}

void FragmentAttention::emitResults(Elements &e, const State &state) {
  Code &code = kernel.code();
  Type f32 = code.b.getF32Type();
  // Without a key the result is 0; where all scores are -inf, it is NaN.
  Value hasKeys = code.less(code.number(0), kernel.dim(keys));
  for (int64_t row : {0, 1}) {
    Value sum = ofRow(parts.sum, state.sums[row]);
    sum = code.b.create<arith::SelectOp>(code.loc, hasKeys, sum, numberOf(1));
    Value isFirst = code.less(code.rem(lane(code, *team), code.number(4)), code.number(1));
    code.when(isFirst, [&] { code.store(number, sum, factors, rowOf(row)); });
  }
  for (auto [tile, values] : llvm::enumerate(state.values))
    for (int64_t i = 0; i < 4; ++i) {
      Value line = code.mul(rowOf(i / 2), code.number(paddedLine(width)));
      code.store(f32, code.b.create<vector::ExtractOp>(code.loc, values, i), keyLines.memory,
                 code.add(line, columnOf(tile, i)));
    }
  team->barrier();
  storeResults(e, keyLines.memory, factors, width);
}

void FragmentAttention::emit() {
  auto prepare = [&] {
    Type byte = IntegerType::get(number.getContext(), 8);
    int64_t ofKeys = FragmentLines::lengthFor(steps), ofValues = FragmentLines::lengthFor(kKeys);
    int64_t keyBytes = 2 * ofKeys * std::max(kKeys, rows);
    int64_t sumBytes = 4 * paddedLine(width) * rows; // which come when all else is done
    Value memory = team->shared(byte, std::max(keyBytes + 2 * ofValues * width, sumBytes));
    keyLines = {memory, element, ofKeys};
    valueLines = {kernel.code().at(memory, byte, kernel.code().number(keyBytes)), element,
                  ofValues};
    factors = team->shared(number, rows);
  };
  emitBlocks(threads(), prepare, [&](Elements &e) { emitTask(e); });
}

} // namespace

LogicalResult emitFragmentAttention(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<FragmentAttention>(kernel, group, schedule);
}

} // namespace heddle::lower
