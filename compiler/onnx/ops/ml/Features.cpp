// Features: ops of ai.onnx.ml that prepare the columns of a table.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/ml/Scores.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static void importBinarizer(Node &n) {
  Value x = n.in(0);
  n.set(n.cast(n.compare<GreaterOp>(x, n.scalar(elementOf(x), n.getFloat("threshold", 0))),
               elementOf(x)));
}

/// Attribute `name` as a constant that broadcasts along the last dimension.
static Value perFeature(Node &n, StringRef name, Type element) {
  auto values = n.getFloats(name);
  if (values.size() == 1)
    return n.scalar(element, values[0]);
  return numbers(n, values, {(int64_t)values.size()}, element);
}

static void importScaler(Node &n) {
  Value x = n.in(0);
  Type wide = elementOf(x).isF64() ? elementOf(x) : n.f32();
  Value y = n.cast(x, wide);
  if (n.hasAttribute("offset"))
    y = n.sub(y, perFeature(n, "offset", wide));
  if (n.hasAttribute("scale"))
    y = n.mul(y, perFeature(n, "scale", wide));
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
    value = perFeature(n, "imputed_value_floats", element);
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

static void importOneHotEncoder(Node &n) {
  Value x = n.in(0);
  Ints categories = n.getInts("cats_int64s", {});
  if (categories.empty())
    refuse("'cats_int64s' is missing: only categories that are integers are supported");
  Value places = n.unsqueeze(n.cast(x, n.i64()), {rankOf(x)});
  Value isHot = n.compare<EqualOp>(places, n.integers(categories));
  if (!n.getInt("zeros", 1)) {
    Value hits = n.reduce<ReduceSumOp>(n.cast(isHot, n.i64()), {rankOf(x)}, false);
    Ints axes = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
    Value least = n.reshape(n.reduce<ReduceMinOp>(hits, axes, false), {Dim(1)});
    n.requireNotNegative(n.sub(least, n.integerScalar(n.i64(), 1)),
                         "an element is no category, and 'zeros' is 0");
  }
  n.set(n.cast(isHot, n.f32()));
}

/// Keys or values: the attribute of floats, of integers, or a tensor.
static NumberList readList(Node &n, StringRef stem) {
  NumberList list = tensorList(n, (stem + "_tensor").str());
  std::string floats = (stem + "_floats").str(), integers = (stem + "_int64s").str();
  if (n.hasAttribute(floats)) {
    list.element = n.f32();
    list.reals = n.getFloats(floats);
  } else if (n.hasAttribute(integers)) {
    list.element = n.i64();
    list.integers = n.getInts(integers, {});
  }
  return list;
}

/// Where in the sorted list of keys each element of x is, by halving; and whether it is there.
static std::pair<Value, Value> findKeys(Node &n, Value x, const NumberList &keys) {
  Value list = listConstant(n, keys);
  int64_t count = keys.size(), stride = 1;
  while (stride * 2 < count)
    stride *= 2;
  Value place = n.broadcast(n.integerScalar(n.i64(), 0), dimsOf(x));
  for (; stride > 0 && count > 1; stride /= 2) {
    Value next = n.add(place, n.integerScalar(n.i64(), stride));
    Value bounded = n.binary<MinOp>(next, n.integerScalar(n.i64(), count - 1));
    Value isBelow = n.compare<LessEqualOp>(n.gather(list, bounded, 0), x);
    Value fits = n.compare<LessOp>(next, n.integerScalar(n.i64(), count));
    place = n.select(n.binary<AndOp>(isBelow, fits), next, place);
  }
  return {place, n.compare<EqualOp>(n.gather(list, place, 0), x)};
}

static void importLabelEncoder(Node &n) {
  if (n.opset < 2)
    refuse("LabelEncoder of opset 1 is not supported",
           "export the model for ai.onnx.ml 2 or newer");
  NumberList keys = readList(n, "keys"), values = readList(n, "values");
  std::vector<std::string> texts = n.getTexts("values_strings");
  if (!keys.element)
    refuse("keys that are strings are not supported");
  size_t count = texts.empty() ? values.size() : texts.size();
  if (keys.size() == 0 || keys.size() != count)
    refuse("there are " + Twine(keys.size()) + " keys and " + Twine(count) + " values");
  // Keys in order, the first of equal ones; a key that is not a number is told apart.
  Ints order;
  std::optional<int64_t> notANumber;
  for (int64_t i = 0; i < (int64_t)keys.size(); ++i) {
    if (keys.isReal() && std::isnan(keys.reals[i]))
      notANumber = notANumber.value_or(i);
    else
      order.push_back(i);
  }
  auto isLess = [&](int64_t a, int64_t b) {
    return keys.isReal() ? keys.reals[a] < keys.reals[b] : keys.integers[a] < keys.integers[b];
  };
  llvm::sort(order, [&](int64_t a, int64_t b) { return isLess(a, b) || (!isLess(b, a) && a < b); });
  order.erase(std::unique(order.begin(), order.end(),
                          [&](int64_t a, int64_t b) { return !isLess(a, b) && !isLess(b, a); }),
              order.end());
  NumberList sorted{keys.element, {}, {}};
  for (int64_t i : order)
    keys.isReal() ? sorted.reals.push_back(keys.reals[i])
                  : sorted.integers.push_back(keys.integers[i]);
  Value x = n.cast(n.in(0), keys.element);
  Value index = n.broadcast(n.integerScalar(n.i64(), count), dimsOf(x)); // of the default
  if (!order.empty()) {
    auto [place, isThere] = findKeys(n, x, sorted);
    index = n.select(isThere, n.gather(n.integers(order), place, 0), index);
  }
  if (notANumber && n.opset >= 4) // before, it equalled nothing
    index = n.select(n.infer<IsNanOp>(x), n.integerScalar(n.i64(), *notANumber), index);
  if (!texts.empty()) {
    auto labels = std::make_shared<Labels>();
    for (const std::string &text : texts)
      labels->values.push_back(n.builder.getStringAttr(text));
    labels->values.push_back(n.builder.getStringAttr(n.getText("default_string", "_Unused")));
    n.set(index);
    n.resultLabels[0] = labels;
    return;
  }
  NumberList other = tensorList(n, "default_tensor");
  if (values.isReal())
    values.reals.push_back(other.isReal() && other.size() ? other.reals[0]
                                                          : n.getFloat("default_float", -0.0));
  else
    values.integers.push_back(other.size() && !other.isReal() ? other.integers[0]
                                                              : n.getInt("default_int64", -1));
  n.set(n.gather(listConstant(n, values), index, 0));
}

OpRows featureRows() {
  static const OpRow rows[] = {
      {"Binarizer", kMl, 1, 5, importBinarizer},
      {"Scaler", kMl, 1, 5, importScaler},
      {"Imputer", kMl, 1, 5, importImputer},
      {"Normalizer", kMl, 1, 5, importNormalizer},
      {"FeatureVectorizer", kMl, 1, 5, importFeatureVectorizer},
      {"OneHotEncoder", kMl, 1, 5, importOneHotEncoder, false, "categories that are integers"},
      {"LabelEncoder", kMl, 1, 5, importLabelEncoder, false, "keys that are numbers"},
  };
  return rows;
}

} // namespace heddle::onnx
