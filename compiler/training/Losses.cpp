// Losses: each is a number for each label; what all share is the mean over those that count.
// Derivatives are written down, not derived: that of a softmax's cross entropy needs no division
// by probabilities, and reads the logits that the loss reads.

#include "compiler/training/Losses.h"

#include "compiler/support/Error.h"

using namespace mlir;
using namespace heddle::graph;
using heddle::grad::attributeOf;
using heddle::grad::Maker;

namespace heddle::training {

namespace {
/// Per label, before the mean.
struct Each {
  Value error;    // shaped as the labels
  Value gradient; // the error's, with respect to the output, in the output's shape
};

/// Losses whose labels are classes: indices along one axis of the output.
class OfClasses {
public:
  OfClasses(Maker &m, const Recipe &recipe, Value output, Value labels)
      : m(m), output(output), dims(dimsOf(output)), axis(axisOf(recipe, output)), kept(dims) {
    kept[axis] = Dim(1);
    labels = m.cast(labels, m.builder.getI64Type());
    if (recipe.ignoreIndex) {
      Value ignored = integers(labels, *recipe.ignoreIndex);
      counted = m.compare<NotEqualOp>(labels, ignored);
      labels = m.select(counted, labels, integers(labels, 0));
    }
    // A gather counts negative indices from the end, but no class does.
    Value count = m.broadcast(sizeOf(dims[axis]), dimsOf(labels));
    Value isNegative = m.compare<LessOp>(labels, m.zeros(labels));
    indices = m.reshape(m.select(isNegative, count, labels), kept);
  }

  static int64_t axisOf(const Recipe &recipe, Value output) {
    int64_t rank = rankOf(output);
    return recipe.classAxis < 0 ? recipe.classAxis + rank : recipe.classAxis;
  }

  Each crossEntropy(double smoothing) {
    Value largest = m.make<ReduceMaxOp>(output, ArrayRef<int64_t>(axis), /*keep_dims=*/true);
    Value powers = m.unary<ExpOp>(m.sub(output, m.broadcast(largest, dims)));
    Value sum = m.sum(powers, axis, /*keepDims=*/true);
    Value whole = m.add(m.unary<LogOp>(sum), largest); // log of the sum of exp(output)
    Value error = m.sub(whole, picked()), target = isLabel();
    if (smoothing > 0) {
      Value share = m.div(m.scalar(elementOf(output), smoothing),
                          m.cast(sizeOf(dims[axis]), elementOf(output)));
      Value mean = m.mul(m.sum(output, axis, true), m.broadcast(share, kept));
      error = m.sub(m.add(m.mul(error, 1 - smoothing), m.mul(whole, smoothing)), mean);
      target = m.add(m.mul(target, 1 - smoothing), m.broadcast(share, dims));
    }
    return {withoutClasses(error), m.sub(m.div(powers, m.broadcast(sum, dims)), target)};
  }

  Each likelihood() { return {withoutClasses(m.neg(picked())), m.neg(isLabel())}; }

  /// One for each label that counts; null if all do.
  Value counts() { return counted ? m.cast(counted, elementOf(output)) : Value(); }
  /// A number for each label in the shape of the output.
  Value spread(Value each) { return m.broadcast(m.reshape(each, kept), dims); }

private:
  Value sizeOf(const Dim &size) {
    return m.typed<SizesOp>({}, m.builder.getI64Type(), attributeOf(m, size));
  }
  Value integers(Value like, int64_t value) { return m.like(like, static_cast<double>(value)); }
  /// The output at the labels; the run refuses a label that is no class.
  Value picked() { return m.make<GatherElementsOp>(output, indices, axis); }
  Value isLabel() {
    Value classes = m.iota(dims, axis);
    return m.cast(m.compare<EqualOp>(classes, m.broadcast(indices, dims)), elementOf(output));
  }
  Value withoutClasses(Value x) {
    DimVector each = dims;
    each.erase(each.begin() + axis);
    return m.reshape(x, each);
  }

  Maker &m;
  Value output;
  DimVector dims;
  int64_t axis;
  DimVector kept; // the output's sizes with one class
  Value counted, indices;
};
} // namespace

static Each binaryOfLogits(Maker &m, Value x, Value t) {
  Value softplus = m.unary<Log1pOp>(m.unary<ExpOp>(m.neg(m.unary<AbsOp>(x))));
  Value error = m.add(m.sub(m.binary<MaxOp>(x, m.zeros(x)), m.mul(x, t)), softplus);
  return {error, m.sub(m.unary<SigmoidOp>(x), t)};
}

/// Logarithms are at least -100 and divisors at least 1e-12, as PyTorch's.
static Each binary(Maker &m, Value p, Value t) {
  Value rest = m.sub(1, p), other = m.sub(1, t);
  auto log = [&](Value x) { return m.binary<MaxOp>(m.unary<LogOp>(x), m.like(x, -100)); };
  Value error = m.neg(m.add(m.mul(t, log(p)), m.mul(other, log(rest))));
  return {error, m.div(m.sub(p, t), m.binary<MaxOp>(m.mul(p, rest), m.like(p, 1e-12)))};
}

static Each squared(Maker &m, Value x, Value t) {
  Value difference = m.sub(x, t);
  return {m.mul(difference, difference), m.mul(difference, 2)};
}

static Each absolute(Maker &m, Value x, Value t) {
  Value difference = m.sub(x, t);
  return {m.unary<AbsOp>(difference), m.unary<SignOp>(difference)};
}

/// Huber, Robust Estimation of a Location Parameter (1964).
static Each huber(Maker &m, Value x, Value t, double delta) {
  Value difference = m.sub(x, t), size = m.unary<AbsOp>(difference);
  Value isNear = m.compare<LessEqualOp>(size, m.like(size, delta));
  Value near = m.mul(m.mul(difference, difference), 0.5);
  Value far = m.mul(m.add(size, -0.5 * delta), delta);
  return {m.select(isNear, near, far),
          m.select(isNear, difference, m.mul(m.unary<SignOp>(difference), delta))};
}

ArrayRef<StringRef> lossNames() {
  static const StringRef names[] = {"cross_entropy", "nll", "bce",   "bce_with_logits",
                                    "mse",           "mae", "huber", "output"};
  return names;
}

static bool isOfClasses(const Recipe &recipe) {
  return recipe.loss == "cross_entropy" || recipe.loss == "nll";
}

llvm::Expected<Type> labelsType(const Recipe &recipe, Value output) {
  auto refused = [&](const Twine &why) {
    return makeError(ErrorCode::Refused, "the loss '" + recipe.loss + "' " + why);
  };
  DimVector dims = dimsOf(output);
  if (!isa<FloatType>(elementOf(output)))
    return refused("needs an output of floating-point numbers, but '" + recipe.output +
                   "' has others");
  if (recipe.loss == "output") {
    if (!elementCount(dims).isConstant(1))
      return refused("is the output '" + recipe.output +
                     "' itself, which must be one number, but "
                     "has the shape " +
                     grad::textOf(dims));
    return Type();
  }
  if (!isOfClasses(recipe))
    return output.getType();
  int64_t rank = rankOf(output), axis = OfClasses::axisOf(recipe, output);
  if (axis < 0 || axis >= rank)
    return refused("has its classes along axis " + Twine(recipe.classAxis) + " ('class_axis'), " +
                   "but the output '" + recipe.output + "' has the shape " + grad::textOf(dims));
  dims.erase(dims.begin() + axis);
  MLIRContext *context = output.getContext();
  return tensorOf(context, dims, IntegerType::get(context, 64));
}

static Each numbersLoss(Maker &m, const Recipe &recipe, Value output, Value labels) {
  if (recipe.loss == "bce")
    return binary(m, output, labels);
  if (recipe.loss == "bce_with_logits")
    return binaryOfLogits(m, output, labels);
  if (recipe.loss == "mse")
    return squared(m, output, labels);
  if (recipe.loss == "mae")
    return absolute(m, output, labels);
  return huber(m, output, labels, recipe.delta);
}

static Value sumOfAll(Maker &m, Value x) {
  return m.sum(x, llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x))));
}

static Value countOfAll(Maker &m, Value x) {
  Value count =
      m.typed<SizesOp>({}, m.builder.getI64Type(), attributeOf(m, elementCount(dimsOf(x))));
  return m.cast(count, elementOf(x));
}

Loss makeLoss(Maker &m, const Recipe &recipe, Value output, Value labels) {
  if (recipe.loss == "output")
    return {m.reshape(output, {}), m.like(output, 1)};
  if (!isOfClasses(recipe)) {
    Each each = numbersLoss(m, recipe, output, labels);
    Value share = m.div(m.scalar(elementOf(output), 1), countOfAll(m, output));
    return {m.mul(sumOfAll(m, each.error), share),
            m.mul(each.gradient, m.broadcast(share, dimsOf(output)))};
  }
  OfClasses classes(m, recipe, output, labels);
  Each each =
      recipe.loss == "nll" ? classes.likelihood() : classes.crossEntropy(recipe.labelSmoothing);
  Value counts = classes.counts(), error = each.error;
  Value count = counts ? sumOfAll(m, counts) : countOfAll(m, error);
  Value share = m.div(m.scalar(elementOf(output), 1), count);
  Value shares = m.broadcast(share, dimsOf(error));
  if (counts) {
    error = m.mul(error, counts);
    shares = m.mul(shares, counts);
  }
  return {m.mul(sumOfAll(m, error), share), m.mul(each.gradient, classes.spread(shares))};
}

} // namespace heddle::training
