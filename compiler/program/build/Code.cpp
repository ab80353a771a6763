// Code: each word of the vocabulary as a few ops of arith, scf, vector and program.

#include "compiler/program/build/Code.h"

#include <numeric>

using namespace mlir;

namespace heddle::program {

Type computeType(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element))
    return IntegerType::get(element.getContext(), integer.getWidth());
  return element;
}

Type memoryType(Type element) {
  unsigned bits = element.getIntOrFloatBitWidth();
  if (bits < 8 || (isa<FloatType>(element) && bits == 8))
    return IntegerType::get(element.getContext(), 8);
  return computeType(element);
}

std::optional<int64_t> Code::constant(Value value) {
  APInt integer;
  if (matchPattern(value, m_ConstantInt(&integer)))
    return integer.getSExtValue();
  return std::nullopt;
}

Value Code::number(int64_t value) {
  return b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(value));
}

Value Code::add(Value x, Value y) {
  if (constant(x)) // folds look for constants on the right
    std::swap(x, y);
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}
Value Code::sub(Value x, Value y) {
  auto p = constant(x), q = constant(y);
  if (p && q)
    return number(*p - *q);
  return b.createOrFold<arith::SubIOp>(loc, x, y);
}
Value Code::mul(Value x, Value y) {
  auto p = constant(x), q = constant(y);
  if ((p && *p == 0) || (q && *q == 1))
    return x;
  if ((q && *q == 0) || (p && *p == 1))
    return y;
  if (p && q)
    return number(*p * *q);
  return b.createOrFold<arith::MulIOp>(loc, x, y);
}

Value Code::div(Value x, Value y) {
  auto p = constant(x), q = constant(y);
  if (q && *q == 1)
    return x;
  if (p && q && *q > 0)
    return number(*p >= 0 ? *p / *q : -((-*p + *q - 1) / *q));
  if (q && *q > 0 && llvm::isPowerOf2_64(*q))
    return b.createOrFold<arith::ShRSIOp>(loc, x, number(llvm::Log2_64(*q)));
  return b.create<arith::FloorDivSIOp>(loc, x, y);
}

Value Code::rem(Value x, Value y) {
  auto p = constant(x), q = constant(y);
  if (q && *q == 1)
    return number(0);
  if (p && q && *q > 0 && *p >= 0)
    return number(*p % *q);
  return b.create<arith::RemUIOp>(loc, x, y);
}

Value Code::min(Value x, Value y) {
  auto p = constant(x), q = constant(y);
  if (p && q)
    return number(std::min(*p, *q));
  return b.createOrFold<arith::MinSIOp>(loc, x, y);
}
Value Code::max(Value x, Value y) {
  auto p = constant(x), q = constant(y);
  if (p && q)
    return number(std::max(*p, *q));
  return b.createOrFold<arith::MaxSIOp>(loc, x, y);
}

Value Code::less(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, y);
}

Value Code::both(Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  if (isVector(x) != isVector(y)) {
    x = spread(x);
    y = spread(y);
  }
  return b.createOrFold<arith::AndIOp>(loc, x, y);
}

void Code::forEach(Value low, Value high, int64_t step, Body body) {
  fold(low, high, step, {}, [&](Value i, ValueRange) {
    body(i);
    return Values();
  });
}

Values Code::fold(Value low, Value high, int64_t step, ValueRange initial, Step body) {
  auto from = constant(low), to = constant(high);
  if (from && to && *to <= *from)
    return Values(initial);
  if (from && to && *to - *from <= step)
    return body(low, initial);
  auto loop = b.create<scf::ForOp>(loc, low, high, number(step), initial,
                                   [](OpBuilder &, Location, Value, ValueRange) {});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(loop.getBody());
  Values next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  b.create<scf::YieldOp>(loc, next);
  return Values(loop.getResults());
}

Values Code::choose(Value condition, TypeRange types, llvm::function_ref<Values()> yes,
                    llvm::function_ref<Values()> no) {
  if (auto known = constant(condition))
    return *known ? yes() : no();
  auto branch = b.create<scf::IfOp>(loc, types, condition, /*withElse=*/true);
  OpBuilder::InsertionGuard guard(b);
  auto fill = [&](Block *block, llvm::function_ref<Values()> make) {
    if (!block->empty()) // the builder ends blocks without results by itself
      block->back().erase();
    b.setInsertionPointToEnd(block);
    b.create<scf::YieldOp>(loc, make());
  };
  fill(branch.thenBlock(), yes);
  fill(branch.elseBlock(), no);
  return Values(branch.getResults());
}

void Code::when(Value condition, llvm::function_ref<void()> body) {
  if (auto known = constant(condition)) {
    if (*known)
      body();
    return;
  }
  auto branch = b.create<scf::IfOp>(loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

Value Code::spread(Value value) {
  if (isVector(value) || lanes == 1)
    return value;
  return b.create<vector::BroadcastOp>(loc, vectorOf(value.getType()), value);
}

Value Code::laneNumbers() {
  SmallVector<int64_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  return b.create<arith::ConstantOp>(
      loc, DenseElementsAttr::get(vectorOf(b.getI64Type()), ArrayRef<int64_t>(numbers)));
}

Value Code::maskOf(Value count) {
  // 32-bit lanes: half the registers, and a count never exceeds the lanes by much.
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value steps = b.create<arith::ConstantOp>(
      loc, DenseElementsAttr::get(vectorOf(b.getI32Type()), ArrayRef<int32_t>(numbers)));
  Value narrow = b.createOrFold<arith::TruncIOp>(loc, b.getI32Type(), min(count, number(lanes)));
  return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, steps, spread(narrow));
}

/// Two rows of blocks of so many lanes, whose off-diagonal blocks have changed places.
std::pair<Value, Value> Code::swapBlocks(Value upper, Value lower, int64_t distance) {
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < lanes; ++i) {
    low.push_back(i & distance ? lanes + i - distance : i);
    high.push_back(i & distance ? lanes + i : i + distance);
  }
  return {b.create<vector::ShuffleOp>(loc, upper, lower, low),
          b.create<vector::ShuffleOp>(loc, upper, lower, high)};
}

Values Code::transpose(Values rows) {
  // Ever smaller squares: log2(lanes) rounds of shuffles.
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2)
    for (int64_t i = 0; i < lanes; ++i)
      if (!(i & distance))
        std::tie(rows[i], rows[i + distance]) = swapBlocks(rows[i], rows[i + distance], distance);
  return rows;
}

Value Code::sumRows(Values rows) {
  // A round of a transpose, whose results are added: half as many rows are left.
  for (int64_t distance = lanes / 2; distance > 0; distance /= 2)
    for (int64_t i = 0; i < distance; ++i) {
      auto [upper, lower] = swapBlocks(rows[i], rows[i + distance], distance);
      rows[i] = b.create<arith::AddFOp>(loc, upper, lower);
    }
  return rows.front();
}

Values Code::interleave(ValueRange rows) {
  // Each result starts as the first vector, spread out; shuffles put in the others one by one.
  int64_t count = rows.size();
  Values results(count, rows[0]);
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t j = 1; j < count; ++j) {
      SmallVector<int64_t> picks;
      for (int64_t lane = k * lanes; lane < (k + 1) * lanes; ++lane)
        picks.push_back(lane % count == j             ? lanes + lane / count
                        : j == 1 && lane % count == 0 ? lane / count
                                                      : lane % lanes);
      results[k] = b.create<vector::ShuffleOp>(loc, results[k], rows[j], picks);
    }
  }
  return results;
}

Value Code::constantOf(Type element, double value) {
  if (auto floating = dyn_cast<FloatType>(element)) {
    APFloat number(value);
    bool lost;
    number.convert(floating.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    return b.create<arith::ConstantOp>(loc, FloatAttr::get(element, number));
  }
  return integerOf(element, static_cast<int64_t>(value));
}

Value Code::integerOf(Type element, int64_t value) {
  return b.create<arith::ConstantOp>(loc, IntegerAttr::get(computeType(element), value));
}

Value Code::at(Value pointer, Type element, Value index) {
  return b.create<program::AtOp>(loc, pointer, index, memoryType(element));
}

static Type shapedLike(Value value, Type element) {
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value Code::fromMemory(Type element, Value raw) {
  Type compute = computeType(element);
  if (memoryType(element) == compute)
    return raw;
  Type type = shapedLike(raw, compute);
  if (isa<FloatType>(compute))
    return b.create<arith::BitcastOp>(loc, type, raw);
  return b.create<arith::TruncIOp>(loc, type, raw);
}

Value Code::toMemory(Type element, Value value) {
  Type memory = memoryType(element);
  if (memory == computeType(element))
    return value;
  Type type = shapedLike(value, memory);
  if (isa<FloatType>(element))
    return b.create<arith::BitcastOp>(loc, type, value);
  if (element.isSignlessInteger(1) || element.isUnsignedInteger())
    return b.create<arith::ExtUIOp>(loc, type, value);
  return b.create<arith::ExtSIOp>(loc, type, value);
}

static unsigned alignmentOf(Type element) {
  return std::max(1u, memoryType(element).getIntOrFloatBitWidth() / 8);
}

Value Code::load(Type element, Value pointer, Value index) {
  Value raw = b.create<program::LoadOp>(loc, memoryType(element), at(pointer, element, index),
                                        alignmentOf(element));
  return fromMemory(element, raw);
}

Value Code::reversed(Value vector) {
  SmallVector<int64_t> order;
  for (int64_t lane = lanes - 1; lane >= 0; --lane)
    order.push_back(lane);
  return b.create<vector::ShuffleOp>(loc, vector, vector, order);
}

Value Code::loadLanes(Type element, Value pointer, Value index, Value mask) {
  if (lanes == 1)
    return load(element, pointer, index);
  Value address = at(pointer, element, index);
  VectorType type = vectorOf(memoryType(element));
  if (!mask)
    return fromMemory(element, b.create<program::LoadOp>(loc, type, address, alignmentOf(element)));
  Value zero = b.create<arith::ConstantOp>(loc, b.getZeroAttr(type));
  return fromMemory(
      element, b.create<program::MaskedLoadOp>(loc, address, mask, zero, alignmentOf(element)));
}

Value Code::gather(Type element, Value pointer, Value indices, Value mask) {
  VectorType type = vectorOf(memoryType(element));
  if (!mask)
    mask = b.create<arith::ConstantOp>(
        loc, DenseElementsAttr::get(vectorOf(b.getI1Type()), b.getBoolAttr(true)));
  Value zero = b.create<arith::ConstantOp>(loc, b.getZeroAttr(type));
  return fromMemory(element, b.create<program::GatherOp>(loc, pointer, indices, mask, zero,
                                                         alignmentOf(element)));
}

void Code::store(Type element, Value value, Value pointer, Value index) {
  b.create<program::StoreOp>(loc, toMemory(element, value), at(pointer, element, index),
                             alignmentOf(element));
}

void Code::storeLanes(Type element, Value value, Value pointer, Value index, Value mask) {
  if (lanes == 1)
    return store(element, value, pointer, index);
  value = toMemory(element, spread(value));
  Value address = at(pointer, element, index);
  if (mask)
    b.create<program::MaskedStoreOp>(loc, value, address, mask, alignmentOf(element));
  else
    b.create<program::StoreOp>(loc, value, address, alignmentOf(element));
}

void Code::scatter(Type element, Value value, Value pointer, Value indices, Value mask) {
  if (!mask)
    mask = b.create<arith::ConstantOp>(
        loc, DenseElementsAttr::get(vectorOf(b.getI1Type()), b.getBoolAttr(true)));
  b.create<program::ScatterOp>(loc, toMemory(element, spread(value)), pointer, indices, mask,
                               alignmentOf(element));
}

void Code::prefetch(Value pointer, Type element, Value index) {
  b.create<program::PrefetchOp>(loc, at(pointer, element, index));
}

} // namespace heddle::program
