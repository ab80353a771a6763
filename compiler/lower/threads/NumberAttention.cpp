// NumberAttention: two products with a softmax between them by blocks of threads (FlashAttention-2,
// Dao, 2023), in numbers of any type.
//
// A block has some query rows of a head. It takes the keys tile by tile: their scores go to shared
// memory, where each row becomes exponentials below its largest score so far; the sums of the
// second product are scaled down whenever that grows. Where more than a division follows the
// exponentials, their sums are found first, and the keys are taken twice.
//
// Few queries, as in generation, have too few blocks for a device: then each has a part of the
// keys, and a second phase joins what they found (Flash-Decoding, Dao et al., 2023).

#include "compiler/graph/Typical.h"
#include "compiler/lower/attention/Operands.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/threads/Attention.h"

using namespace mlir;

namespace heddle::lower {

namespace {

class NumberAttention : public BlocksOfAttention {
public:
  NumberAttention(KernelBuilder &kernel, Block *group, const Schedule &)
      : BlocksOfAttention(kernel, group) {}

  LogicalResult prepare();
  void emit();

private:
  /// State of a row, of which four threads know the same, and the sums of the second product.
  struct Rows {
    Value largest, sum;
    Values values;
  };

  void emitTask(Elements &e);
  Rows overTiles(Elements &e, const Rows &start,
                 llvm::function_ref<Rows(Value firstKey, const Rows &)> body);
  void emitScores(Elements &e, Value firstKey);
  Rows addExponentials(Elements &e, Value firstKey, const Rows &rows);
  Values addWeights(Elements &e, Value firstKey, const Rows &rows);
  Values addValues(Elements &e, Value firstKey, ValueRange sums);
  void emitResults(Elements &e, const Rows &rows);
  void keepPart(Elements &e, const Rows &rows);
  void joinParts();
  /// Numbers of a block of phase one: its rows' sums, then their largest scores, then theirs.
  int64_t sizeOfPart() const { return rows * (*columns.constant() + 2); }

  void copyPiece(int64_t lines, bool isAlongSteps, Value first,
                 llvm::function_ref<Value(const Slot &)> valueOf);
  Value foldScores(Elements &e, Value firstKey, Value initial,
                   llvm::function_ref<Value(Value row, Value key, Value at, Value carried)> body);
  /// The row of a tile that this thread serves, and its number among the threads that do.
  Value ownRow() { return kernel.code().div(team->rank(), kernel.code().number(kOfRow)); }
  Value ownPart() { return kernel.code().rem(team->rank(), kernel.code().number(kOfRow)); }
  Value combineOfRow(Operation *reduction, Value value);

  static constexpr int64_t kOfRow = 4; // threads

  int64_t steps = 32; // of a reduction at a time, which registers hold on their way

  TileSizes ofScores, ofValues;
  std::optional<ThreadTile> scores, values;
  Value pieces, weights, factors; // shared memory
  int64_t found = -1;             // a temporary: what blocks found of their parts of the keys
};

/// Parts of the keys that fill the processors with blocks, of two tiles or more each.
static int64_t partsOfKeys(const program::Machine &machine, int64_t blocks, int64_t keys,
                           int64_t tile) {
  constexpr int64_t kMost = 16, kThreadsOfProcessor = 2048;
  int64_t processors = std::max<int64_t>(1, machine.workers / kThreadsOfProcessor);
  int64_t wanted = llvm::divideCeil(processors, std::max<int64_t>(1, blocks));
  return std::clamp<int64_t>(std::min(wanted, keys / (2 * tile)), 1, kMost);
}

LogicalResult NumberAttention::prepare() {
  if (failed(read()))
    return failure();
  auto known = queries.constant();
  if (known && *known <= 16) {
    rows = 16;
    steps = 16; // each of a quarter of the threads copies four times as much
    if (parts.dividesLast) {
      constexpr int64_t kMany = 1024; // keys that a cache grows to
      int64_t count = graph::typicalSize(parts.scores, keys);
      if (!keys.constant())
        count = std::max(count, kMany);
      keyParts =
          partsOfKeys(kernel.machine, graph::typicalSize(parts.scores, batches), count, kKeys);
    }
  }
  int64_t tiles = llvm::PowerOf2Ceil(llvm::divideCeil(*columns.constant(), kKeys));
  int64_t ofColumns = std::max<int64_t>(1, tiles) * kNeighbours;
  ofScores = {rows, kKeys, kNeighbours, kNeighbours};
  ofValues = {rows, kKeys / kNeighbours * ofColumns, kNeighbours, ofColumns};
  return success();
}

Value NumberAttention::combineOfRow(Operation *reduction, Value value) {
  Code &code = kernel.code();
  for (int64_t distance = kOfRow / 2; distance > 0; distance /= 2) {
    Value other = code.b.create<program::ShuffleOp>(code.loc, value, distance);
    value = lower::combine(code, reduction, value, other);
  }
  return value;
}

/// Copies a piece of an operand to element `first` of the shared memory.
void NumberAttention::copyPiece(int64_t lines, bool isAlongSteps, Value first,
                                llvm::function_ref<Value(const Slot &)> valueOf) {
  Code &code = kernel.code();
  SmallVector<Slot> slots = slotsOf(code, *team, lines, steps, isAlongSteps);
  Values copied;
  for (const Slot &slot : slots)
    copied.push_back(valueOf(slot));
  for (auto [slot, value] : llvm::zip(slots, copied))
    code.store(number, value, pieces, code.add(first, placeOf(code, slot, lines)));
}

/// The scores of a tile of keys, where `weights` will be.
void NumberAttention::emitScores(Elements &e, Value firstKey) {
  Code &code = kernel.code();
  Value left = parts.scores.getA(), right = parts.scores.getB();
  Value zero = code.number(0), second = code.number(paddedLine(ofScores.rows) * steps);
  Value end = kernel.dim(depth), endOfKeys = kernel.dim(keys);
  Values sums = code.fold(zero, end, steps, scores->zeros(), [&](Value first, ValueRange in) {
    Elements::Scope scope(e);
    copyPiece(ofScores.rows, !isTransposed(group, left), zero, [&](const Slot &slot) {
      Value k = code.add(first, slot.step);
      return operandAt(e, parts.scores, 0, rowNumber(slot.line), k, code.less(k, end));
    });
    copyPiece(kKeys, isTransposed(group, right), second, [&](const Slot &slot) {
      Value k = code.add(first, slot.step), key = code.add(firstKey, slot.line);
      Value isThere = code.both(code.less(k, end), code.less(key, endOfKeys));
      return operandAt(e, parts.scores, 1, k, key, isThere);
    });
    team->barrier();
    Values next = scores->multiply(pieces, code.at(pieces, number, second), steps, in);
    team->barrier();
    return next;
  });
  scores->forEach(sums, [&](Value row, Value column, Value sum) {
    code.store(number, sum, weights,
               code.add(code.mul(column, code.number(paddedLine(ofScores.rows))), row));
  });
  team->barrier();
}

/// Runs `body` for this thread's scores of a tile: their queries, keys and places in `weights`.
Value NumberAttention::foldScores(Elements &e, Value firstKey, Value initial,
                                  llvm::function_ref<Value(Value, Value, Value, Value)> body) {
  Code &code = kernel.code();
  Value row = ownRow(), query = rowNumber(row);
  return code.fold(
      ownPart(), code.number(kKeys), kOfRow, initial, [&](Value column, ValueRange carried) {
        Elements::Scope scope(e);
        Value line = code.mul(column, code.number(paddedLine(ofScores.rows)));
        return Values{body(query, code.add(firstKey, column), code.add(line, row), carried[0])};
      })[0];
}

/// The scores become exponentials, which each row's sum grows by. Sums of the second product have
/// to be multiplied by what is in `factors` then.
NumberAttention::Rows NumberAttention::addExponentials(Elements &e, Value firstKey,
                                                       const Rows &rows) {
  Code &code = kernel.code();
  Value lowest = numberOf(kLowest), product = parts.scores.getResult();
  Value largest = foldScores(e, firstKey, lowest, [&](Value row, Value key, Value at, Value most) {
    bindNumber(e, product, code.load(number, weights, at));
    Value logit = valueAt(e, parts.logits, row, key, kLowest);
    e.unbind(product);
    code.store(number, logit, weights, at);
    return lower::combine(code, parts.max, most, logit);
  });
  largest = combineOfRow(parts.max, largest);
  largest = lower::combine(code, parts.max, rows.largest, largest);
  Value base = baseOf(largest);
  Value factor = code.b.create<math::ExpOp>(
      code.loc, code.b.create<arith::SubFOp>(code.loc, rows.largest, base));
  bindNumber(e, parts.max, base);
  Value sum = foldScores(e, firstKey, numberOf(0), [&](Value row, Value key, Value at, Value sum) {
    bindNumber(e, parts.logits, code.load(number, weights, at));
    Value power = valueAt(e, parts.sum.getX(), row, key);
    e.unbind(parts.logits);
    code.store(number, power, weights, at);
    return code.b.create<arith::AddFOp>(code.loc, sum, power).getResult();
  });
  e.unbind(parts.max);
  sum = combineOfRow(parts.sum, sum);
  sum = code.b.create<math::FmaOp>(code.loc, rows.sum, factor, sum);
  code.when(code.less(ownPart(), code.number(1)),
            [&] { code.store(number, factor, factors, ownRow()); });
  team->barrier();
  return {largest, sum, rows.values};
}

/// Multiplies what is in `weights` by the values of these keys.
Values NumberAttention::addValues(Elements &e, Value firstKey, ValueRange sums) {
  Code &code = kernel.code();
  Value right = parts.values.getB();
  return code.fold(
      code.number(0), code.number(kKeys), steps, sums, [&](Value first, ValueRange in) {
        Elements::Scope scope(e);
        copyPiece(ofValues.columns, isTransposed(group, right), code.number(0),
                  [&](const Slot &slot) {
                    Value key = code.add(firstKey, code.add(slot.step, first));
                    Value isThere = code.both(code.less(key, kernel.dim(keys)),
                                              code.less(slot.line, kernel.dim(columns)));
                    return operandAt(e, parts.values, 1, key, slot.line, isThere);
                  });
        team->barrier();
        Value left =
            code.at(weights, number, code.mul(first, code.number(paddedLine(ofScores.rows))));
        Values next = values->multiply(left, pieces, steps, in);
        team->barrier();
        return next;
      });
}

/// The scores become weights, whose largest score and sum of exponentials are known.
Values NumberAttention::addWeights(Elements &e, Value firstKey, const Rows &rows) {
  Code &code = kernel.code();
  Value product = parts.scores.getResult();
  bindNumber(e, parts.max, rows.largest);
  bindNumber(e, parts.sum, rows.sum);
  foldScores(e, firstKey, numberOf(0), [&](Value row, Value key, Value at, Value none) {
    bindNumber(e, product, code.load(number, weights, at));
    code.store(number, valueAt(e, parts.weights, row, key), weights, at);
    e.unbind(product);
    return none;
  });
  e.unbind(parts.max);
  e.unbind(parts.sum);
  team->barrier();
  return addValues(e, firstKey, rows.values);
}

NumberAttention::Rows
NumberAttention::overTiles(Elements &e, const Rows &start,
                           llvm::function_ref<Rows(Value, const Rows &)> body) {
  Code &code = kernel.code();
  auto packed = [](const Rows &rows) {
    Values all{rows.largest, rows.sum};
    llvm::append_range(all, rows.values);
    return all;
  };
  auto unpacked = [](ValueRange all) {
    return Rows{all[0], all[1], Values(all.begin() + 2, all.end())};
  };
  Value size = kernel.dim(keys.ceilDiv(Dim(kKeys * keyParts)) * Dim(kKeys));
  Value first = code.mul(keyPart, size), end = code.min(code.add(first, size), kernel.dim(keys));
  return unpacked(code.fold(first, end, kKeys, packed(start), [&](Value firstKey, ValueRange in) {
    Elements::Scope scope(e);
    return packed(body(firstKey, unpacked(in)));
  }));
}

void NumberAttention::emitTask(Elements &e) {
  Code &code = kernel.code();
  Rows rows{numberOf(kLowest), numberOf(0), {}};
  if (!parts.dividesLast) {
    rows = overTiles(e, rows, [&](Value firstKey, const Rows &rows) {
      emitScores(e, firstKey);
      return addExponentials(e, firstKey, rows);
    });
    rows.values = values->zeros();
    rows = overTiles(e, rows, [&](Value firstKey, const Rows &rows) {
      emitScores(e, firstKey);
      return Rows{rows.largest, rows.sum, addWeights(e, firstKey, rows)};
    });
    return emitResults(e, rows);
  }
  rows.values = values->zeros();
  rows = overTiles(e, rows, [&](Value firstKey, const Rows &rows) {
    emitScores(e, firstKey);
    Rows next = addExponentials(e, firstKey, rows);
    for (int64_t i = 0; i < ofValues.ofRows; ++i) {
      Value row = code.add(values->rowOf(i / kNeighbours), code.number(i % kNeighbours));
      Value factor = code.load(number, factors, row);
      for (int64_t j = 0; j < ofValues.ofColumns; ++j) {
        Value &sum = next.values[i * ofValues.ofColumns + j];
        sum = code.b.create<arith::MulFOp>(code.loc, sum, factor);
      }
    }
    next.values = addValues(e, firstKey, next.values);
    return next;
  });
  emitResults(e, rows);
}

/// Writes what a block has found to memory of the device.
void NumberAttention::keepPart(Elements &e, const Rows &found) {
  Code &code = kernel.code();
  int64_t width = *columns.constant();
  Value block = code.add(code.mul(code.add(code.mul(batch, kernel.dim(queries.ceilDiv(Dim(rows)))),
                                           code.div(firstRow, code.number(rows))),
                                  code.number(keyParts)),
                         keyPart);
  Value memory =
      code.at(kernel.temporary(this->found), number, code.mul(block, code.number(sizeOfPart())));
  code.when(code.less(ownPart(), code.number(1)), [&] {
    code.store(number, found.largest, memory, code.add(code.number(rows * width), ownRow()));
    code.store(number, found.sum, memory, code.add(code.number(rows * (width + 1)), ownRow()));
  });
  values->put(pieces, 0, found.values);
  team->barrier();
  team->fold(e, code.number(0), code.number(rows * width), {}, [&](Value i, ValueRange) {
    Value row = code.div(i, code.number(width)), column = code.rem(i, code.number(width));
    Value at = code.add(code.mul(row, code.number(paddedLine(ofValues.columns))), column);
    code.store(number, code.load(number, pieces, at), memory, i);
    return Values();
  });
  team->barrier(); // the next task writes there
}

/// The phase that adds up what blocks have found of their parts of the keys.
void NumberAttention::joinParts() {
  int64_t parts = std::exchange(keyParts, 1), width = *columns.constant();
  emitBlocks(
      kernel.machine.threadsInStep * 2, [] {},
      [&](Elements &e) {
        Code &code = kernel.code();
        Value block = code.add(code.mul(batch, kernel.dim(queries.ceilDiv(Dim(rows)))),
                               code.div(firstRow, code.number(rows)));
        Value memory = code.at(kernel.temporary(found), number,
                               code.mul(block, code.number(parts * sizeOfPart())));
        auto read = [&](int64_t part, Value at) {
          return code.load(number, memory, code.add(code.number(part * sizeOfPart()), at));
        };
        storeResults(e, [&](Value row, Value column) {
          Value place = code.add(code.mul(row, code.number(width)), column);
          Value ofLargest = code.add(code.number(rows * width), row),
                ofSum = code.add(code.number(rows * (width + 1)), row);
          Value largest = numberOf(kLowest), sum = numberOf(0), value = numberOf(0);
          for (int64_t part = 0; part < parts; ++part)
            largest = lower::combine(code, this->parts.max, largest, read(part, ofLargest));
          Value base = baseOf(largest);
          for (int64_t part = 0; part < parts; ++part) {
            Value below = code.b.create<arith::SubFOp>(code.loc, read(part, ofLargest), base);
            Value factor = code.b.create<math::ExpOp>(code.loc, below);
            sum = code.b.create<math::FmaOp>(code.loc, read(part, ofSum), factor, sum);
            value = code.b.create<math::FmaOp>(code.loc, read(part, place), factor, value);
          }
          Value hasKeys = code.less(code.number(0), kernel.dim(keys));
          sum = code.b.create<arith::SelectOp>(code.loc, hasKeys, sum, numberOf(1));
          return std::pair(value, sum);
        });
      });
}

void NumberAttention::emitResults(Elements &e, const Rows &rows) {
  Code &code = kernel.code();
  if (keyParts > 1)
    return keepPart(e, rows);
  // Without a key the result is 0; where all scores are -inf, it is NaN.
  Value hasKeys = code.less(code.number(0), kernel.dim(keys));
  Value sum = code.b.create<arith::SelectOp>(code.loc, hasKeys, rows.sum, numberOf(1));
  code.when(code.less(ownPart(), code.number(1)),
            [&] { code.store(number, sum, factors, ownRow()); });
  team->barrier();
  values->put(pieces, 0, rows.values);
  team->barrier();
  storeResults(e, pieces, factors, ofValues.columns);
}

void NumberAttention::emit() {
  auto prepare = [&] {
    scores.emplace(kernel, *team, number, ofScores);
    values.emplace(kernel, *team, number, ofValues);
    int64_t ofBoth = (paddedLine(rows) + paddedLine(kKeys)) * steps;
    int64_t ofValue = paddedLine(ofValues.columns) * std::max(steps, rows);
    pieces = team->shared(number, std::max(ofBoth, ofValue));
    weights = team->shared(number, paddedLine(rows) * kKeys);
    factors = team->shared(number, rows);
  };
  if (keyParts > 1)
    found = kernel.addTemporary(blocks() * Dim(sizeOfPart() * graph::bytesOf(number)));
  emitBlocks(ofScores.parts(), prepare, [&](Elements &e) { emitTask(e); });
  if (keyParts > 1)
    joinParts();
}

} // namespace

LogicalResult emitNumberAttention(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  return carryOut<NumberAttention>(kernel, group, schedule);
}

} // namespace heddle::lower
