// Elements: asking, remembering, reading and writing. What each op means is in Definitions*.cpp.

#include "compiler/lower/elements/Elements.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

/// Equal constants are one index, whichever op made them.
static std::pair<bool, uintptr_t> identity(Value value) {
  if (!value)
    return {false, 0};
  if (auto number = Code::constant(value))
    return {true, static_cast<uintptr_t>(*number)};
  return {false, reinterpret_cast<uintptr_t>(value.getAsOpaquePointer())};
}

bool Index::operator<(const Index &other) const {
  return std::make_tuple(identity(base), step, identity(free)) <
         std::make_tuple(identity(other.base), other.step, identity(other.free));
}

Elements::Elements(KernelBuilder &kernel, Block *group) : kernel(kernel), group(group) {
  memo.emplace_back();
}

Value Elements::at(Value tensor, ArrayRef<Index> place) {
  std::pair<void *, std::vector<Index>> key{tensor.getAsOpaquePointer(), place.vec()};
  for (auto &scope : llvm::reverse(memo))
    if (auto found = scope.find(key); found != scope.end())
      return found->second;
  Value value;
  Operation *op = tensor.getDefiningOp();
  if (auto source = sources.find(tensor); source != sources.end()) {
    // A copy: the source may bind more while it runs.
    Source read = source->second;
    value = read(place);
  } else if (op && isa<graph::ConstantOp>(op)) {
    value = constantAt(tensor, place);
  } else if (op && op->getBlock() == group) {
    value = compute(op, tensor, place);
  } else {
    value = read(graph::storageOf(tensor), kernel.pointer(tensor), sizesOf(tensor), place);
  }
  memo.back()[key] = value;
  return value;
}

Value Elements::compute(Operation *op, Value tensor, ArrayRef<Index> place) {
  if (Value kept = keptFloat(op, place))
    return kept;
  if (Value integer = quantised(op, place))
    return integer;
  if (op->hasTrait<graph::Elementwise>() && !isa<graph::LookupOp>(op)) {
    Values operands;
    bool anyVector = false;
    for (Value operand : op->getOperands()) {
      operands.push_back(at(operand, place));
      anyVector |= Code::isVector(operands.back());
    }
    if (anyVector)
      for (Value &operand : operands)
        operand = code().spread(operand);
    Value result = emitElementwise(code(), op, operands);
    ignoreZeroSign(op, result);
    return result;
  }
  return defineElement(*this, op, tensor, place);
}

/// A constant of equal elements is a number in the code; others are read.
Value Elements::constantAt(Value tensor, ArrayRef<Index> place) {
  auto value = tensor.getDefiningOp<graph::ConstantOp>().getValue();
  Type element = graph::storageOf(tensor);
  auto dense = dyn_cast<DenseElementsAttr>(graph::codesOf(value));
  if (dense && dense.isSplat()) {
    Type compute = program::computeType(element);
    if (isa<FloatType>(element))
      return code().b.create<arith::ConstantOp>(
          code().loc, FloatAttr::get(compute, dense.getSplatValue<APFloat>()));
    return code().b.create<arith::ConstantOp>(
        code().loc, IntegerAttr::get(compute, dense.getSplatValue<APInt>()));
  }
  return read(element, kernel.pointer(tensor), sizesOf(tensor), place);
}

Values Elements::sizesOf(Value tensor) {
  Values sizes;
  for (const Dim &dim : graph::dimsOf(tensor))
    sizes.push_back(kernel.dim(dim));
  return sizes;
}

Index Elements::shift(const Index &index, Value offset) {
  if (index.free)
    return {index.base, 0,
            code().b.create<arith::AddIOp>(code().loc, index.free, code().spread(offset)),
            index.isRising};
  return {code().add(index.base, offset), index.step, {}};
}

Index Elements::scale(const Index &index, int64_t factor) {
  if (factor == 1)
    return index;
  if (index.free)
    return {index.base, 0,
            code().b.create<arith::MulIOp>(code().loc, index.free,
                                           code().spread(code().number(factor)))};
  return {code().mul(index.base, code().number(factor)), index.step * factor, {}};
}

Value Elements::lanesOf(const Index &index) {
  if (index.free)
    return index.free;
  if (index.step == 0 || code().lanes == 1)
    return index.base;
  Value steps = code().laneNumbers();
  if (index.step != 1)
    steps = code().b.createOrFold<arith::MulIOp>(code().loc, steps,
                                                 code().spread(code().number(index.step)));
  return code().b.create<arith::AddIOp>(code().loc, code().spread(index.base), steps);
}

Index Elements::fromLanes(Value value) {
  Type i64 = code().b.getI64Type();
  if (getElementTypeOrSelf(value.getType()) != i64) {
    Type wide = Code::isVector(value) ? Type(code().vectorOf(i64)) : i64;
    value = code().b.create<arith::ExtSIOp>(code().loc, wide, value);
  }
  if (Code::isVector(value))
    return {code().number(0), 0, value};
  return uniform(value);
}

Index Elements::linear(ArrayRef<Value> sizes, ArrayRef<Index> place) {
  Index total = uniform(code().number(0));
  Value stride = code().number(1);
  for (int64_t i = (int64_t)place.size() - 1; i >= 0; --i) {
    const Index &index = place[i];
    auto knownStride = Code::constant(stride);
    if (index.isUniform()) {
      total = shift(total, code().mul(index.base, stride));
    } else if (!index.free && knownStride && !total.free) {
      total.base = code().add(total.base, code().mul(index.base, stride));
      total.step += index.step * *knownStride;
    } else {
      Value part = code().b.createOrFold<arith::MulIOp>(code().loc, code().spread(lanesOf(index)),
                                                        code().spread(stride));
      total = {
          total.base, 0,
          code().b.createOrFold<arith::AddIOp>(code().loc, part, code().spread(lanesOf(total)))};
    }
    stride = code().mul(stride, sizes[i]);
  }
  return total;
}

/// Every second, third or fourth element: whole vectors are loaded, and lanes picked from each. No
/// byte is read after the last lane's.
static Value readStrided(Code &code, Type element, Value pointer, const Index &where) {
  int64_t step = std::abs(where.step), lanes = code.lanes;
  bool isReversed = where.step < 0;
  Value first = isReversed ? code.sub(where.base, code.number(step * (lanes - 1))) : where.base;
  Value picked;
  for (int64_t k = 0; k < step; ++k) {
    Value mask = k + 1 == step ? code.maskOf(code.number(lanes - step + 1)) : Value();
    Value loaded = code.loadLanes(element, pointer, code.add(first, code.number(k * lanes)), mask);
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      int64_t place = step * (isReversed ? lanes - 1 - lane : lane);
      order.push_back(place / lanes == k ? lanes + place % lanes : lane);
    }
    picked = code.b.create<vector::ShuffleOp>(code.loc, picked ? picked : loaded, loaded, order);
  }
  return picked;
}

/// Elements of a row whose places rise: one vector is loaded from the first lane's on, and lanes
/// picked from it; gathered where one of them lies after it.
static Value readRising(Elements &e, Type element, Value pointer, ArrayRef<Value> sizes,
                        ArrayRef<Index> place, Value indices) {
  Code &code = e.code();
  OpBuilder &b = code.b;
  Location loc = code.loc;
  Type words = code.vectorOf(b.getI32Type());
  Value lanes = place.back().free;
  Value first = b.create<vector::ExtractOp>(loc, lanes, ArrayRef<int64_t>{0});
  // Lanes that were extended from 32 bits are compared as such.
  auto extended = lanes.getDefiningOp<arith::ExtSIOp>();
  if (extended && extended.getIn().getType() == words)
    lanes = extended.getIn();
  Value origin = b.create<vector::ExtractOp>(loc, lanes, ArrayRef<int64_t>{0});
  Value offsets = b.create<arith::SubIOp>(loc, lanes, code.spread(origin));
  Value length = code.integerOf(getElementTypeOrSelf(offsets.getType()), code.lanes);
  Value isWithin =
      b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, offsets, code.spread(length));
  if (e.mask)
    isWithin = b.create<arith::OrIOp>(
        loc, isWithin,
        b.create<arith::XOrIOp>(loc, e.mask, code.spread(code.integerOf(b.getI1Type(), 1))));
  Value areWithin = b.create<vector::ReductionOp>(loc, vector::CombiningKind::AND, isWithin);
  Type compute = program::computeType(element);
  auto pick = [&]() -> Values {
    Indices start(place);
    start.back() = e.uniform(first);
    Value rest = code.min(code.sub(sizes.back(), first), code.number(code.lanes));
    Value whole = code.loadLanes(element, pointer, e.linear(sizes, start).base, code.maskOf(rest));
    Type bits = code.vectorOf(b.getIntegerType(compute.getIntOrFloatBitWidth()));
    bool isWide = bits == words;
    whole = b.createOrFold<arith::BitcastOp>(loc, bits, whole);
    if (!isWide)
      whole = b.create<arith::ExtUIOp>(loc, words, whole);
    Value order =
        offsets.getType() == words ? offsets : b.create<arith::TruncIOp>(loc, words, offsets);
    whole = b.create<program::PermuteOp>(loc, whole, order);
    if (!isWide)
      whole = b.create<arith::TruncIOp>(loc, bits, whole);
    return {b.createOrFold<arith::BitcastOp>(loc, code.vectorOf(compute), whole)};
  };
  return code.choose(areWithin, code.vectorOf(compute), pick, [&]() -> Values {
    return {code.gather(element, pointer, indices, e.mask)};
  })[0];
}

Value Elements::read(Type element, Value pointer, ArrayRef<Value> sizes, ArrayRef<Index> place) {
  Index where = linear(sizes, place);
  if (where.isUniform() || code().lanes == 1)
    return code().load(element, pointer, where.free ? where.free : where.base);
  if (!where.free && where.step == 1)
    return code().loadLanes(element, pointer, where.base, mask);
  if (!where.free && where.step == -1) {
    Value first = code().sub(where.base, code().number(code().lanes - 1));
    return code().reversed(
        code().loadLanes(element, pointer, first, mask ? code().reversed(mask) : mask));
  }
  constexpr int64_t mostLoads = 4; // as many cost less than a gather
  int64_t loads = std::abs(where.step);
  if (!where.free && !mask && loads <= mostLoads && loads <= code().lanes)
    return readStrided(code(), element, pointer, where);
  bool isPicked = kernel.machine.permutesWords && code().lanes >= 8 &&
                  code().lanes <= kernel.machine.lanes &&
                  program::computeType(element).getIntOrFloatBitWidth() <= 32;
  if (isPicked && place.back().isRising &&
      llvm::all_of(place.drop_back(), [](const Index &index) { return index.isUniform(); }))
    return readRising(*this, element, pointer, sizes, place, lanesOf(where));
  return code().gather(element, pointer, lanesOf(where), mask);
}

void Elements::store(Value tensor, Value value, ArrayRef<Index> place) {
  Type element = graph::storageOf(tensor);
  Value pointer = kernel.pointer(tensor), whole = tensor;
  Indices inWhole(place);
  while (const mechanism::Placement *placement = kernel.placementOf(whole)) {
    Index &index = inWhole[placement->axis];
    index = shift(index, kernel.dim(placement->offset));
    whole = placement->whole;
  }
  Index where = linear(sizesOf(whole), inWhole);
  if (where.isUniform() && Code::isVector(value)) // along a dimension of one element
    value = code().b.create<vector::ExtractOp>(code().loc, value, ArrayRef<int64_t>{0});
  if (where.isUniform() || code().lanes == 1)
    return code().store(element, value, pointer, where.base);
  if (!where.free && where.step == 1)
    return code().storeLanes(element, value, pointer, where.base, mask);
  code().scatter(element, value, pointer, lanesOf(where), mask);
}

} // namespace heddle::lower
