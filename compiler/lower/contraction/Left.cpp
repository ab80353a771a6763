// Left: copies of a left operand that tiles cannot read as it is.
//
// Where rows are side by side in memory, and the steps of the reduction apart, a tile would read
// its rows from another page in each step. So they are copied first, those of a tile one step after
// the other: [tile][step][row]. Reading some lines of a page at once and writing in order, it takes
// less time than a transpose of the operand (bench/notes/2026-11-25-training-speed.md).

#include "compiler/lower/contraction/Left.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/Typical.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

void copyElements(Code &code, Type element, Value from, Value to, Value count) {
  Type word = code.b.getI32Type();
  int64_t bytes = graph::bytesOf(element), ofVector = 4 * code.lanes / bytes;
  Value whole = code.mul(code.div(count, code.number(ofVector)), code.number(ofVector));
  code.forEach(code.number(0), whole, ofVector, [&](Value i) {
    Value words = code.b.create<program::LoadOp>(code.loc, code.vectorOf(word),
                                                 code.at(from, element, i), bytes);
    code.b.create<program::StoreOp>(code.loc, words, code.at(to, element, i), bytes);
  });
  code.forEach(whole, count, code.lanes, [&](Value i) {
    Value mask = code.maskOf(code.sub(count, i));
    code.storeLanes(element, code.loadLanes(element, from, i, mask), to, i, mask);
  });
}

Value LeftOperand::pointer() {
  if (strip)
    return strip;
  int64_t copy = tiles >= 0 ? tiles : border;
  return copy >= 0 ? kernel.temporary(copy) : kernel.pointer(shape.a);
}

void LeftOperand::emitPhase() {
  if (stripLines)
    return; // tasks copy them
  if (shape.needsBorder)
    emitBorders();
  else if (layout.hasMatrices && !layout.readsMatrices())
    return; // tiles pack it
  else if (isTiled() && layout.isShort())
    emitTiles();
  else if (isInPlace())
    return;
  else if (element != program::memoryType(graph::storageOf(shape.a)) || layout.isShifted())
    emitConversion();
  else if (isTiled())
    emitTiles();
}

/// Elements of A as the tile reads them.
Value LeftOperand::converted(Value lanes) {
  Code &code = kernel.code();
  if (layout.isShifted())
    return code.b.create<arith::XOrIOp>(code.loc, lanes,
                                        code.spread(code.integerOf(code.b.getI8Type(), -128)));
  if (layout.isShort())
    return shortBits(code, lanes);
  if (layout.depth != 2)
    return lanes;
  bool isUnsigned = graph::storageOf(shape.a).isUnsignedInteger();
  Type words = Code::isVector(lanes) ? Type(code.vectorOf(element)) : element;
  return isUnsigned ? code.b.createOrFold<arith::ExtUIOp>(code.loc, words, lanes)
                    : code.b.createOrFold<arith::ExtSIOp>(code.loc, words, lanes);
}

/// Bytes of a copy of so many elements: words of 4 bytes are read whole, and so are tiles of
/// matrices, the last of which has rows that are none, and steps of these.
Dim LeftOperand::copyBytes(const Dim &count) const {
  Dim more = layout.readsMatrices()
                 ? layout.runs.back().aStride * Dim(layout.tileRows) + Dim(layout.stepLength())
                 : Dim(0);
  return (count + more) * Dim(layout.elementBytes()) + Dim(4);
}

/// All of A, converted.
void LeftOperand::emitConversion() {
  int64_t size = estimate::thresholdAt(shape.root, estimate::kProductCopy);
  Dim count = graph::elementCount(graph::dimsOf(shape.a));
  border = kernel.addTemporary(copyBytes(count));
  kernel.beginPhase();
  Elements e(kernel, layout.group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value first = code.mul(task, code.number(size));
    Value end = code.min(code.add(first, code.number(size)), kernel.dim(count));
    forLanes(e, first, end, [&](Value i) {
      Value value = code.loadLanes(graph::storageOf(shape.a), kernel.pointer(shape.a), i, e.mask);
      code.storeLanes(element, converted(value), kernel.temporary(border), i, e.mask);
    });
  });
  kernel.endPhase(count.ceilDiv(Dim(size)), count.floorDiv(Dim(kernel.machine.lanes)));
}

/// Sizes of the image with its borders.
DimVector LeftOperand::paddedDims() const {
  DimVector padded = graph::dimsOf(cast<graph::ConvOp>(shape.root).getX());
  for (size_t d = 0; d < shape.low.size(); ++d)
    padded[d + 1] = padded[d + 1] + Dim(shape.low[d] + shape.high[d]);
  return padded;
}

/// Elements of a line of pixels, with its borders.
Dim LeftOperand::lineLength() const {
  DimVector padded = paddedDims();
  return padded[padded.size() - 2] * padded.back();
}

/// Copies the image into the middle of a zeroed one, a line of pixels a task. What is read after
/// the last element, up to the next 4 bytes, is there.
void LeftOperand::emitBorders() {
  DimVector padded = paddedDims();
  border = kernel.addTemporary(copyBytes(graph::elementCount(padded)));
  kernel.beginPhase();
  Elements e(kernel, layout.group);
  Dim tasks = graph::elementCount(ArrayRef<Dim>(padded).drop_back(2));
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value start = kernel.code().mul(task, kernel.dim(lineLength()));
    copyLine(e, task, kernel.temporary(border), start);
  });
  kernel.endPhase(tasks, tasks * lineLength());
}

/// Copies a line of the image with borders to the elements of `target` from `start` on.
void LeftOperand::copyLine(Elements &e, Value line, Value target, Value start) {
  Code &code = kernel.code();
  DimVector x = graph::dimsOf(cast<graph::ConvOp>(shape.root).getX()), padded = paddedDims();
  size_t spatial = shape.low.size();
  Value source = kernel.pointer(shape.a), length = kernel.dim(lineLength());
  Type from = graph::storageOf(shape.a);
  bool isCopied = element.isInteger(8) && from.isInteger(8) && !layout.isShifted();
  Value zero = converted(code.spread(code.constantOf(from, 0)));
  auto clear = [&](Value low, Value high) {
    forLanes(e, low, high,
             [&](Value i) { code.storeLanes(element, zero, target, code.add(start, i), e.mask); });
  };
  // The place of this line in the image, if it is inside.
  Value rest = line, isInside, place = code.number(0);
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
        if (isCopied)
          copyElements(code, element, code.at(source, element, first),
                       code.at(target, element, code.add(start, left)), count);
        else
          forLanes(e, code.number(0), count, [&](Value i) {
            Value value = code.loadLanes(from, source, code.add(first, i), e.mask);
            Value at = code.add(start, code.add(left, i));
            code.storeLanes(element, converted(value), target, at, e.mask);
          });
        clear(end, length);
        return Values();
      },
      [&] {
        clear(code.number(0), length);
        return Values();
      });
}

/// Lines of the image that the taps of a line of the result reach over.
int64_t LeftOperand::linesOfTaps() const {
  auto conv = cast<graph::ConvOp>(shape.root);
  return (*graph::dimsOf(conv.getW())[2].constant() - 1) * conv.getDilations()[0] + 1;
}

void LeftOperand::chooseStrips() {
  auto conv = dyn_cast<graph::ConvOp>(shape.root);
  bool hasLines = conv && shape.needsBorder && shape.low.size() == 2 && layout.runs.size() == 3;
  if (!hasLines || !layout.hasMatrices || !shape.groups.isConstant(1))
    return;
  int64_t l2 = kernel.machine.l2Bytes;
  Dim bytes(layout.elementBytes());
  auto typical = [&](const Dim &count) { return graph::typicalSize(conv, count * bytes, 1); };
  if (typical(graph::elementCount(paddedDims())) <= l2 / 2)
    return;
  int64_t most = l2 / 4 / std::max<int64_t>(1, typical(lineLength()));
  stripLines = std::max<int64_t>(1, (most - linesOfTaps()) / conv.getStrides()[0] + 1);
}

Dim LeftOperand::stripBytes() const {
  if (!stripLines)
    return Dim(0);
  int64_t stride = cast<graph::ConvOp>(shape.root).getStrides()[0];
  Dim lines = Dim::min(Dim((stripLines - 1) * stride + linesOfTaps()), paddedDims()[1]);
  return copyBytes(lineLength() * lines);
}

void LeftOperand::copyStrip(Elements &e, Value line, Value end) {
  Code &code = kernel.code();
  auto conv = cast<graph::ConvOp>(shape.root);
  Value stride = code.number(conv.getStrides()[0]), length = kernel.dim(lineLength());
  Value extent = kernel.dim(layout.runs[1].extent), image = code.div(line, extent);
  Value first = code.add(code.mul(image, kernel.dim(paddedDims()[1])),
                         code.mul(code.rem(line, extent), stride));
  Value more = code.mul(code.sub(code.sub(end, line), code.number(1)), stride);
  code.forEach(code.number(0), code.add(more, code.number(linesOfTaps())), 1, [&](Value i) {
    Elements::Scope scope(e);
    copyLine(e, code.add(first, i), kernel.scratch(), code.mul(i, length));
  });
  strip = code.at(kernel.scratch(), element, code.sub(code.number(0), code.mul(first, length)));
}

/// Rows that are copied at once, at least those of a tile.
static constexpr int64_t kRows = 128;

/// Steps of the reduction that are copied as one number: two of bf16.
Dim LeftOperand::tileSteps() {
  return layout.isShort() ? shape.reduction.ceilDiv(Dim(layout.depth)) : shape.reduction;
}

/// Numbers of a tile. Vectors are stored whole, so that it has some more.
Dim LeftOperand::tileSize() {
  return tileSteps() * Dim(layout.tiling().mostRows()) + Dim(kernel.machine.lanes);
}

/// First number of a tile.
Value LeftOperand::numberAt(Value outer, Value tile) {
  Code &code = kernel.code();
  Value number = code.add(code.mul(outer, kernel.dim(layout.tiling().count)), tile);
  return code.mul(number, kernel.dim(tileSize()));
}

Value LeftOperand::tileAt(Value outer, Value tile) {
  Value first = numberAt(outer, tile);
  return layout.isShort() ? kernel.code().mul(first, kernel.code().number(layout.depth)) : first;
}

/// Numbers of tiles: elements of A, of which only `count` are, if it is given, or of bf16 pairs of
/// them, the steps `k` and the one after it, which may be none.
Value LeftOperand::copied(Value from, Value k, Value count) {
  Code &code = kernel.code();
  auto load = [&](Value at, Value count) {
    return code.loadLanes(graph::storageOf(shape.a), pointer(), at,
                          count ? code.maskOf(count) : Value());
  };
  Value even = load(from, count);
  if (!layout.isShort())
    return even;
  if (!shape.reduction.mod(Dim(2)).isConstant(0)) {
    Value isThere = code.less(code.add(k, code.number(1)), kernel.dim(shape.reduction));
    count = code.b.create<arith::SelectOp>(code.loc, isThere,
                                           count ? count : code.number(code.lanes), code.number(0));
  }
  return shortPairs(code, even, load(code.add(from, kernel.dim(shape.aStep)), count));
}

/// Copies all tiles, some of one run of rows per task.
void LeftOperand::emitTiles() {
  ProductLayout::Tiling tiling = layout.tiling();
  int64_t rows = std::max<int64_t>(1, tiling.mostRows()),
          atOnce = std::max<int64_t>(1, kRows / rows);
  Type number = layout.isShort() ? Type(IntegerType::get(element.getContext(), 32)) : element;
  Dim blocks = tiling.count.ceilDiv(Dim(atOnce)), all = tiling.outer * tiling.count;
  int64_t copies = kernel.addTemporary(all * tileSize() * Dim(graph::bytesOf(number)));
  kernel.beginPhase();
  Elements e(kernel, layout.group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value outer = code.div(task, kernel.dim(blocks)), zero = code.number(0);
    Value first = code.mul(code.rem(task, kernel.dim(blocks)), code.number(atOnce));
    Value count = code.min(code.number(atOnce), code.sub(kernel.dim(tiling.count), first));
    Indices outside(shape.rows.size() + 1, e.uniform(zero));
    Value base = layout.placeOutside(e, outer, outside).second, extent = kernel.dim(tiling.rows);
    Value target = kernel.temporary(copies);
    Value steps = kernel.dim(tileSteps()), step = kernel.dim(shape.aStep);
    auto copyTile = [&](Value row, Value to, Value k, bool isMasked) {
      to = code.add(to, code.mul(k, code.number(rows)));
      if (layout.isShort())
        k = code.mul(k, code.number(layout.depth));
      Value from = code.add(code.add(base, row), code.mul(k, step));
      for (int64_t at = 0; at < rows; at += code.lanes) {
        Value shift = code.number(at), count;
        if (isMasked)
          count = code.max(code.sub(extent, code.add(row, shift)), zero);
        code.storeLanes(number, copied(code.add(from, shift), k, count), target,
                        code.add(to, shift), {});
      }
    };
    auto copyAll = [&] {
      Values firstRows, places;
      for (int64_t i = 0; i < atOnce; ++i) {
        Value tile = code.add(first, code.number(i));
        firstRows.push_back(layout.firstRowOf(tiling, tile));
        places.push_back(numberAt(outer, tile));
      }
      code.forEach(zero, steps, 1, [&](Value k) {
        for (auto [row, place] : llvm::zip(firstRows, places))
          copyTile(row, place, k, false);
      });
      return Values();
    };
    auto copySome = [&] {
      code.forEach(zero, steps, 1, [&](Value k) {
        code.forEach(zero, count, 1, [&](Value i) {
          Value tile = code.add(first, i);
          copyTile(layout.firstRowOf(tiling, tile), numberAt(outer, tile), k, true);
        });
      });
      return Values();
    };
    // Whole vectors after the first row of the last tile are rows, too.
    Value end = code.add(layout.firstRowOf(tiling, code.add(first, code.number(atOnce - 1))),
                         code.number(llvm::alignTo(rows, code.lanes)));
    Value areWhole = code.both(code.less(code.number(atOnce - 1), count),
                               code.less(end, code.add(extent, code.number(1))));
    code.choose(areWhole, TypeRange(), copyAll, copySome);
  });
  kernel.endPhase(tiling.outer * blocks, all * tileSize());
  tiles = copies;
}

} // namespace heddle::lower
