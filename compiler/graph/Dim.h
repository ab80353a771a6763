// Dim: the size of a dimension, a constant or an integer expression over named symbols.
//
// A sum of products of atoms; an atom is a symbol or floordiv, mod, max, min of two Dims. The
// canonical form makes equal texts equal sizes, so a type can hold the text. Numbers never wrap:
// where a coefficient is no int64, the whole expression becomes `tooLarge()`.
#ifndef HEDDLE_GRAPH_DIM_H
#define HEDDLE_GRAPH_DIM_H

#include "compiler/Prelude.h"

namespace heddle::graph {

class Dim {
public:
  enum class Kind { Symbol, FloorDiv, Mod, Max, Min };
  struct Atom {
    Kind kind;
    std::string text; // the symbol's name (of a row's size, `seq(batch)`), or the canonical text of
                      // the whole atom
    std::shared_ptr<const Dim> lhs, rhs;
    bool operator<(const Atom &other) const { return text < other.text; }
    bool operator==(const Atom &other) const { return text == other.text; }
  };
  using Product = std::vector<Atom>; // sorted

  Dim(int64_t constant = 0);
  Dim(const Dim &) = default;
  Dim(Dim &&) = default;
  Dim &operator=(const Dim &) = default;
  /// Also onto itself, as a SmallVector moves elements where it inserts none.
  Dim &operator=(Dim &&other) noexcept {
    terms.swap(other.terms);
    return *this;
  }
  static Dim symbol(llvm::StringRef name);
  /// The value of an expression whose numbers leave int64; all that is computed with it is the
  /// same. It has no value: the importer refuses it, and a program that meets it ends with a
  /// status.
  static Dim tooLarge();
  bool isTooLarge() const;
  /// Reads what `str` prints. nullopt when the text is not an expression.
  static std::optional<Dim> parse(llvm::StringRef text);

  std::string str() const;
  std::optional<int64_t> constant() const;
  bool isConstant(int64_t value) const { return constant() == value; }
  /// The name, when this is one symbol and nothing else.
  std::optional<std::string> symbolName() const;

  Dim operator+(const Dim &other) const &;
  Dim operator+(const Dim &other) &&;
  Dim operator-(const Dim &other) const;
  Dim operator*(const Dim &other) const;
  Dim floorDiv(const Dim &divisor) const;
  Dim ceilDiv(const Dim &divisor) const { return (*this + divisor - Dim(1)).floorDiv(divisor); }
  Dim mod(const Dim &divisor) const;
  static Dim max(const Dim &a, const Dim &b);
  static Dim min(const Dim &a, const Dim &b);
  bool operator==(const Dim &other) const { return terms == other.terms; }
  bool operator!=(const Dim &other) const { return !(*this == other); }

  /// The value, given those of the symbols; nullopt when one is unknown, a divisor is 0, or
  /// a number leaves int64.
  using Environment = llvm::function_ref<std::optional<int64_t>(llvm::StringRef)>;
  std::optional<int64_t> evaluate(Environment environment) const;
  /// This with symbols replaced where `replacement` has one.
  Dim substitute(llvm::function_ref<std::optional<Dim>(llvm::StringRef)> replacement) const;
  /// Names of all symbols, each once, in order of first appearance.
  void collectSymbols(llvm::SmallVectorImpl<std::string> &names) const;
  std::vector<std::string> symbolNames() const;
  /// Whether every symbol being >= 0 makes this >= 0.
  bool isNeverNegative() const;

  /// Sum over entries of coefficient * product.
  const std::map<Product, int64_t> &sum() const { return terms; }

private:
  static Dim atom(Kind kind, const Dim &lhs, const Dim &rhs);
  static Dim extreme(Kind kind, const Dim &a, const Dim &b);
  void addTerm(const Product &product, int64_t coefficient);
  bool isNothingButTooLarge() const;
  std::map<Product, int64_t> terms; // no zero coefficients
};

using DimVector = llvm::SmallVector<Dim, 6>;

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_DIM_H
