// Linear: ops of language models whose attention is a recurrence: the state of each head is a
// matrix that every token decays and adds to, so that a token costs the same at any length.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Activations.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Walk.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// Refuses what only kernels for one kind of device have.
static void requireDefaults(Node &n, ArrayRef<std::pair<StringRef, int64_t>> defaults) {
  for (auto [name, value] : defaults)
    if (n.getInt(name, value) != value)
      refuse("'" + name + "' is " + Twine(n.getInt(name, value)) + ", but only " + Twine(value) +
             " is supported");
}

/// scale * softplus(a + bias), and sigmoid(b).
static void importLinearAttentionGate(Node &n) {
  Value a = n.in(0);
  Type wide = wideType(n, elementOf(a));
  Value sum = n.add(n.cast(a, wide), n.cast(n.in(1), wide));
  Value decay = n.mul(softplus(n, sum), n.cast(n.in(2), wide));
  n.set(0, n.cast(decay, elementOf(a)));
  if (n.wants(1))
    n.set(1, n.cast(sigmoid(n, n.cast(n.in(3), wide)), elementOf(a)));
}

/// x / sqrt(mean(x^2) + epsilon) * scale * activation(gate), for each group of as many elements as
/// `scale` has.
static void importGatedRmsNorm(Node &n) {
  Value x = n.in(0), scale = n.in(1);
  Type element = elementOf(x), wide = wideType(n, element);
  std::string activation = n.getText("activation", "silu");
  if (!llvm::is_contained({"silu", "swish", "sigmoid"}, activation))
    refuse("'activation' is '" + activation + "', but must be 'silu', 'swish' or 'sigmoid'");
  if (rankOf(scale) != 1 || rankOf(x) < 1)
    refuse("'scale' must have rank 1, but has " + Twine(rankOf(scale)));
  DimVector dims = dimsOf(x), split(dims);
  Dim size = dimsOf(scale)[0];
  split.back() = dims.back().floorDiv(size);
  split.push_back(size);
  int64_t last = split.size() - 1;
  Value groups = n.reshape(n.cast(x, wide), split);
  Value squares = n.mean(n.mul(groups, groups), {last});
  Value root = n.unary<SqrtOp>(n.add(squares, n.getFloat("epsilon", 1e-6)));
  Value normal = n.mul(n.div(groups, root), n.cast(scale, wide));
  Value gate = n.cast(n.in(2), wide), share = sigmoid(n, gate);
  Value factor = activation == "sigmoid" ? share : n.mul(gate, share);
  n.set(n.cast(n.mul(n.reshape(normal, dims), factor), element));
}

static void importGatedAdd(Node &n) {
  if (n.has(3))
    refuse("'gate_weight' is not supported", "project the gate with MatMul and Sigmoid before it");
  n.set(n.add(n.in(0), n.mul(n.in(1), n.in(2))));
}

/// A sum over the taps of each channel, of this token and those before it; what comes before the
/// first one is the past state, [batch, channels, taps - 1].
static void importCausalConvWithState(Node &n) {
  requireDefaults(n, {{"ndim", 1},
                      {"state_window", 0},
                      {"state_update_capacity", 0},
                      {"state_channels_last", -1},
                      {"state_length", 0},
                      {"input_channel_offset", 0},
                      {"input_channels", 0}});
  Value x = n.in(0), weights = n.in(1);
  Type element = elementOf(x), wide = wideType(n, element);
  std::string activation = n.getText("activation", "none");
  if (!llvm::is_contained({"silu", "swish", "none"}, activation))
    refuse("'activation' is '" + activation + "', but must be 'silu', 'swish' or 'none'");
  bool isLast = n.getInt("channels_last", 0);
  DimVector dims = dimsOf(x);
  auto taps = rankOf(weights) == 3 ? dimsOf(weights)[2].constant() : std::nullopt;
  int64_t dilation = n.getInt("dilation", 1);
  if (!taps || *taps < 1 || *taps > 64 || dilation < 1 || dims.size() < 3 ||
      (!isLast && dims.size() != 3))
    refuse("the input must have rank 3, the weights the shape [channels, 1, taps] with 1 to 64 " +
           Twine("taps, and 'dilation' must be at least 1"));
  Dim channels = dimsOf(weights)[0], reach((*taps - 1) * dilation);
  auto channelsFirst = [&](Value value) {
    if (!isLast)
      return n.cast(value, wide);
    DimVector own = dimsOf(value);
    Value rows = n.reshape(n.cast(value, wide), {own[0], own[1], channels});
    return n.transpose(rows, {0, 2, 1});
  };
  auto asGiven = [&](Value value, Type type) {
    if (!isLast)
      return n.cast(value, type);
    DimVector own = dims;
    own[1] = dimsOf(value)[2];
    return n.cast(n.reshape(n.transpose(value, {0, 2, 1}), own), type);
  };
  Value fresh = channelsFirst(x);
  Dim length = dimsOf(fresh)[2];
  Value past = n.has(3) ? channelsFirst(n.in(3)) : n.full({dims[0], channels, reach}, wide, 0);
  Value whole = n.concat({past, fresh}, 2), sum;
  for (int64_t i = 0; i < *taps; ++i) {
    Value tap =
        n.cast(n.reshape(n.sliceAlong(weights, 2, Dim(i), Dim(1)), {channels, Dim(1)}), wide);
    Value term = n.mul(n.sliceAlong(whole, 2, Dim(i * dilation), length), tap);
    sum = sum ? n.add(sum, term) : term;
  }
  if (n.has(2))
    sum = n.add(sum, n.cast(n.unsqueeze(n.in(2), {1}), wide));
  if (activation != "none")
    sum = n.mul(sum, sigmoid(n, sum));
  n.set(0, asGiven(sum, element));
  if (n.wants(1))
    n.set(1, asGiven(n.sliceAlong(whole, 2, length, reach), element));
}

/// With the state S [batch, heads, size of keys, size of values] of each token t:
///   S_t = exp(decay_t) S_{t-1} + key_t (value_t - delta) and y_t = scale * query_t S_t,
/// where a delta rule has delta = key_t exp(decay_t) S_{t-1}, and the difference beta_t times.
static void importLinearAttention(Node &n) {
  requireDefaults(n, {{"state_window", 0}});
  std::string rule = n.getText("update_rule", "gated_delta");
  if (!llvm::is_contained({"linear", "gated", "delta", "gated_delta"}, rule))
    refuse("'update_rule' is '" + rule +
           "', but must be 'linear', 'gated', 'delta' or 'gated_delta'");
  bool isGated = StringRef(rule).starts_with("gated"), isDelta = StringRef(rule).ends_with("delta");
  int64_t queries = n.getInt("q_num_heads", 0), heads = n.getInt("kv_num_heads", 0);
  if (queries < 1 || heads < 1 || std::max(queries, heads) % std::min(queries, heads) != 0)
    refuse("'q_num_heads' and 'kv_num_heads' are " + Twine(queries) + " and " + Twine(heads) +
           ", but one must divide the other");
  Value query = n.in(0);
  Type element = elementOf(query), wide = wideType(n, element);
  DimVector dims = dimsOf(query);
  for (size_t i : {0, 1, 2})
    if (rankOf(n.in(i)) != 3)
      refuse("input " + Twine(i) + " must have rank 3, but has " + Twine(rankOf(n.in(i))));
  Dim size = dims[2].floorDiv(Dim(queries)), width = dimsOf(n.in(2))[2].floorDiv(Dim(heads));
  int64_t shared = std::max<int64_t>(queries / heads, 1);
  // [length, batch, heads, size], whose entries the walk takes.
  auto steps = [&](Value x, int64_t count, const Dim &each) {
    DimVector own = {dims[0], dims[1], Dim(count), each};
    return n.transpose(n.reshape(n.cast(x, wide), own), {1, 0, 2, 3});
  };
  Value asked = steps(query, queries, size);
  if (heads > queries) { // one query for several keys
    Value each = n.broadcast(n.unsqueeze(asked, {3}),
                             {dims[1], dims[0], Dim(queries), Dim(heads / queries), size});
    asked = n.reshape(each, {dims[1], dims[0], Dim(heads), size});
  }
  SmallVector<Value> walked = {asked, steps(n.in(1), heads, size), steps(n.in(2), heads, width)};
  if (isGated)
    walked.push_back(steps(n.in(4), heads, dimsOf(n.in(4))[2].floorDiv(Dim(heads))));
  if (isDelta) {
    bool isOne = dimsOf(n.in(5))[2].isConstant(1);
    walked.push_back(steps(n.in(5), isOne ? 1 : heads, Dim(1)));
  }
  double given = n.getFloat("scale", 0);
  Value scale = given != 0 ? n.scalar(wide, given) : inverseRoot(n, size, wide);
  DimVector stateDims = {dims[0], Dim(heads), size, width};
  auto step = [&](ArrayRef<Value> states, ArrayRef<Value> slices) -> SmallVector<Value> {
    Value state = states[0], key = n.unsqueeze(slices[1], {3});
    if (isGated)
      state = n.mul(state, n.unsqueeze(n.unary<ExpOp>(slices[3]), {3}));
    Value added = slices[2];
    if (isDelta) {
      Value known = n.reduce<ReduceSumOp>(n.mul(state, key), {2}, false);
      added = n.mul(n.sub(added, known), slices.back());
    }
    state = n.broadcast(n.add(state, n.mul(key, n.unsqueeze(added, {2}))), stateDims);
    Value rows = n.reshape(slices[0], {dims[0], Dim(heads), Dim(shared), size});
    Value y = n.mul(n.matmul(rows, state), scale);
    return {state, n.reshape(y, {dims[0], Dim(heads * shared) * width})};
  };
  Value start = n.has(3) ? n.reshape(n.cast(n.in(3), wide), stateDims) : n.full(stateDims, wide, 0);
  SmallVector<Value> found = walk(n, start, walked, step);
  n.set(0, n.cast(n.transpose(found[1], {1, 0, 2}), element));
  if (n.wants(1))
    n.set(1, n.cast(found[0], n.has(3) ? elementOf(n.in(3)) : element));
}

OpRows contribLinearRows() {
  static const OpRow rows[] = {
      {"LinearAttention", kMicrosoft, 1, 1, importLinearAttention, false, "no window of states"},
      {"LinearAttentionGate", kMicrosoft, 1, 1, importLinearAttentionGate},
      {"CausalConvWithState", kMicrosoft, 1, 1, importCausalConvWithState, false,
       "one dimension, no window of states"},
      {"GatedRMSNorm", kMicrosoft, 1, 1, importGatedRmsNorm},
      {"GatedAdd", kMicrosoft, 1, 1, importGatedAdd, false, "no weight of the gate"},
  };
  return rows;
}

} // namespace heddle::onnx
