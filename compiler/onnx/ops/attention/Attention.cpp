// Attention: scaled dot products of queries and keys, softmax, and the weighted sum of values.

#include "compiler/onnx/ops/attention/Attention.h"

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/attention/Past.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Value splitHeads(Emitter &e, Value x, int64_t heads) {
  DimVector dims = dimsOf(x);
  if (dims.size() != 3)
    refuse("a tensor [batch, length, heads * size] is needed, but the shape is " + textOf(dims));
  if (heads < 1 || (dims[2].constant() && *dims[2].constant() % heads != 0))
    refuse("a last dimension of " + dims[2].str() + " cannot be split into " + Twine(heads) +
           " heads");
  Value split = e.reshape(x, {dims[0], dims[1], Dim(heads), dims[2].floorDiv(Dim(heads))});
  return e.transpose(split, {0, 2, 1, 3});
}

Value joinHeads(Emitter &e, Value x) {
  DimVector dims = dimsOf(x);
  return e.reshape(e.transpose(x, {0, 2, 1, 3}), {dims[0], dims[2], dims[1] * dims[3]});
}

/// x [batch, heads, length, size] with the heads of one group along the length.
static Value stackGroups(Emitter &e, Value x, const Dim &groups) {
  DimVector dims = dimsOf(x);
  if (dims[1] == groups)
    return x;
  auto heads = dims[1].constant(), count = groups.constant();
  if (heads && count && (*count < 1 || *heads % *count != 0))
    refuse(Twine(*heads) + " query heads cannot share " + Twine(*count) + " key heads");
  return e.reshape(x, {dims[0], groups, dims[1].floorDiv(groups) * dims[2], dims[3]});
}

Value attentionScores(Emitter &e, Value query, Value key) {
  DimVector dims = dimsOf(query), keyDims = dimsOf(key);
  Value product = e.matmul(stackGroups(e, query, keyDims[1]), transposeMatrix(e, key));
  return e.reshape(product, {dims[0], dims[1], dims[2], keyDims[2]});
}

Value attendTo(Emitter &e, Value probabilities, Value value) {
  DimVector dims = dimsOf(probabilities), valueDims = dimsOf(value);
  Value product = e.matmul(stackGroups(e, probabilities, valueDims[1]), value);
  return e.reshape(product, {dims[0], dims[1], dims[2], valueDims[3]});
}

Value causalMask(Emitter &e, const Dim &queries, const Dim &keys, Value offset) {
  DimVector dims = {queries, keys};
  Value row = e.iota(dims, 0, e.i64()), column = e.iota(dims, 1, e.i64());
  return e.compare<LessEqualOp>(column, offset ? e.add(row, offset) : row);
}

Value softCap(Emitter &e, Value x, double cap) {
  return e.mul(e.unary<TanhOp>(e.div(x, cap)), cap);
}

Value maskScores(Emitter &e, Value scores, Value allowed) {
  return allowed ? e.select(allowed, scores, e.scalar(elementOf(scores), -INFINITY)) : scores;
}

namespace {
/// Restrictions and shifts of the scores; null if there are none.
struct Masks {
  Value allowed, bias;
};
} // namespace

/// A mask may end before the keys do: what it leaves out is forbidden.
static Value lengthenMask(Node &n, Value mask, const Dim &keys) {
  DimVector dims = dimsOf(mask);
  if (dims.empty() || dims.back() == keys)
    return mask;
  auto known = (keys - dims.back()).constant();
  Dim missing = known ? Dim(std::max<int64_t>(*known, 0)) : Dim::max(keys - dims.back(), Dim(0));
  DimVector low(dims.size(), Dim(0)), high(dims.size(), Dim(0));
  high.back() = missing;
  Value filler =
      isFloat(mask) ? n.scalar(elementOf(mask), -INFINITY) : n.integerScalar(elementOf(mask), 0);
  return n.pad(mask, filler, low, high);
}

static Masks readMasks(Node &n, const Dim &queries, const Dim &keys) {
  Masks masks;
  auto allow = [&](Value condition) {
    masks.allowed = masks.allowed ? n.binary<AndOp>(masks.allowed, condition) : condition;
  };
  if (n.getInt("is_causal", 0))
    allow(causalMask(n, queries, keys, n.has(4) ? n.size(dimsOf(n.in(4))[2]) : Value()));
  if (n.has(3)) {
    Value mask = lengthenMask(n, n.in(3), keys);
    if (elementOf(mask).isInteger(1))
      allow(mask);
    else
      masks.bias = mask;
  }
  if (n.has(6)) { // [batch] -> [batch, 1, 1, keys]
    if (rankOf(n.in(6)) != 1)
      refuse("'nonpad_kv_seqlen' must have rank 1, but has " + Twine(rankOf(n.in(6))));
    Value length = n.unsqueeze(n.in(6), {1, 2, 3});
    allow(n.compare<LessOp>(countUp(n, keys, n.i64()), length));
  }
  return masks;
}

/// The square root of the scale, for both operands of the product.
static Value halfScale(Node &n, const Dim &size, Type element) {
  if (n.hasAttribute("scale"))
    return n.scalar(element, std::sqrt(n.getFloat("scale", 1)));
  if (auto known = size.constant())
    return n.scalar(element, 1 / std::sqrt(std::sqrt(static_cast<double>(*known))));
  Value root = n.unary<SqrtOp>(inverseRoot(n, size, wideType(n, element)));
  return n.cast(root, element);
}

static bool isUsualFloat(Type type) {
  return type.isF16() || type.isBF16() || type.isF32() || type.isF64();
}

/// The element type of the softmax.
static Type softmaxPrecision(Node &n, Type element) {
  Type precision = n.getElement("softmax_precision", wideType(n, element));
  if (!isUsualFloat(precision))
    refuse("'softmax_precision' is " + nameOf(precision) + ", but must be FLOAT, FLOAT16, DOUBLE " +
           "or BFLOAT16");
  return precision;
}

static Value headsOf(Node &n, size_t i, StringRef heads) {
  Value x = n.in(i);
  if (rankOf(x) == 3 && !n.hasAttribute(heads))
    refuse("inputs of rank 3 need the attribute '" + heads + "'");
  if (rankOf(x) == 3)
    return splitHeads(n, x, n.getInt(heads, 0));
  if (rankOf(x) != 4)
    refuse("input " + Twine(i) + " must have rank 3 or 4, but has " + Twine(rankOf(x)));
  return x;
}

static void importAttention(Node &n) {
  Value query = headsOf(n, 0, "q_num_heads"), key = headsOf(n, 1, "kv_num_heads"),
        value = headsOf(n, 2, "kv_num_heads");
  Type element = elementOf(query);
  if (n.has(4) != n.has(5))
    refuse("'past_key' and 'past_value' must be given together");
  if (n.has(4)) {
    key = appendToPast(n, n.in(4), key, 2);
    value = appendToPast(n, n.in(5), value, 2);
  }
  Value scale = halfScale(n, dimsOf(query)[3], element);
  Value scores = attentionScores(n, n.mul(query, scale), n.mul(key, scale));
  int64_t mode = n.getInt("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3)
    refuse("'qk_matmul_output_mode' is " + Twine(mode) + ", but must be 0, 1, 2 or 3");
  SmallVector<Value, 4> stages = {scores};
  if (double cap = n.getFloat("softcap", 0); cap > 0)
    scores = softCap(n, scores, cap);
  stages.push_back(scores);
  Masks masks = readMasks(n, dimsOf(query)[2], dimsOf(key)[2]);
  DimVector dims = dimsOf(scores);
  if (masks.bias)
    scores = n.broadcast(n.add(scores, n.cast(masks.bias, element)), dims);
  scores = n.broadcast(maskScores(n, scores, masks.allowed), dims);
  stages.push_back(scores);
  Type precision = softmaxPrecision(n, element);
  Value probabilities = n.cast(n.softmax(n.cast(scores, precision), {3}), element);
  stages.push_back(probabilities);
  Value y = attendTo(n, n.cast(probabilities, elementOf(value)), value);
  y = n.cast(y, element);
  n.set(0, rankOf(n.in(0)) == 3 ? joinHeads(n, y) : y);
  if (n.wants(1))
    n.set(1, key);
  if (n.wants(2))
    n.set(2, value);
  if (n.wants(3))
    n.set(3, stages[mode]);
}

/// Applies the subgraph `name`, which keeps shape and element type, if there is one.
static Value modified(Node &n, StringRef name, Value x) {
  if (!n.hasAttribute(name))
    return x;
  SmallVector<Value> values = n.reader.readSubgraph(n.getGraph(name), n.scope, x);
  if (values.size() != 1 || elementOf(values[0]) != elementOf(x) || rankOf(values[0]) != 4)
    refuse("'" + name + "' must have one output of the type of its input");
  return n.broadcast(values[0], dimsOf(x));
}

static void importFlexAttention(Node &n) {
  Value query = n.in(0), key = n.in(1), value = n.in(2);
  Type element = elementOf(query);
  for (size_t i : {0, 1, 2})
    if (rankOf(n.in(i)) != 4)
      refuse("input " + Twine(i) + " must have rank 4, but has " + Twine(rankOf(n.in(i))));
  Value scale = halfScale(n, dimsOf(query)[3], element);
  Value scores = attentionScores(n, n.mul(query, scale), n.mul(key, scale));
  Type precision = softmaxPrecision(n, element);
  scores = modified(n, "score_mod", n.cast(scores, precision));
  Value probabilities = modified(n, "prob_mod", n.softmax(scores, {3}));
  n.set(n.cast(attendTo(n, probabilities, n.cast(value, precision)), elementOf(value)));
}

OpRows attentionRows() {
  static const OpRow rows[] = {
      {"Attention", "", 23, 27, importAttention},
      {"FlexAttention", kPreview, 1, 1, importFlexAttention},
  };
  return rows;
}

} // namespace heddle::onnx
