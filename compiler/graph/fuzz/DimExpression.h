// DimExpression: a size expression read from bytes, beside its value in exact arithmetic of 128
// bits. What DimFuzz and a unit test ask of it: whatever a Dim says of its value is true.
#ifndef HEDDLE_GRAPH_FUZZ_DIM_EXPRESSION_H
#define HEDDLE_GRAPH_FUZZ_DIM_EXPRESSION_H

#include "compiler/graph/Dim.h"

namespace heddle::graph {

class DimExpression {
public:
  /// Any bytes are an expression: the values of the symbols first, then ops in prefix form.
  explicit DimExpression(llvm::ArrayRef<uint8_t> bytes) : rest(bytes) {
    for (int64_t &value : values)
      value = edge(next()) & INT64_MAX; // sizes are never negative
    std::tie(dim, exact) = read(0);
  }

  /// The error of the Dim; "" if there is none.
  std::string problem() const {
    std::optional<int64_t> value =
        dim.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> { return valueOf(name); });
    if (value && dim.isTooLarge())
      return "it has a value, but is too large: " + dim.str();
    if (value && exact && *value != *exact)
      return dim.str() + " is said to be " + std::to_string(*value);
    if (value && exact && *value < 0 && dim.isNeverNegative())
      return dim.str() + " is said never to be negative";
    if (auto again = Dim::parse(dim.str()); !again || *again != dim)
      return dim.str() + " is not read as it was written";
    auto fixed = dim.substitute(
        [&](llvm::StringRef name) { return std::optional<Dim>(Dim(valueOf(name))); });
    if (auto constant = fixed.constant(); constant && exact && *constant != *exact)
      return dim.str() + " with its sizes is said to be " + std::to_string(*constant);
    return "";
  }

private:
  using Wide = __int128;
  using Result = std::pair<Dim, std::optional<Wide>>; // no value: a division by 0, or 128 bits left

  uint8_t next() {
    uint8_t byte = rest.empty() ? 0 : rest.front();
    rest = rest.empty() ? rest : rest.drop_front();
    return byte;
  }

  int64_t valueOf(llvm::StringRef name) const { return values[name[0] - 'a']; }

  /// Small numbers, powers of two and their neighbours, of either sign.
  static int64_t edge(uint8_t byte) {
    if (byte < 64)
      return byte - 16;
    uint64_t power = uint64_t(1) << (byte % 64);
    return static_cast<int64_t>(byte < 128 ? power : byte < 192 ? power - 1 : 0 - power);
  }

  static Wide floorOf(Wide x, Wide y) {
    return x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
  }

  Result read(int depth) {
    uint8_t kind = next() % 10;
    if (depth > 5 || kind < 2) {
      int64_t number = edge(next());
      return {Dim(number), number};
    }
    if (kind < 4) {
      int place = next() % 3;
      return {Dim::symbol(std::string(1, 'a' + place)), values[place]};
    }
    auto [x, p] = read(depth + 1);
    auto [y, q] = read(depth + 1);
    bool known = p && q, divides = known && *q != 0;
    Wide made = 0;
    auto when = [&](bool isExact) { return isExact ? std::optional<Wide>(made) : std::nullopt; };
    switch (kind) {
    case 4:
      return {x + y, when(known && !__builtin_add_overflow(*p, *q, &made))};
    case 5:
      return {x - y, when(known && !__builtin_sub_overflow(*p, *q, &made))};
    case 6:
      return {x * y, when(known && !__builtin_mul_overflow(*p, *q, &made))};
    case 7:
      made = divides ? floorOf(*p, *q) : 0;
      return {x.floorDiv(y), when(divides)};
    case 8:
      made = divides ? *p - floorOf(*p, *q) * *q : 0;
      return {x.mod(y), when(divides)};
    default:
      bool isMax = next() % 2;
      made = known ? (isMax ? std::max(*p, *q) : std::min(*p, *q)) : 0;
      return {isMax ? Dim::max(x, y) : Dim::min(x, y), when(known)};
    }
  }

  llvm::ArrayRef<uint8_t> rest;
  int64_t values[3]; // a's, b's and c's
  Dim dim;
  std::optional<Wide> exact;
};

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_FUZZ_DIM_EXPRESSION_H
