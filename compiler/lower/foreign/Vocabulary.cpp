// Vocabulary: one row for each function, written as one op.

#include "compiler/lower/foreign/Vocabulary.h"

using namespace mlir;

namespace heddle::lower {

namespace {
struct Word {
  StringLiteral name;
  /// Types of each operand and, last, of the result: e an element, v a vector, n a number, x an
  /// element or, in a form of its own whose name ends in _lanes, a vector.
  StringLiteral types;
  bool isFloat = false;
  bool hasForms() const { return types.contains('x'); }
};
} // namespace

static constexpr Word kWords[] = {
    {"max", "xxx"},   {"min", "xxx"},   {"exp", "xx", true}, {"sum_of", "ve"},
    {"max_of", "ve"}, {"min_of", "ve"}, {"head", "vnev"},
};

/// NaN if an operand is, as reductions and elementwise ops do.
static Value compute(Code &code, StringRef name, ValueRange in) {
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(in[0].getType()));
  OpBuilder &b = code.b;
  auto over = [&](vector::CombiningKind kind) -> Value {
    auto flags = isFloat && kind == vector::CombiningKind::ADD ? arith::FastMathFlags::reassoc
                                                               : arith::FastMathFlags::none;
    return b.create<vector::ReductionOp>(code.loc, kind, in[0], flags);
  };
  using Kind = vector::CombiningKind;
  if (name == "head")
    return b.create<arith::SelectOp>(code.loc, code.maskOf(in[1]), in[0], code.spread(in[2]));
  if (name == "sum_of")
    return over(Kind::ADD);
  if (name == "max_of")
    return over(isFloat ? Kind::MAXIMUMF : Kind::MAXSI);
  if (name == "min_of")
    return over(isFloat ? Kind::MINIMUMF : Kind::MINSI);
  if (name == "exp")
    return b.create<math::ExpOp>(code.loc, in[0]);
  if (name == "max")
    return isFloat ? b.create<arith::MaximumFOp>(code.loc, in[0], in[1]).getResult()
                   : b.create<arith::MaxSIOp>(code.loc, in[0], in[1]).getResult();
  return isFloat ? b.create<arith::MinimumFOp>(code.loc, in[0], in[1]).getResult()
                 : b.create<arith::MinSIOp>(code.loc, in[0], in[1]).getResult();
}

void emitVocabulary(KernelBuilder &kernel, StringRef prefix, Type element, int64_t lanes) {
  Type vector = VectorType::get({lanes}, element);
  Type number = IntegerType::get(element.getContext(), 64);
  for (const Word &word : kWords)
    for (bool isVector : {false, true}) {
      if ((word.isFloat && !isa<FloatType>(element)) ||
          (isVector && (!word.hasForms() || lanes == 1)))
        continue;
      SmallVector<Type> types;
      for (char letter : word.types)
        types.push_back(letter == 'n'                                  ? number
                        : letter == 'v' || (letter == 'x' && isVector) ? vector
                                                                       : element);
      std::string name = (prefix + word.name + (isVector ? "_lanes" : "")).str();
      ValueRange arguments = kernel.beginHole(name, ArrayRef<Type>(types).drop_back(), types.back(),
                                              word.hasForms() && !isVector ? 1 : lanes);
      kernel.endHole(compute(kernel.code(), word.name, arguments));
    }
}

std::string vocabularyHeader(Type element) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const Word &word : kWords)
    for (bool isVector : {false, true}) {
      if ((word.isFloat && !isa<FloatType>(element)) || (isVector && !word.hasForms()))
        continue;
      auto nameOf = [&](char letter) -> StringRef {
        return letter == 'n'                                  ? "int64_t"
               : letter == 'v' || (letter == 'x' && isVector) ? "heddle_lanes"
                                                              : "heddle_element";
      };
      out << nameOf(word.types.back()) << " heddle_" << word.name << (isVector ? "_lanes" : "")
          << "(const heddle_group *";
      for (char letter : word.types.drop_back())
        out << ", " << nameOf(letter);
      out << ");\n";
    }
  return text;
}

} // namespace heddle::lower
