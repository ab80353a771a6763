// Features: ops of ai.onnx.ml that prepare the columns of a table.

#include "compiler/onnx/Agreement.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/ml/Scores.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static void importBinarizer(Node &n) {
  Value x = n.in(0);
  float threshold = n.getFloat("threshold", 0);
  Type element = elementOf(x), wide = isFloat(x) ? element : n.builder.getF64Type();
  n.set(n.cast(n.compare<GreaterOp>(n.cast(x, wide), n.scalar(wide, threshold)), element));
}

/// Attribute `name` as a constant that broadcasts along the last dimension of x.
static Value perFeature(Node &n, Value x, StringRef name, Type element) {
  auto values = n.getFloats(name);
  if (values.size() == 1)
    return n.scalar(element, values[0]);
  agreed(n, dimsOf(x).back(), Dim(values.size()),
         "the input has %lld features, but '" + name.str() + "' has %lld entries");
  return numbers(n, values, {(int64_t)values.size()}, element);
}

static void importScaler(Node &n) {
  Value x = n.in(0);
  Type wide = elementOf(x).isF64() ? elementOf(x) : n.f32();
  Value y = n.cast(x, wide);
  if (n.hasAttribute("offset"))
    y = n.sub(y, perFeature(n, x, "offset", wide));
  if (n.hasAttribute("scale"))
    y = n.mul(y, perFeature(n, x, "scale", wide));
  n.set(n.cast(n.broadcast(y, dimsOf(x)), n.f32()));
}

static void importImputer(Node &n) {
  Value x = n.in(0), isMissing, value;
  Type element = elementOf(x);
  if (isFloat(x)) {
    double replaced = n.getFloat("replaced_value_float", 0);
    isMissing = std::isnan(replaced) ? n.infer<IsNanOp>(x)
                                     : n.compare<EqualOp>(x, n.scalar(element, replaced));
    if (!n.hasAttribute("imputed_value_floats"))
      refuse("'imputed_value_floats' is missing");
    value = perFeature(n, x, "imputed_value_floats", element);
  } else {
    int64_t replaced = n.getInt("replaced_value_int64", 0);
    isMissing = n.compare<EqualOp>(x, n.integerScalar(element, replaced));
    Ints values = n.getInts("imputed_value_int64s", {});
    if (values.empty())
      refuse("'imputed_value_int64s' is missing");
    value = n.cast(n.integers(values), element);
    if (values.size() == 1)
      value = n.reshape(value, {});
  }
  n.set(n.broadcast(n.select(isMissing, value, x), dimsOf(x)));
}

static void importNormalizer(Node &n) {
  Value x = n.in(0);
  Type wide = elementOf(x).isF64() ? elementOf(x) : n.f32();
  x = n.cast(x, wide);
  Ints axes = {rankOf(x) - 1};
  if (rankOf(x) < 1)
    refuse("the input is a scalar");
  std::string norm = n.getText("norm", "MAX");
  Value divisor, zero = n.scalar(wide, 0);
  if (norm == "MAX")
    divisor = n.reduce<ReduceMaxOp>(x, axes);
  else if (norm == "L1")
    divisor = n.reduce<ReduceSumOp>(n.unary<AbsOp>(x), axes);
  else if (norm == "L2")
    divisor = n.unary<SqrtOp>(n.reduce<ReduceSumOp>(n.mul(x, x), axes));
  else
    refuse("'norm' is '" + norm + "', but must be 'MAX', 'L1' or 'L2'");
  Value y = n.select(n.compare<EqualOp>(divisor, zero), x, n.div(x, divisor));
  n.set(n.cast(y, n.f32()));
}

static void importFeatureVectorizer(Node &n) {
  Ints sizes = n.getInts("inputdimensions", {});
  SmallVector<Value> parts;
  for (size_t i = 0; i < n.inputs(); ++i) {
    Value x = n.cast(n.in(i), n.f32());
    DimVector dims = dimsOf(x);
    if (dims.size() == 1)
      x = n.unsqueeze(x, {0});
    else if (dims.size() != 2)
      x = n.reshape(x, {dims.empty() ? Dim(1) : dims[0],
                        elementCount(ArrayRef<Dim>(dims).drop_front(!dims.empty()))});
    if (i < sizes.size() && dimsOf(x)[1] != Dim(sizes[i]))
      x = n.sliceAlong(x, 1, Dim(0), Dim(sizes[i]));
    parts.push_back(x);
  }
  if (parts.empty())
    refuse("it has no inputs");
  Dim rows = dimsOf(parts[0])[0];
  for (Value &part : parts)
    part = n.broadcast(part, {rows, dimsOf(part)[1]});
  n.set(n.concat(parts, 1));
}

OpRows featureRows() {
  static const OpRow rows[] = {
      {"Binarizer", kMl, 1, 5, importBinarizer},
      {"Scaler", kMl, 1, 5, importScaler},
      {"Imputer", kMl, 1, 5, importImputer},
      {"Normalizer", kMl, 1, 5, importNormalizer},
      {"FeatureVectorizer", kMl, 1, 5, importFeatureVectorizer},
  };
  return rows;
}

} // namespace heddle::onnx
