// Optimizers: see Optimizers.h. Numbers common to all elements are computed once.

#include "compiler/grad/Optimizers.h"

using namespace heddle::graph;

namespace heddle::grad {

/// The gradient with that of the regularisation.
static Value regularised(Maker &m, const Point &point) {
  return m.add(m.mul(point.x, point.normCoefficient), point.gradient);
}

static Value repeated(Maker &m, Value number, Value like) {
  return m.broadcast(number, dimsOf(like));
}

static Value isLater(Maker &m, const Point &point) {
  return m.compare<GreaterOp>(point.updates, m.zeros(point.updates));
}

Stepped Adagrad::step(Maker &m, const Point &point, Value squares) const {
  Value gradient = regularised(m, point);
  squares = m.add(squares, m.mul(gradient, gradient));
  Value rate = m.div(point.rate, m.add(m.mul(point.updates, decayFactor), 1));
  Value root = m.add(m.unary<SqrtOp>(squares), epsilon);
  Value change = m.div(m.mul(gradient, repeated(m, rate, gradient)), root);
  return {m.sub(point.x, change), {squares}};
}

Stepped Adam::step(Maker &m, const Point &point, Value first, Value second) const {
  Value gradient = regularised(m, point);
  first = m.add(m.mul(first, alpha), m.mul(gradient, 1 - alpha));
  second = m.add(m.mul(second, beta), m.mul(m.mul(gradient, gradient), 1 - beta));
  Value root = m.add(m.unary<SqrtOp>(second), epsilon);
  auto bias = [&](double base) { // 1 - base ^ updates
    return m.sub(1, m.binary<PowOp>(m.like(point.updates, base), point.updates));
  };
  Value corrected = m.div(m.mul(point.rate, m.unary<SqrtOp>(bias(beta))), bias(alpha));
  Value rate = m.select(isLater(m, point), corrected, point.rate);
  Value next = m.sub(point.x, m.mul(m.div(first, root), repeated(m, rate, root)));
  if (normCoefficientPost != 0)
    next = m.mul(next, 1 - normCoefficientPost);
  return {next, {first, second}};
}

Stepped Momentum::step(Maker &m, const Point &point, Value speed) const {
  Value gradient = regularised(m, point);
  Value share = m.select(isLater(m, point), m.like(point.updates, beta), m.like(point.updates, 1));
  speed = m.add(m.mul(speed, alpha), m.mul(gradient, repeated(m, share, gradient)));
  Value change = isNesterov ? m.add(gradient, m.mul(speed, alpha)) : speed;
  return {m.sub(point.x, m.mul(change, repeated(m, point.rate, change))), {speed}};
}

} // namespace heddle::grad
