// Sequence: what language models put around attention: rotary positions, caches that are written
// in place, and the recurrences that replace attention.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Activations.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Walk.h"
#include "compiler/onnx/ops/attention/Attention.h"
#include "compiler/onnx/ops/attention/Past.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

Value rotatePairs(Emitter &e, Value x, Value cosine, Value sine, bool interleaved) {
  DimVector dims = dimsOf(x), pairs = dims;
  int64_t last = dims.size() - 1;
  if (auto size = dims[last].constant(); size && *size % 2 != 0)
    refuse("the rotated size is " + Twine(*size) + ", but must be even");
  Dim half = dims[last].floorDiv(Dim(2));
  int64_t axis = interleaved ? last + 1 : last;
  pairs[last] = interleaved ? half : Dim(2);
  pairs.push_back(interleaved ? Dim(2) : half);
  Value paired = e.reshape(x, pairs);
  DimVector part = dims;
  part[last] = half;
  Value first = e.reshape(e.sliceAlong(paired, axis, Dim(0), Dim(1)), part);
  Value second = e.reshape(e.sliceAlong(paired, axis, Dim(1), Dim(1)), part);
  Value real = e.broadcast(e.sub(e.mul(cosine, first), e.mul(sine, second)), part);
  Value imaginary = e.broadcast(e.add(e.mul(sine, first), e.mul(cosine, second)), part);
  Value both = e.concat({e.unsqueeze(real, {axis}), e.unsqueeze(imaginary, {axis})}, axis);
  return e.reshape(both, dims);
}

static void importRotaryEmbedding(Node &n) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  bool isPacked = dims.size() == 3; // [batch, length, heads * size], else heads before length
  if (!isPacked && dims.size() != 4)
    refuse("the input must have rank 3 or 4, but has " + Twine(dims.size()));
  int64_t heads = n.getInt("num_heads", 0);
  if (isPacked && heads < 1)
    refuse("an input of rank 3 needs the attribute 'num_heads'");
  if (isPacked)
    x = n.reshape(x, {dims[0], dims[1], Dim(heads), dims[2].floorDiv(Dim(heads))});
  Value cosine = n.in(1), sine = n.in(2);
  if (n.has(3)) {
    cosine = n.gather(cosine, n.in(3), 0);
    sine = n.gather(sine, n.in(3), 0);
  }
  if (rankOf(cosine) != 3 || rankOf(sine) != 3)
    refuse("cosines and sines must have rank 2 with position ids, else rank 3");
  int64_t headAxis = isPacked ? 2 : 1;
  cosine = n.unsqueeze(cosine, {headAxis});
  sine = n.unsqueeze(sine, {headAxis});
  Dim size = dimsOf(x)[3], rotated(n.getInt("rotary_embedding_dim", 0));
  if (rotated.isConstant(0))
    rotated = size;
  Value y =
      rotatePairs(n, n.sliceAlong(x, 3, Dim(0), rotated), cosine, sine, n.getInt("interleaved", 0));
  if (rotated != size)
    y = n.concat({y, n.sliceAlong(x, 3, rotated, size - rotated)}, 3);
  n.set(n.reshape(y, dims));
}

/// The cache with `update` written from write_indices[batch] on along the axis.
static void importTensorScatter(Node &n) {
  Value cache = n.in(0), update = n.in(1);
  DimVector dims = dimsOf(cache), part = dimsOf(update);
  int64_t rank = dims.size(), axis = n.axis(n.getInt("axis", -2), rank);
  if ((int64_t)part.size() != rank || axis == 0)
    refuse("cache and update must have one rank, and 'axis' cannot be the batch");
  std::string mode = n.getText("mode", "linear");
  if (mode != "linear" && mode != "circular")
    refuse("'mode' is '" + mode + "', but must be 'linear' or 'circular'");
  for (int64_t i = 0; i < rank; ++i)
    if (i != axis)
      part[i] = dims[i];
  update = n.broadcast(update, part);
  DimVector lead(ArrayRef<Dim>(part).take_front(axis + 1));
  Value place = n.iota(lead, axis, n.i64());
  if (n.has(2)) {
    Ints others = llvm::to_vector(llvm::seq<int64_t>(1, axis + 1));
    place = n.add(place, n.unsqueeze(n.in(2), others));
  }
  if (mode == "circular")
    place = n.binary<ModOp>(place, sizeNumber(n, dims[axis], n.i64()));
  const Buffer *buffer = bufferOf(n, cache);
  n.set(buffer ? extendBuffer(n, *buffer, update, axis, place, dims[axis])
               : writeSlices(n, cache, update, axis, place));
}

namespace {
struct Recurrence {
  bool decays, corrects;
};
} // namespace

static Recurrence readRule(Node &n) {
  std::string rule = n.getText("update_rule", "gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    refuse("'update_rule' is '" + rule +
           "', but must be 'linear', 'gated', 'delta' or 'gated_delta'");
  Recurrence recurrence = {rule == "gated" || rule == "gated_delta",
                           rule == "delta" || rule == "gated_delta"};
  if (recurrence.decays != n.has(4))
    refuse("rule '" + rule + "' " + (recurrence.decays ? "needs" : "forbids") + " 'decay'");
  if (recurrence.corrects != n.has(5))
    refuse("rule '" + rule + "' " + (recurrence.corrects ? "needs" : "forbids") + " 'beta'");
  return recurrence;
}

/// [batch, time, heads * size] as [time, batch, heads, size], in f32 at least.
static Value timeFirst(Node &n, Value x, const Dim &heads) {
  DimVector dims = dimsOf(x);
  if (dims.size() != 3)
    refuse("inputs must have rank 3, but one has the shape " + textOf(dims));
  Value split = n.reshape(x, {dims[0], dims[1], heads, dims[2].floorDiv(heads)});
  return n.transpose(n.cast(split, wideType(n, elementOf(x))), {1, 0, 2, 3});
}

/// S = exp(decay) S + k (x) beta (v - k^T exp(decay) S), and the output scale q^T S, step by step.
static void importLinearAttention(Node &n) {
  Recurrence rule = readRule(n);
  Type element = elementOf(n.in(0)), wide = wideType(n, element);
  int64_t queryHeads = n.getInt("q_num_heads", 0), heads = n.getInt("kv_num_heads", 0);
  if (heads < 1 || queryHeads < 1 || queryHeads % heads != 0)
    refuse("'q_num_heads' is " + Twine(queryHeads) +
           ", but must be a multiple of 'kv_num_heads', " + Twine(heads));
  Value query = timeFirst(n, n.in(0), Dim(queryHeads)), key = timeFirst(n, n.in(1), Dim(heads)),
        value = timeFirst(n, n.in(2), Dim(heads));
  DimVector keyDims = dimsOf(key);
  Dim batch = keyDims[1], keySize = dimsOf(query)[3], valueSize = dimsOf(value)[3];
  // One key head serves a group of query heads.
  query = n.reshape(query, {keyDims[0], batch, Dim(heads), Dim(queryHeads / heads), keySize});
  SmallVector<Value> scanned = {query, key, value};
  if (rule.decays) // one number per head, or one per key dimension
    scanned.push_back(timeFirst(n, n.in(4), Dim(heads)));
  if (rule.corrects) { // one number per head, or one for all heads
    Value beta = timeFirst(n, n.in(5), Dim(1));
    scanned.push_back(n.transpose(beta, {0, 1, 3, 2}));
  }
  DimVector stateDims = {batch, Dim(heads), keySize, valueSize};
  Value start =
      n.has(3) ? n.broadcast(n.cast(n.in(3), wide), stateDims) : n.full(stateDims, wide, 0);
  Value scale = n.getFloat("scale", 0) != 0 ? n.scalar(wide, n.getFloat("scale", 0))
                                            : inverseRoot(n, keySize, wide);
  auto step = [&](ArrayRef<Value> states, ArrayRef<Value> slices) -> SmallVector<Value> {
    Value state = states[0], key = slices[1], value = n.unsqueeze(slices[2], {2});
    size_t next = 3;
    if (rule.decays)
      state =
          n.broadcast(n.mul(state, n.unsqueeze(n.unary<ExpOp>(slices[next++]), {3})), stateDims);
    if (rule.corrects) {
      Value retrieved = n.matmul(n.unsqueeze(key, {2}), state);
      value = n.mul(n.sub(value, retrieved), n.unsqueeze(slices[next], {3}));
    }
    state = n.broadcast(n.add(state, n.mul(n.unsqueeze(key, {3}), value)), stateDims);
    return {state, n.mul(n.matmul(slices[0], state), scale)};
  };
  SmallVector<Value> results = walk(n, start, scanned, step);
  Value output = n.transpose(results[1], {1, 0, 2, 3, 4});
  n.set(0, n.cast(n.reshape(output, {batch, keyDims[0], Dim(queryHeads) * valueSize}), element));
  if (n.wants(1))
    n.set(1, n.cast(results[0], n.has(3) ? elementOf(n.in(3)) : element));
}

/// sum over i of x[b, c, t + i] * weight[c, 0, i] for `length` places t.
static Value slideAlong(Node &n, Value x, Value weight, const Dim &length) {
  DimVector filter = dimsOf(weight);
  auto size = filter[2].constant();
  if (!size || *size > 16) { // all windows side by side
    DimVector places = {length, filter[2]};
    Value place = n.add(n.iota(places, 0, n.i64()), n.iota(places, 1, n.i64()));
    Value windows = n.gather(x, place, 2);
    Value taps = n.reshape(weight, {filter[0], Dim(1), filter[2]});
    return n.reduce<ReduceSumOp>(n.mul(windows, taps), {3}, false);
  }
  Value sum;
  for (int64_t i = 0; i < *size; ++i) {
    Value tap = n.reshape(n.sliceAlong(weight, 2, Dim(i), Dim(1)), {filter[0], Dim(1)});
    Value term = n.mul(n.sliceAlong(x, 2, Dim(i), length), tap);
    sum = sum ? n.add(sum, term) : term;
  }
  return sum;
}

/// A depthwise convolution over the past k - 1 positions and the present ones.
static void importCausalConv(Node &n) {
  Value x = n.in(0), weight = n.in(1);
  DimVector dims = dimsOf(x), filter = dimsOf(weight);
  if (dims.size() != 3 || filter.size() != 3)
    refuse("input and weight must have rank 3");
  if (filter[2].isConstant(0))
    refuse("the weight has no positions, but needs at least 1");
  Dim past = filter[2] - Dim(1);
  Value before = n.has(3) ? n.reshape(n.in(3), {dims[0], dims[1], past})
                          : n.full({dims[0], dims[1], past}, elementOf(x), 0);
  Value padded = n.concat({before, x}, 2);
  Type wide = wideType(n, elementOf(x));
  Value y = slideAlong(n, n.cast(padded, wide), n.cast(weight, wide), dims[2]);
  if (n.has(2))
    y = n.add(y, n.alongAxis(n.cast(n.in(2), wide), 1, 3));
  y = n.broadcast(n.cast(y, elementOf(x)), dims);
  std::string activation = n.getText("activation", "none");
  if (activation == "silu" || activation == "swish") {
    Value wide = n.cast(y, wideType(n, elementOf(y)));
    y = n.cast(n.mul(wide, sigmoid(n, wide)), elementOf(y));
  } else if (activation != "none") {
    refuse("'activation' is '" + activation + "', but must be 'none', 'silu' or 'swish'");
  }
  n.set(0, y);
  if (n.wants(1))
    n.set(1, n.sliceAlong(padded, 2, dims[2], past));
}

OpRows sequenceModelRows() {
  static const OpRow rows[] = {
      {"RotaryEmbedding", "", 23, 27, importRotaryEmbedding},
      {"TensorScatter", "", 24, 27, importTensorScatter},
      {"LinearAttention", "", 27, 27, importLinearAttention},
      {"CausalConvWithState", "", 27, 27, importCausalConv},
  };
  return rows;
}

} // namespace heddle::onnx
