// Pointwise: loops over the elements of the outputs, dimensions coalesced where every access allows
// it.

#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/graph/edit/Band.h"
#include "compiler/lower/pointwise/Axes.h"
#include "compiler/lower/pointwise/Squares.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// A value that is stored into a tensor, shifted along one axis (an operand of a concat that ends
/// the group).
struct Root {
  Value value, target;
  int64_t axis = 0;
  Dim offset;

  /// Dimensions as the target names them: a run in which the parts of a concat differ is refused.
  DimVector dims() const {
    DimVector dims = graph::dimsOf(target);
    if (value != target)
      dims[axis] = graph::dimsOf(value)[axis];
    return dims;
  }
};
} // namespace

ValueRange outputsOf(Block *group) { return group->getTerminator()->getOperands(); }

bool isComputedIn(Block *group, Value value) {
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == group && !isa<graph::ConstantOp>(op);
}

Values foldLanes(Elements &elements, Value low, Value high, ValueRange initial,
                 llvm::function_ref<Values(Value, ValueRange)> body) {
  Code &code = elements.code();
  Value length = code.sub(high, low), lanes = code.number(code.lanes);
  Value full = code.mul(code.div(length, lanes), lanes), middle = code.add(low, full);
  Values carried = code.fold(low, middle, code.lanes, initial, [&](Value i, ValueRange in) {
    Elements::Scope scope(elements);
    return body(i, in);
  });
  Value rest = code.sub(length, full);
  if (code.lanes == 1 || Code::constant(rest) == 0)
    return carried;
  SmallVector<Type> types;
  for (Value value : carried)
    types.push_back(value.getType());
  auto tail = [&] {
    Elements::Scope scope(elements);
    Value before = elements.mask;
    elements.mask = code.both(before, code.maskOf(rest));
    Values result = body(middle, carried);
    elements.mask = before;
    return result;
  };
  if (types.empty()) {
    code.when(code.less(code.number(0), rest), [&] { tail(); });
    return {};
  }
  return code.choose(code.less(code.number(0), rest), types, tail, [&] { return carried; });
}

void forLanes(Elements &elements, Value low, Value high, llvm::function_ref<void(Value)> body) {
  foldLanes(elements, low, high, {}, [&](Value i, ValueRange) {
    body(i);
    return Values();
  });
}

static void collectRoots(Block *group, Value value, Root root, SmallVectorImpl<Root> &roots) {
  auto concat = value.getDefiningOp<graph::ConcatOp>();
  if (!concat || concat->getBlock() != group || !value.hasOneUse() ||
      (root.value && root.axis != (int64_t)concat.getAxis())) {
    root.value = value;
    roots.push_back(root);
    return;
  }
  root.value = value;
  root.axis = concat.getAxis();
  for (Value operand : concat.getXs()) {
    collectRoots(group, operand, root, roots);
    root.offset = root.offset + graph::dimsOf(operand)[root.axis];
  }
}

bool isPlacedAlong(const KernelBuilder &kernel, Value tensor, int64_t axis) {
  while (const mechanism::Placement *placement = kernel.placementOf(tensor)) {
    if (placement->axis == axis)
      return true;
    tensor = placement->whole;
  }
  return false;
}

/// The reductions of a group: the sizes of what each reads, and the axes that it reduces.
static void forEachFold(Block *group,
                        llvm::function_ref<void(ArrayRef<Dim>, ArrayRef<int64_t>)> note) {
  for (Operation &op : *group)
    if (auto axes = graph::combinedAxes(&op); !axes.empty()) {
      note(graph::dimsOf(op.getOperand(0)), axes);
    } else if (auto product = dyn_cast<graph::MatmulOp>(op)) {
      DimVector dims = graph::dimsOf(product.getB());
      note(dims, {(int64_t)dims.size() - 2});
    }
}

/// Elements of what it reads that an element of the group reduces, if neighbours of the result are
/// such in memory all the way; 1 for none.
static int64_t reducedDownRows(Block *group) {
  int64_t most = 1;
  forEachFold(group, [&](ArrayRef<Dim> dims, ArrayRef<int64_t> axes) {
    if (dims.empty() || llvm::is_contained(axes, (int64_t)dims.size() - 1))
      return;
    int64_t reduced = 1;
    for (int64_t axis : axes)
      reduced *= std::max<int64_t>(1, graph::typicalSize(group->getParentOp(), dims[axis]));
    most = std::max(most, reduced);
  });
  return most;
}

/// Elements that the largest reduction of the group takes; 1 for none.
static Dim largestReduction(Block *group) {
  Dim most(1);
  forEachFold(group, [&](ArrayRef<Dim> dims, ArrayRef<int64_t> axes) {
    Dim reduced(1);
    for (int64_t axis : axes)
      reduced = reduced * dims[axis];
    if (graph::typicalSize(group->getParentOp(), reduced) >
        graph::typicalSize(group->getParentOp(), most))
      most = reduced;
  });
  return most;
}

/// Vectors of as many elements as there are f32 in a register that fit into one, if all of a group
/// are narrow integers at one place.
static int64_t vectorsInRegister(Block *group) {
  int64_t bits = 8;
  for (Operation &op : group->without_terminator()) {
    if (!graph::isElementwise(&op))
      return 1;
    SmallVector<Type> types(op.getOperandTypes());
    llvm::append_range(types, op.getResultTypes());
    for (Type type : types) {
      Type element = graph::storageOf(getElementTypeOrSelf(type));
      if (!isa<IntegerType>(element))
        return 1;
      bits = std::max<int64_t>(bits, element.getIntOrFloatBitWidth());
    }
  }
  return std::max<int64_t>(1, 32 / bits);
}

/// Vectors side by side that one step of such reductions takes, so that it reads whole runs of
/// cache lines: few if each holds more, and no more than fit into `extent` without much waste.
static int64_t vectorsSideBySide(Block *group, const Dim &extent, int64_t lanes) {
  int64_t bits = 32;
  for (Operation &op : *group)
    for (Type type : op.getResultTypes())
      bits = std::max<int64_t>(
          bits, graph::storageOf(getElementTypeOrSelf(type)).getIntOrFloatBitWidth());
  int64_t count = (estimate::opsPerElement(group) <= 8 ? 8 : 4) * 32 / bits,
          size = graph::typicalSize(group->getParentOp(), extent, 256);
  while (count > 1 && (int64_t)llvm::alignTo(size, count * lanes) * 4 > size * 5)
    count /= 2;
  return std::max<int64_t>(1, count);
}

namespace {
/// One set of loops that stores roots of one shape.
class Nest {
public:
  Nest(KernelBuilder &kernel, Block *group, ArrayRef<Root> roots, int64_t chunk)
      : kernel(kernel), group(group), roots(roots), chunk(chunk) {}

  void emit(llvm::function_ref<void(Elements &)> prepare) {
    DimVector dims = roots.front().dims();
    rank = dims.size();
    auto reads = readTensors(group, valuesOf(roots));
    findRuns(dims, reads);
    kernel.beginPhase();
    Code &code = kernel.code();
    auto squares = reads && !prepare ? findSquares(*reads) : std::nullopt;
    if (!squares && runs.back().extent.constant() &&
        *runs.back().extent.constant() * 2 <= code.lanes)
      code.lanes = 1;
    reduced = squares || prepare ? 1 : reducedDownRows(group);
    if (reduced > 1 && code.lanes > 1)
      code.lanes *= vectorsSideBySide(group, runs.back().extent, code.lanes);
    if (!squares && !prepare && code.lanes > 1 && reduced == 1)
      vectorsInOne = vectorsInRegister(group);
    split(squares.has_value());
    Elements elements(kernel, group);
    if (prepare)
      prepare(elements);
    Dim tasks(1);
    for (size_t i = 0; i < taskRuns; ++i)
      tasks = tasks * runs[i].extent;
    const Dim &chunked = runs[squares ? taskRuns : runs.size() - 1].extent;
    Dim chunks = piece ? chunked.ceilDiv(Dim(piece)) : Dim(1);
    Dim rowPieces = rowPiece ? runs.back().extent.ceilDiv(Dim(rowPiece)) : Dim(1);
    Value high = kernel.dim(chunked);
    if (piece || taskRuns == 0)
      kernel.forEachTask([&](Value task) {
        Elements::Scope scope(elements);
        Value count = kernel.dim(chunks);
        Value low = code.mul(code.rem(task, count), code.number(piece));
        Value end = piece ? code.min(code.add(low, code.number(piece)), high) : high;
        Value number = code.div(task, count), pieces = kernel.dim(rowPieces);
        Indices place = placeOf(elements, code.div(number, pieces), taskRuns);
        if (squares)
          storeSquares(elements, valuesOf(roots), *squares, place, {low, end},
                       rowsOfTask(code.rem(number, pieces)));
        else
          inner(elements, taskRuns, place, low, end);
      });
    else
      forEachTaskOfRows(elements, high);
    Dim work = graph::elementCount(dims) * Dim(estimate::opsPerElement(group));
    if (!prepare)
      work = work * largestReduction(group);
    kernel.endPhase(tasks * rowPieces * chunks, work);
  }

private:
  struct Run {
    Dim extent;
    size_t dimension;
  };

  static SmallVector<Value> valuesOf(ArrayRef<Root> roots) {
    return llvm::map_to_vector(roots, [](const Root &root) { return root.value; });
  }

  /// The place in the first `count` runs of their element `number`, in row-major order.
  Indices placeOf(Elements &elements, Value number, size_t count) {
    Code &code = kernel.code();
    Indices place(rank, elements.uniform(code.number(0)));
    for (size_t i = count; i-- > 0;) {
      Value extent = kernel.dim(runs[i].extent);
      place[runs[i].dimension] = elements.uniform(i == 0 ? number : code.rem(number, extent));
      if (i > 0)
        number = code.div(number, extent);
    }
    return place;
  }

  /// The rows of squares that are the piece `number` of the last run.
  Span rowsOfTask(Value number) {
    Code &code = kernel.code();
    Value extent = kernel.dim(runs.back().extent);
    if (!rowPiece)
      return {code.number(0), extent};
    Value low = code.mul(number, code.number(rowPiece));
    return {low, code.min(code.add(low, code.number(rowPiece)), extent)};
  }

  /// Tasks without pieces: a row of them is the last of their runs.
  void forEachTaskOfRows(Elements &elements, Value high) {
    Code &code = kernel.code();
    const Run &last = runs[taskRuns - 1];
    kernel.forEachTaskRow(kernel.dim(last.extent), [&](Value row, Value first, Value end) {
      Elements::Scope scope(elements);
      Indices place = placeOf(elements, row, taskRuns - 1);
      code.forEach(first, end, 1, [&](Value i) {
        Elements::Scope scope(elements);
        place[last.dimension] = elements.uniform(i);
        inner(elements, taskRuns, place, code.number(0), high);
      });
    });
  }

  /// Runs of neighbours that are walked as one, by the index of the last; without sizes of 1.
  void findRuns(ArrayRef<Dim> dims, const std::optional<SmallVector<ReadTensor, 4>> &reads) {
    bool isPart = llvm::any_of(roots, [](const Root &root) { return root.value != root.target; });
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i].isConstant(1))
        continue;
      bool joins = !runs.empty() && reads && !isPart &&
                   isOneAxis(*reads, runs.back().dimension, i) &&
                   isContiguous(runs.back().dimension, i);
      if (joins)
        runs.back() = {runs.back().extent * dims[i], i};
      else
        runs.push_back({dims[i], i});
    }
    if (runs.empty())
      runs.push_back({Dim(1), rank ? rank - 1 : SIZE_MAX});
  }

  /// Whether neighbours along these axes of the results are such in memory.
  bool isContiguous(size_t outer, size_t inner) {
    return llvm::none_of(roots, [&](const Root &root) {
      for (size_t axis = outer + 1; axis <= inner; ++axis)
        if (isPlacedAlong(kernel, root.target, axis))
          return true;
      return false;
    });
  }

  /// Squares where what is read, or what a row of the last run needs, is not contiguous along it.
  /// Moves the run of their other side before the last.
  std::optional<Squares> findSquares(ArrayRef<ReadTensor> reads) {
    constexpr int64_t kMostOps = 16; // each is written once for each row of a square
    Code &code = kernel.code();
    auto isPlain = [](const Root &root) {
      return root.value == root.target && graph::storageOf(root.value).getIntOrFloatBitWidth() >= 8;
    };
    // A result may lie where an operand does, which the squares of the next one would read.
    bool isOne = roots.size() == 1 && isPlain(roots.front());
    if (code.lanes < 4 || runs.size() < 2 || !isOne ||
        (int64_t)group->getOperations().size() > kMostOps)
      return std::nullopt;
    const Run &last = runs.back();
    auto width = last.extent.constant();
    if (width == 0) // nothing is stored
      return std::nullopt;
    bool isNarrow = width && *width * 2 <= code.lanes;
    int64_t axis = contiguousAxis(reads, isNarrow ? -1 : (int64_t)last.dimension);
    size_t turned =
        llvm::find_if(runs, [&](const Run &run) { return (int64_t)run.dimension == axis; }) -
        runs.begin();
    bool isTurned = turned + 1 < runs.size();
    if (!isTurned && isNarrow && estimate::opsPerElement(group) >= code.lanes)
      turned = runs.size() - 2;
    auto side = turned < runs.size() ? runs[turned].extent.constant() : std::nullopt;
    if (turned + 1 >= runs.size() || (side && *side * 2 < code.lanes))
      return std::nullopt;
    bool isFlat = isNarrow && isContiguous(runs[runs.size() - 2].dimension, last.dimension);
    if (isNarrow && !isFlat)
      return std::nullopt;
    bool isInterleaved = isNarrow && turned + 2 == runs.size();
    if (isNarrow && !isInterleaved) {
      if (*width * (int64_t)group->getOperations().size() > 2 * kMostOps)
        return std::nullopt;
      size_t partAxis = last.dimension;
      runs.pop_back();
      std::rotate(runs.begin() + turned, runs.begin() + turned + 1, runs.end() - 1);
      return Squares{runs[runs.size() - 2].dimension,
                     runs.back().dimension,
                     runs.back().extent,
                     false,
                     *width,
                     partAxis};
    }
    std::rotate(runs.begin() + turned, runs.begin() + turned + 1, runs.end() - 1);
    return Squares{runs[runs.size() - 2].dimension, last.dimension, last.extent, isInterleaved};
  }

  /// Chooses the runs that make the tasks: enough elements in one, enough tasks for the workers.
  void split(bool isSquares) {
    int64_t inside = graph::typicalSize(group->getParentOp(), runs.back().extent),
            lanes = kernel.code().lanes;
    chunk = llvm::divideCeil(chunk, reduced * lanes) * lanes;
    taskRuns = runs.size() - 1;
    if (isSquares) {
      --taskRuns;
      piece = llvm::divideCeil(chunk, std::max<int64_t>(1, inside) * lanes) * lanes;
      bool isKnown = runs.back().extent.constant().has_value();
      if (int64_t rows = llvm::alignTo(llvm::divideCeil(chunk, lanes), lanes);
          !isKnown || inside > 2 * rows)
        rowPiece = rows;
      return;
    }
    while (taskRuns > 0 && runs[taskRuns - 1].extent.constant() &&
           inside * *runs[taskRuns - 1].extent.constant() <= chunk)
      inside *= *runs[--taskRuns].extent.constant();
    bool isDynamic = !runs.back().extent.constant().has_value();
    if (taskRuns + 1 == runs.size() && (inside > 2 * chunk || (isDynamic && taskRuns == 0)))
      piece = chunk;
  }

  /// Visits what the roots are computed of element by element, each op of the group once.
  void forEachElementwise(llvm::function_ref<void(Operation *)> visit) {
    SmallVector<Value> next = valuesOf(roots);
    llvm::DenseSet<Value> seen;
    while (!next.empty()) {
      Value value = next.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!seen.insert(value).second || !op || op->getBlock() != group)
        continue;
      if (op->hasTrait<graph::Elementwise>())
        llvm::append_range(next, op->getOperands());
      visit(op);
    }
  }

  /// Concats along the last run that the roots are computed of element by element, with the same
  /// sizes of their parts.
  SmallVector<graph::ConcatOp> findConcats() {
    SmallVector<graph::ConcatOp> found;
    auto sizesOf = [](graph::ConcatOp concat) {
      return llvm::map_to_vector(concat.getXs(),
                                 [&](Value part) { return graph::dimsOf(part)[concat.getAxis()]; });
    };
    forEachElementwise([&](Operation *op) {
      auto concat = dyn_cast<graph::ConcatOp>(op);
      if (concat && (size_t)concat.getAxis() == runs.back().dimension &&
          (found.empty() || sizesOf(found.front()) == sizesOf(concat)))
        found.push_back(concat);
    });
    return found;
  }

  /// Choices by one side of a diagonal of the last two dimensions, the same for all.
  struct Sides {
    graph::Band band;
    SmallVector<graph::SelectOp> selects;
  };

  /// Nullopt where rows are short, or are not rows of that matrix.
  std::optional<Sides> findSides() {
    const Run &last = runs.back();
    int64_t length = graph::typicalSize(group->getParentOp(), last.extent);
    bool areRows = rank >= 2 && last.dimension + 1 == rank && reduced == 1 &&
                   last.extent == roots.front().dims().back();
    std::optional<Sides> sides;
    if (areRows && length >= kLeastVectors * kernel.code().lanes)
      forEachElementwise([&](Operation *op) {
        auto select = dyn_cast<graph::SelectOp>(op);
        auto band = select ? graph::bandOf(select.getCondition()) : std::nullopt;
        if (band && !sides)
          sides = Sides{*band, {}};
        if (band && *band == sides->band)
          sides->selects.push_back(select);
      });
    return sides;
  }

  /// A loop for each side of the diagonal, in which the choices are made.
  void innerSides(Elements &elements, const Sides &sides, const Indices &place, Value low,
                  Value high) {
    Code &code = kernel.code();
    bool isLower = sides.band.isLower;
    Value middle = code.add(place[rank - 2].base, kernel.dim(sides.band.shift));
    middle = code.add(middle, code.number(isLower ? 1 : 0));
    middle = code.min(code.max(middle, low), high);
    auto emitSide = [&](Value from, Value to, bool holds) {
      Elements::Scope scope(elements);
      for (graph::SelectOp select : sides.selects)
        elements.bind(select, [&elements, select, holds](ArrayRef<Index> at) mutable {
          return elements.at(holds ? select.getX() : select.getY(), at);
        });
      innerLanes(elements, place, from, to);
    };
    emitSide(low, middle, isLower);
    emitSide(middle, high, !isLower);
    for (graph::SelectOp select : sides.selects)
      elements.unbind(select);
  }

  /// A loop for each part, in which the concats are that part.
  void innerParts(Elements &elements, ArrayRef<graph::ConcatOp> concats, const Indices &place) {
    size_t axis = runs.back().dimension;
    Dim offset(0);
    for (size_t part = 0; part < concats.front()->getNumOperands(); ++part) {
      Value low = kernel.dim(offset);
      for (graph::ConcatOp concat : concats)
        elements.bind(concat, [&, concat, low](ArrayRef<Index> at) mutable {
          Indices inPart(at);
          inPart[axis] =
              elements.shift(inPart[axis], kernel.code().sub(kernel.code().number(0), low));
          return elements.at(concat->getOperand(part), inPart);
        });
      offset = offset + graph::dimsOf(concats.front()->getOperand(part))[axis];
      innerLanes(elements, place, low, kernel.dim(offset));
    }
    for (graph::ConcatOp concat : concats)
      elements.unbind(concat);
  }

  void innerLanes(Elements &elements, const Indices &place, Value low, Value high) {
    Code &code = kernel.code();
    auto body = [&](Value i) {
      Indices here(place);
      here[runs.back().dimension] = {i, code.lanes == 1 ? 0 : 1, {}};
      storeRoots(elements, here);
    };
    if (vectorsInOne > 1) {
      code.lanes *= vectorsInOne;
      Value lanes = code.number(code.lanes), length = code.sub(high, low),
            middle = code.add(low, code.mul(code.div(length, lanes), lanes));
      code.forEach(low, middle, code.lanes, [&](Value i) {
        Elements::Scope scope(elements);
        body(i);
      });
      code.lanes /= vectorsInOne;
      low = middle;
    }
    forLanes(elements, low, high, body);
  }

  void inner(Elements &elements, size_t run, Indices &place, Value low, Value high) {
    Code &code = kernel.code();
    if (run + 1 < runs.size()) {
      code.forEach(code.number(0), kernel.dim(runs[run].extent), 1, [&](Value i) {
        Elements::Scope scope(elements);
        place[runs[run].dimension] = elements.uniform(i);
        inner(elements, run + 1, place, low, high);
      });
      return;
    }
    if (rank == 0) {
      storeRoots(elements, place);
      return;
    }
    auto concats = piece ? SmallVector<graph::ConcatOp>() : findConcats();
    if (!concats.empty())
      innerParts(elements, concats, place);
    else if (auto sides = findSides())
      innerSides(elements, *sides, place, low, high);
    else
      innerLanes(elements, place, low, high);
  }

  /// Whatever is read, is read before anything is stored: a result may lie where an operand does.
  void storeRoots(Elements &elements, ArrayRef<Index> place) {
    Values values;
    for (const Root &root : roots)
      values.push_back(elements.at(root.value, place));
    for (auto [root, value] : llvm::zip(roots, values)) {
      Indices target(place);
      if (!root.offset.isConstant(0))
        target[root.axis] = elements.shift(target[root.axis], kernel.dim(root.offset));
      elements.store(root.target, value, target);
    }
  }

  static constexpr int64_t kLeastVectors = 8; // of a row, lest two short loops take longer than one

  KernelBuilder &kernel;
  Block *group;
  ArrayRef<Root> roots;
  int64_t chunk;
  SmallVector<Run> runs;
  size_t taskRuns = 0, rank = 0;
  int64_t vectorsInOne = 1; // of what a step takes where it can
  int64_t reduced = 1;      // elements that one of the results reduces, down rows of memory
  int64_t rowPiece = 0;     // of the last run, the rows of squares, that is one task; 0: all
  int64_t piece = 0; // of the last run, or of the squares' other side, that is one task; 0: all
};
} // namespace

void emitPointwise(KernelBuilder &kernel, Block *group, const Schedule &schedule,
                   llvm::function_ref<void(Elements &)> prepare) {
  SmallVector<Root> roots;
  for (Value output : outputsOf(group)) {
    Root root;
    root.target = output;
    collectRoots(group, output, root, roots);
  }
  llvm::erase_if(roots, [&](const Root &root) { // is there already
    return root.value != root.target && kernel.placementOf(root.value);
  });
  // Roots of one shape share their loops.
  while (!roots.empty()) {
    DimVector dims = roots.front().dims();
    SmallVector<Root> same, others;
    for (const Root &root : roots)
      (root.dims() == dims ? same : others).push_back(root);
    Nest(kernel, group, same, schedule.knob("chunk", 4096)).emit(prepare);
    roots = others;
  }
}

} // namespace heddle::lower
