// DimParser: size expressions from their texts.

#include "compiler/graph/Dim.h"

namespace heddle::graph {
namespace {
/// Recursive descent over: sum := product (('+'|'-') product)*; product := unary (('*'|'floordiv'|
/// 'mod') unary)*; unary := '-'? (number | name | 'max'|'min' '(' sum ',' sum ')' | '(' sum ')').
class Parser {
public:
  explicit Parser(llvm::StringRef text) : rest(text) {}

  std::optional<Dim> parseAll() {
    auto result = parseSum();
    rest = rest.ltrim();
    return result && rest.empty() ? result : std::nullopt;
  }

private:
  bool eat(llvm::StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }

  /// The lowest int64 is spelt as minus what no int64 is.
  bool startsLowest() {
    rest = rest.ltrim();
    return rest.take_while(llvm::isDigit) == "9223372036854775808";
  }

  std::optional<Dim> parseSum() {
    auto total = parseProduct();
    while (total) {
      bool plus = eat("+");
      if (!plus && !eat("-"))
        break;
      isLowest = !plus && startsLowest();
      plus |= isLowest;
      auto next = parseProduct();
      if (!next)
        return std::nullopt;
      total = std::move(*total) + (plus ? *next : *next * Dim(-1)); // no copy of a long sum a term
    }
    return total;
  }

  std::optional<Dim> parseProduct() {
    auto total = parseUnary();
    while (total) {
      std::optional<Dim> next;
      if (eat("*")) {
        if (!(next = parseUnary()))
          return std::nullopt;
        total = *total * *next;
      } else if (eat("floordiv ")) {
        if (!(next = parseUnary()))
          return std::nullopt;
        total = total->floorDiv(*next);
      } else if (eat("mod ")) {
        if (!(next = parseUnary()))
          return std::nullopt;
        total = total->mod(*next);
      } else {
        break;
      }
    }
    return total;
  }

  std::optional<Dim> parseUnary() {
    // Dim makes texts of 100 parentheses in each other; each may have a minus before it.
    constexpr int mostDepth = 300;
    if (++depth > mostDepth)
      return std::nullopt;
    auto result = parsePrimary();
    --depth;
    return result;
  }

  std::optional<Dim> parsePrimary() {
    if (eat("-")) {
      if ((isLowest = startsLowest()))
        return parseUnary();
      auto operand = parseUnary();
      return operand ? std::optional<Dim>(*operand * Dim(-1)) : std::nullopt;
    }
    if (eat("(")) {
      auto inner = parseSum();
      return inner && eat(")") ? inner : std::nullopt;
    }
    rest = rest.ltrim();
    llvm::StringRef word = rest.take_while(
        [](char c) { return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$'; });
    if (word.empty())
      return std::nullopt;
    rest = rest.drop_front(word.size());
    if (std::exchange(isLowest, false))
      return Dim(INT64_MIN);
    int64_t number;
    if (llvm::isDigit(word[0]))
      return word.getAsInteger(10, number) ? std::nullopt : std::optional<Dim>(Dim(number));
    if ((word == "max" || word == "min") && eat("(")) {
      auto left = parseSum();
      if (!left || !eat(","))
        return std::nullopt;
      auto right = parseSum();
      if (!right || !eat(")"))
        return std::nullopt;
      return word == "max" ? Dim::max(*left, *right) : Dim::min(*left, *right);
    }
    if (rest.consume_front("(")) { // a function of an index, or a sum (ragged/Ragged.h)
      auto inside = parseSum();
      return inside && eat(")")
                 ? std::optional(Dim::symbol((word + "(" + inside->str() + ")").str()))
                 : std::nullopt;
    }
    return Dim::symbol(word);
  }

  llvm::StringRef rest;
  int depth = 0;
  bool isLowest = false; // the next number is the lowest one, its minus read already
};
} // namespace

/// Types are asked for their sizes again and again, and sizes of many symbols have texts of
/// thousands of letters: those read last are remembered.
std::optional<Dim> Dim::parse(llvm::StringRef text) {
  constexpr size_t shortest = 32, mostLetters = 1 << 18;
  if (text.size() < shortest)
    return Parser(text).parseAll();
  thread_local llvm::StringMap<std::optional<Dim>> known;
  thread_local size_t letters = 0;
  if (auto found = known.find(text); found != known.end())
    return found->second;
  if (letters + text.size() > mostLetters) {
    known.clear();
    letters = 0;
  }
  letters += text.size();
  return known[text] = Parser(text).parseAll();
}

} // namespace heddle::graph
