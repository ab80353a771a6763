// Band: comparisons as sums of row and column numbers.

#include "compiler/graph/edit/Band.h"

#include "compiler/graph/Constants.h"

using namespace mlir;

namespace heddle::graph {

namespace {
/// rows * row number + columns * column number + shift.
struct Sum {
  int64_t rows = 0, columns = 0;
  Dim shift = Dim(0);
};
} // namespace

/// Beyond it a sum of numbers may wrap.
static constexpr int64_t kMostShift = int64_t(1) << 30;
static constexpr int kDepth = 8; // ops that are looked through

static bool mayWrap(const Dim &shift) {
  return std::abs(shift.constant().value_or(0)) > kMostShift;
}

/// A number that all elements are.
static std::optional<Sum> shiftOf(Value value) {
  std::optional<Dim> shift;
  if (auto number = splatOf(value))
    shift = Dim((int64_t)std::clamp<double>(*number, -2 * kMostShift, 2 * kMostShift));
  else if (auto size = rankOf(value) == 0 ? shapeValue(value) : std::nullopt)
    shift = size->front();
  if (!shift || mayWrap(*shift))
    return std::nullopt;
  return Sum{0, 0, *shift};
}

/// Numbers along an axis of a tensor of these dimensions.
static std::optional<Sum> numbersAlong(ArrayRef<Dim> dims, size_t axis, ArrayRef<Dim> matrix) {
  size_t fromEnd = dims.size() - axis;
  if (fromEnd > 2 || dims[axis] != matrix[2 - fromEnd])
    return std::nullopt;
  return fromEnd == 2 ? Sum{1, 0, Dim(0)} : Sum{0, 1, Dim(0)};
}

/// The sum that an integer tensor, broadcast to one whose last two dimensions are `matrix`, is.
static std::optional<Sum> sumOf(Value value, ArrayRef<Dim> matrix, int depth = kDepth) {
  Type element = elementOf(value);
  if (depth == 0 || !(element.isSignlessInteger(32) || element.isSignlessInteger(64)))
    return std::nullopt;
  if (auto shift = shiftOf(value))
    return shift;
  Operation *op = value.getDefiningOp();
  DimVector dims = dimsOf(value);
  if (auto iota = dyn_cast_if_present<IotaOp>(op))
    return numbersAlong(dims, iota.getAxis(), matrix);
  auto reshape = dyn_cast_if_present<ReshapeOp>(op);
  auto iota = reshape ? reshape.getX().getDefiningOp<IotaOp>() : IotaOp();
  if (iota && rankOf(reshape.getX()) == 1 && reshape.keepsIndices()) {
    auto lasts = [](const Dim &dim) { return !dim.isConstant(1); };
    auto along = llvm::find_if(dims, lasts);
    if (along == dims.end())
      return std::nullopt;
    return numbersAlong(dims, along - dims.begin(), matrix);
  }
  if (auto broadcast = dyn_cast_if_present<BroadcastOp>(op))
    return sumOf(broadcast.getX(), matrix, depth - 1);
  if (auto cast = dyn_cast_if_present<CastOp>(op))
    return sumOf(cast.getX(), matrix, depth - 1);
  if (!isa_and_nonnull<AddOp, SubOp>(op))
    return std::nullopt;
  auto x = sumOf(op->getOperand(0), matrix, depth - 1),
       y = sumOf(op->getOperand(1), matrix, depth - 1);
  if (!x || !y)
    return std::nullopt;
  int64_t sign = isa<AddOp>(op) ? 1 : -1;
  Dim shift = x->shift + y->shift * Dim(sign);
  if (mayWrap(shift))
    return std::nullopt;
  return Sum{x->rows + sign * y->rows, x->columns + sign * y->columns, shift};
}

/// The band of a constant, all of whose matrices are equal.
static std::optional<Band> bandOf(ConstantOp op) {
  constexpr int64_t kMostElements = int64_t(1) << 24;
  auto type = cast<RankedTensorType>(op.getType());
  int64_t rank = type.getRank();
  if (rank < 2 || type.getNumElements() == 0 || type.getNumElements() > kMostElements)
    return std::nullopt;
  int64_t rows = type.getDimSize(rank - 2), columns = type.getDimSize(rank - 1);
  std::vector<char> storage;
  llvm::ArrayRef<char> bytes = constantBytes(op.getValue(), storage);
  auto holds = [&](int64_t row, int64_t column) { return bytes[row * columns + column] != 0; };
  auto isBand = [&](bool isLower, int64_t shift) {
    for (int64_t i = 0; i < (int64_t)bytes.size(); ++i) {
      int64_t row = i / columns % rows, column = i % columns;
      if ((bytes[i] != 0) != (isLower ? row + shift >= column : row + shift <= column))
        return false;
    }
    return true;
  };
  // The first row that changes says where the diagonal is.
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 1; column < columns; ++column)
      if (bool before = holds(row, column - 1); before != holds(row, column)) {
        int64_t shift = column - row - (before ? 1 : 0);
        return isBand(before, shift) ? std::optional(Band{before, Dim(shift)}) : std::nullopt;
      }
  return std::nullopt;
}

static std::optional<Band> bandOf(Value mask, int depth) {
  if (depth == 0)
    return std::nullopt;
  Operation *op = mask.getDefiningOp();
  DimVector dims = dimsOf(mask);
  if (auto broadcast = dyn_cast_if_present<BroadcastOp>(op)) {
    DimVector from = dimsOf(broadcast.getX());
    if (from.size() < 2 || ArrayRef(from).take_back(2) != ArrayRef(dims).take_back(2))
      return std::nullopt;
    return bandOf(broadcast.getX(), depth - 1);
  }
  if (auto constant = dyn_cast_if_present<ConstantOp>(op))
    return bandOf(constant);
  if (auto slice = dyn_cast_if_present<SliceOp>(op)) {
    DimVector starts = dimsOf(slice.getStarts());
    auto band = starts.size() < 2 ? std::nullopt : bandOf(slice.getX(), depth - 1);
    if (!band || llvm::any_of(slice.getSteps(), [](int64_t step) { return step != 1; }))
      return std::nullopt;
    return Band{band->isLower, band->shift + starts[starts.size() - 2] - starts[starts.size() - 1]};
  }
  if (auto no = dyn_cast_if_present<NotOp>(op)) {
    auto band = bandOf(no.getX(), depth - 1);
    return band ? std::optional(band->complement()) : std::nullopt;
  }
  bool isOrder = op && op->hasTrait<Comparison>() && !isa<EqualOp, NotEqualOp>(op);
  if (dims.size() < 2 || !isOrder)
    return std::nullopt;
  ArrayRef<Dim> matrix = ArrayRef(dims).take_back(2);
  auto x = sumOf(op->getOperand(0), matrix), y = sumOf(op->getOperand(1), matrix);
  if (!x || !y)
    return std::nullopt;
  // It holds where small <= large.
  bool isLess = isa<LessOp, LessEqualOp>(op);
  const Sum &small = isLess ? *x : *y, &large = isLess ? *y : *x;
  Dim shift = large.shift - small.shift - Dim(isa<LessOp, GreaterOp>(op) ? 1 : 0);
  int64_t rows = large.rows - small.rows, columns = large.columns - small.columns;
  if (rows == 1 && columns == -1)
    return Band{true, shift};
  if (rows == -1 && columns == 1)
    return Band{false, Dim(0) - shift};
  return std::nullopt;
}

std::optional<Band> bandOf(Value mask) { return bandOf(mask, kDepth); }

/// Whether the elements are the numbers of their columns.
static bool areColumnNumbers(Value value, const Dim &columns) {
  if (auto broadcast = value.getDefiningOp<BroadcastOp>())
    value = broadcast.getX();
  if (rankOf(value) == 0 || dimsOf(value).back() != columns)
    return false;
  auto reshape = value.getDefiningOp<ReshapeOp>();
  if (reshape && rankOf(reshape.getX()) == 1 && reshape.keepsIndices())
    value = reshape.getX();
  auto iota = value.getDefiningOp<IotaOp>();
  return iota && int64_t(iota.getAxis()) + 1 == rankOf(value);
}

std::optional<RowEnds> rowEndsOf(Value mask) {
  if (rankOf(mask) == 0)
    return std::nullopt;
  Dim columns = dimsOf(mask).back();
  while (auto broadcast = mask.getDefiningOp<BroadcastOp>())
    mask = broadcast.getX();
  Operation *op = mask.getDefiningOp();
  bool isAfter = isa_and_nonnull<GreaterOp, GreaterEqualOp>(op);
  if (!isAfter && !isa_and_nonnull<LessOp, LessEqualOp>(op))
    return std::nullopt;
  unsigned places = isAfter ? 0 : 1;
  auto ofRows = op->getOperand(places).getDefiningOp<BroadcastOp>();
  Type element = elementOf(op->getOperand(places));
  bool isFound = ofRows && rankOf(ofRows.getX()) > 0 &&
                 dimsOf(ofRows.getX()).back().isConstant(1) &&
                 (element.isSignlessInteger(32) || element.isSignlessInteger(64)) &&
                 areColumnNumbers(op->getOperand(1 - places), columns);
  return isFound ? std::optional(RowEnds{op, places, isa<LessEqualOp, GreaterEqualOp>(op)})
                 : std::nullopt;
}

Value maskOf(Build &build, ArrayRef<Dim> dims, const Band &band) {
  int64_t rank = dims.size();
  auto isShort = [](const Dim &dim) {
    return std::abs(dim.constant().value_or(INT64_MAX)) <= kMostShift;
  };
  bool areShort = llvm::all_of(dims.take_back(2), isShort) && isShort(band.shift);
  Type number = build.builder.getIntegerType(areShort ? 32 : 64); // more of 32 bits fit a vector
  auto numbers = [&](int64_t axis) {
    return build.typed<IotaOp>(dims, number, build.builder.getI64IntegerAttr(axis));
  };
  Value row = numbers(rank - 2), column = numbers(rank - 1);
  if (auto shift = band.shift.constant()) {
    if (*shift != 0)
      row = build.add(row, static_cast<double>(*shift));
  } else {
    Value size = build.typed<SizesOp>({}, number, dimsAttr(number.getContext(), {band.shift}));
    row = build.add(row, build.broadcast(size, dims));
  }
  return band.isLower ? build.compare<GreaterEqualOp>(row, column)
                      : build.compare<LessEqualOp>(row, column);
}

} // namespace heddle::graph
