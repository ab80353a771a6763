// HostSizes: symbols that values bind while the program runs.

#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

Value Host::loadInteger(Type element, Value memory, int64_t index) {
  Value value = code->load(element, memory, code->number(index));
  if (element.getIntOrFloatBitWidth() == 64)
    return value;
  Type i64 = builder.getI64Type();
  if (element.isSignlessInteger(1) || element.isUnsignedInteger())
    return builder.create<arith::ExtUIOp>(code->loc, i64, value);
  return builder.create<arith::ExtSIOp>(code->loc, i64, value);
}

std::optional<DimVector> Host::sizesIn(Value x) {
  if (auto group = x.getDefiningOp<graph::GroupOp>())
    x = group.getBody().front().getTerminator()->getOperand(cast<OpResult>(x).getResultNumber());
  return graph::shapeValue(x);
}

Value Host::readInteger(Value tensor, int64_t index) {
  if (auto sizes = sizesIn(tensor))
    return dim((*sizes)[index]);
  Type element = graph::elementOf(tensor);
  Value memory = pointerOf(tensor);
  return code->choose(
      isFine(), builder.getI64Type(), [&] { return Values{loadInteger(element, memory, index)}; },
      [&] { return Values{code->number(0)}; })[0];
}

void Host::bindDims(Value result, ArrayRef<Value> sizes) {
  for (auto [dim, size] : llvm::zip(graph::dimsOf(result), sizes))
    if (auto name = dim.symbolName(); name && !sizeCode->symbols.count(*name))
      sizeCode->symbols[*name] = size;
  for (auto [dim, size] : llvm::zip(graph::dimsOf(result), sizes))
    requireSize(size, dim);
}

/// What memory was made for a size of the type is what the run found.
void Host::requireSize(Value found, const Dim &expected) {
  requireSize(found, dim(expected), expected.str());
}

void Host::requireSize(Value found, Value wanted, StringRef name) {
  Value differs =
      found == wanted
          ? code->integerOf(builder.getI1Type(), 0)
          : builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne, found, wanted);
  code->when(differs, [&] {
    fail(node + "a size is %lld where the model says %lld ('" + name.str() + "')", found, wanted);
  });
}

/// Ops that bind symbols stand alone in their group, so that what they read is in memory.
void Host::bindSymbols(Operation *group) {
  for (Operation &op : group->getRegion(0).front()) {
    if (auto broadcast = dyn_cast<graph::DynamicBroadcastOp>(op))
      bindBroadcast(broadcast);
    else if (auto slice = dyn_cast<graph::DynamicSliceOp>(op))
      bindSlice(slice);
    else if (auto range = dyn_cast<graph::RangeOp>(op))
      bindRange(range);
  }
}

/// In heddle_program_run, if it was not done before.
void Host::bindSizes(graph::BindSizesOp op) {
  if (storage.boundByValues.contains(op))
    return;
  std::string message = graph::nodeText(op.getLoc()) + ": " + op.getMessage().str();
  for (auto [i, symbol] : llvm::enumerate(graph::dimsOf(op.getSymbols()))) {
    Value size = readInteger(op.getX(), i);
    Value told = op.getTold();
    code->when(code->less(size, code->number(0)), [&] {
      fail(message, told ? readInteger(told, 0) : size, told ? readInteger(told, 1) : size);
    });
    sizeCode->symbols[*symbol.symbolName()] = code->max(size, code->number(0));
  }
}

void Host::bindReshape(graph::DynamicReshapeOp op) {
  DimVector from = graph::dimsOf(op.getX());
  int64_t rank = graph::rankOf(op.getResult());
  Value total = dim(graph::elementCount(from)), product = code->number(1);
  Value unknown = code->number(0), lowest = code->number(0);
  SmallVector<Value> sizes;
  Value overflow;
  SizeArithmetic arithmetic{*code, &overflow};
  for (int64_t i = 0; i < rank; ++i) {
    Value size = readInteger(op.getShape(), i);
    if (!op.getAllowZero() && i < (int64_t)from.size()) {
      Value isZero =
          builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, size, code->number(0));
      size = builder.createOrFold<arith::SelectOp>(code->loc, isZero, dim(from[i]), size);
    }
    Value isFree = code->less(size, code->number(0));
    unknown = code->add(
        unknown, builder.createOrFold<arith::ExtUIOp>(code->loc, builder.getI64Type(), isFree));
    lowest = code->min(lowest, size);
    product = arithmetic.mul(
        product, builder.createOrFold<arith::SelectOp>(code->loc, isFree, code->number(1), size));
    sizes.push_back(size);
  }
  Value divisor = code->max(product, code->number(1)), filled = code->number(1);
  for (Value &size : sizes) {
    Value isFree = code->less(size, code->number(0));
    size =
        builder.createOrFold<arith::SelectOp>(code->loc, isFree, code->div(total, divisor), size);
    filled = arithmetic.mul(filled, size);
  }
  failIf(overflow, "cannot reshape to sizes whose product is larger than any memory");
  code->when(code->less(lowest, code->number(-1)), [&] {
    fail(node + "a size of %lld in the shape, but only -1 may stand for what is left", lowest,
         lowest);
  });
  code->when(code->less(code->number(1), unknown), [&] {
    fail(node + "%lld sizes of the shape are -1, but only one may be", unknown, unknown);
  });
  Value isWrong = builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne, filled, total);
  code->when(isWrong, [&] {
    fail(node + "cannot reshape %lld elements to a shape of %lld", total, filled);
  });
  bindDims(op.getResult(), sizes);
}

void Host::bindBroadcast(graph::DynamicBroadcastOp op) {
  DimVector from = graph::dimsOf(op.getX());
  int64_t rank = graph::rankOf(op.getResult()),
          entries = graph::dimsOf(op.getShape())[0].constant().value_or(rank);
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t inShape = i - (rank - entries), inSource = i - (rank - (int64_t)from.size());
    Value asked = inShape >= 0 ? readInteger(op.getShape(), inShape) : code->number(1);
    Value own = inSource >= 0 ? dim(from[inSource]) : code->number(1);
    Value isOne =
        builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, own, code->number(1));
    Value size = builder.createOrFold<arith::SelectOp>(code->loc, isOne, asked, own);
    Value same = builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, asked, size);
    Value one =
        builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, asked, code->number(1));
    Value isFineHere = builder.create<arith::OrIOp>(code->loc, same, one);
    isFineHere = code->both(isFineHere, code->less(code->number(-1), asked));
    code->choose(
        isFineHere, TypeRange(), [&] { return Values(); },
        [&] {
          fail(node + "a size of %lld cannot be expanded to %lld", own, asked);
          return Values();
        });
    sizes.push_back(size);
  }
  bindDims(op.getResult(), sizes);
}

void Host::bindSlice(graph::DynamicSliceOp op) {
  DimVector from = graph::dimsOf(op.getX());
  SmallVector<Value> sizes;
  for (const Dim &size : from)
    sizes.push_back(dim(size));
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    Value size = sizes[axis], zero = code->number(0);
    Value step = readInteger(op.getSteps(), i);
    code->when(
        builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, step, zero),
        [&] { fail(node + "a step is %lld, but must be positive or negative", zero, zero); });
    Value isBack = code->less(step, zero);
    auto clamped = [&](Value tensor) {
      Value raw = readInteger(tensor, i);
      Value wrapped = builder.createOrFold<arith::SelectOp>(code->loc, code->less(raw, zero),
                                                            code->add(raw, size), raw);
      Value low = builder.createOrFold<arith::SelectOp>(code->loc, isBack, code->number(-1), zero);
      Value high = builder.createOrFold<arith::SelectOp>(code->loc, isBack,
                                                         code->sub(size, code->number(1)), size);
      return code->min(code->max(wrapped, low), high);
    };
    Value start = clamped(op.getStarts()), end = clamped(op.getEnds());
    Value distance = builder.createOrFold<arith::SelectOp>(code->loc, isBack, code->sub(start, end),
                                                           code->sub(end, start));
    // The lowest number has no opposite; the one above it takes no more steps.
    Value back = code->sub(zero, code->max(step, code->number(-INT64_MAX)));
    Value stride = code->max(builder.createOrFold<arith::SelectOp>(code->loc, isBack, back, step),
                             code->number(1));
    Value count =
        code->add(code->div(code->sub(distance, code->number(1)), stride), code->number(1));
    sizes[axis] = code->max(count, zero);
  }
  bindDims(op.getResult(), sizes);
}

void Host::bindRange(graph::RangeOp op) {
  Type element = graph::elementOf(op.getStart()), i64 = builder.getI64Type();
  Type f64 = builder.getF64Type();
  bool isFloat = isa<FloatType>(element);
  Value zero = code->number(0);
  auto refuse = [&] {
    fail(node + "start, limit and delta make no number of elements", zero, zero);
    return Values{zero};
  };
  auto read = [&](Value tensor) -> Value {
    if (!isFloat)
      return builder.create<arith::SIToFPOp>(code->loc, f64, readInteger(tensor, 0));
    Value value = code->load(element, pointerOf(tensor), zero);
    return value.getType() == f64 ? value : builder.create<arith::ExtFOp>(code->loc, f64, value);
  };
  // Of integers, what the quotient says about the largest counts only decides whether to refuse.
  auto exactly = [&](Value steps) -> Value {
    if (isFloat)
      return builder.create<arith::FPToSIOp>(code->loc, i64, steps);
    Value delta = readInteger(op.getDelta(), 0);
    Value start = readInteger(op.getStart(), 0), limit = readInteger(op.getLimit(), 0);
    // As unsigned numbers the distance and the opposite of delta are exact, whatever they are.
    Value isBack = code->less(delta, zero);
    auto choose = [&](Value yes, Value no) -> Value {
      return builder.createOrFold<arith::SelectOp>(code->loc, isBack, yes, no);
    };
    Value low = choose(limit, start), high = choose(start, limit);
    Value magnitude = choose(code->sub(zero, delta), delta);
    Value isNone =
        builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, delta, zero);
    magnitude =
        builder.createOrFold<arith::SelectOp>(code->loc, isNone, code->number(1), magnitude);
    Value whole = builder.create<arith::DivUIOp>(
        code->loc, code->sub(code->sub(high, low), code->number(1)), magnitude);
    return builder.createOrFold<arith::SelectOp>(code->loc, code->less(low, high),
                                                 code->add(whole, code->number(1)), zero);
  };
  Value count = code->choose(
      isFine(), i64,
      [&] {
        Value span =
            builder.create<arith::SubFOp>(code->loc, read(op.getLimit()), read(op.getStart()));
        Value steps = builder.create<math::CeilOp>(
            code->loc, builder.create<arith::DivFOp>(code->loc, span, read(op.getDelta())));
        // Fails for NaN, infinities and what no memory holds.
        auto below = [&](Value x, Value y) -> Value {
          return builder.create<arith::CmpFOp>(code->loc, arith::CmpFPredicate::OLT, x, y);
        };
        Value isCount = code->both(below(steps, code->constantOf(f64, 1e12)),
                                   below(code->constantOf(f64, -1e300), steps));
        Value isSome = isFloat ? below(code->constantOf(f64, 0), steps)
                               : code->integerOf(builder.getI1Type(), 1);
        return code->choose(
            isCount, i64,
            [&] {
              return code->choose(
                  isSome, i64, [&] { return Values{exactly(steps)}; },
                  [&] { return Values{zero}; });
            },
            refuse);
      },
      [&] { return Values{zero}; })[0];
  bindDims(op.getResult(), {code->max(count, zero)});
}

} // namespace heddle::lower
