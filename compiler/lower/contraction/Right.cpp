// Right: each way in which the panels of a right operand come to be.

#include "compiler/lower/contraction/Right.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Constants.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/contraction/Integers.h"
#include "compiler/lower/contraction/PanelWriter.h"
#include "compiler/lower/stored/IntegerPanels.h"
#include "compiler/lower/stored/Panels.h"

using namespace mlir;

namespace heddle::lower {

SmallVector<Value> RightOperand::sums(const RegisterTile &tile, const TileProduct &product, Value) {
  return emitProduct(kernel.code(), tile, product);
}

Value RightOperand::placeOf(Value panel) { return held ? kernel.code().sub(panel, held) : panel; }

static Dim lineAfter(const Dim &bytes) {
  constexpr int64_t kLine = 64; // bytes
  return bytes.ceilDiv(Dim(kLine)) * Dim(kLine);
}

/// The column of the product that is at each place of the panels, one after the other; -1 where
/// there is none.
static SmallVector<int64_t> placedColumns(const ProductLayout &layout) {
  int64_t width = layout.panelWidth(), ofPart = *layout.shape.columns.constant() / layout.parts;
  SmallVector<int64_t> columns;
  for (int64_t place = 0, places = *layout.panels.constant() * width; place < places; ++place) {
    int64_t column = place / width * layout.partWidth() + place % layout.partWidth();
    int64_t part = place % width / layout.partWidth();
    columns.push_back(column < ofPart ? part * ofPart + column : -1);
  }
  return columns;
}

namespace {
/// A constant: panels of every group (or batch) one after the other.
class ConstantPanels : public RightOperand {
public:
  ConstantPanels(const ProductLayout &layout, Band &band, ElementsAttr value)
      : RightOperand(layout), band(band), value(value) {}

  void prepare() override {
    const ProductShape &shape = layout.shape;
    std::vector<char> storage;
    ArrayRef<char> bytes = graph::constantBytes(value, storage);
    int64_t width = layout.panelWidth(), elementBytes = layout.elementBytes();
    int64_t columns = *shape.columns.constant(), rows = *shape.reduction.constant();
    int64_t places = *layout.panels.constant() * width;
    // A convolution's are [out, in, window...], and its rows have the order window..., in.
    auto conv = dyn_cast<graph::ConvOp>(shape.root);
    int64_t inputs = conv ? *graph::dimsOf(conv.getW())[1].constant() : 1;
    int64_t taps = rows / std::max<int64_t>(1, inputs);
    int64_t matrices =
        conv ? int64_t(conv.getGroups()) : *graph::elementCount(shape.bBatch).constant();
    PanelSource source{bytes, elementBytes, {}, {}};
    for (int64_t column : placedColumns(layout))
      source.columns.push_back(column < 0 || !conv ? column : column * rows);
    std::vector<char> packed(layout.depth > 1 ? 0 : matrices * rows * places * elementBytes);
    for (int64_t matrix = 0; matrix < matrices; ++matrix) {
      source.rows.clear();
      for (int64_t row = 0; row < rows; ++row)
        source.rows.push_back(matrix * rows * columns +
                              (conv ? row % inputs * taps + row / inputs : row * columns));
      if (layout.depth > 1)
        packIntegers(layout, source, packed);
      else
        packConstantPanels(shape.root->getContext(), source, width,
                           packed.data() + matrix * rows * places * elementBytes);
    }
    if (layout.isShifted())
      starts = kernel.addData(startsOf(layout, packed, matrices * places));
    if (shape.band)
      band.noteConstant(bytes, rows * columns * matrices);
    panels = kernel.addData(std::move(packed));
  }
  Value pointer() override { return constant(); }
  Value constant() override { return kernel.data(panels); }
  Value sourceOf(Value panel) override {
    Code &code = kernel.code();
    return code.at(constant(), code.b.getI8Type(), code.mul(panel, kernel.dim(sourceBytes())));
  }
  Dim sourceBytes() const override {
    return layout.panelRows() * Dim(layout.panelWidth() * layout.elementBytes());
  }
  SmallVector<Value> startOf(Value panel, int64_t rows) override {
    return starts < 0 ? SmallVector<Value>() : startAt(layout, kernel.data(starts), panel, rows);
  }

private:
  Band &band;
  ElementsAttr value;
  int64_t panels = -1, starts = -1; // data
};

/// A constant in fewer bits: tiles make floats of it as they meet it, or tasks where several tiles
/// share a panel.
class CodedPanels : public RightOperand {
public:
  CodedPanels(const ProductLayout &layout, graph::StoredAttr value)
      : RightOperand(layout), value(value) {}

  void prepare() override {
    stored.emplace(kernel, value, placedColumns(layout), layout.vectors,
                   estimate::thresholdAt(layout.shape.root, estimate::kFetchPanels));
  }
  Value pointer() override { return held ? kernel.scratch() : Value(); }
  SmallVector<Value> sums(const RegisterTile &tile, const TileProduct &product,
                          Value panel) override {
    return held ? RightOperand::sums(tile, product, panel) : stored->sums(tile, product, panel);
  }
  Scratch scratch() const override { return Scratch::Shared; }
  void fill(Value, Value first, Value end) override {
    Code &code = kernel.code();
    Value size = code.mul(kernel.dim(layout.shape.reduction), code.number(layout.panelWidth()));
    code.forEach(first, end, 1, [&](Value panel) {
      stored->decode(panel, kernel.scratch(), code.mul(code.sub(panel, first), size));
    });
    held = first;
  }

private:
  graph::StoredAttr value;
  std::optional<StoredPanels> stored;
};

/// A constant of integers, by which rows are multiplied as integers.
class MultipliedCodes : public RightOperand {
public:
  MultipliedCodes(const ProductLayout &layout, graph::StoredAttr value)
      : RightOperand(layout),
        panels(kernel, value, placedColumns(layout), layout.vectors,
               estimate::thresholdAt(layout.shape.root, estimate::kFetchPanels)),
        hasMatrices(layout.mayHaveMatrices && panels.fitsMatrices() &&
                    layout.runs.back().aStride == layout.shape.length &&
                    takesMatrices(layout.tiling().mostRows())) {}

  void prepare() override { panels.roundRows(layout.shape.a, layout.group); }
  Value pointer() override { return {}; }
  SmallVector<Value> sums(const RegisterTile &tile, const TileProduct &product,
                          Value panel) override {
    if (!hasMatrices || !takesMatrices(tile.rows))
      return panels.sums(tile, product, panel);
    if (held)
      return panels.matrixSums(tile, product, panel, placeOf(panel));
    Value place = kernel.code().number(0);
    panels.unpack(panel, place);
    return panels.matrixSums(tile, product, panel, place);
  }
  Scratch scratch() const override { return hasMatrices ? Scratch::Shared : Scratch::None; }
  Dim scratchOfTile(const Dim &bytes) override {
    if (!hasMatrices)
      return bytes;
    panels.scratchBegin = lineAfter(bytes);
    return panels.scratchBegin + Dim(panels.sumBytes() + panels.unpackedBytes());
  }
  void fill(Value, Value first, Value end) override {
    Code &code = kernel.code();
    code.forEach(first, end, 1, [&](Value panel) { panels.unpack(panel, code.sub(panel, first)); });
    held = first;
  }

private:
  /// Rows beyond those of a tile are multiplied, too.
  static bool takesMatrices(int64_t rows) {
    return rows >= program::kMatrixSize / 2 && rows <= program::kMatrixSize;
  }

  IntegerPanels panels;
  bool hasMatrices;
};

/// Such a constant for rows of bf16: tasks make panels of bf16. What is packed has a vector a
/// panel, as that by which few rows are multiplied (plan/MatrixRule.h).
class DecodedCodes : public RightOperand {
public:
  DecodedCodes(const ProductLayout &layout, graph::StoredAttr value)
      : RightOperand(layout), count(llvm::divideCeil(value.getColumns(), kernel.machine.lanes)),
        panels(kernel, value, columnsOf(value, count * kernel.machine.lanes), /*vectors=*/1, 0) {}

  Value pointer() override {
    Code &code = kernel.code();
    return code.at(kernel.scratch(), code.b.getI8Type(), kernel.dim(begin));
  }
  Value sourceOf(Value panel) override {
    return panels.codesOf(kernel.code().mul(panel, kernel.code().number(layout.vectors)));
  }
  Dim sourceBytes() const override { return Dim(layout.vectors * panels.bytesOfPanel()); }
  Scratch scratch() const override { return Scratch::Shared; }
  Dim scratchOfTile(const Dim &bytes) override {
    begin = lineAfter(bytes);
    return begin;
  }
  void fill(Value, Value first, Value end) override {
    Code &code = kernel.code();
    int64_t width = layout.panelWidth();
    Value rows = kernel.dim(layout.panelRows().floorDiv(Dim(layout.depth)));
    code.forEach(first, end, 1, [&](Value panel) {
      Value at = code.mul(code.mul(code.sub(panel, first), rows), code.number(width));
      Value target = code.at(pointer(), code.b.getI32Type(), at);
      for (int64_t j = 0; j < layout.vectors; ++j)
        decode(code.add(code.mul(panel, code.number(layout.vectors)), code.number(j)), target, j);
    });
    held = first;
  }

private:
  static SmallVector<int64_t> columnsOf(graph::StoredAttr value, int64_t places) {
    SmallVector<int64_t> columns = llvm::to_vector(llvm::seq<int64_t>(0, value.getColumns()));
    columns.resize(places, -1);
    return columns;
  }

  /// Vector `vector` of a panel, and zeros in the rows that fill it up.
  void decode(Value number, Value target, int64_t vector) {
    Code &code = kernel.code();
    int64_t width = layout.panelWidth();
    Type word = code.b.getI32Type();
    auto clear = [&](int64_t first) {
      Value end = kernel.dim(layout.panelRows().floorDiv(Dim(layout.depth)));
      code.forEach(code.number(first), end, 1, [&](Value row) {
        Value place =
            code.add(code.mul(row, code.number(width)), code.number(vector * kernel.machine.lanes));
        code.storeLanes(word, code.spread(code.integerOf(word, 0)), target, place, {});
      });
      return Values();
    };
    auto decodeAll = [&] {
      panels.decode(number, target, vector, width);
      return clear(*layout.shape.reduction.constant() / layout.depth);
    };
    if (count % layout.vectors == 0)
      decodeAll();
    else
      code.choose(code.less(number, code.number(count)), TypeRange(), decodeAll,
                  [&] { return clear(0); });
  }

  int64_t count; // of panels that are packed
  IntegerPanels panels;
  Dim begin = Dim(0);
};

/// Matrices that are panels where they lie.
class PanelsInPlace : public RightOperand {
public:
  explicit PanelsInPlace(const ProductLayout &layout) : RightOperand(layout) {}

  Value pointer() override { return kernel.pointer(layout.shape.b); }
};

/// An operand known only at run time, packed by a phase of its own: one panel per task.
class PackedPanels : public RightOperand {
public:
  PackedPanels(const ProductLayout &layout, Band &band, bool isInvariant)
      : RightOperand(layout), band(band), isInvariant(isInvariant) {}

  void prepare() override {
    const ProductShape &shape = layout.shape;
    int64_t width = layout.panelWidth();
    Dim batches = isa<graph::ConvOp>(shape.root) ? shape.groups : graph::elementCount(shape.bBatch);
    Dim bytes = batches * layout.panels * layout.panelRows() * Dim(width * layout.elementBytes());
    packed = kernel.addTemporary(bytes);
    if (layout.isShifted())
      starts = kernel.addTemporary(batches * layout.panels * Dim(width * 4));
    PanelWriter writer(layout, band, [&] { return pointer(); }, starts);
    kernel.beginPhase();
    Elements e(kernel, layout.group);
    Code &code = kernel.code();
    kernel.forEachTask([&](Value task) {
      Elements::Scope scope(e);
      Value panel = code.rem(task, kernel.dim(layout.panels));
      Value batch = code.div(task, kernel.dim(layout.panels));
      Value target = code.mul(task, code.mul(kernel.dim(layout.panelRows()), code.number(width)));
      writer.write(e, batch, panel, target, task);
    });
    kernel.endPhase(batches * layout.panels,
                    batches * layout.panels * shape.reduction * Dim(width));
    kernel.kernel.phases.back().isInvariant = isInvariant;
  }
  Value pointer() override { return kernel.temporary(packed); }
  SmallVector<Value> startOf(Value panel, int64_t rows) override {
    return starts < 0 ? SmallVector<Value>()
                      : startAt(layout, kernel.temporary(starts), panel, rows);
  }

private:
  Band &band;
  bool isInvariant;
  int64_t packed = -1, starts = -1; // temporaries
};

/// An operand known only at run time, packed into their scratch by the tasks that multiply by it.
class PanelsOfTasks : public RightOperand {
public:
  PanelsOfTasks(const ProductLayout &layout, Band &band) : RightOperand(layout), band(band) {}

  Value pointer() override { return kernel.scratch(); }
  Scratch scratch() const override { return Scratch::All; }
  void fill(Value matrix, Value first, Value end) override {
    Elements e(kernel, layout.group);
    Code &code = kernel.code();
    Value size = code.mul(kernel.dim(layout.panelRows()), code.number(layout.panelWidth()));
    PanelWriter writer(layout, band, [&] { return kernel.scratch(); });
    code.forEach(first, end, 1, [&](Value panel) {
      Elements::Scope scope(e);
      writer.write(e, matrix, panel, code.mul(code.sub(panel, first), size), panel);
    });
    held = code.add(code.mul(matrix, kernel.dim(layout.panels)), first);
  }

private:
  Band &band;
};
} // namespace

/// Whether memory has the right operand's matrices as panels of their own: one of all columns each,
/// without zeros to fill it up.
static bool isOnePanel(const ProductLayout &layout) {
  Operation *maker = layout.shape.b.getDefiningOp();
  bool isComputed = maker && maker->getBlock() == layout.group;
  return isa<graph::MatmulOp>(layout.shape.root) && !isComputed && !layout.shape.band &&
         layout.depth == 1 && layout.parts == 1 &&
         layout.shape.columns.isConstant(layout.panelWidth()) &&
         layout.element == program::memoryType(graph::storageOf(layout.shape.b));
}

/// Panels of few matrices that each worker has at least where tasks pack them.
static constexpr int64_t kPanelsOfWorker = 3;

/// Whether each of the right operand's matrices meets rows of its own, and there are enough of them
/// for all workers: a task finds what it has packed in its cache, and no other one needs it. Panels
/// of few matrices are enough as well where the left operand stays in the L2 from one to the next.
static bool canPackInTasks(const ProductLayout &layout) {
  Dim batches = graph::elementCount(layout.shape.bBatch);
  if (!isa<graph::MatmulOp>(layout.shape.root) || layout.depth != 1 ||
      layout.schedule.knob("tiles", 0) != 0 || layout.tiling().outer != batches)
    return false;
  auto typical = [&](const Dim &dim) { return graph::typicalSize(layout.shape.root, dim, 1); };
  int64_t workers = std::max<int64_t>(1, layout.kernel.machine.workers);
  int64_t enough =
      workers > 1 ? estimate::thresholdAt(layout.shape.root, estimate::kProductTasks) * workers : 1;
  if (typical(batches) >= enough)
    return true;
  Dim left = graph::elementCount(graph::dimsOf(layout.shape.a)) * Dim(layout.elementBytes());
  return typical(batches * layout.panels) >= kPanelsOfWorker * workers &&
         typical(left) <= layout.kernel.machine.l2Bytes / 2;
}

/// Whether the group is in the body of a loop, and what the operand is made of outside of it.
static bool isInvariant(Block *group, Value operand) {
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

std::unique_ptr<RightOperand> rightOperandOf(const ProductLayout &layout, Band &band,
                                             bool mayPackInTasks) {
  Value operand = layout.shape.b;
  if (auto constant = operand.getDefiningOp<graph::ConstantOp>()) {
    auto fewer = dyn_cast<graph::StoredAttr>(constant.getValue());
    auto product = dyn_cast<graph::MatmulOp>(layout.shape.root);
    if (fewer && product && product.getBlock() && layout.isShort())
      return std::make_unique<DecodedCodes>(layout, fewer);
    if (fewer && product && product.getBlock())
      return std::make_unique<MultipliedCodes>(layout, fewer);
    if (fewer && !layout.isShort())
      return std::make_unique<CodedPanels>(layout, fewer);
    return std::make_unique<ConstantPanels>(layout, band, constant.getValue());
  }
  if (layout.shape.band)
    band.prepareNotes();
  if (isOnePanel(layout))
    return std::make_unique<PanelsInPlace>(layout);
  bool isOnce = isInvariant(layout.group, operand);
  if (!isOnce && mayPackInTasks && canPackInTasks(layout))
    return std::make_unique<PanelsOfTasks>(layout, band);
  return std::make_unique<PackedPanels>(layout, band, isOnce);
}

} // namespace heddle::lower
