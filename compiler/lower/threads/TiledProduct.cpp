// TiledProduct: products and convolutions by blocks of threads.
//
// A block has a tile of the result. Step by step of the reduction, its threads copy pieces of both
// operands to shared memory, the next step's while they multiply this one's; then they put the sums
// there, so that what follows the product is computed for neighbours by neighbours.

#include "compiler/graph/Typical.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/threads/Fragments.h"
#include "compiler/lower/threads/Product.h"
#include "compiler/lower/threads/Tile.h"

using namespace mlir;

namespace heddle::lower {
namespace {

/// Elements that are fetched at once, and pieces that are there or on their way.
constexpr int64_t kFetched = 8, kStages = 4;

class TiledProduct final : public ThreadProduct {
public:
  explicit TiledProduct(const Parts &parts);
  bool isServed() const { return form.columns != 0; }
  void emit() override;

private:
  /// The part of the result that a task has.
  struct Task {
    Value matrix, firstRow, firstColumn;
    SmallVector<Slot> left, right;
  };

  void chooseTile();
  Task taskOf(Elements &e, Value number);
  void keepRows(Elements &e, const Task &task);
  Indices rowOf(Elements &e, const Task &task, Value line);
  /// The elements of the piece of a step; zeros beyond the operands.
  Values load(Elements &e, const Task &task, Value step);
  void keep(const Task &task, Values values, Value stage);
  void emitTile(Elements &e, const Task &task);
  bool isPacked() const { return factors && operands.hasConstantRight(factors); }
  bool canFetch() const { return shortLeft && isPacked(); }
  void packRight();
  /// The address of a slot of the packed right operand, in the piece of a step.
  Value packedAt(const Task &task, const Slot &slot, Value step);
  void fetch(Elements &e, const Task &task, Value step, Value piece);
  Values emitFetched(Elements &e, const Task &task);
  Values emitStaged(Elements &e, const Task &task);
  void emitPasses(Elements &e, const Task &task, ValueRange sums);
  void emitPlace(Elements &e, const Task &task, Value line, Value column, Value from);
  Value below(Value number, const Dim &extent, int64_t size);

  /// Columns of each part that a tile has; what is left of it is idle.
  int64_t partColumns() const { return form.columns / product.parts; }

  std::optional<Team> team;
  Value shortLeft;     // the left operand, where its pieces can be fetched
  int64_t packed = -1; // the right operand, a constant of the kernel
  TileForm form = {};  // of no columns: none serves
  std::unique_ptr<ProductTile> tile;
  Value memory; // of the block: pieces, then the sums
  Value places; // the indices of the tile's rows, where they are several
};

TiledProduct::TiledProduct(const Parts &parts) : ThreadProduct(parts) {
  if (factors)
    shortLeft = operands.shortLeft(group, kFetched, factors);
  chooseTile();
}

/// Larger tiles read less for each product, and smaller ones leave no processor idle: the one of
/// the least time, where a tile of half the size takes more than half of the time.
void TiledProduct::chooseTile() {
  constexpr int64_t kThreadsOfProcessor = 2048;
  Operation *root = product.root;
  auto typical = [&](const Dim &size) { return graph::typicalSize(root, size); };
  double processors = std::max<int64_t>(1, kernel.machine.workers / kThreadsOfProcessor);
  double least = std::numeric_limits<double>::infinity();
  for (const TileForm &candidate : factors ? fragmentTiles(canFetch()) : numberTiles()) {
    bool isWished = (!wishedRows || candidate.rows == wishedRows) &&
                    (!wishedColumns || candidate.columns == wishedColumns);
    if (candidate.columns < product.parts || !isWished)
      continue;
    double tiles = double(typical(operands.matrices)) *
                   llvm::divideCeil(typical(operands.rows), candidate.rows) *
                   llvm::divideCeil(typical(operands.columns), candidate.columns / product.parts);
    double time =
        std::ceil(tiles / processors) * candidate.rows * candidate.columns / candidate.efficiency;
    if (time < least) {
      least = time;
      form = candidate;
    }
  }
}

TiledProduct::Task TiledProduct::taskOf(Elements &e, Value number) {
  Code &code = kernel.code();
  Value rowTiles = kernel.dim(operands.rows.ceilDiv(Dim(form.rows))),
        columnTiles = kernel.dim(operands.columns.ceilDiv(Dim(partColumns())));
  Value rest = code.div(number, rowTiles);
  Task task;
  task.firstRow = code.mul(code.rem(number, rowTiles), code.number(form.rows));
  task.firstColumn = code.mul(code.rem(rest, columnTiles), code.number(partColumns()));
  task.matrix = code.div(rest, columnTiles);
  task.left = slotsOf(code, *team, form.rows, form.depth, operands.isLeftAlongDepth);
  task.right =
      slotsOf(code, *team, form.columns, form.depth, isPacked() || operands.isRightAlongDepth);
  return task;
}

/// Puts the indices of the tile's rows into shared memory, whence all steps take them.
void TiledProduct::keepRows(Elements &e, const Task &task) {
  Code &code = kernel.code();
  Type i64 = code.b.getI64Type();
  team->fold(e, code.number(0), code.number(form.rows), {}, [&](Value line, ValueRange) {
    for (auto [d, index] : llvm::enumerate(operands.rowOf(e, code.add(task.firstRow, line))))
      code.store(i64, index.base, places, code.add(line, code.number(d * form.rows)));
    return Values();
  });
  team->barrier();
}

/// The indices of a row of the tile; any for one that the result does not have.
Indices TiledProduct::rowOf(Elements &e, const Task &task, Value line) {
  Code &code = kernel.code();
  if (!places)
    return operands.rowOf(e, code.add(task.firstRow, line));
  Indices row;
  for (size_t d = 0; d < operands.rowRank(); ++d)
    row.push_back(e.uniform(
        code.load(code.b.getI64Type(), places, code.add(line, code.number(d * form.rows)))));
  return row;
}

/// Whether a number is one of `extent`, which tiles of `size` may exceed; null if they never do.
Value TiledProduct::below(Value number, const Dim &extent, int64_t size) {
  if (extent.mod(Dim(size)).isConstant(0))
    return {};
  return kernel.code().less(number, kernel.dim(extent));
}

Values TiledProduct::load(Elements &e, const Task &task, Value step) {
  Code &code = kernel.code();
  Value steps = kernel.dim(operands.length.ceilDiv(Dim(form.depth)));
  Indices tap = operands.tapOf(e, code.div(step, steps));
  Value first = code.mul(code.rem(step, steps), code.number(form.depth));
  const Dim &length = operands.length;
  Values values;
  for (const Slot &slot : task.left) {
    Value k = code.add(first, slot.step), row = code.add(task.firstRow, slot.line);
    Value isThere = code.both(below(k, length, form.depth), below(row, operands.rows, form.rows));
    values.push_back(guardedBy(e, isThere, [&] {
      Indices place = operands.placeOf(e, task.matrix, rowOf(e, task, slot.line));
      return widened(e, operands.left(e, place, tap, k), 0);
    }));
  }
  // Batches and groups are those of all rows.
  Indices place = operands.placeOf(e, task.matrix, operands.rowOf(e, task.firstRow));
  for (const Slot &slot : task.right) {
    if (isPacked()) {
      Value value = code.load(factors, packedAt(task, slot, step), code.number(0));
      values.push_back(widen(e, value, sum));
      continue;
    }
    Value k = code.add(first, slot.step), width = code.number(partColumns());
    Value column = code.add(task.firstColumn, code.rem(slot.line, width));
    Value isThere =
        code.both(below(k, length, form.depth), below(column, operands.columns, partColumns()));
    if (int64_t used = partColumns() * product.parts; used < form.columns)
      isThere = code.both(isThere, code.less(slot.line, code.number(used)));
    Value whole =
        code.add(code.mul(code.div(slot.line, width), kernel.dim(operands.columns)), column);
    values.push_back(guardedBy(
        e, isThere, [&] { return widened(e, operands.right(e, place, tap, k, whole), 1); }));
  }
  return values;
}

/// Puts the elements of a piece into one of the two stages, a step after the other.
void TiledProduct::keep(const Task &task, Values values, Value stage) {
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
void TiledProduct::packRight() {
  int64_t all = *operands.columns.constant(), own = partColumns();
  SmallVector<int64_t> columnOf;
  for (int64_t first = 0; first < all; first += own)
    for (int64_t i = 0; i < form.columns; ++i) {
      int64_t column = first + i % own, part = i / own;
      columnOf.push_back(column < all && part < product.parts ? part * all + column : -1);
    }
  packed = kernel.addData(operands.constantRight(columnOf, form.depth, tile->element()));
}

Value TiledProduct::packedAt(const Task &task, const Slot &slot, Value step) {
  Code &code = kernel.code();
  Value tiles = kernel.dim(operands.columns.ceilDiv(Dim(partColumns()))),
        tile = code.add(code.mul(task.matrix, tiles),
                        code.div(task.firstColumn, code.number(partColumns())));
  Value line =
      kernel.dim(operands.taps * operands.length.ceilDiv(Dim(form.depth)) * Dim(form.depth));
  Value column = code.add(code.mul(tile, code.number(form.columns)), slot.line),
        at = code.add(code.mul(step, code.number(form.depth)), slot.step);
  return code.at(kernel.data(packed), factors, code.add(code.mul(column, line), at));
}

/// Begins to copy the piece of a step.
void TiledProduct::fetch(Elements &e, const Task &task, Value step, Value piece) {
  Code &code = kernel.code();
  Type element = tile->element();
  Value steps = kernel.dim(operands.length.ceilDiv(Dim(form.depth)));
  Indices tap = operands.tapOf(e, code.div(step, steps));
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
        code.both(below(k, operands.length, form.depth), below(row, operands.rows, form.rows));
    Indices place = operands.placeOf(e, task.matrix, rowOf(e, task, slot.line));
    auto [source, isInside] = operands.shortLeftAt(e, shortLeft, place, tap, k);
    isThere = code.both(isThere, isInside);
    if (isThere) // else any address that is one
      source = code.b.create<arith::SelectOp>(code.loc, isThere, source, kernel.pointer(shortLeft));
    copy(tile->leftPlace(slot), source, isThere);
  });
  forEach(form.columns, [&](const Slot &slot) {
    copy(tile->rightPlace(slot), packedAt(task, slot, step), Value());
  });
}

/// Multiplies pieces while those of the next steps are on their way.
Values TiledProduct::emitFetched(Elements &e, const Task &task) {
  Code &code = kernel.code();
  Value zero = code.number(0);
  Value steps = kernel.dim(operands.taps * operands.length.ceilDiv(Dim(form.depth)));
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
Values TiledProduct::emitStaged(Elements &e, const Task &task) {
  Code &code = kernel.code();
  Value zero = code.number(0), one = code.number(1);
  Value steps = kernel.dim(operands.taps * operands.length.ceilDiv(Dim(form.depth)));
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

void TiledProduct::emitTile(Elements &e, const Task &task) {
  if (places)
    keepRows(e, task);
  emitPasses(e, task, canFetch() ? emitFetched(e, task) : emitStaged(e, task));
}

/// The results of the tile, some of its rows at a time: their sums go to where the operands were.
void TiledProduct::emitPasses(Elements &e, const Task &task, ValueRange sums) {
  Code &code = kernel.code();
  int64_t rows = form.rows / tile->passes();
  for (int64_t pass = 0; pass < tile->passes(); ++pass) {
    tile->put(memory, pass, sums);
    team->barrier();
    team->fold(e, code.number(0), code.number(rows * partColumns()), {}, [&](Value i, ValueRange) {
      Value width = code.number(partColumns());
      Value row = code.div(i, width), column = code.rem(i, width);
      emitPlace(e, task, tile->rowOf(pass, row), column,
                code.add(code.mul(row, code.number(paddedLine(form.columns))), column));
      return Values();
    });
    team->barrier();
  }
}

/// The results at a row and column of the tile, whose sums begin at element `from`.
void TiledProduct::emitPlace(Elements &e, const Task &task, Value line, Value column, Value from) {
  Code &code = kernel.code();
  Value row = code.add(task.firstRow, line);
  column = code.add(task.firstColumn, column);
  Value isThere = code.both(below(row, operands.rows, form.rows),
                            below(column, operands.columns, partColumns()));
  auto emitThere = [&] {
    Elements::Scope scope(e);
    Indices place = operands.placeOf(e, task.matrix, rowOf(e, task, line));
    place.back() = e.shift(place.back(), column);
    emitResults(e, place, [&](int64_t part) {
      return code.load(sum, memory, code.add(from, code.number(part * partColumns())));
    });
  };
  if (isThere)
    code.when(isThere, emitThere);
  else
    emitThere();
}

void TiledProduct::emit() {
  int64_t threads = form.parts() * (factors ? kInStep : 1);
  MLIRContext *context = sum.getContext();
  kernel.beginPhase(threads);
  team.emplace(kernel, threads);
  Elements e(kernel, group);
  tile = factors ? makeFragmentTile(kernel, *team, factors, form)
                 : makeNumberTile(kernel, *team, sum, form);
  if (isPacked())
    packRight();
  int64_t stages = canFetch() ? kStages : 2;
  int64_t pieces = stages * tile->pieceSize() * graph::bytesOf(tile->element()),
          sums = paddedLine(form.columns) * (form.rows / tile->passes()) * graph::bytesOf(sum);
  memory = team->shared(IntegerType::get(context, 8), std::max(pieces, sums));
  if (operands.rowRank() > 1)
    places = team->shared(IntegerType::get(context, 64), operands.rowRank() * form.rows);
  kernel.forEachTask([&](Value number) {
    Elements::Scope scope(e);
    emitTile(e, taskOf(e, number));
  });
  Dim tasks = operands.matrices * operands.rows.ceilDiv(Dim(form.rows)) *
              operands.columns.ceilDiv(Dim(partColumns()));
  kernel.endPhase(tasks, work());
}

} // namespace

std::unique_ptr<ThreadProduct> makeTiledProduct(const ThreadProduct::Parts &parts) {
  auto made = std::make_unique<TiledProduct>(parts);
  return made->isServed() ? std::move(made) : nullptr;
}

} // namespace heddle::lower
