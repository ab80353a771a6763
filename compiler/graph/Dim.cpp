// Dim: arithmetic in canonical form, and its text.

#include "compiler/graph/Dim.h"

namespace heddle::graph {

/// Undefined for the lowest number and -1, whose quotient is no int64.
static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

/// The rest of floorDivide; its product with b may lie below the lowest int64.
static int64_t floorRest(int64_t a, int64_t b) {
  if (b == -1)
    return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Dim::Dim(int64_t constant) {
  if (constant != 0)
    terms[{}] = constant;
}

Dim Dim::symbol(llvm::StringRef name) {
  Dim result;
  result.terms[{Atom{Kind::Symbol, name.str(), nullptr, nullptr}}] = 1;
  return result;
}

std::optional<int64_t> Dim::constant() const {
  if (terms.empty())
    return 0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

std::optional<std::string> Dim::symbolName() const {
  if (terms.size() != 1 || terms.begin()->second != 1 || terms.begin()->first.size() != 1 ||
      terms.begin()->first[0].kind != Kind::Symbol)
    return std::nullopt;
  return terms.begin()->first[0].text;
}

static constexpr llvm::StringLiteral kTooLarge = "$too_large";

Dim Dim::tooLarge() { return symbol(kTooLarge); }

bool Dim::isTooLarge() const { return llvm::is_contained(symbolNames(), kTooLarge); }

std::vector<std::string> Dim::symbolNames() const {
  llvm::SmallVector<std::string> names;
  collectSymbols(names);
  return {names.begin(), names.end()};
}

void Dim::addTerm(const Product &product, int64_t coefficient) {
  int64_t &slot = terms[product];
  if (__builtin_add_overflow(slot, coefficient, &slot))
    *this = tooLarge();
  else if (slot == 0)
    terms.erase(product);
}

/// Whether this is `tooLarge()` and nothing else: what arithmetic returns as soon as it meets it.
bool Dim::isNothingButTooLarge() const {
  return terms.size() == 1 && terms.begin()->first.size() == 1 &&
         terms.begin()->first[0].text == kTooLarge;
}

Dim Dim::operator+(const Dim &other) const & { return Dim(*this) + other; }

Dim Dim::operator+(const Dim &other) && {
  Dim result = std::move(*this);
  for (const auto &[product, coefficient] : other.terms) {
    if (result.isNothingButTooLarge() || other.isNothingButTooLarge())
      return tooLarge();
    result.addTerm(product, coefficient);
  }
  return result;
}

Dim Dim::operator-(const Dim &other) const { return *this + other * Dim(-1); }

Dim Dim::operator*(const Dim &other) const {
  Dim result;
  if (isNothingButTooLarge() || other.isNothingButTooLarge())
    return tooLarge();
  for (const auto &[left, leftCoefficient] : terms)
    for (const auto &[right, rightCoefficient] : other.terms) {
      int64_t coefficient;
      if (__builtin_mul_overflow(leftCoefficient, rightCoefficient, &coefficient))
        return tooLarge();
      Product product = left;
      product.insert(product.end(), right.begin(), right.end());
      std::sort(product.begin(), product.end());
      result.addTerm(product, coefficient);
      if (result.isNothingButTooLarge())
        return result;
    }
  return result;
}

/// Limit of nested parentheses: deeper ones would take a stack that nobody has promised
/// (DimParser.cpp).
static constexpr int kMostNesting = 100;

/// How deep parentheses are in a text.
static int nesting(llvm::StringRef text) {
  int depth = 0, deepest = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

Dim Dim::atom(Kind kind, const Dim &lhs, const Dim &rhs) {
  if (lhs.isNothingButTooLarge() || rhs.isNothingButTooLarge())
    return tooLarge();
  std::string left = lhs.str(), right = rhs.str();
  auto wrap = [](const std::string &text) {
    return text.find_first_of(" *") == std::string::npos ? text : "(" + text + ")";
  };
  std::string text;
  switch (kind) {
  case Kind::FloorDiv:
    text = wrap(left) + " floordiv " + wrap(right);
    break;
  case Kind::Mod:
    text = wrap(left) + " mod " + wrap(right);
    break;
  case Kind::Max:
    text = "max(" + left + ", " + right + ")";
    break;
  case Kind::Min:
    text = "min(" + left + ", " + right + ")";
    break;
  case Kind::Symbol:
    break;
  }
  if (nesting(text) > kMostNesting)
    return tooLarge();
  Dim result;
  result.terms[{
      Atom{kind, text, std::make_shared<const Dim>(lhs), std::make_shared<const Dim>(rhs)}}] = 1;
  return result;
}

/// Orders monomials by the power of the first symbol in which they differ, so that the order stays
/// when both are multiplied.
static bool isLower(const Dim::Product &a, const Dim::Product &b) {
  auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return y != b.end() && (x == a.end() || *y < *x);
}

static Dim combine(Dim::Kind kind, const Dim &left, const Dim &right) {
  switch (kind) {
  case Dim::Kind::FloorDiv:
    return left.floorDiv(right);
  case Dim::Kind::Mod:
    return left.mod(right);
  case Dim::Kind::Max:
    return Dim::max(left, right);
  case Dim::Kind::Min:
    return Dim::min(left, right);
  case Dim::Kind::Symbol:
    break;
  }
  llvm_unreachable("a symbol has no operands");
}

static Dim dimOf(const Dim::Product &factors, int64_t coefficient) {
  Dim result(coefficient);
  for (const Dim::Atom &factor : factors)
    result = result * (factor.kind == Dim::Kind::Symbol
                           ? Dim::symbol(factor.text)
                           : combine(factor.kind, *factor.lhs, *factor.rhs));
  return result;
}

/// A term of a polynomial by another one; nullopt if that leaves a rest.
static std::optional<Dim> termQuotient(const std::pair<const Dim::Product, int64_t> &term,
                                       const std::pair<const Dim::Product, int64_t> &divisor) {
  if ((term.second == INT64_MIN && divisor.second == -1) || term.second % divisor.second != 0 ||
      !std::includes(term.first.begin(), term.first.end(), divisor.first.begin(),
                     divisor.first.end()))
    return std::nullopt;
  Dim::Product factors;
  std::set_difference(term.first.begin(), term.first.end(), divisor.first.begin(),
                      divisor.first.end(), std::back_inserter(factors));
  return dimOf(factors, term.second / divisor.second);
}

/// The polynomial that times `divisor` is `dividend`, by long division; nullopt if there is none.
static std::optional<Dim> exactQuotient(const Dim &dividend, const Dim &divisor) {
  constexpr size_t mostTerms = 64; // each step of a long division takes as many
  bool isTermByTerm = divisor.sum().size() == 1;
  if (divisor == Dim(0) || (!isTermByTerm && dividend.sum().size() > mostTerms))
    return std::nullopt;
  auto leading = [](const Dim &dim) -> const auto & {
    return *std::max_element(dim.sum().begin(), dim.sum().end(), [](const auto &a, const auto &b) {
      return isLower(a.first, b.first);
    });
  };
  Dim quotient;
  if (isTermByTerm) {
    for (const auto &term : dividend.sum()) {
      auto part = termQuotient(term, *divisor.sum().begin());
      if (!part)
        return std::nullopt;
      quotient = std::move(quotient) + *part;
    }
    return quotient;
  }
  for (Dim rest = dividend; rest != Dim(0);) {
    auto part = termQuotient(leading(rest), leading(divisor));
    if (!part)
      return std::nullopt;
    quotient = std::move(quotient) + *part;
    rest = rest - divisor * *part;
    if (rest.isTooLarge() || rest.sum().size() > mostTerms)
      return std::nullopt;
  }
  return quotient;
}

Dim Dim::floorDiv(const Dim &divisor) const {
  auto constantDivisor = divisor.constant();
  if (isNothingButTooLarge() || divisor.isNothingButTooLarge())
    return tooLarge();
  if (constantDivisor == 1)
    return *this;
  if (constantDivisor == -1)
    return *this * Dim(-1);
  if (constantDivisor && *constantDivisor != 0) {
    // Terms that the divisor divides leave the quotient exactly.
    Dim whole, rest;
    for (const auto &[product, coefficient] : terms) {
      int64_t quotient = floorDivide(coefficient, *constantDivisor);
      if (product.empty() || coefficient % *constantDivisor == 0)
        whole.addTerm(product, quotient);
      int64_t remainder = floorRest(coefficient, *constantDivisor);
      if (product.empty())
        rest.addTerm(product, remainder);
      else if (remainder != 0)
        rest.addTerm(product, coefficient);
    }
    if (auto constantRest = rest.constant())
      return whole + Dim(floorDivide(*constantRest, *constantDivisor));
    // (x floordiv a) floordiv b = x floordiv (a b)
    if (rest.terms.size() == 1 && rest.terms.begin()->second == 1 &&
        rest.terms.begin()->first.size() == 1) {
      const Atom &inner = rest.terms.begin()->first[0];
      if (inner.kind == Kind::FloorDiv && inner.rhs->constant().value_or(0) > 0 &&
          *constantDivisor > 0)
        if (Dim both = *inner.rhs * divisor; both.constant())
          return whole + inner.lhs->floorDiv(both);
    }
    return whole + atom(Kind::FloorDiv, rest, divisor);
  }
  if (auto quotient = exactQuotient(*this, divisor))
    return *quotient;
  if (divisor.terms.size() == 1 && divisor.terms.begin()->second == -1)
    return (*this * Dim(-1)).floorDiv(divisor * Dim(-1));
  // A factor of all terms of both is none of the quotient's.
  Product common = divisor.terms.empty() ? Product() : divisor.terms.begin()->first;
  for (const Dim *dim : {&divisor, this})
    for (const auto &[product, coefficient] : dim->terms) {
      Product both;
      std::set_intersection(common.begin(), common.end(), product.begin(), product.end(),
                            std::back_inserter(both));
      common = std::move(both);
    }
  if (!common.empty()) {
    Dim factor = dimOf(common, 1);
    if (auto left = exactQuotient(*this, factor), right = exactQuotient(divisor, factor);
        left && right)
      return left->floorDiv(*right);
  }
  return atom(Kind::FloorDiv, *this, divisor);
}

Dim Dim::mod(const Dim &divisor) const {
  auto constantDivisor = divisor.constant();
  if (isNothingButTooLarge() || divisor.isNothingButTooLarge())
    return tooLarge();
  if (constantDivisor == 1)
    return Dim(0);
  if (constantDivisor && *constantDivisor > 0) {
    Dim rest;
    for (const auto &[product, coefficient] : terms) {
      int64_t remainder = floorRest(coefficient, *constantDivisor);
      if (remainder != 0)
        rest.addTerm(product, remainder);
    }
    if (auto constantRest = rest.constant())
      return Dim(*constantRest % *constantDivisor);
    return atom(Kind::Mod, rest, divisor);
  }
  if (exactQuotient(*this, divisor))
    return Dim(0);
  return atom(Kind::Mod, *this, divisor);
}

/// The parts of nested atoms of one kind: of max(max(a, b) + 1, c) they are a + 1, b + 1 and c.
static void flatten(Dim::Kind kind, const Dim &dim, DimVector &parts) {
  auto number = dim.sum().find({});
  Dim offset(number == dim.sum().end() ? 0 : number->second), nested = dim - offset;
  if (nested.sum().size() == 1) {
    const auto &[product, coefficient] = *nested.sum().begin();
    if (coefficient == 1 && product.size() == 1 && product[0].kind == kind) {
      flatten(kind, *product[0].lhs + offset, parts);
      return flatten(kind, *product[0].rhs + offset, parts);
    }
  }
  parts.push_back(dim);
}

Dim Dim::extreme(Kind kind, const Dim &a, const Dim &b) {
  if (a.isNothingButTooLarge() || b.isNothingButTooLarge())
    return tooLarge();
  DimVector parts, kept;
  flatten(kind, a, parts);
  flatten(kind, b, parts);
  auto decides = [&](const Dim &one, const Dim &other) {
    return (kind == Kind::Max ? one - other : other - one).isNeverNegative();
  };
  for (const Dim &part : parts) {
    if (llvm::any_of(kept, [&](const Dim &other) { return decides(other, part); }))
      continue;
    llvm::erase_if(kept, [&](const Dim &other) { return decides(part, other); });
    kept.push_back(part);
  }
  llvm::sort(kept, [](const Dim &one, const Dim &other) { return one.str() < other.str(); });
  Dim result = kept[0];
  for (const Dim &next : llvm::ArrayRef(kept).drop_front())
    result = atom(kind, result, next);
  return result;
}

Dim Dim::max(const Dim &a, const Dim &b) { return extreme(Kind::Max, a, b); }
Dim Dim::min(const Dim &a, const Dim &b) { return extreme(Kind::Min, a, b); }

bool Dim::isNeverNegative() const {
  for (const auto &[product, coefficient] : terms) {
    if (coefficient < 0)
      return false;
    for (const Atom &factor : product) {
      switch (factor.kind) {
      case Kind::Symbol:
        if (factor.text == kTooLarge)
          return false;
        break;
      case Kind::FloorDiv:
        if (!factor.lhs->isNeverNegative() || !factor.rhs->isNeverNegative())
          return false;
        break;
      case Kind::Mod:
        if (!factor.rhs->isNeverNegative())
          return false;
        break;
      case Kind::Max:
        if (!factor.lhs->isNeverNegative() && !factor.rhs->isNeverNegative())
          return false;
        break;
      case Kind::Min:
        if (!factor.lhs->isNeverNegative() || !factor.rhs->isNeverNegative())
          return false;
        break;
      }
    }
  }
  return true;
}

std::optional<int64_t> Dim::evaluate(Environment environment) const {
  int64_t total = 0;
  for (const auto &[product, coefficient] : terms) {
    int64_t value = coefficient;
    for (const Atom &factor : product) {
      std::optional<int64_t> part;
      if (factor.kind == Kind::Symbol) {
        if (factor.text != kTooLarge)
          part = environment(factor.text);
      } else {
        auto left = factor.lhs->evaluate(environment), right = factor.rhs->evaluate(environment);
        if (!left || !right)
          return std::nullopt;
        bool divides = factor.kind == Kind::FloorDiv || factor.kind == Kind::Mod;
        if (divides && (*right == 0 || (*right == -1 && *left == INT64_MIN)))
          return std::nullopt;
        switch (factor.kind) {
        case Kind::FloorDiv:
          part = floorDivide(*left, *right);
          break;
        case Kind::Mod:
          part = floorRest(*left, *right);
          break;
        case Kind::Max:
          part = std::max(*left, *right);
          break;
        case Kind::Min:
          part = std::min(*left, *right);
          break;
        case Kind::Symbol:
          break;
        }
      }
      if (!part || __builtin_mul_overflow(value, *part, &value))
        return std::nullopt;
    }
    if (__builtin_add_overflow(total, value, &total))
      return std::nullopt;
  }
  return total;
}

Dim Dim::substitute(llvm::function_ref<std::optional<Dim>(llvm::StringRef)> replacement) const {
  Dim result;
  for (const auto &[product, coefficient] : terms) {
    Dim value(coefficient);
    for (const Atom &factor : product) {
      if (factor.kind == Kind::Symbol) {
        auto found = factor.text == kTooLarge ? std::nullopt : replacement(factor.text);
        value = value * (found ? *found : symbol(factor.text));
        continue;
      }
      value = value * combine(factor.kind, factor.lhs->substitute(replacement),
                              factor.rhs->substitute(replacement));
    }
    result = result + value;
  }
  return result;
}

void Dim::collectSymbols(llvm::SmallVectorImpl<std::string> &names) const {
  for (const auto &[product, coefficient] : terms)
    for (const Atom &factor : product) {
      if (factor.kind == Kind::Symbol) {
        if (!llvm::is_contained(names, factor.text))
          names.push_back(factor.text);
        continue;
      }
      factor.lhs->collectSymbols(names);
      factor.rhs->collectSymbols(names);
    }
}

std::string Dim::str() const {
  if (terms.empty())
    return "0";
  std::string text;
  auto append = [&](const Product &product, int64_t coefficient) {
    if (!text.empty())
      text += coefficient < 0 ? " - " : " + ";
    else if (coefficient < 0)
      text += "-";
    std::string magnitude = std::to_string(coefficient);
    if (coefficient < 0)
      magnitude.erase(0, 1);
    bool needsNumber = magnitude != "1" || product.empty();
    if (needsNumber)
      text += magnitude;
    for (size_t i = 0; i < product.size(); ++i) {
      if (i > 0 || needsNumber)
        text += "*";
      bool bare = product[i].kind == Kind::Symbol || product[i].kind == Kind::Max ||
                  product[i].kind == Kind::Min;
      bool alone = terms.size() == 1 && product.size() == 1 && !needsNumber && coefficient > 0;
      text += bare || alone ? product[i].text : "(" + product[i].text + ")";
    }
  };
  for (const auto &[product, coefficient] : terms)
    if (!product.empty())
      append(product, coefficient);
  if (auto rest = terms.find({}); rest != terms.end())
    append({}, rest->second);
  return text;
}

} // namespace heddle::graph
