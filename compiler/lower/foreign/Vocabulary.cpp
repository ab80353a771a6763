// Vocabulary: one row for each function, written as one op.

#include "compiler/lower/foreign/Vocabulary.h"

using namespace mlir;

namespace heddle::lower {

namespace {
struct Word {
  StringLiteral name;
  int64_t operands;
  bool foldsLanes; // takes a vector, gives an element
  bool isFloat = false;
};
} // namespace

static constexpr Word kWords[] = {{"max", 2, false},   {"min", 2, false},   {"exp", 1, false, true},
                                  {"sum_of", 1, true}, {"max_of", 1, true}, {"min_of", 1, true}};

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
  for (const Word &word : kWords)
    for (int64_t width : {int64_t(1), lanes}) {
      if ((word.isFloat && !isa<FloatType>(element)) || (width == 1 && word.foldsLanes))
        continue;
      Type vector = VectorType::get({lanes}, element), type = width > 1 ? vector : element;
      std::string name =
          (prefix + word.name + (width > 1 && !word.foldsLanes ? "_lanes" : "")).str();
      SmallVector<Type> inputs(word.operands, type);
      ValueRange arguments =
          kernel.beginHole(name, inputs, word.foldsLanes ? element : type, width);
      kernel.endHole(compute(kernel.code(), word.name, arguments));
      if (lanes == 1)
        break;
    }
}

std::string vocabularyHeader(Type element) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const Word &word : kWords)
    for (StringRef type : {"heddle_element", "heddle_lanes"}) {
      bool isVector = type == "heddle_lanes";
      if ((word.isFloat && !isa<FloatType>(element)) || (!isVector && word.foldsLanes))
        continue;
      out << (word.foldsLanes ? "heddle_element" : type) << " heddle_" << word.name
          << (isVector && !word.foldsLanes ? "_lanes" : "") << "(const heddle_group *";
      for (int64_t i = 0; i < word.operands; ++i)
        out << ", " << type;
      out << ");\n";
    }
  return text;
}

} // namespace heddle::lower
