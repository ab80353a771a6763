// Linear: linear models and support vector machines.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Activations.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Walk.h"
#include "compiler/onnx/ops/ml/Scores.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// `count` rows of numbers, of attribute `name`, as the columns of a matrix [features, count].
static Value columnsOf(Node &n, StringRef name, ArrayRef<double> values, int64_t count,
                       Type element) {
  if (count < 1 || values.empty() || values.size() % count != 0)
    refuse("'" + name + "' has " + Twine(values.size()) + " entries, but needs a multiple of " +
           Twine(count));
  int64_t features = values.size() / count;
  return n.transpose(numbers(n, values, {count, features}, element), {1, 0});
}

/// The rows of 'coefficients' as columns. If these are not whole rows, those past the features of x
/// are surplus, as for ONNX Runtime.
static Value coefficientsOf(Node &n, int64_t count, Value x) {
  std::vector<double> values = n.getFloats("coefficients");
  auto features = dimsOf(x)[1].constant();
  if (features && count > 0 && values.size() % count != 0 &&
      static_cast<int64_t>(values.size() / count) >= *features)
    values.resize(*features * count);
  return columnsOf(n, "coefficients", values, count, elementOf(x));
}

static Value plusList(Node &n, Value scores, StringRef name) {
  auto values = n.getFloats(name);
  if (values.empty())
    return scores;
  Value list = values.size() == 1 ? n.scalar(elementOf(scores), values[0])
                                  : numbers(n, values, {(int64_t)values.size()}, elementOf(scores));
  return n.add(scores, list);
}

/// [-s, s] from [n, 1].
static Value bothSides(Node &n, Value scores) {
  return n.concat({n.unary<NegOp>(scores), scores}, 1);
}

static Value argMax(Node &n, Value scores) {
  return n.infer<ArgMaxOp>(
      scores, {n.integer("axis", 1), n.flag("keep_dims", false), n.flag("last", false)});
}

static void importLinearRegressor(Node &n) {
  Value x = featuresOf(n);
  int64_t targets = n.getInt("targets", 1);
  Value y = n.matmul(x, coefficientsOf(n, targets, x));
  auto intercepts = n.getFloats("intercepts").size();
  if (intercepts && (int64_t)intercepts != targets)
    refuse("'intercepts' has " + Twine(intercepts) + " entries, but 'targets' is " +
           Twine(targets));
  y = plusList(n, y, "intercepts");
  n.set(n.cast(postTransform(n, y, n.getText("post_transform", "NONE")), n.f32()));
}

static void importLinearClassifier(Node &n) {
  Value x = featuresOf(n);
  int64_t labels = labelCount(n, "classlabels_ints");
  auto given = n.getFloats("coefficients");
  auto features = dimsOf(x)[1].constant();
  // Two classes may share one row of coefficients.
  size_t rows = n.getFloats("intercepts").size();
  if (features && *features > 0)
    rows = given.size() / *features;
  if (rows == 0)
    rows = labels;
  Value scores = n.matmul(x, coefficientsOf(n, rows, x));
  scores = plusList(n, scores, "intercepts");
  if (rows == 1 && labels == 2)
    scores = bothSides(n, scores);
  Value z = postTransform(n, scores, n.getText("post_transform", "NONE"));
  Value classes =
      rows == 1 && labels != 2
          ? n.cast(n.compare<GreaterOp>(n.squeeze(scores, {1}), n.scalar(elementOf(scores), 0)),
                   n.i64())
          : argMax(n, scores);
  setLabels(n, classes, "classlabels_ints");
  if (n.wants(1))
    n.set(1, n.cast(z, n.f32()));
}

/// Kernels of every row of x with every one of `count` support vectors, [n, count].
static Value kernelsOf(Node &n, Value x, int64_t count) {
  Type element = elementOf(x);
  auto params = n.getFloats("kernel_params");
  params.resize(3);
  double gamma = params[0], shift = params[1], degree = params[2];
  Value vectors = columnsOf(n, "support_vectors", n.getFloats("support_vectors"), count, element);
  std::string kernel = n.getText("kernel_type", "LINEAR");
  Value dots = n.matmul(x, vectors);
  if (kernel == "LINEAR")
    return dots;
  if (kernel == "RBF") { // |x - v|^2 from differences: squares would cancel
    Value difference = n.sub(n.unsqueeze(x, {2}), vectors);
    Value square = n.reduce<ReduceSumOp>(n.mul(difference, difference), {1}, false);
    return n.unary<ExpOp>(n.mul(square, -gamma));
  }
  Value inner = n.add(n.mul(dots, gamma), shift);
  if (kernel == "SIGMOID")
    return n.unary<TanhOp>(inner);
  if (kernel == "POLY")
    return n.binary<PowOp>(inner, n.scalar(element, std::trunc(degree)));
  refuse("'kernel_type' is '" + kernel + "', but must be 'LINEAR', 'POLY', 'RBF' or 'SIGMOID'");
}

static void importSvmRegressor(Node &n) {
  Value x = featuresOf(n);
  int64_t count = n.getInt("n_supports", 0);
  Value sum;
  if (count > 0) {
    auto given = n.getFloats("coefficients");
    if ((int64_t)given.size() < count)
      refuse("'coefficients' has " + Twine(given.size()) + " entries, but needs " + Twine(count));
    given.resize(count);
    sum = n.matmul(kernelsOf(n, x, count), numbers(n, given, {count, 1}, elementOf(x)));
  } else {
    sum = n.matmul(x, coefficientsOf(n, 1, x));
  }
  sum = plusList(n, sum, "rho");
  if (n.getInt("one_class", 0))
    sum = n.select(n.compare<GreaterOp>(sum, n.scalar(elementOf(sum), 0)),
                   n.scalar(elementOf(sum), 1), n.scalar(elementOf(sum), -1));
  n.set(n.cast(postTransform(n, sum, n.getText("post_transform", "NONE")), n.f32()));
}

namespace {
/// One decision a pair of classes (i, j), i < j.
struct Duels {
  int64_t classes;
  Value scores;              // [n, pairs]: positive for i
  Value forFirst, forSecond; // f32 [pairs, classes]: 1 at i, at j
};
} // namespace

static Duels duelsOf(Node &n, Value x, ArrayRef<int64_t> perClass) {
  int64_t classes = perClass.size(), pairs = classes * (classes - 1) / 2, vectors = 0;
  Ints starts;
  for (int64_t count : perClass) {
    starts.push_back(vectors);
    vectors += count;
  }
  auto given = n.getFloats("coefficients");
  if ((int64_t)given.size() < (classes - 1) * vectors)
    refuse("'coefficients' has " + Twine(given.size()) + " entries, but needs " +
           Twine((classes - 1) * vectors));
  std::vector<double> weights(vectors * pairs, 0), first(pairs * classes, 0), second = first;
  int64_t pair = 0;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j, ++pair) {
      for (int64_t v = starts[i]; v < starts[i] + perClass[i]; ++v)
        weights[v * pairs + pair] = given[(j - 1) * vectors + v];
      for (int64_t v = starts[j]; v < starts[j] + perClass[j]; ++v)
        weights[v * pairs + pair] = given[i * vectors + v];
      first[pair * classes + i] = second[pair * classes + j] = 1;
    }
  Type element = elementOf(x);
  Value scores = n.matmul(kernelsOf(n, x, vectors), numbers(n, weights, {vectors, pairs}, element));
  return {classes, plusList(n, scores, "rho"), numbers(n, first, {pairs, classes}, element),
          numbers(n, second, {pairs, classes}, element)};
}

/// Probabilities of classes from those of pairs (libsvm's multiclass_probability; Wu, Lin, Weng,
/// "Probability Estimates for Multi-class Classification by Pairwise Coupling", 2004, section 4).
static Value coupled(Node &n, const Duels &duels) {
  Type element = elementOf(duels.scores);
  int64_t k = duels.classes;
  Value a = numbers(n, n.getFloats("prob_a"), {(int64_t)n.getFloats("prob_a").size()}, element);
  Value b = numbers(n, n.getFloats("prob_b"), {(int64_t)n.getFloats("prob_b").size()}, element);
  Value chance = sigmoid(n, n.unary<NegOp>(n.add(n.mul(duels.scores, a), b)));
  chance = n.min(n.max(chance, 1e-7), 1 - 1e-7);
  Dim rows = dimsOf(chance)[0];
  int64_t pairs = k * (k - 1) / 2;
  auto column = [&](Value x, int64_t i) { return n.sliceAlong(x, 1, Dim(i), Dim(1)); };
  // Columns of [n, k, k] with the chance of i against j, and with that of j against i; the diagonal
  // is masked.
  Ints ours(k * k, 0), theirs(k * k, 0);
  std::vector<double> apart(k * k, 1), same(k * k, 0);
  int64_t pair = 0;
  for (int64_t i = 0; i < k; ++i) {
    apart[i * k + i] = 0;
    same[i * k + i] = 1;
    for (int64_t j = i + 1; j < k; ++j, ++pair) {
      ours[i * k + j] = theirs[j * k + i] = pair;
      ours[j * k + i] = theirs[i * k + j] = pairs + pair;
    }
  }
  Value both = n.concat({chance, n.sub(n.scalar(element, 1), chance)}, 1);
  auto square = [&](ArrayRef<int64_t> columns) {
    Value picked = n.reshape(n.gather(both, n.integers(columns), 1), {rows, Dim(k), Dim(k)});
    return n.mul(picked, numbers(n, apart, {k, k}, element));
  };
  Value r = square(ours), turned = square(theirs);
  Value own = n.reduce<ReduceSumOp>(n.mul(r, r), {1}); // [n, 1, k]
  Value matrix = n.sub(n.mul(own, numbers(n, same, {k, k}, element)), n.mul(r, turned));
  own = n.squeeze(own, {1});
  auto line = [&](int64_t t) { return n.squeeze(n.sliceAlong(matrix, 1, Dim(t), Dim(1)), {1}); };
  auto product = [&](Value p) { return n.squeeze(n.matmul(matrix, n.unsqueeze(p, {2})), {2}); };
  auto round = [&](Value, ArrayRef<Value> states) -> SmallVector<Value> {
    Value p = states[0], qp = product(p), one = n.scalar(element, 1);
    Value pqp = n.reduce<ReduceSumOp>(n.mul(p, qp), {1});
    Value error = n.reduce<ReduceMaxOp>(n.unary<AbsOp>(n.sub(qp, pqp)), {1});
    auto isOpen = [&](Value error) {
      return n.compare<GreaterEqualOp>(error, n.scalar(element, 0.005 / k));
    };
    for (int64_t t = 0; t < k; ++t) {
      Value here = column(qp, t), diagonal = column(own, t);
      Value step = n.div(n.sub(pqp, here), diagonal), grown = n.add(one, step);
      pqp = n.div(n.add(pqp, n.mul(step, n.add(n.mul(step, diagonal), n.mul(here, 2)))),
                  n.mul(grown, grown));
      std::vector<double> mark(k, 0);
      mark[t] = 1;
      p = n.div(n.add(p, n.mul(step, numbers(n, mark, {k}, element))), grown);
      qp = n.div(n.add(qp, n.mul(step, line(t))), grown);
    }
    Value largest = n.reduce<ReduceMaxOp>(error, {0, 1}, false);
    return {n.select(isOpen(error), p, states[0]), isOpen(largest)};
  };
  Value start = n.full({rows, Dim(k)}, element, 1.0 / k);
  return repeat(n, n.integerScalar(n.i64(), std::max<int64_t>(100, k)), start, round)[0];
}

static void importSvmClassifier(Node &n) {
  Value x = featuresOf(n);
  Type element = elementOf(x);
  int64_t labels = labelCount(n, "classlabels_ints");
  Ints perClass = n.getInts("vectors_per_class", {});
  Value scores, classes;
  bool hasChances = !n.getFloats("prob_a").empty() && !perClass.empty();
  if (perClass.empty()) {
    scores = n.add(n.matmul(x, coefficientsOf(n, std::max<int64_t>(labels, 1), x)),
                   n.getFloats("rho").empty() ? 0.0 : n.getFloats("rho")[0]);
    classes = argMax(n, scores);
  } else {
    if ((int64_t)perClass.size() != labels || labels < 2)
      refuse("'vectors_per_class' has " + Twine(perClass.size()) + " entries, but there are " +
             Twine(labels) + " labels");
    Duels duels = duelsOf(n, x, perClass);
    Value wins = n.cast(n.compare<GreaterOp>(duels.scores, n.scalar(element, 0)), element);
    Value losses = n.sub(n.scalar(element, 1), wins);
    Value votes = n.add(n.matmul(wins, duels.forFirst), n.matmul(losses, duels.forSecond));
    scores = hasChances ? coupled(n, duels) : duels.scores;
    classes = argMax(n, votes);
    if (!hasChances && labels == 2)
      scores = bothSides(n, scores);
  }
  setLabels(n, classes, "classlabels_ints");
  if (n.wants(1))
    n.set(1, n.cast(postTransform(n, scores, n.getText("post_transform", "NONE")), n.f32()));
}

OpRows linearRows() {
  static const OpRow rows[] = {
      {"LinearRegressor", kMl, 1, 5, importLinearRegressor},
      {"LinearClassifier", kMl, 1, 5, importLinearClassifier},
      {"SVMRegressor", kMl, 1, 5, importSvmRegressor},
      {"SVMClassifier", kMl, 1, 5, importSvmClassifier},
  };
  return rows;
}

} // namespace heddle::onnx
