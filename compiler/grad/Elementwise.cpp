// Elementwise: derivatives of ops that compute each element from those at the same place.

#include "compiler/grad/Rules.h"

#include <cmath>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

/// (1 - x) * (1 + x), exact also near 1.
static Value oneLessSquare(Flow &f) { return f.mul(f.sub(1, f.x()), f.add(f.x(), 1)); }
static Value square(Flow &f, Value x) { return f.mul(x, x); }

static void erfRule(Flow &f) {
  Value slope = f.unary<ExpOp>(f.neg(square(f, f.x())));
  f.scale(f.mul(slope, 2 / std::sqrt(M_PI)));
}

static void acoshRule(Flow &f) {
  Value below = f.unary<SqrtOp>(f.add(f.x(), -1)), above = f.unary<SqrtOp>(f.add(f.x(), 1));
  f.give(0, f.div(f.dy(), f.mul(below, above)));
}

static void mulRule(Flow &f) {
  for (unsigned i : {0, 1})
    if (f.wants(i))
      f.give(i, f.mul(f.dy(), f.x(1 - i)));
}

static void divRule(Flow &f) {
  Value share = f.div(f.dy(), f.x(1));
  f.give(0, share);
  if (f.wants(1))
    f.give(1, f.neg(f.mul(share, f.y())));
}

/// x^0 is 1 whatever x is, and 0^y is flat in y.
static void powRule(Flow &f) {
  Value x = f.x(0), power = f.x(1), zero = f.zeros(x), one = f.like(x, 1);
  if (f.wants(0)) {
    Value isFlat = f.compare<EqualOp>(power, zero);
    Value less = f.select(isFlat, one, f.sub(power, one));
    f.give(0, f.mul(f.dy(), f.mul(power, f.binary<PowOp>(x, less))));
  }
  if (f.wants(1)) {
    Value base = f.select(f.compare<EqualOp>(x, zero), one, x);
    f.give(1, f.mul(f.dy(), f.mul(f.y(), f.unary<LogOp>(base))));
  }
}

/// x takes what flows where it is beyond y, and y all else: a tie too.
template <typename Beyond> static void extremeRule(Flow &f) {
  Value isFirst = f.compare<Beyond>(f.x(0), f.x(1)), zero = f.zeros(f.dy());
  f.give(0, f.select(isFirst, f.dy(), zero));
  f.give(1, f.select(isFirst, zero, f.dy()));
}

/// x - y * n with n = x / y truncated, or rounded down.
static void modRule(Flow &f) {
  f.give(0, f.dy());
  if (!f.wants(1))
    return;
  Value ratio = f.div(f.x(0), f.x(1));
  ratio = f.as<ModOp>().getFmod() ? f.unary<TruncOp>(ratio) : f.unary<FloorOp>(ratio);
  f.give(1, f.neg(f.mul(f.dy(), ratio)));
}

static void selectRule(Flow &f) {
  Value zero = f.zeros(f.dy());
  f.give(1, f.select(f.x(0), f.dy(), zero));
  f.give(2, f.select(f.x(0), zero, f.dy()));
}

static void castRule(Flow &f) { f.give(0, f.cast(f.dy(), elementOf(f.x()))); }

#define ROW(OP, RULE) {OP::getOperationName(), [](Flow &f) { RULE; }}
#define FLAT(OP) {OP::getOperationName(), nullptr}

Rows elementwiseRules() {
  static const Row rows[] = {
      ROW(AbsOp, f.scale(f.unary<SignOp>(f.x()))),
      ROW(NegOp, f.give(0, f.neg(f.dy()))),
      ROW(ExpOp, f.scale(f.y())),
      ROW(LogOp, f.give(0, f.div(f.dy(), f.x()))),
      ROW(Log1pOp, f.give(0, f.div(f.dy(), f.add(f.x(), 1)))),
      ROW(Expm1Op, f.scale(f.add(f.y(), 1))),
      ROW(SqrtOp, f.give(0, f.div(f.dy(), f.mul(f.y(), 2)))),
      ROW(ErfOp, erfRule(f)),
      ROW(SinOp, f.scale(f.unary<CosOp>(f.x()))),
      ROW(CosOp, f.scale(f.neg(f.unary<SinOp>(f.x())))),
      ROW(TanOp, f.scale(f.add(square(f, f.y()), 1))),
      ROW(AsinOp, f.give(0, f.div(f.dy(), f.unary<SqrtOp>(oneLessSquare(f))))),
      ROW(AcosOp, f.give(0, f.neg(f.div(f.dy(), f.unary<SqrtOp>(oneLessSquare(f)))))),
      ROW(AtanOp, f.give(0, f.div(f.dy(), f.add(square(f, f.x()), 1)))),
      ROW(SinhOp, f.scale(f.unary<CoshOp>(f.x()))),
      ROW(CoshOp, f.scale(f.unary<SinhOp>(f.x()))),
      ROW(TanhOp, f.scale(f.sub(1, square(f, f.y())))),
      ROW(AsinhOp, f.give(0, f.div(f.dy(), f.unary<SqrtOp>(f.add(square(f, f.x()), 1))))),
      ROW(AcoshOp, acoshRule(f)),
      ROW(AtanhOp, f.give(0, f.div(f.dy(), oneLessSquare(f)))),
      ROW(SigmoidOp, f.scale(f.mul(f.y(), f.sub(1, f.y())))),
      ROW(AddOp, (f.give(0, f.dy()), f.give(1, f.dy()))),
      ROW(SubOp, (f.give(0, f.dy()), f.give(1, f.neg(f.dy())))),
      ROW(MulOp, mulRule(f)),
      ROW(DivOp, divRule(f)),
      ROW(PowOp, powRule(f)),
      ROW(MaxOp, extremeRule<GreaterOp>(f)),
      ROW(MinOp, extremeRule<LessOp>(f)),
      ROW(ModOp, modRule(f)),
      ROW(SelectOp, selectRule(f)),
      ROW(CastOp, castRule(f)),
      FLAT(SignOp),
      FLAT(FloorOp),
      FLAT(CeilOp),
      FLAT(RoundOp),
      FLAT(TruncOp),
      FLAT(EqualOp),
      FLAT(NotEqualOp),
      FLAT(LessOp),
      FLAT(LessEqualOp),
      FLAT(GreaterOp),
      FLAT(GreaterEqualOp),
      FLAT(IsNanOp),
      FLAT(IsInfOp),
  };
  return rows;
}

} // namespace heddle::grad
