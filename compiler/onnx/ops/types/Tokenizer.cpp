// Tokenizer: com.microsoft's, as one split a regular expression, which keeps what lies between the
// matches (separators) or the matches (tokens), and ops on the numbers that strings are.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/types/Regex.h"
#include "compiler/onnx/ops/types/Strings.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
/// Strings [rows, width]; of each row the first `counts` [rows] are tokens.
struct Tokens {
  Value texts, counts;
};
} // namespace

static Value stringRow(Node &n, StringRef text) {
  return n.reshape(n.stringConstant({text.str()}), {Dim(1), Dim(1)});
}

/// Keeps `texts` [rows, width] with at least `least` letters, side by side, then `filler`.
static Tokens keepLong(Node &n, Value texts, int64_t least, StringRef filler) {
  Value isLong = matchText(n, texts, "(?:.|\n){" + std::to_string(least) + ",}");
  Value kept = n.cast(isLong, n.i64());
  Value counts = n.reduce<ReduceSumOp>(kept, {1}, /*keepDims=*/false);
  Value most = n.max(n.reduce<ReduceMaxOp>(counts, {0}, /*keepDims=*/false), 0);
  Dim width = n.bindSizes(most, "tokens")[0], rows = dimsOf(texts)[0];
  Value before = n.infer<CumsumOp>(
      kept, {n.integer("axis", 1), n.flag("exclusive", true), n.flag("reverse", false)});
  // Dropped texts go to one extra place, which is cut off.
  Value place = n.select(isLong, before, n.size(width));
  Value room = n.broadcast(stringRow(n, filler), {rows, width + Dim(1)});
  Value all = n.infer<ScatterElementsOp>({room, place, texts},
                                         {n.integer("axis", 1), n.text("reduction", "none")});
  return {n.sliceAlong(all, 1, Dim(0), width), counts};
}

/// Splits each of `texts` [rows, width] at the matches of a regular expression, or returns the
/// matches: [rows, width * pieces].
static Value cut(Node &n, Value texts, StringRef expression, bool keepsMatches) {
  Value pieces = splitText(n, texts, scannerConstant(n, expression))->getResult(0);
  DimVector dims = dimsOf(pieces);
  Dim start(keepsMatches), count = (dims[2] - start).ceilDiv(Dim(2));
  Value every = n.slice(pieces, {Dim(0), Dim(0), start}, {dims[0], dims[1], count}, {1, 1, 2});
  return n.reshape(every, {dims[0], dims[1] * count});
}

/// Tokens between a first and a last text, if any row has one.
static Value marked(Node &n, const Tokens &tokens, StringRef filler) {
  DimVector dims = dimsOf(tokens.texts);
  Dim width = dims[1] + Dim::min(dims[1], Dim(1)) * Dim(2);
  auto column = [&](StringRef text) { return n.broadcast(stringRow(n, text), {dims[0], Dim(1)}); };
  Value all = n.concat({column("\x02"), tokens.texts, column(filler)}, 1);
  all = n.sliceAlong(all, 1, Dim(0), width);
  Value end = n.unsqueeze(n.add(tokens.counts, 1), {1});
  Value isEnd = n.compare<EqualOp>(n.iota({dims[0], width}, 1, n.i64()), end);
  return n.select(isEnd, stringRow(n, "\x03"), all);
}

void importTokenizer(Node &n) {
  DimVector dims = dimsOf(n.in(0));
  if (dims.size() < 1 || dims.size() > 2)
    refuse("the input has rank " + Twine(dims.size()) + ", but must have 1 or 2");
  std::vector<std::string> separators = n.getTexts("separators");
  std::string expression = n.getText("tokenexp", ""), filler = n.getText("pad_value", "");
  int64_t least = n.getInt("mincharnum", 0);
  bool isOfLetters = separators.size() == 1 && separators[0].empty();
  if (least < 1 || (isOfLetters && least > 1))
    refuse("'mincharnum' is " + Twine(least) + ", but must be " +
           (isOfLetters ? "1 if each letter is a token" : "at least 1"));
  if (separators.empty() && expression.empty())
    refuse("neither 'separators' nor 'tokenexp' is given");
  Value texts = n.reshape(n.in(0), {elementCount(dims), Dim(1)});
  Value isUtf8 = n.cast(matchText(n, texts, "(?:.|\n)*"), n.i64());
  Value isAll = n.min(n.reduce<ReduceMinOp>(isUtf8, {0, 1}, /*keepDims=*/false), 1);
  n.requireNotNegative(n.add(isAll, -1), "a string is not UTF-8");
  Tokens tokens;
  if (isOfLetters)
    separators = {};
  if (separators.empty())
    tokens = keepLong(n, cut(n, texts, isOfLetters ? "(?:.|\n)" : expression, true), least, filler);
  for (size_t i = 0; i < separators.size(); ++i) {
    bool isLast = i + 1 == separators.size();
    tokens = keepLong(n, cut(n, texts, separators[i], false), least, isLast ? filler : "");
    texts = tokens.texts;
  }
  Value result = n.getInt("mark", 0) ? marked(n, tokens, filler) : tokens.texts;
  dims.push_back(dimsOf(result)[1]);
  n.set(n.reshape(result, dims));
}

} // namespace heddle::onnx
