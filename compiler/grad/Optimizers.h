// Optimizers: one step of an optimiser for one tensor, as ops of the graph dialect. Formulas:
// ONNX's Adagrad, Adam and Momentum (ai.onnx.preview.training 1).
#ifndef HEDDLE_GRAD_OPTIMIZERS_H
#define HEDDLE_GRAD_OPTIMIZERS_H

#include "compiler/grad/Maker.h"

namespace heddle::grad {

/// x, its gradient and the states of an optimiser have one shape and element type; `rate` and
/// `updates`, the number of steps before this one, are single numbers of that type.
struct Point {
  Value x, gradient, rate, updates;
  double normCoefficient = 0; // c of the regularisation 0.5 * c * |x|^2, added to the gradient
};

/// The tensor and the states after the step.
struct Stepped {
  Value x;
  llvm::SmallVector<Value, 2> states;
};

struct Adagrad {
  double decayFactor = 0, epsilon = 1e-6;
  Stepped step(Maker &maker, const Point &point, Value squares) const;
};

struct Adam {
  double alpha = 0.9, beta = 0.999, epsilon = 1e-6;
  double normCoefficientPost = 0;
  Stepped step(Maker &maker, const Point &point, Value first, Value second) const;
};

struct Momentum {
  double alpha = 0.9, beta = 1;
  bool isNesterov = false;
  Stepped step(Maker &maker, const Point &point, Value speed) const;
};

} // namespace heddle::grad

#endif // HEDDLE_GRAD_OPTIMIZERS_H
