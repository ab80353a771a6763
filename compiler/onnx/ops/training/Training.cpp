// Training: one step of an optimiser for each of its tensors.
//
// Operands: the learning rate, the number of updates so far, all tensors, then all gradients, then
// the states of the optimiser.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// How many tensors are updated, where each has `parts` operands.
static size_t tensorCount(Node &n, size_t parts) {
  if (n.inputs() < 2 + parts || (n.inputs() - 2) % parts != 0)
    refuse("there are " + Twine(n.inputs()) + " inputs, but it needs 2 and " + Twine(parts) +
           " a tensor");
  return (n.inputs() - 2) / parts;
}

static Value rate(Node &n, Type element) { return n.cast(n.reshape(n.in(0), {}), element); }
static Value updates(Node &n, Type element) { return n.cast(n.reshape(n.in(1), {}), element); }

/// The gradient with that of the regularisation.
static Value gradientOf(Node &n, Value x, Value gradient) {
  return n.add(n.mul(x, n.getFloat("norm_coefficient", 0)), gradient);
}

static void importAdagrad(Node &n) {
  size_t count = tensorCount(n, 3);
  for (size_t i = 0; i < count; ++i) {
    Value x = n.in(2 + i), sum = n.in(2 + 2 * count + i);
    Type element = elementOf(x);
    Value slowed = n.add(n.mul(updates(n, element), n.getFloat("decay_factor", 0)), 1);
    Value gradient = gradientOf(n, x, n.in(2 + count + i));
    sum = n.add(sum, n.mul(gradient, gradient));
    Value root = n.add(n.unary<SqrtOp>(sum), n.getFloat("epsilon", 1e-6));
    Value step = n.mul(gradient, n.div(rate(n, element), slowed));
    n.set(i, n.sub(x, n.div(step, root)));
    n.set(count + i, sum);
  }
}

static void importAdam(Node &n) {
  size_t count = tensorCount(n, 4);
  double alpha = n.getFloat("alpha", 0.9), beta = n.getFloat("beta", 0.999);
  for (size_t i = 0; i < count; ++i) {
    Value x = n.in(2 + i), first = n.in(2 + 2 * count + i), second = n.in(2 + 3 * count + i);
    Type element = elementOf(x);
    Value gradient = gradientOf(n, x, n.in(2 + count + i));
    first = n.add(n.mul(first, alpha), n.mul(gradient, 1 - alpha));
    second = n.add(n.mul(second, beta), n.mul(n.mul(gradient, gradient), 1 - beta));
    Value root = n.add(n.unary<SqrtOp>(second), n.getFloat("epsilon", 1e-6));
    Value steps = updates(n, element), one = n.scalar(element, 1);
    auto bias = [&](double base) {
      return n.sub(one, n.binary<PowOp>(n.scalar(element, base), steps));
    };
    Value corrected = n.div(n.mul(rate(n, element), n.unary<SqrtOp>(bias(beta))), bias(alpha));
    Value isLater = n.compare<GreaterOp>(steps, n.scalar(element, 0));
    Value speed = n.select(isLater, corrected, rate(n, element));
    Value next = n.sub(x, n.mul(n.div(first, root), speed));
    double after = n.getFloat("norm_coefficient_post", 0);
    n.set(i, after == 0 ? next : n.mul(next, 1 - after));
    n.set(count + i, first);
    n.set(2 * count + i, second);
  }
}

static void importMomentum(Node &n) {
  size_t count = tensorCount(n, 3);
  std::string mode = n.getText("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    refuse("'mode' is '" + mode + "', but must be 'standard' or 'nesterov'");
  double alpha = n.getFloat("alpha", 0.9);
  for (size_t i = 0; i < count; ++i) {
    Value x = n.in(2 + i), speed = n.in(2 + 2 * count + i);
    Type element = elementOf(x);
    Value gradient = gradientOf(n, x, n.in(2 + count + i));
    Value isLater = n.compare<GreaterOp>(updates(n, element), n.scalar(element, 0));
    Value share = n.select(isLater, n.scalar(element, n.getFloat("beta", 1)), n.scalar(element, 1));
    speed = n.add(n.mul(speed, alpha), n.mul(gradient, share));
    Value step = mode == "standard" ? speed : n.add(gradient, n.mul(speed, alpha));
    n.set(i, n.sub(x, n.mul(step, rate(n, element))));
    n.set(count + i, speed);
  }
}

OpRows trainingRows() {
  static const OpRow rows[] = {
      {"Adagrad", kTraining, 1, 1, importAdagrad},
      {"Adam", kTraining, 1, 1, importAdam},
      {"Momentum", kTraining, 1, 1, importMomentum},
  };
  return rows;
}

} // namespace heddle::onnx
