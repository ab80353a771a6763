// Bindings: of each op whose result has sizes that values tell, these sizes.

#include "compiler/lower/host/Bindings.h"

#include "compiler/graph/edit/Words.h"

using namespace mlir;

namespace heddle::lower {

void Bindings::bindGroup(Operation *group) {
  for (Operation &op : group->getRegion(0).front()) {
    if (auto broadcast = dyn_cast<graph::DynamicBroadcastOp>(op))
      bind(broadcast);
    else if (auto slice = dyn_cast<graph::DynamicSliceOp>(op))
      bind(slice);
    else if (auto range = dyn_cast<graph::RangeOp>(op))
      bind(range);
  }
}

void Bindings::bind(graph::BindSizesOp op) {
  if (storage.boundByValues.contains(op))
    return;
  std::string message = graph::nodeText(op.getLoc()) + ": " + op.getMessage().str();
  for (auto [i, symbol] : llvm::enumerate(graph::dimsOf(op.getSymbols()))) {
    Value size = memory.readInteger(op.getX(), i);
    Value told = op.getTold();
    code.when(code.less(size, code.number(0)), [&] {
      host.fail(message, told ? memory.readInteger(told, 0) : size,
                told ? memory.readInteger(told, 1) : size);
    });
    sizes.symbols[*symbol.symbolName()] = code.max(size, code.number(0));
  }
}

void Bindings::bind(graph::DynamicReshapeOp op) {
  DimVector from = graph::dimsOf(op.getX());
  int64_t rank = graph::rankOf(op.getResult());
  Value total = sizes.dim(graph::elementCount(from)), product = code.number(1);
  Value unknown = code.number(0), lowest = code.number(0);
  SmallVector<Value> made;
  Value overflow;
  SizeArithmetic arithmetic{code, &overflow};
  for (int64_t i = 0; i < rank; ++i) {
    Value size = memory.readInteger(op.getShape(), i);
    if (!op.getAllowZero() && i < (int64_t)from.size()) {
      Value isZero =
          builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, size, code.number(0));
      size = builder.createOrFold<arith::SelectOp>(code.loc, isZero, sizes.dim(from[i]), size);
    }
    Value isFree = code.less(size, code.number(0));
    unknown = code.add(
        unknown, builder.createOrFold<arith::ExtUIOp>(code.loc, builder.getI64Type(), isFree));
    lowest = code.min(lowest, size);
    product = arithmetic.mul(
        product, builder.createOrFold<arith::SelectOp>(code.loc, isFree, code.number(1), size));
    made.push_back(size);
  }
  Value divisor = code.max(product, code.number(1)), filled = code.number(1);
  for (Value &size : made) {
    Value isFree = code.less(size, code.number(0));
    size = builder.createOrFold<arith::SelectOp>(code.loc, isFree, code.div(total, divisor), size);
    filled = arithmetic.mul(filled, size);
  }
  host.failIf(overflow, "cannot reshape to sizes whose product is larger than any memory");
  code.when(code.less(lowest, code.number(-1)), [&] {
    host.fail(host.node + "a size of %lld in the shape, but only -1 may stand for what is left",
              lowest, lowest);
  });
  code.when(code.less(code.number(1), unknown), [&] {
    host.fail(host.node + "%lld sizes of the shape are -1, but only one may be", unknown, unknown);
  });
  Value isWrong = builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, filled, total);
  code.when(isWrong, [&] {
    host.fail(host.node + "cannot reshape %lld elements to a shape of %lld", total, filled);
  });
  sizes.bindDims(op.getResult(), made);
}

void Bindings::bind(graph::DynamicBroadcastOp op) {
  DimVector from = graph::dimsOf(op.getX());
  int64_t rank = graph::rankOf(op.getResult()),
          entries = graph::dimsOf(op.getShape())[0].constant().value_or(rank);
  SmallVector<Value> made;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t inShape = i - (rank - entries), inSource = i - (rank - (int64_t)from.size());
    Value asked = inShape >= 0 ? memory.readInteger(op.getShape(), inShape) : code.number(1);
    Value own = inSource >= 0 ? sizes.dim(from[inSource]) : code.number(1);
    Value isOne =
        builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, own, code.number(1));
    Value size = builder.createOrFold<arith::SelectOp>(code.loc, isOne, asked, own);
    Value same = builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, asked, size);
    Value one =
        builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, asked, code.number(1));
    Value isFineHere = builder.create<arith::OrIOp>(code.loc, same, one);
    isFineHere = code.both(isFineHere, code.less(code.number(-1), asked));
    code.choose(
        isFineHere, TypeRange(), [&] { return Values(); },
        [&] {
          host.fail(host.node + "a size of %lld cannot be expanded to %lld", own, asked);
          return Values();
        });
    made.push_back(size);
  }
  sizes.bindDims(op.getResult(), made);
}

void Bindings::bind(graph::DynamicSliceOp op) {
  DimVector from = graph::dimsOf(op.getX());
  SmallVector<Value> made;
  for (const Dim &size : from)
    made.push_back(sizes.dim(size));
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    Value size = made[axis], zero = code.number(0);
    Value step = memory.readInteger(op.getSteps(), i);
    code.when(
        builder.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, step, zero), [&] {
          host.fail(host.node + "a step is %lld, but must be positive or negative", zero, zero);
        });
    Value isBack = code.less(step, zero);
    auto clamped = [&](Value tensor) {
      Value raw = memory.readInteger(tensor, i);
      Value wrapped = builder.createOrFold<arith::SelectOp>(code.loc, code.less(raw, zero),
                                                            code.add(raw, size), raw);
      Value low = builder.createOrFold<arith::SelectOp>(code.loc, isBack, code.number(-1), zero);
      Value high = builder.createOrFold<arith::SelectOp>(code.loc, isBack,
                                                         code.sub(size, code.number(1)), size);
      return code.min(code.max(wrapped, low), high);
    };
    Value start = clamped(op.getStarts()), end = clamped(op.getEnds());
    Value distance = builder.createOrFold<arith::SelectOp>(code.loc, isBack, code.sub(start, end),
                                                           code.sub(end, start));
    // The lowest number has no opposite; the one above it takes no more steps.
    Value back = code.sub(zero, code.max(step, code.number(-INT64_MAX)));
    Value stride = code.max(builder.createOrFold<arith::SelectOp>(code.loc, isBack, back, step),
                            code.number(1));
    Value count = code.add(code.div(code.sub(distance, code.number(1)), stride), code.number(1));
    made[axis] = code.max(count, zero);
  }
  sizes.bindDims(op.getResult(), made);
}

void Bindings::bind(graph::RangeOp op) {
  Type element = graph::storageOf(op.getStart()), i64 = builder.getI64Type();
  Type f64 = builder.getF64Type();
  bool isFloat = isa<FloatType>(element);
  Value zero = code.number(0);
  auto refuse = [&] {
    host.fail(host.node + "start, limit and delta make no number of elements", zero, zero);
    return Values{zero};
  };
  auto read = [&](Value tensor) -> Value {
    if (!isFloat)
      return builder.create<arith::SIToFPOp>(code.loc, f64, memory.readInteger(tensor, 0));
    Value value = code.load(element, memory.pointerOf(tensor), zero);
    return value.getType() == f64 ? value : builder.create<arith::ExtFOp>(code.loc, f64, value);
  };
  // The quotient of integers, inexact for the largest counts, only decides whether to refuse.
  auto exactly = [&](Value steps) -> Value {
    if (isFloat)
      return builder.create<arith::FPToSIOp>(code.loc, i64, steps);
    Value delta = memory.readInteger(op.getDelta(), 0);
    Value start = memory.readInteger(op.getStart(), 0),
          limit = memory.readInteger(op.getLimit(), 0);
    // The distance and the opposite of delta are exact as unsigned numbers, whatever they are.
    Value isBack = code.less(delta, zero);
    auto choose = [&](Value yes, Value no) -> Value {
      return builder.createOrFold<arith::SelectOp>(code.loc, isBack, yes, no);
    };
    Value low = choose(limit, start), high = choose(start, limit);
    Value magnitude = choose(code.sub(zero, delta), delta);
    Value isNone =
        builder.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, delta, zero);
    magnitude = builder.createOrFold<arith::SelectOp>(code.loc, isNone, code.number(1), magnitude);
    Value whole = builder.create<arith::DivUIOp>(
        code.loc, code.sub(code.sub(high, low), code.number(1)), magnitude);
    return builder.createOrFold<arith::SelectOp>(code.loc, code.less(low, high),
                                                 code.add(whole, code.number(1)), zero);
  };
  Value count = code.choose(
      host.isFine(), i64,
      [&] {
        Value span =
            builder.create<arith::SubFOp>(code.loc, read(op.getLimit()), read(op.getStart()));
        Value steps = builder.create<math::CeilOp>(
            code.loc, builder.create<arith::DivFOp>(code.loc, span, read(op.getDelta())));
        // Fails for NaN, infinities and what no memory holds.
        auto below = [&](Value x, Value y) -> Value {
          return builder.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OLT, x, y);
        };
        Value isCount = code.both(below(steps, code.constantOf(f64, 1e12)),
                                  below(code.constantOf(f64, -1e300), steps));
        Value isSome = isFloat ? below(code.constantOf(f64, 0), steps)
                               : code.integerOf(builder.getI1Type(), 1);
        return code.choose(
            isCount, i64,
            [&] {
              return code.choose(
                  isSome, i64, [&] { return Values{exactly(steps)}; },
                  [&] { return Values{zero}; });
            },
            refuse);
      },
      [&] { return Values{zero}; })[0];
  sizes.bindDims(op.getResult(), {code.max(count, zero)});
}

} // namespace heddle::lower
