// Reduction: elements of ops that reduce whole dimensions or products of rows and columns, as plain
// loops. Schedules replace these for the shapes that matter; these are right for all others.

#include "compiler/estimate/Thresholds.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

Type accumulatorType(Type element) {
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(element.getContext());
  return program::computeType(element);
}

static Type likeLanes(Elements &e, Value value, Type element) {
  return Code::isVector(value) ? Type(e.code().vectorOf(element)) : element;
}

Value widen(Elements &e, Value value, Type accumulator, bool isUnsigned) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == accumulator)
    return value;
  Type type = likeLanes(e, value, accumulator);
  if (isa<FloatType>(from))
    return e.code().b.create<arith::ExtFOp>(e.code().loc, type, value);
  if (isUnsigned)
    return e.code().b.create<arith::ExtUIOp>(e.code().loc, type, value);
  return e.code().b.create<arith::ExtSIOp>(e.code().loc, type, value);
}

Value narrow(Elements &e, Value value, Type element) {
  Type target = program::computeType(element);
  if (getElementTypeOrSelf(value.getType()) == target)
    return value;
  return e.code().b.create<arith::TruncFOp>(e.code().loc, likeLanes(e, value, target), value);
}

/// Lanes that walk down the rows of a matrix touch another page of memory with each step, which no
/// CPU foresees: where `x`, or what it is computed of element by element, is in memory, fetches
/// what the lanes want some steps later along an axis.
static void fetchStepsAhead(Elements &e, Value x, ArrayRef<Index> place, int64_t axis) {
  constexpr int64_t kLine = 64;
  Code &code = e.code();
  if (code.lanes <= e.kernel.machine.lanes)
    return;
  Operation *made = x.getDefiningOp();
  if (made && made->getBlock() == e.block()) {
    if (made->hasTrait<graph::Elementwise>())
      for (Value operand : made->getOperands())
        fetchStepsAhead(e, operand, place, axis);
    return;
  }
  int64_t bits = graph::storageOf(x).getIntOrFloatBitWidth();
  if (graph::rankOf(x) != (int64_t)place.size() || bits < 8 ||
      (made && isa<graph::ConstantOp>(made)))
    return;
  Indices later(place);
  later[axis] = e.shift(later[axis], code.number(estimate::thresholdAt(e.block()->getParentOp(),
                                                                       estimate::kFetchColumns)));
  Index where = e.linear(e.sizesOf(x), later);
  if (where.free || where.step != 1)
    return;
  int64_t elements = kLine * 8 / bits;
  for (int64_t at = 0; at < code.lanes; at += elements)
    code.prefetch(e.kernel.pointer(x), graph::storageOf(x), code.add(where.base, code.number(at)));
}

static Value reduceElement(Elements &e, Operation *op, ArrayRef<int64_t> axes, bool keepDims,
                           ArrayRef<Index> place) {
  Code &code = e.code();
  Value x = op->getOperand(0);
  Type element = graph::storageOf(x), accumulator = accumulatorType(element);
  Values sizes = e.sizesOf(x);
  Indices source;
  size_t next = 0;
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < (int64_t)sizes.size(); ++i) {
    bool isReduced = llvm::is_contained(axes, i);
    if (isReduced)
      order.push_back(i);
    source.push_back(isReduced ? e.uniform(code.number(0)) : place[next]);
    if (!isReduced || keepDims)
      ++next;
  }
  Value start = neutral(code, op, accumulator);
  bool vectorLanes =
      llvm::any_of(place, [](const Index &i) { return !i.isUniform(); }) || code.lanes > 1;
  if (vectorLanes)
    start = code.spread(start);
  // Each dimension sums on its own and is then added to the one around it: partial sums stay small,
  // which keeps f32 sums of large images exact to a few units.
  std::function<Value(size_t)> nest = [&](size_t depth) -> Value {
    if (depth == order.size()) {
      Value value = widen(e, e.at(x, source), accumulator);
      return vectorLanes ? code.spread(value) : value;
    }
    return foldScoped(e, code.number(0), sizes[order[depth]], start,
                      [&](Value i, ValueRange carried) {
                        source[order[depth]] = e.uniform(i);
                        if (depth + 1 == order.size())
                          fetchStepsAhead(e, x, source, order[depth]);
                        return Values{combine(code, op, carried[0], nest(depth + 1))};
                      })[0];
  };
  return narrow(e, nest(0), element);
}

/// Lanes that are rows of memory take their elements from many cache lines, which no CPU foresees:
/// in step i of a walk along these rows, fetches a part of those of the next lanes but one.
static void fetchRowsAhead(Elements &e, Value x, ArrayRef<Index> rows, Value i) {
  Code &code = e.code();
  Operation *made = x.getDefiningOp();
  if (made && made->getBlock() == e.block())
    return;
  Index where = e.linear(e.sizesOf(x), rows);
  if (where.free || where.step <= 1 || code.lanes == 1)
    return;
  Value ahead = code.add(where.base, code.number(2 * where.step * code.lanes));
  code.prefetch(e.kernel.pointer(x), graph::storageOf(x),
                code.add(ahead, code.mul(i, code.number(code.lanes))));
}

/// The best value and its place so far walk along the axis.
static Value argElement(Elements &e, Operation *op, int64_t axis, bool keepDims, bool last,
                        bool wantLargest, ArrayRef<Index> place) {
  Code &code = e.code();
  Value x = op->getOperand(0);
  Type element = graph::storageOf(x);
  Indices source;
  size_t next = 0;
  for (int64_t i = 0; i < graph::rankOf(x); ++i) {
    source.push_back(i == axis ? e.uniform(code.number(0)) : place[next]);
    if (i != axis || keepDims)
      ++next;
  }
  // An axis without elements has none to begin with, either.
  Value isSome = code.less(code.number(0), e.sizesOf(x)[axis]);
  Value first = guarded(
      e, isSome, element, [&] { return e.at(x, source); },
      [&] { return code.constantOf(program::computeType(element), 0); });
  // Indices are as wide as the values if that is enough: as many registers, and one mask for both.
  auto extent = graph::dimsOf(x)[axis].constant();
  Type i64 = code.b.getI64Type(), number = code.b.getI32Type();
  if (element.getIntOrFloatBitWidth() > 32 || !extent || *extent > INT32_MAX)
    number = i64;
  auto numbered = [&](Value i) {
    return code.spread(number == i64 ? i
                                     : code.b.createOrFold<arith::TruncIOp>(code.loc, number, i));
  };
  Values start{code.spread(first), numbered(code.number(0))};
  Indices rows = source;
  Value best =
      foldScoped(e, code.number(1), e.sizesOf(x)[axis], start, [&](Value i, ValueRange best) {
        fetchRowsAhead(e, x, rows, i);
        source[axis] = e.uniform(i);
        fetchStepsAhead(e, x, source, axis);
        Value value = code.spread(e.at(x, source));
        Value isBetter = last ? isBefore(code, element, wantLargest, best[0], value)
                              : isBefore(code, element, wantLargest, value, best[0]);
        if (last) { // what is as good comes later
          Value one = code.spread(code.integerOf(code.b.getI1Type(), 1));
          isBetter = code.b.create<arith::XOrIOp>(code.loc, isBetter, one);
        }
        return Values{code.b.create<arith::SelectOp>(code.loc, isBetter, value, best[0]),
                      code.b.create<arith::SelectOp>(code.loc, isBetter, numbered(i), best[1])};
      })[1];
  return widen(e, best, i64);
}

static Value likeLanes(Code &code, Value value, Value lanes) {
  return Code::isVector(lanes) ? code.spread(value) : value;
}

static Value asBits(Code &code, Value x) {
  Type word = code.b.getI32Type();
  return code.b.create<arith::BitcastOp>(code.loc,
                                         Code::isVector(x) ? Type(code.vectorOf(word)) : word, x);
}

Value magnitudeBits(Code &code, Value x) {
  Value bits = asBits(code, x);
  Value mask = likeLanes(code, code.integerOf(code.b.getI32Type(), INT32_MAX), x);
  return code.b.create<arith::AndIOp>(code.loc, bits, mask);
}

BlockRounding roundingOf(Code &code, Value largestBits) {
  OpBuilder &b = code.b;
  Type word = b.getI32Type(), f32 = b.getF32Type();
  auto number = [&](double value) {
    return likeLanes(code, code.constantOf(f32, value), largestBits);
  };
  auto bits = [&](int64_t value) {
    return likeLanes(code, code.integerOf(word, value), largestBits);
  };
  constexpr int64_t kInfinity = 0x7f800000;
  Value isFinite =
      b.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ult, largestBits, bits(kInfinity));
  Value none = number(0), most = number(0x1p126);
  Value largest = b.create<arith::BitcastOp>(code.loc, none.getType(), largestBits);
  Value scale = b.create<arith::DivFOp>(code.loc, number(127), largest);
  Value isLess = b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OLT, scale, most);
  scale = b.create<arith::SelectOp>(code.loc, isLess, scale, most);
  Value step = b.create<arith::DivFOp>(code.loc, number(1), scale);
  step = b.create<arith::SelectOp>(code.loc, isFinite, step, number(NAN));
  return {b.create<arith::SelectOp>(code.loc, isFinite, bits(-1), bits(0)), scale, step};
}

Value roundedBy(Code &code, const BlockRounding &rounding, Value x) {
  Value kept =
      code.b.create<arith::AndIOp>(code.loc, asBits(code, x), likeLanes(code, rounding.kept, x));
  kept = code.b.create<arith::BitcastOp>(code.loc, x.getType(), kept);
  Value place = code.b.create<arith::MulFOp>(code.loc, kept, likeLanes(code, rounding.scale, x));
  return code.b.create<math::RoundEvenOp>(code.loc, place);
}

static Value matmulElement(Elements &e, graph::MatmulOp op, ArrayRef<Index> place) {
  Code &code = e.code();
  DimVector a = graph::dimsOf(op.getA()), b = graph::dimsOf(op.getB()),
            c = graph::dimsOf(op.getResult());
  size_t rank = a.size();
  Indices left, right;
  for (size_t i = 0; i + 2 < rank; ++i) {
    left.push_back(broadcastIndex(e, place[i], a[i], c[i]));
    right.push_back(broadcastIndex(e, place[i], b[i], c[i]));
  }
  Index zero = e.uniform(code.number(0));
  left.append({place[rank - 2], zero});
  right.append({zero, place[rank - 1]});
  Type element = graph::storageOf(op.getResult()), accumulator = accumulatorType(element);
  Value start = code.spread(code.constantOf(accumulator, 0));
  auto leftAt = [&](Value k) {
    left[rank - 1] = e.uniform(k);
    return code.spread(widen(e, e.at(op.getA(), left), accumulator,
                             graph::storageOf(op.getA()).isUnsignedInteger()));
  };
  auto add = [&](Value k, Value x, Value sum) -> Value {
    right[rank - 2] = e.uniform(k);
    fetchStepsAhead(e, op.getB(), right, rank - 2);
    Value y = code.spread(widen(e, e.at(op.getB(), right), accumulator,
                                graph::storageOf(op.getB()).isUnsignedInteger()));
    if (isa<FloatType>(accumulator))
      return code.b.create<math::FmaOp>(code.loc, x, y, sum);
    return code.b.create<arith::AddIOp>(code.loc, sum,
                                        code.b.create<arith::MulIOp>(code.loc, x, y));
  };
  Value length = e.sizesOf(op.getA())[rank - 1], none = code.number(0);
  auto sum = [&](Value low, Value high, Value in, llvm::function_ref<Value(Value)> factorAt) {
    return foldScoped(e, low, high, in, [&](Value k, ValueRange carried) {
      return Values{add(k, factorAt(k), carried[0])};
    })[0];
  };
  auto block = static_cast<int64_t>(op.getBlock());
  if (block == 0)
    return narrow(e, sum(none, length, start, leftAt), element);
  Value blocks = code.div(length, code.number(block));
  return foldScoped(e, none, blocks, start, [&](Value number, ValueRange carried) {
    Value low = code.mul(number, code.number(block)), high = code.add(low, code.number(block));
    Value bits = code.spread(code.integerOf(code.b.getI32Type(), 0));
    bits = foldScoped(e, low, high, bits, [&](Value k, ValueRange in) {
      return Values{code.b.create<arith::MaxUIOp>(code.loc, in[0], magnitudeBits(code, leftAt(k)))};
    })[0];
    BlockRounding rounding = roundingOf(code, bits);
    return Values{sum(low, high, carried[0], [&](Value k) -> Value {
      Value place = roundedBy(code, rounding, leftAt(k));
      return code.b.create<arith::MulFOp>(code.loc, place, rounding.step);
    })};
  })[0];
}

Value defineReduction(Elements &e, Operation *op, ArrayRef<Index> place) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<graph::ReduceSumOp, graph::ReduceProdOp, graph::ReduceMaxOp, graph::ReduceMinOp>(
          [&](auto op) { return reduceElement(e, op, op.getAxes(), op.getKeepDims(), place); })
      .Case([&](graph::ArgMaxOp op) {
        return argElement(e, op, op.getAxis(), op.getKeepDims(), op.getLast(), true, place);
      })
      .Case([&](graph::ArgMinOp op) {
        return argElement(e, op, op.getAxis(), op.getKeepDims(), op.getLast(), false, place);
      })
      .Case([&](graph::MatmulOp op) { return matmulElement(e, op, place); })
      .Default([](Operation *) { return Value(); });
}

Value defineElement(Elements &e, Operation *op, Value tensor, ArrayRef<Index> place) {
  for (auto define : {defineMovement, defineIndexed, defineReduction, defineWindow, defineResize})
    if (Value value = define(e, op, place))
      return value;
  llvm::report_fatal_error(Twine("no element definition for ") + op->getName().getStringRef());
}

} // namespace heddle::lower
