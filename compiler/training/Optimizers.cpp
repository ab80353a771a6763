// Optimizers: the table. Numbers common to all elements are computed once.

#include "compiler/training/Optimizers.h"

using namespace mlir;
using namespace heddle::graph;
using heddle::grad::Maker;

namespace heddle::training {

static constexpr Range kAny = {0, kLargest}, kShare = {0, 1, /*isBelow=*/true};
static constexpr Setting kDecay = {"weight_decay", 0, kAny};

/// A number times a tensor.
static Value scaled(Maker &m, Value number, Value x) {
  return m.mul(x, m.broadcast(number, dimsOf(x)));
}
/// a * x + (1 - a) * y.
static Value mixed(Maker &m, double a, Value x, Value y) {
  return m.add(m.mul(x, a), m.mul(y, 1 - a));
}
/// weight -= rate * change.
static void move(Maker &m, Update &u, Value change) {
  u.weight = m.sub(u.weight, scaled(m, u.shared.rate, change));
}
/// The gradient with that of 0.5 * decay * |weight|^2.
static Value decayed(Maker &m, Update &u) {
  return u.weightDecay == 0 ? u.gradient : m.add(u.gradient, m.mul(u.weight, u.weightDecay));
}
/// weight *= 1 - rate * decay (Loshchilov and Hutter, Decoupled Weight Decay Regularization).
static void shrink(Maker &m, Update &u) {
  if (u.weightDecay != 0)
    u.weight = scaled(m, m.sub(1, m.mul(u.shared.rate, u.weightDecay)), u.weight);
}

static void sgd(Maker &m, Update &u) { move(m, u, decayed(m, u)); }

static void momentum(Maker &m, Update &u) {
  Value gradient = decayed(m, u);
  double factor = u.recipe.setting("momentum");
  u.states[0] = m.add(m.mul(u.states[0], factor), gradient);
  move(m, u, u.recipe.isNesterov ? m.add(gradient, m.mul(u.states[0], factor)) : u.states[0]);
}

/// Moves by both moments, corrected for their beginning at 0.
static void moveByMoments(Maker &m, Update &u, Value gradient) {
  double beta1 = u.recipe.setting("beta1"), beta2 = u.recipe.setting("beta2");
  Type element = elementOf(u.weight);
  auto correction = [&](double beta) { // 1 - beta ^ count, in f64
    return m.sub(1, m.binary<PowOp>(m.like(u.shared.count, beta), u.shared.count));
  };
  u.states[0] = mixed(m, beta1, u.states[0], gradient);
  u.states[1] = mixed(m, beta2, u.states[1], m.mul(gradient, gradient));
  Value rate =
      m.cast(m.div(m.cast(u.shared.rate, m.builder.getF64Type()), correction(beta1)), element);
  Value inverse =
      m.cast(m.div(m.like(u.shared.count, 1), m.unary<SqrtOp>(correction(beta2))), element);
  Value root = scaled(m, inverse, m.unary<SqrtOp>(u.states[1]));
  Value change = m.div(u.states[0], m.add(root, u.recipe.setting("epsilon")));
  u.weight = m.sub(u.weight, scaled(m, rate, change));
}

static void adam(Maker &m, Update &u) { moveByMoments(m, u, decayed(m, u)); }
static void adamw(Maker &m, Update &u) {
  shrink(m, u);
  moveByMoments(m, u, u.gradient);
}

static void adagrad(Maker &m, Update &u) {
  Value gradient = decayed(m, u);
  u.states[0] = m.add(u.states[0], m.mul(gradient, gradient));
  Value before = m.cast(m.sub(u.shared.count, m.like(u.shared.count, 1)), elementOf(u.weight));
  Value rate =
      m.div(u.shared.rate, m.add(m.mul(before, u.recipe.setting("learning_rate_decay")), 1));
  Value root = m.add(m.unary<SqrtOp>(u.states[0]), u.recipe.setting("epsilon"));
  u.weight = m.sub(u.weight, scaled(m, rate, m.div(gradient, root)));
}

static void rmsprop(Maker &m, Update &u) {
  Value gradient = decayed(m, u);
  u.states[0] = mixed(m, u.recipe.setting("alpha"), u.states[0], m.mul(gradient, gradient));
  move(m, u, m.div(gradient, m.add(m.unary<SqrtOp>(u.states[0]), u.recipe.setting("epsilon"))));
}

static void lion(Maker &m, Update &u) {
  shrink(m, u);
  move(m, u, m.unary<SignOp>(mixed(m, u.recipe.setting("beta1"), u.states[0], u.gradient)));
  u.states[0] = mixed(m, u.recipe.setting("beta2"), u.states[0], u.gradient);
}

static ArrayRef<Optimizer> optimizers() {
  static const Optimizer table[] = {
      {"sgd", {kDecay}, {}, sgd},
      {"momentum", {kDecay, {"momentum", 0.9, kShare}}, {"velocity"}, momentum},
      {"adam",
       {kDecay, {"beta1", 0.9, kShare}, {"beta2", 0.999, kShare}, {"epsilon", 1e-8, kPositive}},
       {"first_moment", "second_moment"},
       adam},
      {"adamw",
       {{"weight_decay", 0.01, kAny},
        {"beta1", 0.9, kShare},
        {"beta2", 0.999, kShare},
        {"epsilon", 1e-8, kPositive}},
       {"first_moment", "second_moment"},
       adamw},
      {"adagrad",
       {kDecay, {"learning_rate_decay", 0, kAny}, {"epsilon", 1e-10, kPositive}},
       {"squares"},
       adagrad},
      {"rmsprop",
       {kDecay, {"alpha", 0.99, kShare}, {"epsilon", 1e-8, kPositive}},
       {"squares"},
       rmsprop},
      {"lion", {kDecay, {"beta1", 0.9, kShare}, {"beta2", 0.99, kShare}}, {"first_moment"}, lion},
  };
  return table;
}

const Optimizer *findOptimizer(StringRef name) {
  const auto *found = llvm::find_if(optimizers(), [&](auto &each) { return each.name == name; });
  return found == optimizers().end() ? nullptr : found;
}

ArrayRef<StringRef> optimizerNames() {
  static const SmallVector<StringRef> names = llvm::to_vector(
      llvm::map_range(optimizers(), [](const Optimizer &each) { return each.name; }));
  return names;
}

} // namespace heddle::training
