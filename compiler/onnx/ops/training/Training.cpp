// Training: one step of an optimiser for each of its tensors.
//
// Operands: the learning rate, the number of updates so far, all tensors, then all gradients, then
// the states of the optimiser.

#include "compiler/grad/Optimizers.h"
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

/// Input `number` in the shape of x, whose element type it has.
static Value besideOf(Node &n, Value x, size_t number) {
  Type element = elementOf(x), other = elementOf(n.in(number));
  if (!isa<FloatType>(element) || other != element)
    refuse("input " + Twine(number) + " has element type " + nameOf(other) +
           ", the tensor that is updated " + nameOf(element) +
           ", but they must be one floating point type");
  return n.broadcast(n.in(number), dimsOf(x));
}

/// Tensor i of `count` and its gradient.
static grad::Point pointOf(Node &n, size_t i, size_t count) {
  Value x = n.in(2 + i), gradient = besideOf(n, x, 2 + count + i);
  auto number = [&](size_t input) { return n.cast(n.reshape(n.in(input), {}), elementOf(x)); };
  return {x, gradient, number(0), number(1), n.getFloat("norm_coefficient", 0)};
}

/// State `number` of tensor i.
static Value stateOf(Node &n, size_t i, size_t count, size_t number) {
  return besideOf(n, n.in(2 + i), 2 + (2 + number) * count + i);
}

static void set(Node &n, size_t i, size_t count, const grad::Stepped &stepped) {
  n.set(i, stepped.x);
  for (auto [k, state] : llvm::enumerate(stepped.states))
    n.set((1 + k) * count + i, state);
}

static void importAdagrad(Node &n) {
  size_t count = tensorCount(n, 3);
  grad::Adagrad adagrad{n.getFloat("decay_factor", 0), n.getFloat("epsilon", 1e-6)};
  grad::Maker maker(n.builder, n.location);
  for (size_t i = 0; i < count; ++i)
    set(n, i, count, adagrad.step(maker, pointOf(n, i, count), stateOf(n, i, count, 0)));
}

static void importAdam(Node &n) {
  size_t count = tensorCount(n, 4);
  grad::Adam adam{n.getFloat("alpha", 0.9), n.getFloat("beta", 0.999), n.getFloat("epsilon", 1e-6),
                  n.getFloat("norm_coefficient_post", 0)};
  grad::Maker maker(n.builder, n.location);
  for (size_t i = 0; i < count; ++i)
    set(n, i, count,
        adam.step(maker, pointOf(n, i, count), stateOf(n, i, count, 0), stateOf(n, i, count, 1)));
}

static void importMomentum(Node &n) {
  size_t count = tensorCount(n, 3);
  std::string mode = n.getText("mode", "standard");
  if (mode != "standard" && mode != "nesterov")
    refuse("'mode' is '" + mode + "', but must be 'standard' or 'nesterov'");
  grad::Momentum momentum{n.getFloat("alpha", 0.9), n.getFloat("beta", 1), mode == "nesterov"};
  grad::Maker maker(n.builder, n.location);
  for (size_t i = 0; i < count; ++i)
    set(n, i, count, momentum.step(maker, pointOf(n, i, count), stateOf(n, i, count, 0)));
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
