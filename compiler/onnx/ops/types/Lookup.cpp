// Lookup: what keys stand for, and how often n-grams occur. Strings are numbers here as everywhere
// in the graph, so keys of all types are looked up in one way.

#include "compiler/onnx/ops/types/Lookup.h"
#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// Strings as plain numbers, which can be put in order.
static Value ordered(Node &n, Value x) {
  return isString(elementOf(x)) ? n.typed<BitcastOp>(n.tensor(dimsOf(x), n.i64()), x) : x;
}

/// The order that sorts a constant vector; NaN last.
static Ints sortedOrder(Node &n, Value keys) {
  std::vector<double> numbers;
  Ints order;
  auto integers = constantIntegers(keys);
  auto constant = keys.getDefiningOp<ConstantOp>();
  if (!integers) {
    std::vector<char> storage;
    ArrayRef<char> bytes = constantBytes(constant.getValue(), storage);
    int64_t width = bytesOf(elementOf(keys));
    auto type = cast<FloatType>(elementOf(keys));
    for (size_t i = 0; i < bytes.size(); i += width) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, width);
      APFloat value(type.getFloatSemantics(), APInt(width * 8, word));
      bool loses;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
      numbers.push_back(value.convertToDouble());
    }
  }
  for (size_t i = 0, count = integers ? integers->size() : numbers.size(); i < count; ++i)
    order.push_back(i);
  auto isBefore = [&](int64_t a, int64_t b) {
    if (integers)
      return (*integers)[a] < (*integers)[b];
    return numbers[a] < numbers[b] || (numbers[a] == numbers[a] && numbers[b] != numbers[b]);
  };
  llvm::sort(order,
             [&](int64_t a, int64_t b) { return isBefore(a, b) || (!isBefore(b, a) && a < b); });
  return order;
}

Value lookUp(Node &n, Value x, Value keys, Value values, Value otherwise) {
  int64_t count = dimsOf(keys)[0].constant().value_or(0);
  if (count == 0 || dimsOf(values)[0] != Dim(count))
    refuse("there are " + dimsOf(keys)[0].str() + " keys for " + dimsOf(values)[0].str() +
           " values");
  if (elementOf(x) != elementOf(keys))
    refuse("the input has elements of " + nameOf(elementOf(x)) + ", but the keys are " +
           nameOf(elementOf(keys)));
  Value order = n.integers(sortedOrder(n, keys));
  x = ordered(n, x);
  keys = n.gather(ordered(n, keys), order, 0);
  values = n.gather(values, order, 0);
  // The last key that is not larger, by halving.
  Value place = n.broadcast(n.integerScalar(n.i64(), 0), dimsOf(x));
  int64_t step = llvm::NextPowerOf2(count) / 2;
  for (; step > 0; step /= 2) {
    Value next = n.add(place, static_cast<double>(step));
    Value key = n.gather(keys, n.min(next, static_cast<double>(count - 1)), 0);
    Value isInside = n.compare<LessOp>(next, n.integerScalar(n.i64(), count));
    Value isReached = n.compare<LessEqualOp>(key, x);
    place = n.select(n.binary<AndOp>(isInside, isReached), next, place);
  }
  Value key = n.gather(keys, place, 0), isFound = n.compare<EqualOp>(key, x);
  if (isa<FloatType>(elementOf(x))) { // NaN is last
    Value last = n.broadcast(n.integerScalar(n.i64(), count - 1), dimsOf(x));
    Value areNan = n.binary<AndOp>(n.infer<IsNanOp>(x), n.infer<IsNanOp>(n.gather(keys, last, 0)));
    place = n.select(areNan, last, place);
    isFound = n.binary<OrOp>(isFound, areNan);
  }
  return n.select(isFound, n.gather(values, place, 0), otherwise);
}

/// The one of several attributes that is given.
static Value given(Node &n, ArrayRef<const char *> names) {
  for (const char *name : names)
    if (Value value = n.constantFrom(name))
      return value;
  refuse("none of the attributes '" + llvm::join(names, "', '") + "' is given");
}

static void importLabelEncoder(Node &n) {
  if (n.hasAttribute("classes_strings")) { // opset 1: between strings and their places
    auto classes = n.getTexts("classes_strings");
    Value texts = n.stringConstant(classes);
    Ints places = llvm::to_vector(llvm::seq<int64_t>(0, classes.size()));
    if (isString(elementOf(n.in(0))))
      return n.set(lookUp(n, n.in(0), texts, n.integers(places),
                          n.integerScalar(n.i64(), n.getInt("default_int64", -1))));
    return n.set(lookUp(n, n.in(0), n.integers(places), texts,
                        n.reshape(n.stringConstant({n.getText("default_string", "_Unused")}), {})));
  }
  Value keys = given(n, {"keys_strings", "keys_int64s", "keys_floats", "keys_tensor"});
  Value values = given(n, {"values_strings", "values_int64s", "values_floats", "values_tensor"});
  Type element = elementOf(values);
  Value otherwise;
  if (n.hasAttribute("values_tensor"))
    otherwise = n.reshape(n.hasAttribute("default_tensor") ? n.constantFrom("default_tensor")
                          : isString(element)              ? n.stringConstant({"_Unused"})
                                              : n.integers({isa<FloatType>(element) ? 0 : -1}),
                          {});
  else if (isString(element))
    otherwise = n.reshape(n.stringConstant({n.getText("default_string", "_Unused")}), {});
  else if (isa<FloatType>(element))
    otherwise = n.scalar(element, n.getFloat("default_float", -0.0));
  else
    otherwise = n.integerScalar(element, n.getInt("default_int64", -1));
  n.set(lookUp(n, n.in(0), keys, values, n.cast(otherwise, element)));
}

static void importCategoryMapper(Node &n) {
  Value texts = given(n, {"cats_strings"}), numbers = given(n, {"cats_int64s"}), x = n.in(0);
  if (isString(elementOf(x)))
    return n.set(
        lookUp(n, x, texts, numbers, n.integerScalar(n.i64(), n.getInt("default_int64", -1))));
  n.set(lookUp(n, x, numbers, texts,
               n.reshape(n.stringConstant({n.getText("default_string", "_Unused")}), {})));
}

/// One more dimension, with a 1 where a category is x. Without 'zeros', each x must be one.
static void importOneHotEncoder(Node &n) {
  std::set<std::string> texts;
  for (const std::string &text : n.getTexts("cats_strings"))
    if (!texts.insert(text).second)
      refuse("the category '" + text + "' is given twice");
  std::set<int64_t> keys;
  for (int64_t key : n.getInts("cats_int64s", {}))
    if (!keys.insert(key).second)
      refuse("the category " + Twine(key) + " is given twice");
  Value x = n.in(0), categories = given(n, {"cats_strings", "cats_int64s"});
  if (!isString(elementOf(x)))
    x = n.cast(x, n.i64());
  int64_t axis = rankOf(x);
  Value isOne = n.compare<EqualOp>(n.unsqueeze(ordered(n, x), {axis}), ordered(n, categories));
  if (!n.getInt("zeros", 1)) {
    Value known = n.reduce<ReduceMaxOp>(n.cast(isOne, n.i64()), {axis}, false);
    Value all = n.reduce<ReduceMinOp>(known, llvm::to_vector(llvm::seq<int64_t>(0, axis)), false);
    n.requireNotNegative(n.add(all, -1), "an input is no category, which 'zeros' = 0 forbids");
  }
  n.set(n.cast(isOne, n.f32()));
}

/// How often each of `grams` n-grams of `size` items of the pool occurs in each row of x, whose
/// items stand `distance` apart: f32[rows, grams].
static Value occurrences(Node &n, Value x, Value pool, int64_t first, int64_t grams, int64_t size,
                         int64_t distance) {
  DimVector dims = dimsOf(x);
  Dim windows = Dim::max(dims[1] - Dim((size - 1) * distance), Dim(0));
  Value holds;
  for (int64_t i = 0; i < size; ++i) {
    Ints places;
    for (int64_t gram = 0; gram < grams; ++gram)
      places.push_back(first + gram * size + i);
    Value wanted = n.gather(pool, n.integers(places), 0);
    Value item = n.unsqueeze(n.sliceAlong(x, 1, Dim(i * distance), windows), {2});
    Value same = n.compare<EqualOp>(item, wanted);
    holds = holds ? n.binary<AndOp>(holds, same) : same;
  }
  return n.reduce<ReduceSumOp>(n.cast(holds, n.f32()), {1}, false);
}

static constexpr int64_t kMostColumns = 1 << 24;

static void importTfIdfVectorizer(Node &n) {
  Value x = n.in(0), pool = given(n, {"pool_strings", "pool_int64s"});
  Ints starts = n.getInts("ngram_counts", {}), indexes = n.getInts("ngram_indexes", {});
  int64_t shortest = n.getInt("min_gram_length", 1), longest = n.getInt("max_gram_length", 1);
  int64_t skips = n.getInt("max_skip_count", 0), total = dimsOf(pool)[0].constant().value_or(0);
  std::string mode = n.getText("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    refuse("'mode' is '" + mode + "', but must be TF, IDF or TFIDF");
  if (rankOf(x) < 1 || rankOf(x) > 2)
    refuse("the input has rank " + Twine(rankOf(x)) + ", but must have 1 or 2");
  bool isVector = rankOf(x) == 1;
  if (isVector)
    x = n.unsqueeze(x, {0});
  if (!isString(elementOf(x)))
    x = n.cast(x, n.i64());
  x = ordered(n, x);
  pool = ordered(n, pool);

  SmallVector<Value> counts;
  Ints columns; // columns of the result, for each count
  int64_t gram = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t size = i + 1, end = i + 1 < starts.size() ? starts[i + 1] : total;
    if (starts[i] < 0 || end > total || end < starts[i])
      refuse("'ngram_counts' does not fit a pool of " + Twine(total) + " items");
    int64_t grams = (end - starts[i]) / size;
    if (gram + grams > (int64_t)indexes.size())
      refuse("'ngram_indexes' has " + Twine(indexes.size()) +
             " entries, but there are more n-grams");
    bool isWanted = grams > 0 && size >= shortest && size <= longest;
    Value sum;
    for (int64_t skip = 0; isWanted && skip <= (size == 1 ? 0 : skips); ++skip) {
      if (auto width = dimsOf(x)[1].constant(); width && *width < (size - 1) * (skip + 1) + 1)
        break;
      Value found = occurrences(n, x, pool, starts[i], grams, size, skip + 1);
      sum = sum ? n.add(sum, found) : found;
    }
    if (sum) {
      counts.push_back(sum);
      columns.append(indexes.begin() + gram, indexes.begin() + gram + grams);
    }
    gram += grams;
  }
  int64_t width = 0;
  for (int64_t index : indexes)
    width = std::max(width, index + 1);
  if (width > kMostColumns)
    refuse("'ngram_indexes' asks for " + Twine(width) + " columns, but at most " +
           Twine(kMostColumns) + " are supported");
  // One more column of zeros, for what nothing counts.
  counts.push_back(n.full({dimsOf(x)[0], Dim(1)}, n.f32(), 0));
  Ints sources(width, columns.size());
  for (auto [i, column] : llvm::enumerate(columns)) {
    if (column < 0 || sources[column] != (int64_t)columns.size())
      refuse("'ngram_indexes' has " + Twine(column) + " twice, or it is negative");
    sources[column] = i;
  }
  Value result = n.gather(n.concat(counts, 1), n.integers(sources), 1);
  if (mode == "IDF")
    result = n.cast(n.compare<GreaterOp>(result, n.scalar(n.f32(), 0)), n.f32());
  if (Value weights = mode == "TF" ? Value() : n.constantFrom("weights"))
    result = n.mul(result, weights);
  n.set(isVector ? n.squeeze(result, {0}) : result);
}

OpRows lookupRows() {
  static const OpRow rows[] = {
      {"LabelEncoder", kMl, 1, 5, importLabelEncoder},
      {"CategoryMapper", kMl, 1, 5, importCategoryMapper},
      {"OneHotEncoder", kMl, 1, 5, importOneHotEncoder},
      {"TfIdfVectorizer", "", 9, 27, importTfIdfVectorizer, false,
       "'ngram_indexes' without repeats"},
  };
  return rows;
}

} // namespace heddle::onnx
