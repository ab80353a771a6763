// Movement: elements of ops that move without computing; each is a map of indices.

#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

Values foldScoped(Elements &elements, Value low, Value high, ValueRange initial, Code::Step body) {
  return elements.code().fold(low, high, 1, initial, [&](Value i, ValueRange carried) {
    Elements::Scope scope(elements);
    return body(i, carried);
  });
}

Value guarded(Elements &elements, Value condition, Type element, llvm::function_ref<Value()> value,
              llvm::function_ref<Value()> otherwise) {
  Code &code = elements.code();
  if (Code::isVector(condition)) {
    Value yes, no;
    {
      Elements::Scope scope(elements);
      Value before = elements.mask;
      elements.mask = code.both(before, condition);
      yes = code.spread(value());
      elements.mask = before;
    }
    no = code.spread(otherwise());
    return code.b.create<arith::SelectOp>(code.loc, condition, yes, no);
  }
  if (auto known = Code::constant(condition))
    return *known ? value() : otherwise();
  Type type = program::computeType(element);
  if (code.lanes > 1)
    type = code.vectorOf(type);
  auto branch = [&](llvm::function_ref<Value()> make) {
    Elements::Scope scope(elements);
    return Values{code.spread(make())};
  };
  return code.choose(
      condition, type, [&] { return branch(value); }, [&] { return branch(otherwise); })[0];
}

Value inside(Elements &elements, const Index &index, Value size) {
  Code &code = elements.code();
  Value place = elements.lanesOf(index);
  Value limit = Code::isVector(place) ? code.spread(size) : size;
  // One unsigned comparison covers both bounds.
  return code.b.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ult, place, limit);
}

Indices indicesOf(Elements &e, ArrayRef<Dim> dims, Value position) {
  Code &code = e.code();
  Indices place(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    Value extent = e.kernel.dim(dims[i]);
    place[i] = e.uniform(i == 0 ? position : code.rem(position, extent));
    if (i > 0)
      position = code.div(position, extent);
  }
  return place;
}

Index broadcastIndex(Elements &e, const Index &index, const Dim &from, const Dim &to) {
  Code &code = e.code();
  if (from.isConstant(1))
    return e.uniform(code.number(0));
  if (from == to || from.constant())
    return index;
  Value isOne = code.b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, e.kernel.dim(from),
                                             code.number(1));
  Value lanes = e.lanesOf(index), zero = code.number(0);
  if (Code::isVector(lanes))
    zero = code.spread(zero);
  return e.fromLanes(code.b.create<arith::SelectOp>(code.loc, isOne, zero, lanes));
}

Indices broadcastPlace(Elements &e, Operation *op, ArrayRef<Index> place) {
  DimVector from = graph::dimsOf(op->getOperand(0)), to = graph::dimsOf(op->getResult(0));
  size_t extra = to.size() - from.size();
  Indices source;
  for (size_t i = 0; i < from.size(); ++i)
    source.push_back(broadcastIndex(e, place[i + extra], from[i], to[i + extra]));
  return source;
}

/// Whether the number, counted in a loop or computed, is a multiple of another one in any case.
static bool isMultipleOf(Value value, int64_t of, int depth = 8) {
  if (auto known = Code::constant(value))
    return *known % of == 0;
  if (depth == 0)
    return false;
  auto isMultiple = [&](Value operand) { return isMultipleOf(operand, of, depth - 1); };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast_if_present<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && argument == loop.getInductionVar() && isMultiple(loop.getLowerBound()) &&
           isMultiple(loop.getStep());
  }
  Operation *op = value.getDefiningOp();
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return llvm::all_of(op->getOperands(), isMultiple);
  return isa<arith::MulIOp>(op) && llvm::any_of(op->getOperands(), isMultiple);
}

/// Whether all lanes of the index are in one line of such a size, where each line begins with a
/// vector.
static bool areInLine(Elements &e, const Index &index, const Dim &size) {
  int64_t lanes = e.code().lanes;
  return index.step == 1 && !index.free && size.mod(Dim(lanes)).isConstant(0) &&
         isMultipleOf(index.base, lanes);
}

/// Dimensions of both shapes are matched in runs of equal element counts; a run of one against one
/// keeps its index.
Indices reshapedPlace(Elements &e, ArrayRef<Dim> from, ArrayRef<Dim> to, ArrayRef<Index> place) {
  Code &code = e.code();
  Indices source(from.size(), e.uniform(code.number(0)));
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    size_t iEnd = i, jEnd = j;
    Dim left(1), right(1);
    if (i < from.size() && from[i].isConstant(1)) {
      ++i;
      continue;
    }
    if (j < to.size() && to[j].isConstant(1)) {
      ++j;
      continue;
    }
    if (i >= from.size() || j >= to.size())
      break;
    left = from[iEnd++];
    right = to[jEnd++];
    while (left != right && (iEnd < from.size() || jEnd < to.size())) {
      auto l = left.constant(), r = right.constant();
      bool growLeft = jEnd >= to.size() || (iEnd < from.size() && l && r && *l < *r) ||
                      (iEnd < from.size() && left.str().size() < right.str().size());
      if (growLeft)
        left = left * from[iEnd++];
      else
        right = right * to[jEnd++];
    }
    if (iEnd - i == 1 && jEnd - j == 1) {
      source[i] = place[j];
    } else {
      Values sizes;
      for (size_t k = j; k < jEnd; ++k)
        sizes.push_back(e.kernel.dim(to[k]));
      Index rest = e.linear(sizes, place.slice(j, jEnd - j));
      for (size_t k = iEnd; k-- > i + 1;) {
        Value size = e.kernel.dim(from[k]);
        if (areInLine(e, rest, from[k])) {
          source[k] = {code.rem(rest.base, size), 1, {}};
          rest = e.uniform(code.div(rest.base, size));
          continue;
        }
        Value lanes = e.lanesOf(rest);
        Value divisor = Code::isVector(lanes) ? code.spread(size) : size;
        source[k] = e.fromLanes(code.b.create<arith::RemUIOp>(code.loc, lanes, divisor));
        rest = e.fromLanes(code.b.create<arith::DivUIOp>(code.loc, lanes, divisor));
      }
      source[i] = rest;
    }
    i = iEnd;
    j = jEnd;
  }
  return source;
}

static Value concatElement(Elements &e, graph::ConcatOp op, unsigned operand, Index along,
                           ArrayRef<Index> place) {
  Code &code = e.code();
  int64_t axis = op.getAxis();
  Value x = op.getXs()[operand];
  Value size = e.kernel.dim(graph::dimsOf(x)[axis]);
  auto here = [&] {
    Indices source(place);
    source[axis] = along;
    return e.at(x, source);
  };
  if (operand + 1 == op.getXs().size())
    return here();
  Value lanes = e.lanesOf(along);
  Value limit = Code::isVector(lanes) ? code.spread(size) : size;
  Value isHere =
      code.b.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ult, lanes, limit);
  return guarded(e, isHere, graph::storageOf(x), here, [&] {
    Value offset = code.sub(code.number(0), size);
    Index next = e.shift(along, offset);
    if (!Code::isVector(isHere))
      return concatElement(e, op, operand + 1, next, place);
    // Lanes that belong to this operand must not be read from the next one.
    Elements::Scope scope(e);
    Value before = e.mask;
    Value isNot = code.b.create<arith::XOrIOp>(code.loc, isHere,
                                               code.spread(code.integerOf(code.b.getI1Type(), 1)));
    e.mask = code.both(before, isNot);
    Value rest = concatElement(e, op, operand + 1, next, place);
    e.mask = before;
    return rest;
  });
}

/// The index in x that a padded index shows: clamped, mirrored or wrapped into [0, size). `isNear`:
/// no padding is as wide as x, so that one turn is enough and nothing has to be divided.
static Index padSource(Elements &e, StringRef mode, const Index &index, Value size, Value isNear) {
  Code &code = e.code();
  Value lanes = e.lanesOf(index);
  auto like = [&](Value value) { return Code::isVector(lanes) ? code.spread(value) : value; };
  auto make = [&](auto tag, auto... operands) -> Value {
    return code.b.createOrFold<std::remove_pointer_t<decltype(tag)>>(code.loc, operands...);
  };
  using namespace arith;
  Value zero = like(code.number(0)), last = like(code.sub(size, code.number(1)));
  if (mode == "edge")
    return e.fromLanes(make((MinSIOp *)0, make((MaxSIOp *)0, lanes, zero), last));
  auto modulo = [&](Value x, Value period) { // of either sign
    Value r = make((RemSIOp *)0, x, period);
    Value isNegative = code.b.create<CmpIOp>(code.loc, CmpIPredicate::slt, r, zero);
    return Value(code.b.create<SelectOp>(code.loc, isNegative, make((AddIOp *)0, r, period), r));
  };
  auto below = [&](Value x, Value y) {
    return code.b.createOrFold<CmpIOp>(code.loc, CmpIPredicate::slt, x, y);
  };
  auto pick = [&](llvm::function_ref<Value()> near, llvm::function_ref<Value()> far) -> Value {
    if (auto known = Code::constant(isNear))
      return *known ? near() : far();
    return code.choose(
        isNear, lanes.getType(), [&] { return Values{near()}; }, [&] { return Values{far()}; })[0];
  };
  if (mode == "wrap")
    return e.fromLanes(pick(
        [&] {
          Value up = make((AddIOp *)0, lanes, like(size)),
                down = make((SubIOp *)0, lanes, like(size));
          Value most = make((SelectOp *)0, below(last, lanes), down, lanes);
          return make((SelectOp *)0, below(lanes, zero), up, most);
        },
        [&] { return modulo(lanes, like(size)); }));
  // reflect: period 2 (size - 1), the second half runs back.
  Value period =
      like(code.max(code.mul(code.number(2), code.sub(size, code.number(1))), code.number(1)));
  Value r = pick([&] { return make((MaxSIOp *)0, lanes, make((SubIOp *)0, zero, lanes)); },
                 [&] { return modulo(lanes, period); });
  return e.fromLanes(make((MinSIOp *)0, r, make((SubIOp *)0, period, r)));
}

/// Whether both amounts of padding are below the size of x.
static Value isNear(Elements &e, const Dim &low, const Dim &high, Value size) {
  Code &code = e.code();
  return code.less(code.max(e.kernel.dim(low), e.kernel.dim(high)), size);
}

/// An element of a mirrored dimension that lies outside in some lane. Lanes that are all mirrored
/// at the same end lie one before the other in x.
static Value mirrored(Elements &e, graph::PadOp op, const Indices &source, size_t turned,
                      Value size, Value isNear, llvm::function_ref<Value()> otherwise) {
  Code &code = e.code();
  const Index &index = source[turned];
  if (op.getMode() != "reflect" || index.free || index.step != 1)
    return otherwise();
  Type element = graph::storageOf(op.getX());
  auto turnedAt = [&](Value end) { // the place that stays
    Indices shown(source);
    shown[turned] = {code.sub(code.mul(code.number(2), end), index.base), -1, {}};
    return e.at(op.getX(), shown);
  };
  Value low = code.number(0), high = code.sub(size, code.number(1));
  Value isBelow = code.less(code.add(index.base, code.number(code.lanes - 1)), low);
  Value isAbove = code.less(high, index.base);
  return guarded(
      e, code.both(isNear, isBelow), element, [&] { return turnedAt(low); },
      [&] {
        return guarded(
            e, code.both(isNear, isAbove), element, [&] { return turnedAt(high); }, otherwise);
      });
}

static Value padElement(Elements &e, graph::PadOp op, ArrayRef<Index> place) {
  Code &code = e.code();
  DimVector low = graph::dimsOf(op.getLow()), high = graph::dimsOf(op.getHigh());
  Values sizes = e.sizesOf(op.getX());
  Indices source;
  Value condition, ofAllLanes;
  SmallVector<size_t> turned; // along which lanes may lie outside
  for (size_t i = 0; i < place.size(); ++i) {
    Index index = e.shift(place[i], e.kernel.dim(low[i] * Dim(-1)));
    bool needsCheck = !low[i].isConstant(0) || !high[i].isConstant(0);
    bool isTurned = needsCheck && op.getMode() != "constant";
    if (isTurned && index.isUniform())
      index = padSource(e, op.getMode(), index, sizes[i], isNear(e, low[i], high[i], sizes[i]));
    else if (isTurned)
      turned.push_back(i);
    else if (needsCheck) {
      // A branch, as a mask would not hold what is read once for all lanes.
      Value &checked = index.isUniform() ? ofAllLanes : condition;
      checked = code.both(checked, inside(e, index, sizes[i]));
    }
    source.push_back(index);
  }
  Operation *made = op.getX().getDefiningOp();
  bool isComputed = made && made->getBlock() == op->getBlock();
  Type element = graph::storageOf(op.getX());
  if (!turned.empty()) { // most vectors lie inside as they are
    Value areInside;
    for (size_t i : turned)
      areInside = code.both(areInside, inside(e, source[i], sizes[i]));
    areInside = code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::AND, areInside);
    auto near = [&](size_t i) { return isNear(e, low[i], high[i], sizes[i]); };
    auto general = [&] {
      Indices shown(source);
      for (size_t i : turned)
        shown[i] = padSource(e, op.getMode(), source[i], sizes[i], near(i));
      return e.at(op.getX(), shown);
    };
    return guarded(
        e, areInside, element, [&] { return e.at(op.getX(), source); },
        [&] {
          size_t first = turned.front();
          return isComputed || turned.size() > 1
                     ? general()
                     : mirrored(e, op, source, first, sizes[first], near(first), general);
        });
  }
  auto inner = [&] { return e.at(op.getX(), source); };
  auto outer = [&] { return e.at(op.getValue(), {}); };
  auto masked = [&] { return guarded(e, condition, element, inner, outer); };
  auto ofLanes = [&] {
    if (!condition)
      return inner();
    if (!Code::isVector(condition) || isComputed)
      return masked();
    // Most vectors lie inside, and a plain load is several times as fast as one with a mask where
    // x comes from memory.
    Value areInside =
        code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::AND, condition);
    return guarded(e, areInside, element, inner, masked);
  };
  return ofAllLanes ? guarded(e, ofAllLanes, element, ofLanes, outer) : ofLanes();
}

static Value sizesElement(Elements &e, graph::SizesOp op, ArrayRef<Index> place) {
  Code &code = e.code();
  Type element = program::computeType(graph::storageOf(op.getResult()));
  DimVector values = graph::dimsOf(op.getValues());
  Value result;
  Value lanes = place.empty() ? code.number(0) : e.lanesOf(place[0]);
  for (auto [i, value] : llvm::enumerate(values)) {
    Value number = e.kernel.dim(value);
    if (element != code.b.getI64Type())
      number = code.b.create<arith::TruncIOp>(code.loc, element, number);
    if (Code::isVector(lanes))
      number = code.spread(number);
    if (!result) {
      result = number;
      continue;
    }
    Value here = Code::isVector(lanes) ? code.spread(code.number(i)) : code.number(i);
    Value isHere =
        code.b.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, lanes, here);
    result = code.b.createOrFold<arith::SelectOp>(code.loc, isHere, number, result);
  }
  return result;
}

/// An i64 lane value as an element of an integer or float type.
static Value numberAs(Elements &e, Value lanes, Type element) {
  Code &code = e.code();
  Type target = program::computeType(element);
  if (Code::isVector(lanes))
    target = code.vectorOf(target);
  if (isa<FloatType>(element))
    return code.b.create<arith::SIToFPOp>(code.loc, target, lanes);
  if (element.getIntOrFloatBitWidth() < 64)
    return code.b.create<arith::TruncIOp>(code.loc, target, lanes);
  return lanes;
}

/// ONNX Slice: starts count from the end when negative, then are clamped.
static Value dynamicSliceElement(Elements &e, graph::DynamicSliceOp op, ArrayRef<Index> place) {
  Code &code = e.code();
  Values sizes = e.sizesOf(op.getX());
  Indices source(place);
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    Indices entry{e.uniform(code.number(i))};
    Value raw = e.lanesOf(e.fromLanes(e.at(op.getStarts(), entry)));
    Value step = e.lanesOf(e.fromLanes(e.at(op.getSteps(), entry)));
    Value zero = code.number(0), size = sizes[axis];
    Value wrapped = code.b.createOrFold<arith::SelectOp>(code.loc, code.less(raw, zero),
                                                         code.add(raw, size), raw);
    Value last = code.sub(size, code.number(1));
    Value high = code.b.createOrFold<arith::SelectOp>(code.loc, code.less(step, zero), last, size);
    Value start = code.min(code.max(wrapped, zero), high);
    Value lanes = e.lanesOf(place[axis]);
    auto like = [&](Value value) { return Code::isVector(lanes) ? code.spread(value) : value; };
    Value moved = code.b.createOrFold<arith::MulIOp>(code.loc, lanes, like(step));
    source[axis] = e.fromLanes(code.b.createOrFold<arith::AddIOp>(code.loc, moved, like(start)));
  }
  return e.at(op.getX(), source);
}

static Value rangeElement(Elements &e, graph::RangeOp op, ArrayRef<Index> place) {
  Code &code = e.code();
  Type element = graph::storageOf(op.getStart());
  bool isNarrow = isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  Type wide = isNarrow ? Type(code.b.getF32Type()) : element; // rounded once, at the end
  Value count = numberAs(e, e.lanesOf(place[0]), wide);
  auto operand = [&](Value tensor) {
    Value value = e.at(tensor, {});
    if (isNarrow)
      value = widen(e, value, wide);
    return Code::isVector(count) ? code.spread(value) : value;
  };
  Value start = operand(op.getStart()), delta = operand(op.getDelta());
  if (!isa<FloatType>(element))
    return code.b.create<arith::AddIOp>(code.loc, start,
                                        code.b.create<arith::MulIOp>(code.loc, count, delta));
  Value result = code.b.create<arith::AddFOp>(code.loc, start,
                                              code.b.create<arith::MulFOp>(code.loc, count, delta));
  return isNarrow ? narrow(e, result, element) : result;
}

Value defineMovement(Elements &e, Operation *op, ArrayRef<Index> place) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<graph::BroadcastOp, graph::DynamicBroadcastOp>(
          [&](auto op) { return e.at(op->getOperand(0), broadcastPlace(e, op, place)); })
      .Case([&](graph::DynamicSliceOp op) { return dynamicSliceElement(e, op, place); })
      .Case([&](graph::RangeOp op) { return rangeElement(e, op, place); })
      .Case([&](graph::ReshapeOp op) {
        DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
        return e.at(op.getX(), reshapedPlace(e, from, to, place));
      })
      .Case([&](graph::TransposeOp op) {
        Indices source(place.size());
        for (auto [i, axis] : llvm::enumerate(op.getPermutation()))
          source[axis] = place[i];
        return e.at(op.getX(), source);
      })
      .Case([&](graph::SliceOp op) {
        Indices source;
        for (auto [index, start, step] :
             llvm::zip(place, graph::dimsOf(op.getStarts()), op.getSteps()))
          source.push_back(e.shift(e.scale(index, step), e.kernel.dim(start)));
        return e.at(op.getX(), source);
      })
      .Case([&](graph::ConcatOp op) { return concatElement(e, op, 0, place[op.getAxis()], place); })
      .Case([&](graph::PadOp op) { return padElement(e, op, place); })
      .Case([&](graph::SizesOp op) { return sizesElement(e, op, place); })
      .Case([&](graph::IotaOp op) {
        return numberAs(e, e.lanesOf(place[op.getAxis()]), graph::storageOf(op.getResult()));
      })
      .Default([](Operation *) { return Value(); });
}

} // namespace heddle::lower
