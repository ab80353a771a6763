// Softmax: rows of scores become the rows that the second product takes.

#include "compiler/lower/attention/Kernel.h"

using namespace mlir;

namespace heddle::lower {

void AttentionKernel::bindNumber(Elements &e, Value tensor, Value value) {
  value = narrow(e, value, graph::storageOf(tensor));
  e.bind(tensor, [value](ArrayRef<Index>) { return value; });
}

/// A polynomial for the remainder of x / ln 2, times the power of 2. Below the normal numbers it is
/// 0: denormals would slow the product down wherever the processor does not flush them. What is
/// rounded to bf16 has a shorter one, minimax of the relative error: 6e-6.
Value AttentionKernel::exponential(Value x) {
  Code &code = kernel.code();
  auto constant = [&](double value) { return code.spread(code.constantOf(number, value)); };
  auto fma = [&](Value a, Value b, Value c) -> Value {
    return code.b.create<math::FmaOp>(code.loc, a, b, c);
  };
  auto isLess = [&](Value a, Value b) -> Value {
    return code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OLT, a, b);
  };
  Value lowest = constant(-87.33654);
  Value isSmall = isLess(x, lowest);
  Value bounded = code.b.create<arith::SelectOp>(code.loc, isSmall, lowest, x);
  // 1.5 * 2^23 leaves no room for a fraction; + 127 is the bias of the exponent.
  Value magic = constant(12582912.0 + 127);
  Value shifted = fma(bounded, constant(1.44269504088896341), magic);
  Value whole = code.b.create<arith::SubFOp>(code.loc, shifted, magic);
  bool isRounded = layout.together == 2;
  Value rest = fma(whole, constant(isRounded ? -0.69314718056 : -0.693359375), bounded);
  if (!isRounded)
    rest = fma(whole, constant(2.12194440e-4), rest);
  static constexpr double exact[] =
      {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1, 1, 1},
                          rounded[] = {4.1277671657e-2, 1.6753531580e-1, 5.0005118077e-1, 1, 1};
  ArrayRef<double> factors = isRounded ? ArrayRef(rounded) : ArrayRef(exact);
  Value power = constant(factors.front());
  for (double factor : factors.drop_front())
    power = fma(power, rest, constant(factor));
  Type integers = code.vectorOf(code.b.getI32Type());
  Value bits = code.b.create<arith::BitcastOp>(code.loc, integers, shifted);
  bits = code.b.create<arith::ShLIOp>(code.loc, bits,
                                      code.spread(code.integerOf(code.b.getI32Type(), 23)));
  Value scale = code.b.create<arith::BitcastOp>(code.loc, x.getType(), bits);
  Value result = code.b.create<arith::MulFOp>(code.loc, power, scale);
  return code.b.create<arith::SelectOp>(code.loc, isSmall, constant(0), result);
}

/// The exponentials at a place; ops that read them there get the same ones.
Value AttentionKernel::powersAt(Elements &e, ArrayRef<Index> place) {
  if (!number.isF32())
    return e.at(layout.parts.powers, place);
  auto exp = layout.parts.powers.getDefiningOp<graph::ExpOp>();
  Value x = kernel.code().spread(widen(e, e.at(exp.getX(), place), number));
  Value power = narrow(e, exponential(x), graph::storageOf(layout.parts.powers));
  e.bind(layout.parts.powers, [power](ArrayRef<Index>) { return power; });
  return power;
}

/// Each row becomes its exponentials; their sum, or one over it, goes to the scratch.
void AttentionKernel::emitSoftmax(Elements &e, const Slab &slab, const Keys &seen) {
  Code &code = kernel.code();
  foldScoped(e, code.number(0), layout.rowsOfSlab(slab), {}, [&](Value place, ValueRange) {
    emitSoftmaxRow(e, layout.rowNumber(code.add(slab.first, place)), place, seen);
    return Values();
  });
}

void AttentionKernel::emitSoftmaxRow(Elements &e, Value row, Value rowPlace, const Keys &seen) {
  Code &code = kernel.code();
  Value memory = code.at(layout.scratchAt(layout.stripsAt), number,
                         code.mul(rowPlace, kernel.dim(layout.stripStride)));
  Indices place = layout.placeOfRow(e, layout.parts.logits, row);
  place.emplace_back();
  auto fromStrip = [&](Value tensor) {
    e.bind(tensor, [this, &e, memory, tensor](ArrayRef<Index> place) {
      Value value = e.code().loadLanes(number, memory, place.back().base, {});
      return narrow(e, value, graph::storageOf(tensor));
    });
  };
  Value start = code.spread(code.constantOf(number, 0));
  // Factors of the product take the place of wider numbers that are read before.
  auto toStrip = [&](Value column, Value value, bool isFactor) {
    value = code.spread(widen(e, value, number));
    if (isFactor && layout.hasMatrices && e.mask)
      value = code.b.create<arith::SelectOp>(code.loc, e.mask, value, start);
    if (isFactor && layout.together == 2)
      value = shortBits(code, value);
    code.storeLanes(getElementTypeOrSelf(value), value, memory, column, {});
  };
  bool isTwice = !layout.parts.dividesLast && layout.parts.weights != layout.parts.powers;
  auto noNan = arith::FastMathFlags::nnan | arith::FastMathFlags::nsz;
  Value largest = code.loadLanes(number, largestOf(rowPlace), code.number(0), {});
  largest =
      code.b.create<vector::ReductionOp>(code.loc, vector::CombiningKind::MAXNUMF, largest, noNan);
  bindNumber(e, layout.parts.max, largest);
  fromStrip(layout.parts.logits);
  Value total = foldLanes(e, seen.low, seen.high, start, [&](Value column, ValueRange in) {
    place.back() = {column, 1, {}};
    toStrip(column, powersAt(e, place), /*isFactor=*/!isTwice);
    Value value = code.spread(widen(e, e.at(layout.parts.sum.getX(), place), number));
    Value next = code.b.create<arith::AddFOp>(code.loc, in[0], value);
    if (e.mask)
      next = code.b.create<arith::SelectOp>(code.loc, e.mask, next, in[0]);
    return Values{next};
  })[0];
  total = combineLanes(code, layout.parts.sum, total);
  e.unbind(layout.parts.logits);
  e.unbind(layout.parts.powers);
  if (isTwice) {
    Elements::Scope scope(e);
    fromStrip(layout.parts.powers);
    bindNumber(e, layout.parts.sum, total);
    place = layout.placeOfRow(e, layout.parts.weights, row);
    place.emplace_back();
    forLanes(e, seen.low, seen.high, [&](Value column) {
      place.back() = {column, 1, {}};
      toStrip(column, e.at(layout.parts.weights, place), /*isFactor=*/true);
    });
    e.unbind(layout.parts.powers);
    e.unbind(layout.parts.sum);
  }
  fillRow(e, layout.valuePanels, memory, seen.high);
  e.unbind(layout.parts.max);
  if (layout.parts.dividesLast) {
    // A row of no keys has the sum 0 and the result 0.
    Value one = code.constantOf(number, 1), none = code.constantOf(number, 0);
    Value isEmpty = code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OEQ, total, none);
    total = code.b.create<arith::SelectOp>(code.loc, isEmpty, one, total);
    total = code.b.create<arith::DivFOp>(code.loc, one, total);
  }
  code.store(number, total, layout.scratchAt(layout.sumsAt), rowPlace);
}

} // namespace heddle::lower
