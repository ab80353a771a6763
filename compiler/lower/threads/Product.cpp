// Product: see Product.h.

#include "compiler/lower/threads/Product.h"

#include "compiler/graph/Typical.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/threads/Fragments.h"
#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::lower {

/// Elements that are fetched at once, and pieces that are there or on their way.
static constexpr int64_t kFetched = 8, kStages = 4;

LogicalResult BlockProduct::prepare(ArrayRef<Value> wanted) {
  std::string why;
  results.assign(wanted.begin(), wanted.end());
  product = mechanism::readProduct(mechanism::opsOf(*group), results, why);
  if (!product)
    return failure();
  if (auto matmul = dyn_cast<graph::MatmulOp>(product->root); matmul && matmul.getBlock())
    return kernel.refuse("its product rounds rows in blocks");
  operands.emplace(kernel, *product);
  sum = accumulatorType(graph::storageOf(product->root->getResult(0)));
  if (isShort)
    shortLeft = operands->shortLeft(group, kFetched);
  chooseTile();
  return form.columns ? success()
                      : kernel.refuse("its product is read in " + Twine(product->parts) +
                                      " parts, more than a tile has columns");
}

/// Larger tiles read less for each product, and smaller ones leave no processor idle: the one of
/// the least time, where a tile of half the size takes more than half of the time.
void BlockProduct::chooseTile() {
  constexpr int64_t kThreadsOfProcessor = 2048;
  Operation *root = product->root;
  auto typical = [&](const Dim &size) { return graph::typicalSize(root, size); };
  double processors = std::max<int64_t>(1, kernel.machine.workers / kThreadsOfProcessor);
  double least = std::numeric_limits<double>::infinity();
  for (const TileForm &candidate : isShort ? fragmentTiles(canFetch()) : numberTiles()) {
    if (candidate.columns < product->parts)
      continue;
    double tiles = double(typical(operands->matrices)) *
                   llvm::divideCeil(typical(operands->rows), candidate.rows) *
                   llvm::divideCeil(typical(operands->columns), candidate.columns / product->parts);
    double time =
        std::ceil(tiles / processors) * candidate.rows * candidate.columns / candidate.efficiency;
    if (time < least) {
      least = time;
      form = candidate;
    }
  }
}

BlockProduct::Task BlockProduct::taskOf(Elements &e, Value number) {
  Code &code = kernel.code();
  Value rowTiles = kernel.dim(operands->rows.ceilDiv(Dim(form.rows))),
        columnTiles = kernel.dim(operands->columns.ceilDiv(Dim(partColumns())));
  Value rest = code.div(number, rowTiles);
  Task task;
  task.firstRow = code.mul(code.rem(number, rowTiles), code.number(form.rows));
  task.firstColumn = code.mul(code.rem(rest, columnTiles), code.number(partColumns()));
  task.matrix = code.div(rest, columnTiles);
  task.left = slotsOf(code, *team, form.rows, form.depth, operands->isLeftAlongDepth);
  task.right = slotsOf(code, *team, form.columns, form.depth, operands->isRightAlongDepth);
  return task;
}

/// Puts the indices of the tile's rows into shared memory, whence all steps take them.
void BlockProduct::keepRows(Elements &e, const Task &task) {
  Code &code = kernel.code();
  Type i64 = code.b.getI64Type();
  team->fold(e, code.number(0), code.number(form.rows), {}, [&](Value line, ValueRange) {
    for (auto [d, index] : llvm::enumerate(operands->rowOf(e, code.add(task.firstRow, line))))
      code.store(i64, index.base, places, code.add(line, code.number(d * form.rows)));
    return Values();
  });
  team->barrier();
}

/// The indices of a row of the tile; any for one that the result does not have.
Indices BlockProduct::rowOf(Elements &e, const Task &task, Value line) {
  Code &code = kernel.code();
  if (!places)
    return operands->rowOf(e, code.add(task.firstRow, line));
  Indices row;
  for (size_t d = 0; d < operands->rowRank(); ++d)
    row.push_back(e.uniform(
        code.load(code.b.getI64Type(), places, code.add(line, code.number(d * form.rows)))));
  return row;
}

/// Whether a number is one of `extent`, which tiles of `size` may exceed; null if they never do.
Value BlockProduct::below(Value number, const Dim &extent, int64_t size) {
  if (extent.mod(Dim(size)).isConstant(0))
    return {};
  return kernel.code().less(number, kernel.dim(extent));
}

/// The value, or zero where there is none.
Value BlockProduct::guardedBy(Elements &e, Value isThere, llvm::function_ref<Value()> value) {
  Code &code = kernel.code();
  if (!isThere)
    return value();
  return guarded(e, isThere, sum, value, [&] { return code.constantOf(sum, 0); });
}

Values BlockProduct::load(Elements &e, const Task &task, Value step) {
  Code &code = kernel.code();
  Value steps = kernel.dim(operands->length.ceilDiv(Dim(form.depth)));
  Indices tap = operands->tapOf(e, code.div(step, steps));
  Value first = code.mul(code.rem(step, steps), code.number(form.depth));
  const Dim &length = operands->length;
  Operation *root = product->root;
  auto widened = [&](Value x, int64_t operand) {
    return widen(e, x, sum, graph::storageOf(root->getOperand(operand)).isUnsignedInteger());
  };
  Values values;
  for (const Slot &slot : task.left) {
    Value k = code.add(first, slot.step), row = code.add(task.firstRow, slot.line);
    Value isThere = code.both(below(k, length, form.depth), below(row, operands->rows, form.rows));
    values.push_back(guardedBy(e, isThere, [&] {
      Indices place = operands->placeOf(e, task.matrix, rowOf(e, task, slot.line));
      return widened(operands->left(e, place, tap, k), 0);
    }));
  }
  // Batches and groups are those of all rows.
  Indices place = operands->placeOf(e, task.matrix, operands->rowOf(e, task.firstRow));
  for (const Slot &slot : task.right) {
    Value k = code.add(first, slot.step), width = code.number(partColumns());
    Value column = code.add(task.firstColumn, code.rem(slot.line, width));
    Value isThere =
        code.both(below(k, length, form.depth), below(column, operands->columns, partColumns()));
    if (int64_t used = partColumns() * product->parts; used < form.columns)
      isThere = code.both(isThere, code.less(slot.line, code.number(used)));
    Value whole =
        code.add(code.mul(code.div(slot.line, width), kernel.dim(operands->columns)), column);
    values.push_back(guardedBy(
        e, isThere, [&] { return widened(operands->right(e, place, tap, k, whole), 1); }));
  }
  return values;
}

/// Puts the elements of a piece into one of the two stages, a step after the other.
void BlockProduct::keep(const Task &task, Values values, Value stage) {
  Code &code = kernel.code();
  Value begin = code.mul(stage, code.number(tile->pieceSize()));
  auto put = [&](Value place, Value value) {
    if (tile->element() != sum)
      value = code.b.create<arith::TruncFOp>(code.loc, tile->element(), value);
    code.store(tile->element(), value, memory, code.add(begin, place));
  };
  auto value = values.begin();
  for (const Slot &slot : task.left)
    put(tile->leftPlace(slot), *value++);
  for (const Slot &slot : task.right)
    put(tile->rightPlace(slot), *value++);
}

/// The right operand, tile by tile of its columns, each column with all its steps side by side.
void BlockProduct::packRight() {
  int64_t all = *operands->columns.constant(), own = partColumns();
  SmallVector<int64_t> columnOf;
  for (int64_t first = 0; first < all; first += own)
    for (int64_t i = 0; i < form.columns; ++i) {
      int64_t column = first + i % own, part = i / own;
      columnOf.push_back(column < all && part < product->parts ? part * all + column : -1);
    }
  packed = kernel.addData(operands->shortRight(columnOf, form.depth));
}

/// Begins to copy the piece of a step.
void BlockProduct::fetch(Elements &e, const Task &task, Value step, Value piece) {
  Code &code = kernel.code();
  Type element = tile->element();
  Value steps = kernel.dim(operands->length.ceilDiv(Dim(form.depth)));
  Indices tap = operands->tapOf(e, code.div(step, steps));
  Value first = code.mul(code.rem(step, steps), code.number(form.depth));
  Value none = code.number(0), whole = code.number(kFetched * graph::bytesOf(element));
  auto copy = [&](Value target, Value source, Value isThere) {
    Value bytes = isThere
                      ? code.b.create<arith::SelectOp>(code.loc, isThere, whole, none).getResult()
                      : whole;
    code.b.create<program::FetchOp>(code.loc, code.at(piece, element, target), source, bytes);
  };
  auto forEach = [&](int64_t lines, llvm::function_ref<void(const Slot &)> body) {
    int64_t chunks = form.depth / kFetched;
    auto each = [&] {
      for (Slot slot : slotsOf(code, *team, lines, chunks, /*isAlongSteps=*/true))
        body({slot.line, code.mul(slot.step, code.number(kFetched))});
    };
    if (lines * chunks >= team->threads)
      return each();
    code.when(code.less(team->rank(), code.number(lines * chunks)), each);
  };
  forEach(form.rows, [&](const Slot &slot) {
    Elements::Scope scope(e);
    Value k = code.add(first, slot.step), row = code.add(task.firstRow, slot.line);
    Value isThere =
        code.both(below(k, operands->length, form.depth), below(row, operands->rows, form.rows));
    Indices place = operands->placeOf(e, task.matrix, rowOf(e, task, slot.line));
    auto [source, isInside] = operands->shortLeftAt(e, shortLeft, place, tap, k);
    isThere = code.both(isThere, isInside);
    if (isThere) // else any address that is one
      source = code.b.create<arith::SelectOp>(code.loc, isThere, source, kernel.pointer(shortLeft));
    copy(tile->leftPlace(slot), source, isThere);
  });
  Value tiles = kernel.dim(operands->columns.ceilDiv(Dim(partColumns()))),
        number = code.add(code.mul(task.matrix, tiles),
                          code.div(task.firstColumn, code.number(partColumns())));
  Value line =
      kernel.dim(operands->taps * operands->length.ceilDiv(Dim(form.depth)) * Dim(form.depth));
  forEach(form.columns, [&](const Slot &slot) {
    Value column = code.add(code.mul(number, code.number(form.columns)), slot.line);
    Value at = code.add(code.mul(step, code.number(form.depth)), slot.step);
    Value source = code.at(kernel.data(packed), element, code.add(code.mul(column, line), at));
    copy(tile->rightPlace(slot), source, Value());
  });
}

/// Multiplies pieces while those of the next steps are on their way.
Values BlockProduct::emitFetched(Elements &e, const Task &task) {
  Code &code = kernel.code();
  Value zero = code.number(0);
  Value steps = kernel.dim(operands->taps * operands->length.ceilDiv(Dim(form.depth)));
  auto pieceOf = [&](Value step) {
    Value stage = code.rem(step, code.number(kStages));
    return code.at(memory, tile->element(), code.mul(stage, code.number(tile->pieceSize())));
  };
  auto fetchStep = [&](Value step) {
    code.when(code.less(step, steps), [&] {
      Elements::Scope scope(e);
      fetch(e, task, step, pieceOf(step));
    });
    code.b.create<program::RoundOp>(code.loc);
  };
  for (int64_t step = 0; step + 1 < kStages; ++step)
    fetchStep(code.number(step));
  Values sums = code.fold(zero, steps, 1, tile->zeros(), [&](Value step, ValueRange carried) {
    Elements::Scope scope(e);
    code.b.create<program::AwaitOp>(code.loc, kStages - 2);
    team->barrier(); // all have multiplied what lies where the next piece will
    fetchStep(code.add(step, code.number(kStages - 1)));
    return tile->multiply(pieceOf(step), carried);
  });
  code.b.create<program::AwaitOp>(code.loc, 0);
  team->barrier();
  return sums;
}

/// Multiplies pieces while registers hold the next step's.
Values BlockProduct::emitStaged(Elements &e, const Task &task) {
  Code &code = kernel.code();
  Value zero = code.number(0), one = code.number(1);
  Value steps = kernel.dim(operands->taps * operands->length.ceilDiv(Dim(form.depth)));
  Values sums = tile->zeros();
  SmallVector<Type> types(sums.size(), sums.front().getType());
  return code.choose(
      code.less(zero, steps), types,
      [&] {
        {
          Elements::Scope scope(e);
          keep(task, load(e, task, zero), zero);
        }
        team->barrier();
        Value last = code.sub(steps, one);
        return code.fold(zero, steps, 1, sums, [&](Value step, ValueRange carried) {
          Elements::Scope scope(e);
          Value next = code.min(code.add(step, one), last);
          Values values = load(e, task, next);
          Value stage = code.rem(step, code.number(2));
          Value piece =
              code.at(memory, tile->element(), code.mul(stage, code.number(tile->pieceSize())));
          Values added = tile->multiply(piece, carried);
          keep(task, values, code.rem(code.add(step, one), code.number(2)));
          team->barrier();
          return added;
        });
      },
      [&] { return sums; });
}

void BlockProduct::emitTile(Elements &e, const Task &task) {
  if (places)
    keepRows(e, task);
  emitResults(e, task, packed < 0 ? emitStaged(e, task) : emitFetched(e, task));
}

/// The results of the tile, some of its rows at a time: their sums go to where the operands were.
void BlockProduct::emitResults(Elements &e, const Task &task, ValueRange sums) {
  Code &code = kernel.code();
  int64_t rows = form.rows / tile->passes();
  for (int64_t pass = 0; pass < tile->passes(); ++pass) {
    tile->put(memory, pass, sums);
    team->barrier();
    team->fold(e, code.number(0), code.number(rows * partColumns()), {}, [&](Value i, ValueRange) {
      Value width = code.number(partColumns());
      Value row = code.div(i, width), column = code.rem(i, width);
      emitResult(e, task, tile->rowOf(pass, row), column,
                 code.add(code.mul(row, code.number(paddedLine(form.columns))), column));
      return Values();
    });
    team->barrier();
  }
}

/// The results at a row and column of the tile, whose sums begin at element `from`.
void BlockProduct::emitResult(Elements &e, const Task &task, Value line, Value column, Value from) {
  Code &code = kernel.code();
  Value row = code.add(task.firstRow, line);
  column = code.add(task.firstColumn, column);
  Value isThere = code.both(below(row, operands->rows, form.rows),
                            below(column, operands->columns, partColumns()));
  auto emitThere = [&] {
    Elements::Scope scope(e);
    Value made = product->root->getResult(0);
    auto bindSum = [&](int64_t part) {
      Value at = code.add(from, code.number(part * partColumns()));
      Value value = narrow(e, code.load(sum, memory, at), graph::storageOf(made));
      e.bind(made, [value](ArrayRef<Index>) { return value; });
    };
    Indices place = operands->placeOf(e, task.matrix, rowOf(e, task, line));
    place.back() = e.shift(place.back(), column);
    bindSum(0);
    for (graph::SliceOp slice : product->slices) {
      int64_t part = mechanism::partOf(slice);
      bindSum(part);
      Indices whole(place);
      whole.back() = e.shift(place.back(), kernel.dim(operands->columns * Dim(part)));
      Value value = e.at(slice.getX(), whole);
      e.bind(slice.getResult(), [value](ArrayRef<Index>) { return value; });
    }
    for (Value result : results)
      if (store)
        store(e, result, e.at(result, place), place);
      else
        e.store(result, e.at(result, place), place);
    e.unbind(made);
    for (graph::SliceOp slice : product->slices)
      e.unbind(slice.getResult());
  };
  if (isThere)
    code.when(isThere, emitThere);
  else
    emitThere();
}

void BlockProduct::emit() {
  int64_t threads = form.parts() * (isShort ? kInStep : 1);
  MLIRContext *context = sum.getContext();
  kernel.beginPhase(threads);
  team.emplace(kernel, threads);
  Elements e(kernel, group);
  tile = isShort ? makeFragmentTile(kernel, *team, BFloat16Type::get(context), form)
                 : makeNumberTile(kernel, *team, sum, form);
  if (canFetch())
    packRight();
  int64_t stages = packed < 0 ? 2 : kStages;
  int64_t pieces = stages * tile->pieceSize() * graph::bytesOf(tile->element()),
          sums = paddedLine(form.columns) * (form.rows / tile->passes()) * graph::bytesOf(sum);
  memory = team->shared(IntegerType::get(context, 8), std::max(pieces, sums));
  if (operands->rowRank() > 1)
    places = team->shared(IntegerType::get(context, 64), operands->rowRank() * form.rows);
  kernel.forEachTask([&](Value number) {
    Elements::Scope scope(e);
    emitTile(e, taskOf(e, number));
  });
  Dim tasks = operands->matrices * operands->rows.ceilDiv(Dim(form.rows)) *
              operands->columns.ceilDiv(Dim(partColumns()));
  Dim work = operands->matrices * operands->rows * operands->columns * Dim(product->parts) *
             operands->length * operands->taps;
  kernel.endPhase(tasks, work);
}

LogicalResult emitBlockProduct(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  BlockProduct blocks(kernel, group, schedule);
  if (failed(blocks.prepare(llvm::to_vector(outputsOf(group)))))
    return failure();
  if (!kernel.isTrial)
    blocks.emit();
  return success();
}

} // namespace heddle::lower
