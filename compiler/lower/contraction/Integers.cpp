// Integers: 8-bit products through instructions that take 2 or 4 elements of the
// reduction at once. All sums are those of i32, exactly.
//
// Quads multiply u8 by i8 (vpdpbusd, usdot) or i8 by i8 (sdot). An A of the other sign is copied
// with its highest bit turned over, which adds 128 to a signed element and takes 128 from an
// unsigned one, and the sums begin with -128 or 128 times the sum of the column of B. All other
// mixes go in pairs of i16 (vpmaddwd, smull): A is copied as i16, B is packed as i16. vpmaddubsw
// saturates, so it has no place here.

#include "compiler/estimate/Thresholds.h"
#include "compiler/lower/contraction/Contraction.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

/// Sets what the tile works on; fails where the machine has no instruction for 8-bit integers.
LogicalResult Contraction::readTypes() {
  Type a = graph::elementOf(shape.root->getOperand(0)),
       b = graph::elementOf(shape.root->getOperand(1));
  element = a;
  accumulator = graph::elementOf(shape.root->getResult(0));
  if (!a.isInteger(8))
    return success();
  const program::Machine &machine = kernel.machine;
  depth = machine.dot != program::Dot::Words && b.isSignlessInteger(8) ? 4 : 2;
  element = IntegerType::get(a.getContext(), 32 / depth);
  return success(machine.dot != program::Dot::None);
}

/// Each piece of the reduction is filled up with zeros to a multiple of the depth.
Dim Contraction::panelRows() const {
  if (depth == 1)
    return shape.reduction;
  Dim rows = shape.length.ceilDiv(Dim(depth)) * Dim(depth);
  for (auto &[count, step, dimension] : shape.pieces)
    rows = rows * count;
  return rows;
}

/// Elements of A as the tile reads them.
Value Contraction::converted(Value lanes) {
  Code &code = kernel.code();
  if (isShifted())
    return code.b.create<arith::XOrIOp>(code.loc, lanes,
                                        code.spread(code.integerOf(code.b.getI8Type(), -128)));
  if (depth != 2)
    return lanes;
  bool isUnsigned = graph::elementOf(shape.a).isUnsignedInteger();
  Type words = Code::isVector(lanes) ? Type(code.vectorOf(element)) : element;
  return isUnsigned ? code.b.createOrFold<arith::ExtUIOp>(code.loc, words, lanes)
                    : code.b.createOrFold<arith::ExtSIOp>(code.loc, words, lanes);
}

/// All of A, converted.
void Contraction::emitCopy() {
  int64_t size = estimate::thresholdAt(shape.root, estimate::kProductCopy);
  Dim count = graph::elementCount(graph::dimsOf(shape.a));
  border = kernel.addTemporary(count * Dim(graph::bytesOf(element)) + Dim(4));
  kernel.beginPhase();
  Elements e(kernel, group);
  Code &code = kernel.code();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value first = code.mul(task, code.number(size));
    Value end = code.min(code.add(first, code.number(size)), kernel.dim(count));
    forLanes(e, first, end, [&](Value i) {
      Value value = code.loadLanes(graph::elementOf(shape.a), kernel.pointer(shape.a), i, e.mask);
      code.storeLanes(element, converted(value), kernel.temporary(border), i, e.mask);
    });
  });
  kernel.endPhase(count.ceilDiv(Dim(size)), count.floorDiv(Dim(kernel.machine.lanes)));
}

static int64_t integerAt(ArrayRef<char> bytes, Type element, int64_t i) {
  if (element.isInteger(16)) {
    int16_t word;
    std::memcpy(&word, bytes.data() + i * 2, 2);
    return word;
  }
  auto byte = static_cast<int8_t>(bytes[i]);
  return element.isUnsignedInteger() ? static_cast<uint8_t>(byte) : byte;
}

/// Appends one matrix of a constant right operand.
void Contraction::packIntegers(const PanelSource &source, std::vector<char> &packed) {
  Type from = graph::elementOf(shape.b);
  int64_t length = *shape.length.constant(), width = panelWidth();
  int64_t filled = llvm::alignTo(length, depth), rows = *panelRows().constant();
  auto number = [&](int64_t row, int64_t column) {
    int64_t inPiece = row % filled;
    if (inPiece >= length || source.columns[column] < 0)
      return int64_t(0);
    int64_t first = source.rows[row / filled * length + inPiece];
    return integerAt(source.bytes, from, first + source.columns[column]);
  };
  auto part = packConstantDots(depth, rows, *panels.constant(), width, number);
  packed.insert(packed.end(), part.begin(), part.end());
}

/// shiftOfSums() * (sum of the column) for each column of the packed panels.
void Contraction::addConstantShift(ArrayRef<char> packed) {
  int64_t width = panelWidth(), rows = *panelRows().constant();
  int64_t count = rows ? packed.size() / (rows * width) : 0;
  std::vector<int32_t> start(std::max<int64_t>(1, count * width), 0);
  for (int64_t panel = 0; panel < count; ++panel)
    for (int64_t i = 0; i < rows * width; ++i)
      start[panel * width + i / depth % width] +=
          shiftOfSums() * static_cast<int8_t>(packed[panel * rows * width + i]);
  auto bytes = reinterpret_cast<const char *>(start.data());
  startData = kernel.addData(std::vector<char>(bytes, bytes + start.size() * sizeof(int32_t)));
}

/// The accumulators of a tile at panel `panelNumber`; none where they begin with zeros.
SmallVector<Value> Contraction::startOf(Value panelNumber, int64_t rows) {
  if (startData < 0 && startTemporary < 0)
    return {};
  Code &code = kernel.code();
  Value pointer = startData >= 0 ? kernel.data(startData) : kernel.temporary(startTemporary);
  Value first = code.mul(panelNumber, code.number(panelWidth()));
  SmallVector<Value> row, start;
  for (int64_t j = 0; j < vectors; ++j)
    row.push_back(
        code.loadLanes(accumulator, pointer, code.add(first, code.number(j * code.lanes)), {}));
  for (int64_t i = 0; i < rows; ++i)
    llvm::append_range(start, row);
  return start;
}

/// The columns of one vector of a panel known only at run time, `depth` rows at a time. Lanes that
/// e.mask leaves out read as zeros.
void Contraction::packDots(Elements &e, const Indices &matrix, Value column, Value target,
                           Value panelNumber, int64_t vector) {
  Code &code = kernel.code();
  Type word = code.b.getI32Type();
  Value sum = code.spread(code.integerOf(word, 0));
  target = code.add(target, code.number(vector * code.lanes * depth));
  if (shape.pieces.empty()) {
    sum = packDotPiece(e, matrix, column, code.number(0), target, sum);
  } else {
    Dim pieces(1);
    for (const Taps &taps : shape.pieces)
      pieces = pieces * taps.count;
    Value rows = kernel.dim(panelRows().floorDiv(pieces));
    auto packPiece = [&](Value piece, ValueRange in) {
      Value first = code.mul(piece, kernel.dim(shape.length));
      Value start = code.mul(piece, code.mul(rows, code.number(panelWidth())));
      return Values{packDotPiece(e, matrix, column, first, code.add(target, start), in[0])};
    };
    sum = foldScoped(e, code.number(0), kernel.dim(pieces), sum, packPiece)[0];
  }
  if (startTemporary < 0)
    return;
  Value factor = code.spread(code.integerOf(word, shiftOfSums()));
  Value start = code.b.create<arith::MulIOp>(code.loc, sum, factor);
  Value first = code.mul(panelNumber, code.number(panelWidth()));
  code.storeLanes(accumulator, start, kernel.temporary(startTemporary),
                  code.add(first, code.number(vector * code.lanes)), {});
}

/// One piece of the reduction, whose rows begin at `firstRow`, filled up with zeros to a multiple
/// of the depth; `sum` and what its columns sum up to.
Value Contraction::packDotPiece(Elements &e, const Indices &matrix, Value column, Value firstRow,
                                Value target, Value sum) {
  Code &code = kernel.code();
  bool isUnsigned = graph::elementOf(shape.b).isUnsignedInteger();
  Type word = code.b.getI32Type();
  Value rows = kernel.dim(shape.length), zero = code.spread(code.integerOf(word, 0));
  auto pack = [&](Value k, Value sum, bool isLast) {
    Value packed = zero;
    for (int64_t i = 0; i < depth; ++i) {
      Value row = code.add(k, code.number(i));
      Value inside = isLast ? code.min(row, code.sub(rows, code.number(1))) : row;
      Indices here = placeInRight(e, matrix, code.add(firstRow, inside), column);
      Value part = widen(e, code.spread(e.at(shape.b, here)), word, isUnsigned);
      if (isLast)
        part = code.b.create<arith::SelectOp>(code.loc, code.less(row, rows), part, zero);
      sum = code.b.create<arith::AddIOp>(code.loc, sum, part);
      // Only the low bits of an element count, at the place of the i-th one.
      auto left = code.spread(code.integerOf(word, 32 - 32 / depth));
      auto right = code.spread(code.integerOf(word, 32 - 32 / depth * (i + 1)));
      part = code.b.create<arith::ShLIOp>(code.loc, part, left);
      part = code.b.create<arith::ShRUIOp>(code.loc, part, right);
      packed = code.b.create<arith::OrIOp>(code.loc, packed, part);
    }
    Value at = code.add(target, code.mul(k, code.number(panelWidth())));
    Value address = code.at(packedPointer(), element, at);
    code.storeLanes(word, packed, address, code.number(0), {});
    return Values{sum};
  };
  Dim whole = shape.length.floorDiv(Dim(depth));
  Dim rest = shape.length.ceilDiv(Dim(depth)) - whole;
  auto sums = foldScoped(e, code.number(0), kernel.dim(whole), sum, [&](Value i, ValueRange in) {
    return pack(code.mul(i, code.number(depth)), in[0], /*isLast=*/false);
  });
  return foldScoped(e, code.number(0), kernel.dim(rest), sums, [&](Value, ValueRange in) {
    return pack(code.mul(kernel.dim(whole), code.number(depth)), in[0], /*isLast=*/true);
  })[0];
}

} // namespace heddle::lower
