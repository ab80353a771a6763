// Stored: right sides of products that are a constant in fewer bits stay one.
//
//   matmul(x, transpose(reshape((cast(codes) - zeros) * scales)))
//     =>  matmul(x, graph.constant #graph.stored<codes, scales, zeros>)
//
// Codes are integers of 8 or 4 bits, or floats of 16 bits; scales and zeros are those of blocks of
// rows (DequantizeLinear with block_size, MatMulNBits), of columns, or one. Runs before constants
// are folded. Constants that do not fit become floats there.

#include "compiler/simplify/quantized/Stored.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/reference/Tensor.h"
#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rewriting.h"

#include <numeric>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_STOREDPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

/// `extent` elements, `stride` apart.
struct Step {
  int64_t extent, stride;
};

/// A tensor of elements of `base`, moved and repeated: each dimension is a nest of steps, the
/// outermost first.
struct View {
  Value base;
  SmallVector<SmallVector<Step, 2>> dims;
  int64_t offset = 0;

  bool move(Operation *op);
  /// Places in `base` of the elements along a dimension.
  std::vector<int64_t> placesAlong(size_t dim) const;
  /// How many neighbours along the first dimension are the same element.
  int64_t repeatsOfRows() const;
  /// Leaves the last two dimensions; the others are of size 1.
  void dropBatches() { dims.erase(dims.begin(), dims.end() - 2); }

private:
  bool regroup(ArrayRef<int64_t> sizes);
  bool slice(SliceOp op);
  bool repeat(ArrayRef<int64_t> sizes);
};

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

bool isStatic(Value value) { return cast<RankedTensorType>(value.getType()).hasStaticShape(); }

int64_t extentOf(ArrayRef<Step> steps) {
  int64_t count = 1;
  for (const Step &step : steps)
    count *= step.extent;
  return count;
}

/// Gives the elements, in their order, other sizes.
bool View::regroup(ArrayRef<int64_t> sizes) {
  SmallVector<Step> rest;
  for (auto &steps : dims)
    for (const Step &step : steps)
      if (step.extent != 1)
        rest.push_back(step);
  std::reverse(rest.begin(), rest.end()); // the outermost at the back
  decltype(dims) grouped;
  for (int64_t size : sizes) {
    SmallVector<Step, 2> steps;
    while (size > 1) {
      Step step = rest.pop_back_val();
      if (step.extent > size) { // its inner part is left for the dimensions after
        if (step.extent % size)
          return false;
        int64_t inner = step.extent / size;
        rest.push_back({inner, step.stride});
        step = {size, step.stride * inner};
      }
      if (size % step.extent)
        return false;
      size /= step.extent;
      if (!steps.empty() && steps.back().stride == step.extent * step.stride)
        steps.back() = {steps.back().extent * step.extent, step.stride};
      else
        steps.push_back(step);
    }
    grouped.push_back(steps);
  }
  dims = grouped;
  return true;
}

bool View::slice(SliceOp op) {
  DimVector starts = dimsOf(op.getStarts());
  ArrayRef<int64_t> sizes = shapeOf(op.getResult());
  for (auto [d, steps] : llvm::enumerate(dims)) {
    auto start = starts[d].constant();
    if (!start || op.getSteps()[d] != 1)
      return false;
    if (sizes[d] == extentOf(steps))
      continue;
    int64_t inner = extentOf(ArrayRef(steps).drop_front());
    if (*start % inner || sizes[d] % inner)
      return false;
    offset += *start / inner * steps.front().stride;
    steps.front().extent = sizes[d] / inner;
  }
  return true;
}

bool View::repeat(ArrayRef<int64_t> sizes) {
  dims.insert(dims.begin(), sizes.size() - dims.size(), {});
  for (auto [steps, size] : llvm::zip(dims, sizes))
    if (size != extentOf(steps))
      steps = {{size, 0}};
  return true;
}

bool View::move(Operation *op) {
  ArrayRef<int64_t> sizes = shapeOf(op->getResult(0));
  if (auto slice = dyn_cast<SliceOp>(op))
    return this->slice(slice);
  if (isa<ReshapeOp>(op))
    return regroup(sizes);
  if (isa<BroadcastOp>(op))
    return repeat(sizes);
  decltype(dims) moved;
  for (int64_t axis : cast<TransposeOp>(op).getPermutation())
    moved.push_back(dims[axis]);
  dims = moved;
  return true;
}

std::vector<int64_t> View::placesAlong(size_t dim) const {
  std::vector<int64_t> places = {0};
  for (const Step &step : dims[dim]) {
    std::vector<int64_t> inner;
    for (int64_t place : places)
      for (int64_t i = 0; i < step.extent; ++i)
        inner.push_back(place + i * step.stride);
    places = std::move(inner);
  }
  return places;
}

int64_t View::repeatsOfRows() const {
  int64_t count = 1;
  for (const Step &step : llvm::reverse(dims.front())) {
    if (step.stride != 0)
      break;
    count *= step.extent;
  }
  return count;
}

/// Whether a View can express the op.
bool isViewed(Operation *op) { return isRearrangement(op); }

/// Codes, and the difference of two, are the same numbers there.
bool isExact(CastOp cast) {
  Type from = elementOf(cast.getX()), to = elementOf(cast.getResult());
  bool isNarrow =
      !isBits(from) && (from.getIntOrFloatBitWidth() <= 16 || from.isSignlessInteger(32));
  return isNarrow &&
         (to.isF32() || (isa<IntegerType>(from) && (to.isSignlessInteger(32) || to.isF16())));
}

std::optional<View> viewOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isStatic(value))
    return std::nullopt;
  if (auto cast = dyn_cast<CastOp>(op); cast && isExact(cast))
    return viewOf(cast.getX());
  if (isViewed(op)) {
    auto view = viewOf(op->getOperand(0));
    return view && view->move(op) ? view : std::nullopt;
  }
  View view{value, {}};
  int64_t stride = elementCount(dimsOf(value)).constant().value_or(0);
  for (int64_t size : shapeOf(value)) {
    stride /= std::max<int64_t>(1, size);
    view.dims.push_back({{size, stride}});
  }
  return view;
}

/// The right side of a product as views of its codes, scales and zeros.
struct Parts {
  std::optional<View> codes, scales, zeros;

  bool read(Value value);

private:
  bool readScaled(MulOp op);
  bool take(std::optional<View> &part, Value value);

  SmallVector<Operation *> moves; // after what is read now, the last one first
};

bool isCode(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  return element.isF16() || element.isBF16() ||
         (integer && integer.getWidth() <= 8 && integer.getWidth() >= 2);
}

bool Parts::take(std::optional<View> &part, Value value) {
  part = viewOf(value);
  if (!part || !llvm::all_of(llvm::reverse(moves), [&](Operation *op) { return part->move(op); }))
    return false;
  part->dropBatches();
  return true;
}

bool Parts::readScaled(MulOp op) {
  if (scales || zeros)
    return false;
  for (auto [scaled, scale] : {std::pair(op.getX(), op.getY()), std::pair(op.getY(), op.getX())}) {
    Parts attempt(*this);
    if (attempt.take(attempt.scales, scale) && attempt.read(scaled)) {
      *this = attempt;
      return true;
    }
  }
  return false;
}

bool Parts::read(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isStatic(value))
    return false;
  if (isCode(elementOf(value)))
    return take(codes, value);
  if (auto cast = dyn_cast<CastOp>(op))
    return isExact(cast) && read(cast.getX());
  if (isViewed(op) && !isa<BroadcastOp>(op)) {
    moves.push_back(op);
    return read(op->getOperand(0));
  }
  if (auto difference = dyn_cast<SubOp>(op))
    return !zeros && take(zeros, difference.getY()) && read(difference.getX());
  auto product = dyn_cast<MulOp>(op);
  return product && elementOf(value).isF32() && readScaled(product);
}

/// Rows and columns of the view, each `step`-th row, as a constant of `element`.
ElementsAttr gathered(const View &view, const reference::Tensor &numbers, Type element,
                      int64_t step) {
  std::vector<int64_t> rows = view.placesAlong(0), columns = view.placesAlong(1);
  int64_t width = bytesOf(element);
  bool isSame = element == numbers.element;
  std::vector<double> wide = isSame ? std::vector<double>() : reference::load<double>(numbers);
  std::vector<char> bytes(rows.size() / step * columns.size() * width);
  char *target = bytes.data();
  for (size_t k = 0; k < rows.size(); k += step)
    for (int64_t column : columns) {
      int64_t place = view.offset + rows[k] + column;
      auto number = isSame ? 0.0F : static_cast<float>(wide[place]);
      const void *from = isSame ? numbers.bytes().data() + place * width : (const void *)&number;
      std::memcpy(target, from, width);
      target += width;
    }
  int64_t sizes[] = {(int64_t)rows.size() / step, (int64_t)columns.size()};
  return constantAttr(RankedTensorType::get(sizes, element), bytes);
}

} // namespace

StoredAttr storedForm(MatmulOp op) {
  Value b = op.getB();
  if (!elementOf(b).isF32() || !elementOf(op.getA()).isF32() || !isStatic(b))
    return {};
  ArrayRef<int64_t> sizes = shapeOf(b);
  int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  Parts parts;
  if (rows * columns < estimate::thresholdAt(op, estimate::kStoredElements) ||
      elementCount(dimsOf(b)) != Dim(rows * columns) || !parts.read(b))
    return {};
  int64_t block = rows;
  for (auto &part : {parts.scales, parts.zeros})
    if (part)
      block = std::gcd(block, part->repeatsOfRows());
  if (block < std::min(rows, estimate::thresholdAt(op, estimate::kStoredBlock)))
    return {};
  auto codes = numbersOf(parts.codes->base);
  if (!codes)
    return {};
  Type f32 = elementOf(b);
  auto parameters = [&](const std::optional<View> &part) -> FailureOr<ElementsAttr> {
    auto numbers = part ? numbersOf(part->base) : std::nullopt;
    if (part && !numbers)
      return failure();
    return part ? gathered(*part, *numbers, f32, block) : ElementsAttr();
  };
  auto scales = parameters(parts.scales), zeros = parameters(parts.zeros);
  if (failed(scales) || failed(zeros))
    return {};
  return StoredAttr::get(op.getContext(), RankedTensorType::get(sizes, f32),
                         gathered(*parts.codes, *codes, codes->element, 1), *scales, *zeros);
}

/// Erases unread ops, which would be folded otherwise.
static void eraseDead(Operation *op) {
  llvm::SetVector<Operation *> open;
  open.insert(op);
  while (!open.empty()) {
    op = open.pop_back_val();
    if (!op || !isOpTriviallyDead(op))
      continue;
    for (Value operand : op->getOperands())
      open.insert(operand.getDefiningOp());
    op->erase();
  }
}

void setStored(MatmulOp op, StoredAttr stored) {
  Value b = op.getB();
  op.getBMutable().assign(OpBuilder(op).create<ConstantOp>(b.getLoc(), stored));
  eraseDead(b.getDefiningOp());
}

namespace {
struct StoredPass : impl::StoredPassBase<StoredPass> {
  void runOnOperation() override {
    getOperation().walk([](MatmulOp op) {
      if (StoredAttr stored = storedForm(op))
        setStored(op, stored);
    });
  }
};

} // namespace

} // namespace heddle::simplify
