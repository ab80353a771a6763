// Rows: see Rows.h. A task takes whole rows.

#include "compiler/lower/rows/Rows.h"

#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult RowKernel::prepare(Value bound) {
  given = bound;
  return prepare(mechanism::opsOf(*group), llvm::to_vector(outputsOf(group)));
}

LogicalResult RowKernel::prepare(ArrayRef<Operation *> some, ArrayRef<Value> made) {
  ops.assign(some.begin(), some.end());
  results.assign(made.begin(), made.end());
  std::string why;
  auto rows = mechanism::readRows(ops, results, why);
  if (!rows)
    return failure();
  full = std::move(rows->full);
  kept = rows->kept;
  reductions = std::move(rows->reductions);
  chooseKeptValues();
  return success();
}

Dim RowKernel::scratchBytes() const {
  Dim bytes(0);
  // 64 bytes more for each kept value: vectors may begin at any element.
  for (Value value : keptValues)
    if (value != keptInResult)
      bytes = bytes + rowLength() * Dim(graph::bytesOf(graph::storageOf(value))) + Dim(64);
  return bytes;
}

void RowKernel::emit(int64_t rowsPerTask) {
  if (hasShortRows())
    return emitShortRows();
  if (auto axis = axisOfPieces())
    return emitLongRows(*axis);
  if (kernel.machine.form == program::Form::Threads)
    return emitTogether();
  chooseKeptInResult();
  Dim rows = rowCount(), length = rowLength();
  kernel.beginPhase();
  Elements elements(kernel, group);
  Code &code = kernel.code();
  if (auto width = length.constant(); width && *width * 2 <= code.lanes)
    code.lanes = 1;
  kernel.forEachTask([&](Value task) {
    Value first = code.mul(task, code.number(rowsPerTask));
    Value end = code.min(code.add(first, code.number(rowsPerTask)), kernel.dim(rows));
    code.forEach(first, end, 1, [&](Value row) {
      Elements::Scope scope(elements);
      emitRow(elements, row);
    });
  });
  Dim work = rows * length * Dim(estimate::opsPerElement(group));
  kernel.endPhase(rows.ceilDiv(Dim(rowsPerTask)), work, scratchBytes());
}

/// The threads compute again what a CPU would keep: that takes less time than memory does.
void RowKernel::emitTogether(llvm::function_ref<void(Elements &)> prepare) {
  Operation *op = group->getParentOp();
  int64_t size = threads ? std::min(threads, kernel.machine.mostThreads)
                         : Team::sizeFor(kernel.machine, graph::typicalSize(op, rowCount()),
                                         graph::typicalSize(op, rowLength()));
  keptValues.clear();
  kernel.beginPhase(size);
  team.emplace(kernel, size);
  Elements elements(kernel, group);
  if (prepare)
    prepare(elements);
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(elements);
    emitRow(elements, task);
  });
  team.reset();
  kernel.endPhase(rowCount(), rowCount() * rowLength() * Dim(estimate::opsPerElement(group)));
}

bool RowKernel::isRowValue(Value value) const {
  return mechanism::isRowShape(graph::dimsOf(value), full, full.size() - kept);
}

/// Expensive values that more than one pass wants.
void RowKernel::chooseKeptValues() {
  for (Operation *op : ops)
    if (graph::isCostly(op) && graph::dimsOf(op->getResult(0)) == full &&
        !op->getResult(0).hasOneUse() && !op->getResult(0).use_empty() &&
        !(given && dependsOn(given, op->getResult(0))))
      keptValues.push_back(op->getResult(0));
}

Indices RowKernel::placeOf(Elements &e, Value row) {
  Code &code = kernel.code();
  Indices place(full.size(), e.uniform(code.number(0)));
  Value rest = row;
  for (size_t i = kept; i-- > 0;) {
    Value extent = kernel.dim(full[i]);
    place[i] = e.uniform(i == 0 ? rest : code.rem(rest, extent));
    if (i > 0)
      rest = code.div(rest, extent);
  }
  return place;
}

/// Vectors of a row that are reduced side by side: each sum waits for itself only.
static constexpr int64_t kSideBySide = 4;

/// Reduces the whole blocks of [low, high) into what `initial` holds for each reduction, several
/// vectors at once; returns where they end.
static Value reduceBlocks(Elements &e, Value low, Value high, ArrayRef<Operation *> reductions,
                          Values &initial, llvm::function_ref<Values(Value, ValueRange)> body) {
  Code &code = e.code();
  size_t count = reductions.size();
  int64_t step = kSideBySide * code.lanes;
  Value blocks = code.div(code.sub(high, low), code.number(step));
  Value end = code.add(low, code.mul(blocks, code.number(step)));
  Values all(initial);
  for (int64_t k = 1; k < kSideBySide; ++k)
    for (Operation *reduction : reductions) {
      Type accumulator = accumulatorType(graph::storageOf(reduction->getOperand(0)));
      all.push_back(code.spread(neutral(code, reduction, accumulator)));
    }
  Values parts = code.fold(low, end, step, all, [&](Value i, ValueRange carried) {
    Elements::Scope scope(e);
    Values next;
    for (int64_t k = 0; k < kSideBySide; ++k)
      llvm::append_range(
          next, body(code.add(i, code.number(k * code.lanes)), carried.slice(k * count, count)));
    return next;
  });
  for (auto [r, reduction] : llvm::enumerate(reductions)) {
    auto both = [&, r = r, reduction = reduction](size_t k) {
      return combine(code, reduction, parts[k * count + r], parts[(k + 1) * count + r]);
    };
    initial[r] = combine(code, reduction, both(0), both(2));
  }
  return end;
}

/// Walks the row's elements: nested loops over reduced dimensions, the last one in lanes. With
/// reductions, whose sums `initial` are, several vectors are reduced at once.
Values RowKernel::walk(Elements &e, size_t dimension, Indices place, ValueRange initial,
                       llvm::function_ref<Values(ArrayRef<Index>, ValueRange)> body,
                       ArrayRef<Operation *> pass) {
  Code &code = kernel.code();
  if (team)
    return team->fold(e, code.number(0), kernel.dim(rowLength()), initial,
                      [&](Value i, ValueRange carried) {
                        Indices inner = indicesOf(e, ArrayRef<Dim>(full).drop_front(kept), i);
                        llvm::copy(inner, place.begin() + kept);
                        return body(place, carried);
                      });
  bool isPart = piece && piece->axis == dimension;
  Value begin = isPart ? piece->low : code.number(0);
  Value end = isPart ? piece->high : kernel.dim(full[dimension]);
  if (dimension + 1 < full.size())
    return foldScoped(e, begin, end, initial, [&](Value i, ValueRange carried) {
      place[dimension] = e.uniform(i);
      return walk(e, dimension + 1, place, carried, body, pass);
    });
  auto bodyAt = [&](Value i, ValueRange carried) {
    place.back() = {i, code.lanes == 1 ? 0 : 1, {}};
    return body(place, carried);
  };
  Values carried(initial.begin(), initial.end());
  auto known = full.back().constant();
  if (!pass.empty() && code.lanes > 1 && (!known || *known >= 2 * kSideBySide * code.lanes))
    begin = reduceBlocks(e, begin, end, pass, carried, bodyAt);
  return foldLanes(e, begin, end, carried, bodyAt);
}

Value RowKernel::scratchOf(size_t number) {
  Code &code = kernel.code();
  Dim offset = scratchBegin + Dim(64 * static_cast<int64_t>(number));
  for (size_t i = 0; i < number; ++i)
    if (keptValues[i] != keptInResult)
      offset = offset + rowLength() * Dim(graph::bytesOf(graph::storageOf(keptValues[i])));
  return code.at(kernel.scratch(), code.b.getI8Type(), kernel.dim(offset));
}

/// Elements of the row, as if the kept dimensions were 1.
Value RowKernel::rowIndex(Elements &e, ArrayRef<Index> place) {
  Values sizes;
  for (size_t i = kept; i < full.size(); ++i)
    sizes.push_back(kernel.dim(full[i]));
  return e.linear(sizes, place.drop_front(kept)).base;
}

/// exp(x - max x) / sum(exp(x - max x)), of this sum: it is 1 or more, so that one over it is not
/// rounded away.
static graph::DivOp sharesOf(Operation *sum) {
  auto fold = dyn_cast<graph::ReduceSumOp>(sum);
  auto power = fold ? fold.getX().getDefiningOp<graph::ExpOp>() : nullptr;
  auto moved = power ? power.getX().getDefiningOp<graph::SubOp>() : nullptr;
  auto most = moved ? moved.getY().getDefiningOp<graph::BroadcastOp>() : nullptr;
  auto largest = most ? most.getX().getDefiningOp<graph::ReduceMaxOp>() : nullptr;
  if (!largest || largest.getX() != moved.getX() || largest.getAxes() != fold.getAxes() ||
      graph::storageOf(fold.getX()).getIntOrFloatBitWidth() < 32)
    return nullptr;
  for (Operation *user : fold.getResult().getUsers())
    if (isa<graph::BroadcastOp>(user) && user->hasOneUse())
      if (auto shares = dyn_cast<graph::DivOp>(*user->user_begin());
          shares && shares.getX() == fold.getX() && shares.getY() == user->getResult(0))
        return shares;
  return nullptr;
}

Value RowKernel::bindShares(Elements &e, Operation *sum, Value total) {
  Code &code = kernel.code();
  graph::DivOp shares = sharesOf(sum);
  if (!shares || shares->getBlock() != group)
    return {};
  Value one = code.constantOf(graph::storageOf(shares.getResult()), 1);
  Value factor =
      code.b.create<arith::DivFOp>(code.loc, Code::isVector(total) ? code.spread(one) : one, total);
  e.bind(shares, [&e, &code, shares, factor](ArrayRef<Index> place) mutable -> Value {
    Value power = e.at(shares.getX(), place);
    bool isWide = Code::isVector(power) || Code::isVector(factor);
    return code.b.create<arith::MulFOp>(code.loc, isWide ? code.spread(power) : power,
                                        isWide ? code.spread(factor) : factor);
  });
  return shares;
}

/// The one user of the value that is of this kind; null if there are several, or none.
template <typename Op> static Op onlyUser(Value value) {
  Op found;
  for (Operation *user : value.getUsers())
    if (auto op = dyn_cast<Op>(user)) {
      if (found)
        return nullptr;
      found = op;
    }
  return found;
}

/// Whether all that follows from the largest element of a row is exp(x - max), divided by its sum,
/// or x - max less the sum's logarithm: a NaN of the row is in the sum, and need not be in the max.
static bool leavesNanToSum(Operation *reduction) {
  auto most = dyn_cast<graph::ReduceMaxOp>(reduction);
  auto spread =
      most && most->hasOneUse() ? onlyUser<graph::BroadcastOp>(most.getResult()) : nullptr;
  auto moved = spread && spread->hasOneUse() ? onlyUser<graph::SubOp>(spread.getResult()) : nullptr;
  auto power =
      moved && moved.getX() == most.getX() ? onlyUser<graph::ExpOp>(moved.getResult()) : nullptr;
  auto sum = power ? onlyUser<graph::ReduceSumOp>(power.getResult()) : nullptr;
  if (!sum || sum.getAxes() != most.getAxes() || sum->getBlock() != most->getBlock())
    return false;
  auto isOfSum = [&](Value value) {
    auto spread = value.getDefiningOp<graph::BroadcastOp>();
    auto log = spread ? spread.getX().getDefiningOp<graph::LogOp>() : nullptr;
    return spread && (log ? log.getX() : spread.getX()) == sum.getResult();
  };
  auto followFrom = [&](Operation *op, Operation *known) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      return user == known ||
             (isa<graph::SubOp, graph::DivOp>(user) && isOfSum(user->getOperand(1)));
    });
  };
  return followFrom(moved, power) && followFrom(power, sum);
}

/// The larger one where that is one instruction, which leaves a NaN in y out.
static Value largerOf(Code &code, Value x, Value y) {
  Value isLarger = code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OGT, y, x);
  return code.b.create<arith::SelectOp>(code.loc, isLarger, y, x);
}

/// The exponentials of a softmax wait where its shares will be: misses of the stores then overlap
/// with the arithmetic, and a long row needs no other memory.
void RowKernel::chooseKeptInResult() {
  graph::DivOp shares = reductions.size() == 2 ? sharesOf(reductions.back()) : nullptr;
  if (!shares || results.size() != 1 || results.front() != shares.getResult() ||
      kernel.placementOf(shares.getResult()) || !llvm::is_contained(keptValues, shares.getX()) ||
      graph::storageOf(shares.getX()) != graph::storageOf(shares.getResult()))
    return;
  keptInResult = shares.getX();
}

std::vector<SmallVector<Operation *, 2>> RowKernel::passes() {
  std::vector<SmallVector<Operation *, 2>> passes;
  for (Operation *reduction : reductions) {
    bool waits = passes.empty() || llvm::any_of(passes.back(), [&](Operation *earlier) {
                   return dependsOn(reduction->getOperand(0), earlier->getResult(0));
                 });
    if (waits)
      passes.emplace_back();
    passes.back().push_back(reduction);
  }
  return passes;
}

Values RowKernel::reduce(Elements &e, const Indices &start, ArrayRef<Operation *> pass,
                         llvm::function_ref<void(ArrayRef<Index>)> visit) {
  Code &code = kernel.code();
  auto accumulatorOf = [](Operation *reduction) {
    return accumulatorType(graph::storageOf(reduction->getOperand(0)));
  };
  Values initial;
  for (Operation *reduction : pass)
    initial.push_back(code.spread(neutral(code, reduction, accumulatorOf(reduction))));
  auto step = [&](ArrayRef<Index> place, ValueRange carried) {
    Values sums;
    for (auto [reduction, sum] : llvm::zip(pass, carried)) {
      Value x = e.at(reduction->getOperand(0), place);
      x = code.spread(widen(e, x, accumulatorOf(reduction)));
      Value next =
          leavesNanToSum(reduction) ? largerOf(code, sum, x) : combine(code, reduction, sum, x);
      if (e.mask)
        next = code.b.create<arith::SelectOp>(code.loc, e.mask, next, sum);
      sums.push_back(next);
    }
    visit(place);
    return sums;
  };
  Values totals = walk(e, kept, start, initial, step, pass);
  for (auto [reduction, total] : llvm::zip(pass, totals))
    total = team ? team->combine(reduction, total) : combineLanes(code, reduction, total);
  return totals;
}

void RowKernel::emitRow(Elements &e, const Indices &start) {
  Code &code = kernel.code();
  llvm::DenseSet<Value> stored;
  SmallVector<Value> shares;
  for (ArrayRef<Operation *> pass : passes()) {
    SmallVector<std::pair<size_t, Value>> storedNow;
    for (auto [i, keep] : llvm::enumerate(keptValues))
      if (!stored.contains(keep) && llvm::any_of(pass, [&, keep = keep](Operation *reduction) {
            return dependsOn(reduction->getOperand(0), keep);
          }))
        storedNow.push_back({i, keep});
    Values totals = reduce(e, start, pass, [&](ArrayRef<Index> place) {
      for (auto [i, keep] : storedNow)
        if (keep == keptInResult)
          e.store(results.front(), e.at(keep, place), place);
        else
          code.storeLanes(graph::storageOf(keep), e.at(keep, place), scratchOf(i),
                          rowIndex(e, place), e.mask);
    });
    for (auto [i, keep] : storedNow) {
      stored.insert(keep);
      if (keep == keptInResult) {
        e.bind(keep, [this, &e](ArrayRef<Index> place) {
          Value result = results.front();
          return e.read(graph::storageOf(result), kernel.pointer(result), e.sizesOf(result), place);
        });
        continue;
      }
      Value memory = scratchOf(i);
      e.bind(keep, [this, &e, memory, keep = keep](ArrayRef<Index> place) {
        return e.code().loadLanes(graph::storageOf(keep), memory, rowIndex(e, place), e.mask);
      });
    }
    for (auto [reduction, total] : llvm::zip(pass, totals)) {
      Value result = narrow(e, total, graph::storageOf(reduction->getOperand(0)));
      e.bind(reduction->getResult(0), [result](ArrayRef<Index>) { return result; });
      if (Value bound = bindShares(e, reduction, result))
        shares.push_back(bound);
    }
  }
  emitOutputs(e, start);
  for (Value bound : shares)
    e.unbind(bound);
  for (Operation *reduction : reductions)
    e.unbind(reduction->getResult(0));
  for (Value keep : keptValues)
    e.unbind(keep);
}

void RowKernel::emitOutputs(Elements &e, const Indices &start) {
  Code &code = kernel.code();
  auto put = [&](Value output, Value value, ArrayRef<Index> place) {
    if (store)
      store(e, output, value, place);
    else
      e.store(output, value, place);
  };
  SmallVector<Value> wide;
  for (Value output : results) {
    if (output == given)
      continue;
    if (!isRowValue(output)) {
      wide.push_back(output);
      continue;
    }
    auto putNumber = [&] {
      Elements::Scope scope(e);
      Indices place(start);
      place.resize(graph::rankOf(output), e.uniform(code.number(0)));
      put(output, e.at(output, place), place);
    };
    if (piece) // the first one's task does it
      code.when(code.less(piece->low, code.number(1)), putNumber);
    else if (team)
      team->onFirst(putNumber);
    else
      putNumber();
  }
  if (!wide.empty())
    walk(e, kept, start, {}, [&](ArrayRef<Index> place, ValueRange) {
      // All first: one may take the place of what another one reads.
      SmallVector<Value> values;
      for (Value output : wide)
        values.push_back(e.at(output, place));
      for (auto [output, value] : llvm::zip(wide, values))
        put(output, value, place);
      return Values();
    });
}

bool RowKernel::dependsOn(Value value, Value wanted) {
  if (value == wanted)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != group || !graph::reducedAxes(op).empty())
    return false;
  return llvm::any_of(op->getOperands(), [&](Value in) { return dependsOn(in, wanted); });
}

LogicalResult emitRows(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  RowKernel rows(kernel, group, schedule.knob("threads", 0));
  if (failed(rows.prepare()))
    return failure();
  if (!kernel.isTrial)
    rows.emit(schedule.knob("rows", 1));
  return success();
}

} // namespace heddle::lower
