// Operands: what a product reads, in the layout that register tiles want.

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Constants.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/contraction/Contraction.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/elements/Definitions.h"
#include "compiler/lower/stored/FilterLanes.h"

using namespace mlir;

namespace heddle::lower {

/// The column of the product that is at each place of the panels, one after the other; -1 where
/// there is none.
SmallVector<int64_t> Contraction::placedColumns() const {
  int64_t width = panelWidth(), ofPart = *shape.columns.constant() / parts;
  SmallVector<int64_t> columns;
  for (int64_t place = 0, places = *panels.constant() * width; place < places; ++place) {
    int64_t column = place / width * partWidth() + place % partWidth();
    int64_t part = place % width / partWidth();
    columns.push_back(column < ofPart ? part * ofPart + column : -1);
  }
  return columns;
}

/// Constant right operand: panels of every group (or batch) one after the other.
void Contraction::packConstant() {
  std::vector<char> storage;
  auto value = shape.b.getDefiningOp<graph::ConstantOp>().getValue();
  if (auto fewer = dyn_cast<graph::StoredAttr>(value)) {
    stored.emplace(kernel, fewer, placedColumns(), vectors,
                   estimate::thresholdAt(shape.root, estimate::kFetchPanels));
    return;
  }
  ArrayRef<char> bytes = graph::constantBytes(value, storage);
  int64_t width = vectors * kernel.machine.lanes, elementBytes = graph::bytesOf(element);
  int64_t columns = *shape.columns.constant(), rows = *shape.reduction.constant();
  int64_t places = *panels.constant() * width;
  // A convolution's are [out, in, window...], and its rows have the order window..., in.
  auto conv = dyn_cast<graph::ConvOp>(shape.root);
  int64_t inputs = conv ? *graph::dimsOf(conv.getW())[1].constant() : 1;
  int64_t taps = rows / std::max<int64_t>(1, inputs);
  int64_t matrices =
      conv ? int64_t(conv.getGroups()) : *graph::elementCount(shape.bBatch).constant();
  PanelSource source{bytes, elementBytes, {}, {}};
  for (int64_t column : placedColumns())
    source.columns.push_back(column < 0 || !conv ? column : column * rows);
  std::vector<char> packed(depth > 1 ? 0 : matrices * rows * places * elementBytes);
  for (int64_t matrix = 0; matrix < matrices; ++matrix) {
    source.rows.clear();
    for (int64_t row = 0; row < rows; ++row)
      source.rows.push_back(matrix * rows * columns +
                            (conv ? row % inputs * taps + row / inputs : row * columns));
    if (depth > 1)
      packIntegers(source, packed);
    else
      packConstantPanels(shape.root->getContext(), source, width,
                         packed.data() + matrix * rows * places * elementBytes);
  }
  if (isShifted())
    addConstantShift(packed);
  if (shape.band)
    for (int64_t i = 0; i < rows * columns * matrices && !isWhole; ++i)
      isWhole = !std::isfinite(*graph::elementAt(bytes, element, i));
  packedData = kernel.addData(std::move(packed));
}

/// Copies the image into the middle of a zeroed one, a row of pixels a task. What is read after
/// the last element, up to the next 4 bytes, is there.
void Contraction::emitBorderCopy() {
  auto conv = cast<graph::ConvOp>(shape.root);
  DimVector x = graph::dimsOf(conv.getX());
  size_t spatial = x.size() - 2;
  DimVector padded(x);
  for (size_t d = 0; d < spatial; ++d)
    padded[d + 1] = x[d + 1] + Dim(shape.low[d] + shape.high[d]);
  border = kernel.addTemporary(graph::elementCount(padded) * Dim(graph::bytesOf(element)) + Dim(4));
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  Dim tasks = graph::elementCount(ArrayRef<Dim>(padded).take_front(spatial));
  Dim rowLength = padded[spatial] * padded.back();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value target = kernel.temporary(border), source = kernel.pointer(conv.getX());
    Value start = code.mul(task, kernel.dim(rowLength));
    Type from = graph::elementOf(conv.getX());
    Value zero = converted(code.spread(code.constantOf(from, 0)));
    auto clear = [&](Value low, Value high) {
      forLanes(e, low, high, [&](Value i) {
        code.storeLanes(element, zero, target, code.add(start, i), e.mask);
      });
    };
    // Where this row lies in the image, if it does.
    Value rest = task, isInside, place = code.number(0);
    SmallVector<Value> index(spatial);
    for (size_t i = spatial; i-- > 0;) {
      Value extent = kernel.dim(padded[i]);
      index[i] = i == 0 ? rest : code.rem(rest, extent);
      if (i > 0)
        rest = code.div(rest, extent);
    }
    for (size_t i = 0; i < spatial; ++i) {
      Value at = i == 0 ? index[i] : code.sub(index[i], code.number(shape.low[i - 1]));
      if (i > 0)
        isInside = code.both(isInside, inside(e, e.uniform(at), kernel.dim(x[i])));
      place = code.add(code.mul(place, kernel.dim(x[i])), at);
    }
    if (!isInside)
      isInside = code.integerOf(code.b.getI1Type(), 1);
    code.choose(
        isInside, TypeRange(),
        [&] {
          Value channels = kernel.dim(x.back());
          Value left = code.mul(channels, code.number(shape.low[spatial - 1]));
          Value count = kernel.dim(x[spatial] * x.back());
          Value first = code.mul(place, count), end = code.add(left, count);
          clear(code.number(0), left);
          forLanes(e, code.number(0), count, [&](Value i) {
            Value value = code.loadLanes(from, source, code.add(first, i), e.mask);
            Value at = code.add(start, code.add(left, i));
            code.storeLanes(element, converted(value), target, at, e.mask);
          });
          clear(end, kernel.dim(rowLength));
          return Values();
        },
        [&] {
          clear(code.number(0), kernel.dim(rowLength));
          return Values();
        });
  });
  kernel.endPhase(tasks, tasks * rowLength);
}

/// The operand of a transpose of the last two dimensions that only this group sees.
static Value transposedSource(Block *group, Value b) {
  auto transpose = b.getDefiningOp<graph::TransposeOp>();
  if (!transpose || transpose->getBlock() != group || graph::bytesOf(graph::elementOf(b)) != 4)
    return {};
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  int64_t rank = permutation.size();
  for (int64_t i = 0; i + 2 < rank; ++i)
    if (permutation[i] != i)
      return {};
  return permutation[rank - 1] == rank - 2 ? transpose.getX() : Value();
}

/// Columns [column, column + lanes) of a right operand whose columns are rows in memory.
void Contraction::packTransposed(Elements &e, Value rows, const Indices &matrix, Value column,
                                 Value target, int64_t shift) {
  Code &code = kernel.code();
  Value depth = kernel.dim(shape.reduction);
  Value last = code.sub(kernel.dim(shape.columns), code.number(1));
  ColumnPlaces places{packedPointer(), element, code.add(target, code.number(shift)),
                      code.number(panelWidth())};
  storeColumns(e, code.number(0), depth, places, [&](int64_t number, Value k) {
    Indices place(matrix);
    place.push_back(e.uniform(code.min(code.add(column, code.number(number)), last)));
    place.push_back({k, 1, {}});
    return code.spread(e.at(rows, place));
  });
}

/// A panel of filters, of which `columns` are first in its vectors: [in, window...] of each become
/// [window..., in]. All vectors of some rows before the next ones, which are lines side by side.
void Contraction::packFilters(Elements &e, Value groupNumber, ArrayRef<Value> columns,
                              Value target) {
  constexpr int64_t kRows = 256; // at a time; any number
  auto conv = cast<graph::ConvOp>(shape.root);
  Code &code = kernel.code();
  Value depth = kernel.dim(shape.reduction), width = code.number(panelWidth());
  Value last = code.sub(kernel.dim(shape.columns), code.number(1));
  Value before = code.mul(groupNumber, kernel.dim(shape.columns));
  ColumnPlaces places{packedPointer(), element, target, width};
  if (!shape.taps.isConstant(1)) {
    places.taps = kernel.dim(shape.taps);
    places.inner = code.mul(kernel.dim(graph::dimsOf(conv.getW())[1]), width);
  }
  code.forEach(code.number(0), depth, kRows, [&](Value row) {
    Value end = code.min(code.add(row, code.number(kRows)), depth);
    for (auto [vector, column] : llvm::enumerate(columns)) {
      Elements::Scope scope(e);
      places.first = code.add(target, code.number(vector * code.lanes));
      storeColumns(e, row, end, places, [&](int64_t number, Value k) {
        Value filter = code.min(code.add(column, code.number(number)), last);
        return filterLanes(e, shape.b, code.add(before, filter), depth, k);
      });
    }
  });
}

/// Packs a panel of a right operand known only at run time to `target`, the task's of that number.
void Contraction::packPanel(Elements &e, Value batch, Value panel, Value target, Value task) {
  Code &code = kernel.code();
  int64_t lanes = code.lanes;
  bool areFilters = isa<graph::ConvOp>(shape.root) && element.isF32();
  DimVector matrices =
      isa<graph::ConvOp>(shape.root) ? DimVector{shape.groups} : DimVector(shape.bBatch);
  Indices matrix = indicesOf(e, matrices, batch);
  Value first = code.mul(panel, code.number(partWidth()));
  bool isExact = partColumns.mod(Dim(partWidth())).isConstant(0);
  Values columns;
  for (int64_t j = 0; j < vectors; ++j) {
    int64_t part = j / (vectors / parts);
    Value inPart = code.add(first, code.number(j % (vectors / parts) * lanes));
    Value column = code.add(inPart, kernel.dim(partColumns * Dim(part)));
    columns.push_back(column);
    if (areFilters)
      continue;
    if (Value rows = transposedSource(group, shape.b)) {
      packTransposed(e, rows, matrix, column, target, j * lanes);
      continue;
    }
    e.mask = isExact
                 ? Value()
                 : code.maskOf(code.max(code.sub(kernel.dim(partColumns), inPart), code.number(0)));
    if (depth > 1)
      packDots(e, matrix, column, target, task, j);
    else
      packColumns(e, matrix, column, target, j * lanes);
    e.mask = {};
  }
  if (areFilters)
    packFilters(e, batch, columns, target);
  if (shape.band)
    noteWhole(target, code.add(code.mul(batch, kernel.dim(panels)), panel));
}

/// Packs a right operand known only at run time: one panel per task.
void Contraction::emitPacking() {
  int64_t width = panelWidth();
  Dim batches = isa<graph::ConvOp>(shape.root) ? shape.groups : graph::elementCount(shape.bBatch);
  Dim bytes = batches * panels * panelRows() * Dim(width * graph::bytesOf(element));
  packedTemporary = kernel.addTemporary(bytes);
  if (isShifted())
    startTemporary = kernel.addTemporary(batches * panels * Dim(width * 4));
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value panel = code.rem(task, kernel.dim(panels));
    Value batch = code.div(task, kernel.dim(panels));
    Value target = code.mul(task, code.mul(kernel.dim(panelRows()), code.number(width)));
    packPanel(e, batch, panel, target, task);
  });
  kernel.endPhase(batches * panels, batches * panels * shape.reduction * Dim(width));
}

/// Packs panels of one of the right operand's matrices into the worker's scratch.
void Contraction::packChunk(Value batch, Value firstPanel, Value endPanel) {
  Elements e(kernel, group);
  Code &code = kernel.code();
  Value size = code.mul(kernel.dim(panelRows()), code.number(panelWidth()));
  code.forEach(firstPanel, endPanel, 1, [&](Value panel) {
    Elements::Scope scope(e);
    packPanel(e, batch, panel, code.mul(code.sub(panel, firstPanel), size), panel);
  });
  decodedFrom = code.add(code.mul(batch, kernel.dim(panels)), firstPanel);
}

/// The lanes from `column` on in a row of one of the right operand's matrices.
Indices Contraction::placeInRight(Elements &e, const Indices &matrix, Value row, Value column) {
  Code &code = kernel.code();
  auto conv = dyn_cast<graph::ConvOp>(shape.root);
  if (!conv) {
    Indices place(matrix);
    place.push_back(e.uniform(row));
    place.push_back({column, 1, {}});
    return place;
  }
  DimVector w = graph::dimsOf(conv.getW());
  Value filter = code.add(code.mul(matrix[0].base, kernel.dim(shape.columns)), column);
  Indices place(w.size(), e.uniform(code.rem(row, kernel.dim(w[1]))));
  place[0] = {filter, 1, {}};
  Value tap = code.div(row, kernel.dim(w[1]));
  for (size_t d = w.size(); d-- > 2;) {
    place[d] = e.uniform(code.rem(tap, kernel.dim(w[d])));
    tap = code.div(tap, kernel.dim(w[d]));
  }
  return place;
}

/// The lanes from `column` on, of which mask() says which exist, to `target` + `shift`.
void Contraction::packColumns(Elements &e, const Indices &matrix, Value column, Value target,
                              int64_t shift) {
  Code &code = kernel.code();
  Value width = code.number(panelWidth());
  foldScoped(e, code.number(0), depthOf(e, matrix, column), {}, [&](Value k, ValueRange) {
    Value value = code.spread(e.at(shape.b, placeInRight(e, matrix, k, column)));
    Value at = code.add(target, code.add(code.mul(k, width), code.number(shift)));
    code.storeLanes(element, value, packedPointer(), at, {});
    return Values();
  });
}

/// Whether memory has the right operand's matrices as panels of their own: one of all columns each,
/// without zeros to fill it up.
bool Contraction::isOnePanel() const {
  Operation *maker = shape.b.getDefiningOp();
  bool isComputed = maker && maker->getBlock() == group;
  return isa<graph::MatmulOp>(shape.root) && !isComputed && !shape.band && depth == 1 &&
         parts == 1 && shape.columns.isConstant(panelWidth()) &&
         element == program::memoryType(graph::elementOf(shape.b));
}

/// Panels of few matrices that each worker has at least where tasks pack them.
static constexpr int64_t kPanelsOfWorker = 3;

/// Whether each of the right operand's matrices meets rows of its own, and there are enough of them
/// for all workers: a task finds what it has packed in its cache, and no other one needs it. Panels
/// of few matrices are enough as well where the left operand stays in the L2 from one to the next.
bool Contraction::canPackInTasks() {
  Dim batches = graph::elementCount(shape.bBatch);
  if (!isa<graph::MatmulOp>(shape.root) || depth != 1 || schedule.knob("tiles", 0) != 0 ||
      tiling().outer != batches)
    return false;
  auto typical = [&](const Dim &dim) { return graph::typicalSize(shape.root, dim, 1); };
  int64_t workers = std::max<int64_t>(1, kernel.machine.workers);
  int64_t enough =
      workers > 1 ? estimate::thresholdAt(shape.root, estimate::kProductTasks) * workers : 1;
  if (typical(batches) >= enough)
    return true;
  Dim left = graph::elementCount(graph::dimsOf(shape.a)) * Dim(graph::bytesOf(element));
  return typical(batches * panels) >= kPanelsOfWorker * workers &&
         typical(left) <= kernel.machine.l2Bytes / 2;
}

/// Whether the group is in the body of a loop, and what the operand is made of outside of it.
bool Contraction::isInvariant(Value operand) const {
  Operation *loop = group->getParentOp()->getParentOp();
  if (!isa_and_nonnull<graph::LoopOp, graph::ScanOp>(loop))
    return false;
  llvm::SetVector<Value> values;
  SmallVector<std::string> known, used;
  values.insert(operand);
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    bool isInside = value.getParentBlock() == group;
    if (!isInside && loop->isAncestor(value.getParentBlock()->getParentOp()))
      return false;
    for (const Dim &dim : graph::dimsOf(value))
      dim.collectSymbols(isInside ? used : known);
    if (isInside)
      values.insert(value.getDefiningOp()->operand_begin(), value.getDefiningOp()->operand_end());
  }
  return llvm::all_of(used, [&](auto &name) { return llvm::is_contained(known, name); });
}

void Contraction::emitOperands(bool mayPackInTasks) {
  bool isConverted = element != program::memoryType(graph::elementOf(shape.a)) || isShifted();
  if (shape.needsBorder)
    emitBorderCopy();
  else if (isConverted)
    emitCopy();
  else if (copiesLeft())
    emitLeftCopy();
  bool isConstant = shape.b.getDefiningOp<graph::ConstantOp>() != nullptr;
  if (shape.band && !isConstant)
    wholeTemporary = kernel.addTemporary(graph::elementCount(shape.bBatch) * panels);
  if (isConstant) {
    packConstant();
  } else if (isOnePanel()) {
    isInPlace = true;
  } else if (bool isOnce = isInvariant(shape.b); !isOnce && mayPackInTasks && canPackInTasks()) {
    packsInTasks = true;
  } else {
    emitPacking();
    kernel.kernel.phases.back().isInvariant = isOnce;
  }
}

} // namespace heddle::lower
