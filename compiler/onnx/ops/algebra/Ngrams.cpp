// Ngrams: TfIdfVectorizer, which counts sequences of a pool in rows of integers.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
/// Sequences of one length: their elements, and the columns of the result that count them.
struct Pool {
  int64_t length;
  Ints elements, columns;
};
} // namespace

static std::vector<Pool> readPools(Node &n) {
  Ints counts = n.getInts("ngram_counts", {}), columns = n.getInts("ngram_indexes", {}),
       all = n.getInts("pool_int64s", {});
  if (all.empty())
    refuse("'pool_int64s' is missing: sequences of strings are not supported");
  std::vector<Pool> pools;
  size_t next = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    int64_t length = i + 1, begin = counts[i],
            end = i + 1 < counts.size() ? counts[i + 1] : (int64_t)all.size();
    if (begin < 0 || end < begin || end > (int64_t)all.size() || (end - begin) % length != 0)
      refuse("'ngram_counts' has sequences of " + Twine(length) + " from " + Twine(begin) + " to " +
             Twine(end) + " of " + Twine(all.size()) + " elements");
    Pool pool{length, Ints(all.begin() + begin, all.begin() + end), {}};
    for (int64_t k = 0; k < (end - begin) / length; ++k) {
      if (next == columns.size() || columns[next] < 0)
        refuse("'ngram_indexes' needs a column, at least 0, for each sequence of the pool");
      pool.columns.push_back(columns[next++]);
    }
    pools.push_back(std::move(pool));
  }
  return pools;
}

/// How often each sequence occurs in the rows of x, with `distance` from one element to the next:
/// f32 [rows, sequences].
static Value occurrences(Node &n, Value x, const Pool &pool, int64_t distance) {
  int64_t count = pool.columns.size(), reach = (pool.length - 1) * distance;
  Dim size = dimsOf(x)[1], places = Dim::max(size - Dim(reach), Dim(0));
  if (auto known = size.constant())
    places = Dim(std::max<int64_t>(*known - reach, 0));
  if (places.isConstant(0))
    return n.full({dimsOf(x)[0], Dim(count)}, n.f32(), 0);
  Value isHere;
  for (int64_t t = 0; t < pool.length; ++t) {
    Ints wanted;
    for (int64_t k = 0; k < count; ++k)
      wanted.push_back(pool.elements[k * pool.length + t]);
    // A row that is too short has no places; the start is kept inside of it.
    Dim start = size.constant() ? Dim(t * distance) : Dim::min(Dim(t * distance), size - places);
    Value element = n.unsqueeze(n.sliceAlong(x, 1, start, places), {2});
    Value equal = n.compare<EqualOp>(element, n.integers(wanted));
    isHere = isHere ? n.binary<AndOp>(isHere, equal) : equal;
  }
  return n.reduce<ReduceSumOp>(n.cast(isHere, n.f32()), {1}, false);
}

static void importTfIdfVectorizer(Node &n) {
  Value x = n.cast(n.in(0), n.i64());
  bool isRow = rankOf(x) < 2;
  if (rankOf(x) > 2)
    refuse("the input must have rank 1 or 2, but has " + Twine(rankOf(x)));
  if (isRow)
    x = n.reshape(x, {Dim(1), elementCount(dimsOf(x))});
  int64_t shortest = n.getInt("min_gram_length", 1), longest = n.getInt("max_gram_length", 1),
          skips = n.getInt("max_skip_count", 0), width = 0;
  std::vector<Pool> pools = readPools(n);
  SmallVector<Value> counts;
  Ints columns;
  for (const Pool &pool : pools) {
    for (int64_t column : pool.columns)
      width = std::max(width, column + 1);
    if (pool.length < shortest || pool.length > longest || pool.columns.empty())
      continue;
    Value sum;
    for (int64_t distance = 1; distance <= (pool.length == 1 ? 1 : skips + 1); ++distance) {
      Value found = occurrences(n, x, pool, distance);
      sum = sum ? n.add(sum, found) : found;
    }
    counts.push_back(sum);
    columns.append(pool.columns);
  }
  // Every column of the result takes the count of its sequence, or the 0 that comes last.
  Dim rows = dimsOf(x)[0];
  counts.push_back(n.full({rows, Dim(1)}, n.f32(), 0));
  Ints source(width, columns.size());
  for (auto [i, column] : llvm::enumerate(columns))
    source[column] = i;
  Value y = n.gather(n.concat(counts, 1), n.integers(source), 1);
  std::string mode = n.getText("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    refuse("'mode' is '" + mode + "', but must be 'TF', 'IDF' or 'TFIDF'");
  if (mode == "IDF")
    y = n.cast(n.compare<GreaterOp>(y, n.scalar(n.f32(), 0)), n.f32());
  if (auto weights = n.getFloats("weights"); mode != "TF" && !weights.empty()) {
    if ((int64_t)weights.size() != width)
      refuse("'weights' has " + Twine(weights.size()) + " entries, but needs " + Twine(width));
    y = n.mul(y, numbers(n, weights, {width}, n.f32()));
  }
  n.set(isRow ? n.reshape(y, {Dim(width)}) : y);
}

OpRows ngramRows() {
  static const OpRow rows[] = {
      {"TfIdfVectorizer", "", 9, 27, importTfIdfVectorizer, false, "pools of integers"},
  };
  return rows;
}

} // namespace heddle::onnx
