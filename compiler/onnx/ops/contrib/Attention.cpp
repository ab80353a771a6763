// Attention: the fused attention ops that ONNX Runtime's optimiser and model builder make.
//
// Keys and values of earlier steps come as past tensors, [batch, heads, length, size].

#include "compiler/onnx/ops/attention/Attention.h"

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"
#include "compiler/onnx/ops/Products.h"
#include "compiler/onnx/ops/Quantization.h"
#include "compiler/onnx/ops/attention/Past.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// The scores of a query without its scale, which is 1 / sqrt(size) unless the node has one.
static Value scaledScores(Node &n, Value query, Value key) {
  Type element = elementOf(query);
  double given = n.getFloat("scale", 0);
  Value scale = given != 0 ? n.scalar(element, given) : inverseRoot(n, dimsOf(query)[3], element);
  return attentionScores(n, n.mul(query, scale), key);
}

/// Scores of keys that `allowed` forbids are lowered by the node's filter value.
static Value filtered(Node &n, Value scores, Value allowed) {
  Type element = elementOf(scores);
  Value filter = n.scalar(element, n.getFloat("mask_filter_value", -10000));
  Value bias = n.select(allowed, n.scalar(element, 0), filter);
  return n.broadcast(n.add(scores, bias), dimsOf(scores));
}

/// The keys that operand i allows, to be broadcast to [batch, heads, queries, keys]: lengths
/// [batch], ends and begins [2 * batch], or 1 for a visible key, [batch, keys] or [batch, queries,
/// keys].
static Value allowedBy(Node &n, size_t i, const Dim &batch, const Dim &keys) {
  Value mask = n.cast(n.in(i), n.i64());
  DimVector dims = dimsOf(mask);
  Value zero = n.integerScalar(n.i64(), 0), place = countUp(n, keys, n.i64());
  if (dims.size() == 1) {
    auto rows = [&](const Dim &start) {
      return n.unsqueeze(n.sliceAlong(mask, 0, start, batch), {1, 2, 3});
    };
    Value fits = n.compare<LessOp>(place, rows(Dim(0)));
    if (dims[0] == batch)
      return fits;
    // The run sees that there are `batch` or twice as many; begins that are not there are 0.
    Dim twice = batch * Dim(2), other = (dims[0] - batch) * (dims[0] - twice);
    if (other.constant().value_or(0) != 0)
      refuse("a mask of shape " + textOf(dims) + " does not fit the batch " + batch.str());
    n.requireNotNegative(n.sizes({other, Dim(0) - other}),
                         "a mask of %lld lengths does not fit a batch of %lld",
                         n.sizes({dims[0], batch}));
    mask = n.pad(mask, zero, Dim(0), Dim::max(twice - dims[0], Dim(0)));
    return n.binary<AndOp>(fits, n.compare<GreaterEqualOp>(place, rows(batch)));
  }
  if (dims.size() == 2)
    return n.compare<NotEqualOp>(n.unsqueeze(mask, {1, 2}), zero);
  if (dims.size() == 3)
    return n.compare<NotEqualOp>(n.unsqueeze(mask, {1}), zero);
  refuse("a mask of shape " + textOf(dims) + " is not supported: its rank must be 1, 2 or 3");
}

namespace {
/// Queries, keys and values of all heads, and where the rest of the node's operands stand.
struct Heads {
  Value query, key, value;
  size_t mask, bias; // operand numbers
};
} // namespace

/// Result 0 from the heads, [batch, length, hidden].
static void setAttention(Node &n, const Heads &heads, Value past) {
  Value scores = scaledScores(n, heads.query, heads.key);
  DimVector dims = dimsOf(scores);
  if (n.getInt("unidirectional", 0))
    scores = maskScores(n, scores, causalMask(n, dims[2], dims[3], past));
  if (n.has(heads.mask))
    scores = filtered(n, scores, allowedBy(n, heads.mask, dims[0], dims[3]));
  if (n.has(heads.bias))
    scores = n.broadcast(n.add(scores, n.in(heads.bias)), dims);
  Type element = elementOf(scores);
  Value shares = n.cast(n.softmax(n.cast(scores, wideType(n, element)), {3}), element);
  n.set(0, joinHeads(n, attendTo(n, shares, heads.value)));
}

static int64_t headCount(Node &n) {
  int64_t heads = n.getInt("num_heads", 0);
  if (heads < 1)
    refuse("'num_heads' is " + Twine(heads) + ", but must be at least 1");
  return heads;
}

/// Attends from packed projections [batch, length, 3 * hidden] on. Past and present are [2, batch,
/// heads, length, size]: keys, then values.
static void attendPacked(Node &n, Value packed, size_t mask, size_t past, size_t bias) {
  int64_t count = headCount(n);
  if (n.getInt("do_rotary", 0))
    refuse("'do_rotary' is not supported");
  DimVector dims = dimsOf(packed);
  if (dims.size() != 3)
    refuse("the input must have rank 3, but has " + Twine(dims.size()));
  Dim third = dims[2].floorDiv(Dim(3));
  DimVector sizes(3, third);
  if (auto given = n.getInts("qkv_hidden_sizes"); given && given->size() == 3)
    sizes.assign(given->begin(), given->end());
  Heads heads{splitHeads(n, n.sliceAlong(packed, 2, Dim(0), sizes[0]), count),
              splitHeads(n, n.sliceAlong(packed, 2, sizes[0], sizes[1]), count),
              splitHeads(n, n.sliceAlong(packed, 2, sizes[0] + sizes[1], sizes[2]), count), mask,
              bias};
  Value before;
  if (n.has(past)) {
    auto part = [&](int64_t i) {
      return n.squeeze(n.sliceAlong(n.in(past), 0, Dim(i), Dim(1)), {0});
    };
    before = n.size(dimsOf(n.in(past))[3]);
    heads.key = n.concat({part(0), heads.key}, 2);
    heads.value = n.concat({part(1), heads.value}, 2);
  }
  setAttention(n, heads, before);
  if (n.wants(1))
    n.set(1, n.concat({n.unsqueeze(heads.key, {0}), n.unsqueeze(heads.value, {0})}, 0));
}

/// Operands: input, weights, bias, mask, past, attention bias.
static void importAttention(Node &n) {
  Value packed = n.matmul(n.in(0), n.in(1));
  if (n.has(2))
    packed = n.broadcast(n.add(packed, n.in(2)), dimsOf(packed));
  attendPacked(n, packed, 3, 4, 5);
}

/// Operands: input, weights, bias, their scales, mask, their zero points, past.
static void importQAttention(Node &n) {
  Value weights = minusZero(n, n.in(1), n.optional(7), 1);
  Value sum = n.matmul(minusZero(n, n.in(0), n.optional(6), 2), weights);
  Type element = elementOf(n.in(3));
  auto scale = [&](size_t i) {
    Value x = n.in(i);
    return elementCount(dimsOf(x)) == Dim(1) ? n.reshape(x, {}) : x;
  };
  Value packed = n.mul(n.cast(sum, element), n.mul(scale(3), scale(4)));
  packed = n.broadcast(n.add(packed, n.in(2)), dimsOf(sum));
  attendPacked(n, packed, 5, 8, n.inputs());
}

/// Operands: query, key, value, bias, mask of keys, attention bias, past keys, past values.
static void importMultiHeadAttention(Node &n) {
  int64_t count = headCount(n);
  Heads heads{Value(), Value(), Value(), 4, 5};
  auto bias = [&](Value x, int64_t part) { // bias of one of the three parts of operand 3
    if (!n.has(3))
      return x;
    Dim size = dimsOf(x)[2], start = part == 2 ? dimsOf(n.in(3))[0] - size : size * Dim(part);
    return n.broadcast(n.add(x, n.sliceAlong(n.in(3), 0, start, size)), dimsOf(x));
  };
  auto split = [&](size_t i) { // perhaps split already
    Value x = n.in(i);
    return rankOf(x) == 4 ? x : splitHeads(n, bias(x, i), count);
  };
  if (rankOf(n.in(0)) == 5) { // [batch, length, heads, 3, size]
    auto part = [&](int64_t i) {
      Value one = n.squeeze(n.sliceAlong(n.in(0), 3, Dim(i), Dim(1)), {3});
      return n.transpose(one, {0, 2, 1, 3});
    };
    heads.query = part(0);
    heads.key = part(1);
    heads.value = part(2);
  } else if (n.has(1) && rankOf(n.in(1)) == 5) { // [batch, length, heads, 2, size]
    auto part = [&](int64_t i) {
      Value one = n.squeeze(n.sliceAlong(n.in(1), 3, Dim(i), Dim(1)), {3});
      return n.transpose(one, {0, 2, 1, 3});
    };
    heads.query = split(0);
    heads.key = part(0);
    heads.value = part(1);
  } else {
    heads.query = split(0);
    heads.key = split(1);
    heads.value = split(2);
  }
  Value before;
  if (n.has(6) && n.has(7)) {
    before = n.size(dimsOf(n.in(6))[2]);
    heads.key = appendToPast(n, n.in(6), heads.key, 2);
    heads.value = appendToPast(n, n.in(7), heads.value, 2);
  }
  setAttention(n, heads, before);
  if (n.wants(1))
    n.set(1, heads.key);
  if (n.wants(2))
    n.set(2, heads.value);
}

namespace {
/// GroupQueryAttention's facts about each entry of the batch.
struct Batch {
  Value past;      // i64 [batch]: keys before this step
  Value positions; // i64 [batch, length]: of the queries
  Dim total;       // keys of the longest entry after this step, as the model says
};
} // namespace

/// The past with the new keys (or values) after what each entry of the batch has of it. A past of
/// more places than there are keys, a buffer of the largest length, keeps its length.
static Value append(Node &n, size_t i, Value fresh, const Batch &batch) {
  if (!n.has(i))
    return fresh;
  Value past = n.in(i);
  if (const Buffer *buffer = bufferOf(n, past)) {
    Value places = n.unsqueeze(batch.positions, {1});
    return extendBuffer(n, *buffer, fresh, 2, places, batch.total);
  }
  Value whole = n.concat({past, fresh}, 2);
  DimVector dims = dimsOf(whole);
  Value last = sizeNumber(n, dims[2] - Dim(1), n.i64());
  bool isSingle = dims[0].isConstant(1);
  if (isSingle && batch.total == dims[2]) // nothing is padded
    return whole;
  dims[2] = Dim::max(dimsOf(past)[2], batch.total);
  // Place p holds p of the past, or a later key: the new ones begin at past[batch]. Places beyond
  // them are masked.
  Value place = countUp(n, dims[2], n.i64()), own = n.unsqueeze(batch.past, {1});
  Value skipped = n.sub(sizeNumber(n, dimsOf(past)[2], n.i64()), own);
  Value source = n.select(n.compare<LessOp>(place, own), place, n.add(place, skipped));
  source = n.binary<MinOp>(source, last);
  if (isSingle)
    return n.gather(whole, n.squeeze(source, {0}), 2);
  Value index = n.broadcast(n.unsqueeze(source, {1, 3}), dims);
  return n.infer<GatherElementsOp>({whole, index}, {n.integer("axis", 2)});
}

/// Softmax whose denominator has one term more a head: e^sink.
static Value softmaxWithSink(Node &n, Value scores, Value sink) {
  Value largest = n.binary<MaxOp>(n.reduce<ReduceMaxOp>(scores, {3}), sink);
  Value powers = n.unary<ExpOp>(n.sub(scores, largest));
  Value extra = n.unary<ExpOp>(n.sub(sink, largest));
  return n.div(powers, n.add(n.reduce<ReduceSumOp>(powers, {3}), extra));
}

/// Operands: query, key, value, past keys, past values, lengths of the keys less 1, their largest
/// length, cosines, sines, positions, attention bias, sinks.
static void importGroupQueryAttention(Node &n) {
  int64_t count = headCount(n), groups = n.getInt("kv_num_heads", 0);
  if (groups < 1 || count % groups != 0)
    refuse("'kv_num_heads' is " + Twine(groups) + ", but must divide 'num_heads', " + Twine(count));
  Value query = n.in(0), key = n.optional(1), value = n.optional(2);
  if (!key) { // packed: queries, keys, values
    Dim size = dimsOf(query)[2].floorDiv(Dim(count + 2 * groups));
    Value packed = query;
    query = n.sliceAlong(packed, 2, Dim(0), size * Dim(count));
    key = n.sliceAlong(packed, 2, size * Dim(count), size * Dim(groups));
    value = n.sliceAlong(packed, 2, size * Dim(count + groups), size * Dim(groups));
  }
  query = splitHeads(n, query, count);
  key = splitHeads(n, key, groups);
  value = splitHeads(n, value, groups);
  Type element = elementOf(query);
  Dim length = dimsOf(query)[2], rows = dimsOf(query)[0];
  Value lengths = n.reshape(n.cast(n.in(5), n.i64()), {rows}), zero = n.integerScalar(n.i64(), 0);
  Batch batch;
  Value one = sizeNumber(n, length - Dim(1), n.i64());
  batch.past = n.binary<MaxOp>(n.sub(lengths, one), zero);
  batch.positions = n.add(n.unsqueeze(batch.past, {1}), countUp(n, length, n.i64()));
  batch.total = n.bindSizes(n.reshape(n.in(6), Dim(1)), "total")[0];
  if (n.getInt("do_rotary", 0)) {
    Value at = n.has(9) ? n.broadcast(n.in(9), {rows, length}) : batch.positions;
    Value cosine = n.unsqueeze(n.gather(n.in(7), at, 0), {1});
    Value sine = n.unsqueeze(n.gather(n.in(8), at, 0), {1});
    bool interleaved = n.getInt("rotary_interleaved", 0);
    Dim rotated = dimsOf(cosine)[3] * Dim(2);
    for (Value *x : {&query, &key}) {
      Dim size = dimsOf(*x)[3];
      Value turned =
          rotatePairs(n, n.sliceAlong(*x, 3, Dim(0), rotated), cosine, sine, interleaved);
      *x = rotated == size ? turned
                           : n.concat({turned, n.sliceAlong(*x, 3, rotated, size - rotated)}, 3);
    }
  }
  key = append(n, 3, key, batch);
  value = append(n, 4, value, batch);
  Value scores = scaledScores(n, query, key);
  DimVector dims = dimsOf(scores);
  if (double cap = n.getFloat("softcap", 0); cap > 0)
    scores = softCap(n, scores, cap);
  Value place = countUp(n, dims[3], n.i64()), at = n.unsqueeze(batch.positions, {1, 3});
  Value allowed = n.compare<LessEqualOp>(place, at);
  if (int64_t window = n.getInt("local_window_size", -1); window > 0)
    allowed = n.binary<AndOp>(
        allowed, n.compare<GreaterOp>(place, n.sub(at, n.integerScalar(n.i64(), window))));
  if (n.has(10))
    scores = n.broadcast(n.add(scores, n.in(10)), dims);
  Type wide = wideType(n, element);
  scores = n.cast(n.broadcast(maskScores(n, scores, allowed), dims), wide);
  bool smooth = n.getInt("smooth_softmax", 0);
  Value shares = n.has(11) ? softmaxWithSink(n, scores, n.unsqueeze(n.cast(n.in(11), wide), {1, 2}))
                 : smooth  ? softmaxWithSink(n, scores, n.scalar(wide, 0))
                           : n.softmax(scores, {3});
  n.set(0, joinHeads(n, attendTo(n, n.cast(shares, element), value)));
  if (n.wants(1))
    n.set(1, key);
  if (n.wants(2))
    n.set(2, value);
}

/// Entries [batch, length, half] of operand i, cosines or sines, for the positions of tokens.
using Lookup = llvm::function_ref<Value(size_t i, const Dim &batch, const Dim &length)>;

/// Operands: input, positions, cosines, sines.
static void setRotated(Node &n, Lookup lookUp) {
  Value x = n.in(0);
  DimVector dims = dimsOf(x);
  bool isPacked = dims.size() == 3;
  if (!isPacked && dims.size() != 4)
    refuse("the input must have rank 3 or 4, but has " + Twine(dims.size()));
  int64_t heads = n.getInt("num_heads", 0), turned = n.getInt("rotary_embedding_dim", 0);
  Dim size = isPacked ? dimsOf(n.in(2))[1] * Dim(2) : dims[3];
  if (isPacked && heads > 0)
    size = dims[2].floorDiv(Dim(heads));
  if (isPacked)
    x = n.reshape(x, {dims[0], dims[1], dims[2].floorDiv(size), size});
  Dim length = isPacked ? dims[1] : dims[2], rotated = turned > 0 ? Dim(turned) : size;
  int64_t headAxis = isPacked ? 2 : 1;
  Value cosine = n.unsqueeze(lookUp(2, dims[0], length), {headAxis});
  Value sine = n.unsqueeze(lookUp(3, dims[0], length), {headAxis});
  Value y =
      rotatePairs(n, n.sliceAlong(x, 3, Dim(0), rotated), cosine, sine, n.getInt("interleaved", 0));
  if (rotated != size)
    y = n.concat({y, n.sliceAlong(x, 3, rotated, size - rotated)}, 3);
  n.set(n.reshape(y, dims));
}

/// Positions: an offset, or one a token.
static void importRotaryEmbedding(Node &n) {
  setRotated(n, [&](size_t i, const Dim &batch, const Dim &length) {
    Value at = n.cast(n.in(1), n.i64());
    if (rankOf(at) < 2)
      at = n.add(n.reshape(at, {}), countUp(n, length, n.i64()));
    return n.gather(n.in(i), n.broadcast(at, {batch, length}), 0);
  });
}

/// Positions [3, batch, length]: in time, height and width. Each pair of elements turns by one of
/// them, in sections or by turns.
static void importMultimodalRotaryEmbedding(Node &n) {
  Ints sections = n.getInts("mrope_section", {});
  int64_t layout = n.getInt("mrope_layout", 0), half = 0;
  for (int64_t section : sections)
    half += std::clamp<int64_t>(section, -1, 1 << 20);
  if (sections.size() != 3 || llvm::any_of(sections, [](int64_t size) { return size < 0; }) ||
      half > (1 << 20) || (layout != 0 && layout != 1))
    refuse("'mrope_section' must have 3 sizes of 0 or more, and 'mrope_layout' be 0 or 1");
  if (n.getInt("is_packed_batching", 0) || n.getFloat("scale", 1) != 1)
    refuse("'is_packed_batching' must be 0 and 'scale' 1; others are not supported");
  if (rankOf(n.in(1)) != 3)
    refuse("'position_ids' must have rank 3, but has " + Twine(rankOf(n.in(1))));
  Ints streams;
  for (int64_t p = 0; p < half; ++p) {
    bool isInside = p % 3 > 0 && p < 3 * sections[p % 3];
    int64_t section = p < sections[0] ? 0 : p < sections[0] + sections[1] ? 1 : 2;
    streams.push_back(layout == 0 ? section : isInside ? p % 3 : 0);
  }
  Value stream = n.integers(streams);
  setRotated(n, [&](size_t i, const Dim &batch, const Dim &length) {
    DimVector dims = {Dim(3), batch, length};
    Value all = n.gather(n.in(i), n.broadcast(n.cast(n.in(1), n.i64()), dims), 0);
    auto along = [&](int64_t s) { return n.squeeze(n.sliceAlong(all, 0, Dim(s), Dim(1)), {0}); };
    auto is = [&](int64_t s) { return n.compare<EqualOp>(stream, n.integerScalar(n.i64(), s)); };
    return n.select(is(1), along(1), n.select(is(2), along(2), along(0)));
  });
}

OpRows contribAttentionRows() {
  static const OpRow rows[] = {
      {"Attention", kMicrosoft, 1, 1, importAttention, false, "masks of rank 1 to 3, no rotation"},
      {"QAttention", kMicrosoft, 1, 1, importQAttention, false, "masks of rank 1 to 3"},
      {"MultiHeadAttention", kMicrosoft, 1, 1, importMultiHeadAttention},
      {"GroupQueryAttention", kMicrosoft, 1, 1, importGroupQueryAttention},
      {"RotaryEmbedding", kMicrosoft, 1, 1, importRotaryEmbedding},
      {"MRotaryEmbedding", kMicrosoft, 1, 1, importMultimodalRotaryEmbedding, false,
       "no packed batches"},
  };
  return rows;
}

} // namespace heddle::onnx
