// Strings: ops on strings, which are numbers of the environment's table.

#include "compiler/reference/Families.h"

#include "llvm/Support/ConvertUTF.h"

#include <cmath>
#include <set>

using namespace mlir;

namespace heddle::reference {

using namespace graph;

using Texts = std::vector<std::string>;

static llvm::Expected<Texts> textsIn(const Call &call, const Tensor &tensor) {
  Texts texts;
  for (int64_t number : load<int64_t>(tensor)) {
    auto text = call.environment.stringOf(call.op, number);
    if (!text)
      return text.takeError();
    texts.push_back(std::move(*text));
  }
  return texts;
}

static llvm::Expected<Tensor> tensorOf(const Call &call, const Texts &texts,
                                       ArrayRef<int64_t> shape) {
  auto result = call.environment.allocate(call.op, call.elementOfResult(), shape);
  if (!result)
    return result;
  std::vector<int64_t> numbers;
  for (const std::string &text : texts)
    numbers.push_back(call.environment.numberOf(text));
  store<int64_t>(*result, numbers);
  return result;
}

static Results made(llvm::Expected<Tensor> tensor) {
  if (!tensor)
    return tensor.takeError();
  return single(*tensor);
}

Results compute(StringConcatOp, const Call &call) {
  auto x = textsIn(call, call[0]), y = textsIn(call, call[1]);
  if (!x || !y)
    return llvm::joinErrors(x.takeError(), y.takeError());
  for (auto [first, second] : llvm::zip(*x, *y))
    first += second;
  return made(tensorOf(call, *x, call[0].shape));
}

static Texts piecesOf(StringRef text, StringRef delimiter, int64_t most) {
  constexpr StringRef spaces = " \t\n\v\f\r";
  Texts pieces;
  while (true) {
    if (delimiter.empty()) {
      text = text.ltrim(spaces);
      if (text.empty())
        return pieces;
    }
    bool mayCut = most < 0 || static_cast<int64_t>(pieces.size()) < most;
    size_t end = !mayCut             ? StringRef::npos
                 : delimiter.empty() ? text.find_first_of(spaces)
                                     : text.find(delimiter);
    pieces.push_back(text.substr(0, end).str());
    if (end == StringRef::npos)
      return pieces;
    text = text.substr(end + delimiter.size());
  }
}

/// First state, or column from 256 on, of a scanner for a byte beside a match.
static int64_t sideOf(StringRef text, size_t place) {
  return place >= text.size() ? 0 : llvm::isAlnum(text[place]) || text[place] == '_' ? 2 : 1;
}

/// The end of the longest match that begins at `from`, or npos.
static size_t matchEnd(StringRef text, size_t from, ArrayRef<int64_t> scanner) {
  size_t end = StringRef::npos;
  int64_t state = sideOf(text, from - 1);
  for (size_t place = from; state >= 0; ++place) {
    ArrayRef<int64_t> row = scanner.slice(state * 259, 259);
    if (row[256 + sideOf(text, place)])
      end = place;
    if (place == text.size())
      break;
    state = row[static_cast<unsigned char>(text[place])];
  }
  return end;
}

static Texts piecesAround(StringRef text, ArrayRef<int64_t> scanner) {
  auto afterLetter = [&](size_t place) {
    do
      ++place;
    while (place < text.size() && (static_cast<unsigned char>(text[place]) & 0xc0) == 0x80);
    return place;
  };
  Texts pieces;
  size_t begin = 0;
  for (size_t from = 0; from <= text.size();) {
    size_t end = matchEnd(text, from, scanner);
    if (end == StringRef::npos) {
      from = afterLetter(from);
      continue;
    }
    pieces.push_back(text.slice(begin, from).str());
    pieces.push_back(text.slice(from, end).str());
    begin = from = end > from ? end : afterLetter(end);
  }
  if (begin <= text.size())
    pieces.push_back(text.substr(begin).str());
  return pieces;
}

Results compute(StringSplitOp op, const Call &call) {
  bool isScanner = call[1].rank() == 2;
  auto x = textsIn(call, call[0]);
  auto delimiter = isScanner ? Texts() : textsIn(call, call[1]);
  if (!x || !delimiter)
    return llvm::joinErrors(x.takeError(), delimiter.takeError());
  std::vector<int64_t> scanner = isScanner ? load<int64_t>(call[1]) : std::vector<int64_t>();
  std::vector<Texts> all;
  std::vector<int64_t> counts;
  size_t width = 0;
  for (const std::string &text : *x) {
    all.push_back(isScanner ? piecesAround(text, scanner)
                            : piecesOf(text, delimiter->front(), op.getMost()));
    counts.push_back(all.back().size());
    width = std::max(width, all.back().size());
  }
  Texts pieces;
  for (Texts &row : all) {
    row.resize(width);
    llvm::append_range(pieces, row);
  }
  SmallVector<int64_t> shape = call[0].shape;
  shape.push_back(width);
  auto first = tensorOf(call, pieces, shape);
  auto second = call.allocate(call[0].shape, 1);
  if (!first || !second)
    return llvm::joinErrors(first.takeError(), second.takeError());
  store<int64_t>(*second, counts);
  return Tensors{*first, *second};
}

/// Letter by letter, by the platform's mapping of ASCII and this table-free rule for the rest:
/// Latin-1, Greek and Cyrillic letters are 32 apart.
static std::string inCase(StringRef text, bool isUpper) {
  llvm::SmallVector<llvm::UTF32> letters;
  const auto *from = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  const auto *end = reinterpret_cast<const llvm::UTF8 *>(text.end());
  letters.resize(text.size());
  llvm::UTF32 *to = letters.data();
  if (llvm::ConvertUTF8toUTF32(&from, end, &to, to + letters.size(), llvm::strictConversion) !=
      llvm::conversionOK)
    return text.str();
  letters.resize(to - letters.data());
  std::string result;
  for (llvm::UTF32 letter : letters) {
    auto within = [&](uint32_t low, uint32_t high) { return letter >= low && letter <= high; };
    if (isUpper && (within('a', 'z') || (within(0xe0, 0xfe) && letter != 0xf7) ||
                    within(0x3b1, 0x3c1) || within(0x3c3, 0x3cb) || within(0x430, 0x44f)))
      letter -= 32;
    else if (!isUpper && (within('A', 'Z') || (within(0xc0, 0xde) && letter != 0xd7) ||
                          within(0x391, 0x3a1) || within(0x3a3, 0x3ab) || within(0x410, 0x42f)))
      letter += 32;
    char bytes[4], *place = bytes;
    llvm::ConvertCodePointToUTF8(letter, place);
    result.append(bytes, place);
  }
  return result;
}

Results compute(StringNormalizeOp op, const Call &call) {
  auto x = textsIn(call, call[0]), stops = textsIn(call, call[1]);
  if (!x || !stops)
    return llvm::joinErrors(x.takeError(), stops.takeError());
  auto compared = [&](const std::string &text) {
    return op.getCaseSensitive() ? text : inCase(text, false);
  };
  std::set<std::string> stopwords;
  for (const std::string &text : *stops)
    stopwords.insert(compared(text));
  Texts kept;
  for (const std::string &text : *x)
    if (!stopwords.count(compared(text)))
      kept.push_back(op.getLetterCase() == "none" ? text
                                                  : inCase(text, op.getLetterCase() == "upper"));
  if (kept.empty())
    kept.push_back("");
  SmallVector<int64_t> shape(call[0].rank() - 1, 1);
  shape.push_back(kept.size());
  return made(tensorOf(call, kept, shape));
}

Results compute(StringMatchOp, const Call &call) {
  auto x = textsIn(call, call[0]);
  auto result = call.allocate(call[0].shape);
  if (!x || !result)
    return llvm::joinErrors(x.takeError(), result.takeError());
  std::vector<int64_t> transitions = load<int64_t>(call[1]), matches;
  for (const std::string &text : *x) {
    int64_t state = 0;
    for (unsigned char byte : text)
      state = state < 0 ? state : transitions[state * 257 + byte];
    matches.push_back(state >= 0 && transitions[state * 257 + 256]);
  }
  store<int64_t>(*result, matches);
  return single(*result);
}

/// The shortest of the decimals that read as the same number.
static std::string decimalOf(double value, bool isSingle) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  auto spelt = [&](const char *form, int precision) {
    char text[400];
    return std::string(text, std::snprintf(text, sizeof text, form, precision, value));
  };
  auto reads = [&](int precision) {
    std::string text = spelt("%.*e", precision);
    return isSingle ? std::strtof(text.c_str(), nullptr) == static_cast<float>(value)
                    : std::strtod(text.c_str(), nullptr) == value;
  };
  int precision = 0;
  while (precision < 16 && !reads(precision))
    ++precision;
  std::string digits = spelt("%.*e", precision);
  int exponent = std::atoi(digits.c_str() + digits.find('e') + 1);
  if (value != 0 && (exponent < -4 || exponent >= 16))
    return digits;
  return spelt("%.*f", std::max(1, precision - exponent));
}

static Results format(const Call &call) {
  const Tensor &x = call[0];
  Texts texts;
  for (int64_t i = 0, count = x.count(); i < count; ++i) {
    if (isFloat(x.element))
      texts.push_back(decimalOf(numberAt(x, i), x.element.isF32()));
    else if (x.element.isInteger(1))
      texts.push_back(integerAt(x, i) ? "1" : "0"); // as ONNX Runtime
    else
      texts.push_back(isUnsigned(x.element) ? std::to_string(static_cast<uint64_t>(integerAt(x, i)))
                                            : std::to_string(integerAt(x, i)));
  }
  return made(tensorOf(call, texts, x.shape));
}

Results compute(StringCastOp, const Call &call) {
  if (!isString(call[0].element))
    return format(call);
  auto texts = textsIn(call, call[0]);
  auto result = call.allocate(call[0].shape);
  if (!texts || !result)
    return llvm::joinErrors(texts.takeError(), result.takeError());
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<uint64_t> naturals;
  bool isReal = isFloat(result->element), isNatural = isUnsigned(result->element);
  for (auto [i, text] : llvm::enumerate(*texts)) {
    StringRef trimmed = StringRef(text).trim();
    trimmed.consume_front("+");
    int64_t integer = 0;
    uint64_t natural = 0;
    char *end = nullptr;
    std::string copy = trimmed.str();
    double number = std::strtod(copy.c_str(), &end);
    if (result->element.isF32())
      number = std::strtof(copy.c_str(), &end);
    bool isWrong = isReal      ? copy.empty() || *end || copy.find_first_of("xX") != copy.npos
                   : isNatural ? trimmed.getAsInteger(10, natural)
                               : trimmed.getAsInteger(10, integer);
    if (isWrong)
      return call.error("string number " + Twine(i) + " is no number");
    numbers.push_back(number);
    integers.push_back(integer);
    naturals.push_back(natural);
  }
  if (isReal)
    store<double>(*result, numbers);
  else if (isNatural)
    store<uint64_t>(*result, naturals);
  else
    store<int64_t>(*result, integers);
  return single(*result);
}

} // namespace heddle::reference
