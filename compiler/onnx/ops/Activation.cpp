// Activation: functions of neural networks, spelt with primitives.

#include "compiler/onnx/ops/Activations.h"

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Value relu(Emitter &e, Value x) { return e.max(x, 0); }
Value sigmoid(Emitter &e, Value x) { return e.unary<SigmoidOp>(x); }
Value tanhOf(Emitter &e, Value x) { return e.unary<TanhOp>(x); }

static Value isPositive(Emitter &e, Value x) {
  return e.compare<GreaterOp>(x, e.scalar(elementOf(x), 0));
}

Value leakyRelu(Emitter &e, Value x, double alpha) {
  return e.select(e.compare<LessOp>(x, e.scalar(elementOf(x), 0)), e.mul(x, alpha), x);
}

Value elu(Emitter &e, Value x, double alpha) {
  return e.select(isPositive(e, x), x, e.mul(e.unary<Expm1Op>(x), alpha));
}

Value hardSigmoid(Emitter &e, Value x, double alpha, double beta) {
  return e.min(e.max(e.add(e.mul(x, alpha), beta), 0), 1);
}

/// ln(1 + e^x), written so that e^x never overflows.
Value softplus(Emitter &e, Value x) {
  Value tail = e.unary<Log1pOp>(e.unary<ExpOp>(e.unary<NegOp>(e.unary<AbsOp>(x))));
  return e.add(e.max(x, 0), tail);
}

Value softsign(Emitter &e, Value x) { return e.div(x, e.add(e.unary<AbsOp>(x), 1)); }

Value thresholdedRelu(Emitter &e, Value x, double alpha) {
  return e.select(e.compare<GreaterOp>(x, e.scalar(elementOf(x), alpha)), x,
                  e.scalar(elementOf(x), 0));
}

Value gelu(Emitter &e, Value x, bool approximate) {
  if (!approximate) {
    Value erf = e.unary<ErfOp>(e.mul(x, 0.70710678118654752440));
    return e.mul(e.mul(x, e.add(erf, 1)), 0.5);
  }
  Value cube = e.mul(e.mul(x, x), x);
  Value inner = e.mul(e.add(x, e.mul(cube, 0.044715)), 0.79788456080286535588);
  return e.mul(e.mul(x, e.add(tanhOf(e, inner), 1)), 0.5);
}

static void importRelu(Node &n) { n.set(relu(n, n.in(0))); }
static void importSigmoid(Node &n) { n.set(sigmoid(n, n.in(0))); }
static void importTanh(Node &n) { n.set(tanhOf(n, n.in(0))); }
static void importLeakyRelu(Node &n) { n.set(leakyRelu(n, n.in(0), n.getFloat("alpha", 0.01))); }
static void importElu(Node &n) { n.set(elu(n, n.in(0), n.getFloat("alpha", 1))); }
static void importCelu(Node &n) {
  double alpha = n.getFloat("alpha", 1);
  Value x = n.in(0);
  Value tail = n.mul(n.unary<Expm1Op>(n.div(x, alpha)), alpha);
  n.set(n.add(n.max(x, 0), n.min(tail, 0)));
}
static void importSelu(Node &n) {
  double alpha = n.getFloat("alpha", 1.67326319217681884765625);
  n.set(n.mul(elu(n, n.in(0), alpha), n.getFloat("gamma", 1.05070102214813232421875)));
}
static void importHardSigmoid(Node &n) {
  n.set(hardSigmoid(n, n.in(0), n.getFloat("alpha", 0.2), n.getFloat("beta", 0.5)));
}
static void importHardSwish(Node &n) {
  n.set(n.mul(n.in(0), hardSigmoid(n, n.in(0), 1.0 / 6, 0.5)));
}
static void importSoftplus(Node &n) { n.set(softplus(n, n.in(0))); }
static void importSoftsign(Node &n) { n.set(softsign(n, n.in(0))); }
static void importMish(Node &n) { n.set(n.mul(n.in(0), tanhOf(n, softplus(n, n.in(0))))); }
static void importSwish(Node &n) {
  Value x = n.in(0);
  Type element = elementOf(x), wide = wideType(n, element); // `alpha` is computed in `wide`
  Value gate = sigmoid(n, n.mul(n.cast(x, wide), n.getFloat("alpha", 1)));
  n.set(n.mul(x, n.cast(gate, element)));
}
static void importThresholdedRelu(Node &n) {
  n.set(thresholdedRelu(n, n.in(0), n.getFloat("alpha", 1)));
}
static void importShrink(Node &n) {
  Type element = elementOf(n.in(0)), wide = isFloat(n.in(0)) ? element : n.builder.getF64Type();
  Value x = n.cast(n.in(0), wide), zero = n.scalar(wide, 0);
  double bias = n.getFloat("bias", 0), lambda = n.getFloat("lambd", 0.5);
  Value high = n.select(n.compare<GreaterOp>(x, n.scalar(wide, lambda)), n.add(x, -bias), zero);
  Value y = n.select(n.compare<LessOp>(x, n.scalar(wide, -lambda)), n.add(x, bias), high);
  n.set(n.cast(y, element));
}
static void importGelu(Node &n) {
  std::string approximate = n.getText("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    refuse("'approximate' is '" + approximate + "', but must be 'none' or 'tanh'");
  n.set(gelu(n, n.in(0), approximate == "tanh"));
}

static void importPRelu(Node &n) {
  Value x = n.in(0), slope = n.in(1);
  // Before opset 7 a vector of slopes ran along the channels.
  if (n.opset < 7 && rankOf(slope) == 1 && rankOf(x) > 1)
    slope = n.alongAxis(slope, 1, rankOf(x));
  n.set(n.select(n.compare<LessOp>(x, n.scalar(elementOf(x), 0)), n.mul(x, slope), x));
}

/// Before opset 13 the tensor was flattened to two dimensions at `axis`; reducing all from there on
/// is the same.
static Ints softmaxAxes(Node &n) {
  int64_t rank = rankOf(n.in(0));
  if (n.opset >= 13)
    return {n.axis(n.getInt("axis", -1), rank)};
  return llvm::to_vector(llvm::seq<int64_t>(n.axis(n.getInt("axis", 1), rank), rank));
}
static void importSoftmax(Node &n) {
  Type element = elementOf(n.in(0));
  Value wide = n.cast(n.in(0), wideType(n, element));
  n.set(narrowed(n, n.softmax(wide, softmaxAxes(n)), element));
}
static void importLogSoftmax(Node &n) {
  Type element = elementOf(n.in(0));
  Value x = n.cast(n.in(0), wideType(n, element));
  Ints axes = softmaxAxes(n);
  Value shifted = n.sub(x, n.reduce<ReduceMaxOp>(x, axes));
  Value total = n.reduce<ReduceSumOp>(n.unary<ExpOp>(shifted), axes);
  n.set(narrowed(n, n.sub(shifted, n.unary<LogOp>(total)), element));
}
static void importHardmax(Node &n) {
  Value x = n.in(0);
  DimVector given = dimsOf(x);
  int64_t axis = n.opset >= 13 ? n.axis(n.getInt("axis", -1), rankOf(x)) : 1;
  if (n.opset < 13) { // a matrix whose columns are all dimensions from 'axis' on
    int64_t from = n.getInt("axis", 1);
    from = from == (int64_t)given.size() ? from : n.axis(from, given.size());
    ArrayRef<Dim> all(given);
    x = n.reshape(x, {elementCount(all.take_front(from)), elementCount(all.drop_front(from))});
  }
  // The first of the largest; a NaN is larger than all. Reductions are defined over nothing too.
  Value largest = n.reduce<ReduceMaxOp>(x, {axis});
  Value isBest = n.binary<OrOp>(n.compare<EqualOp>(x, largest), n.infer<IsNanOp>(x));
  Value places = n.iota(dimsOf(x), axis, n.i64());
  Value beyond = n.integerScalar(n.i64(), std::numeric_limits<int64_t>::max());
  Value first = n.reduce<ReduceMinOp>(n.select(isBest, places, beyond), {axis});
  n.set(n.reshape(n.cast(n.compare<EqualOp>(places, first), elementOf(x)), given));
}

OpRows activationRows() {
  static const OpRow rows[] = {
      {"Relu", "", 1, 27, importRelu},
      {"Sigmoid", "", 1, 27, importSigmoid},
      {"Tanh", "", 1, 27, importTanh},
      {"LeakyRelu", "", 1, 27, importLeakyRelu},
      {"Elu", "", 1, 27, importElu},
      {"Celu", "", 12, 27, importCelu},
      {"Selu", "", 1, 27, importSelu},
      {"HardSigmoid", "", 1, 27, importHardSigmoid},
      {"HardSwish", "", 14, 27, importHardSwish},
      {"Softplus", "", 1, 27, importSoftplus},
      {"Softsign", "", 1, 27, importSoftsign},
      {"Mish", "", 18, 27, importMish},
      {"Swish", "", 24, 27, importSwish},
      {"ThresholdedRelu", "", 1, 27, importThresholdedRelu},
      {"Shrink", "", 9, 27, importShrink},
      {"Gelu", "", 20, 27, importGelu},
      {"PRelu", "", 1, 27, importPRelu},
      {"Softmax", "", 1, 27, importSoftmax},
      {"LogSoftmax", "", 1, 27, importLogSoftmax},
      {"Hardmax", "", 1, 27, importHardmax},
  };
  return rows;
}

} // namespace heddle::onnx
