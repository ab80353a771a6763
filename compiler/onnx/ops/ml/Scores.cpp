// Scores: transforms of scores, labels of classes, and lists of numbers in attributes.

#include "compiler/onnx/ops/ml/Scores.h"

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/ops/Activations.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

NumberList tensorList(Node &n, StringRef name) {
  const auto *attribute = n.attribute(name);
  if (!attribute)
    return {};
  if (!attribute->has_t())
    refuse("attribute '" + name + "' must be a tensor");
  ElementsAttr tensor = n.reader.readTensor(attribute->t());
  NumberList list;
  list.element = tensor.getElementType();
  if (isString(list.element))
    refuse("attribute '" + name + "' holds strings, but numbers are needed");
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(tensor, storage);
  int64_t width = bytesOf(list.element);
  for (size_t place = 0; place < bytes.size(); place += width) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + place, width);
    llvm::APInt bits(width * 8, word);
    if (auto floating = dyn_cast<FloatType>(list.element)) {
      llvm::APFloat value(floating.getFloatSemantics(), bits);
      bool loses;
      value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
      list.reals.push_back(value.convertToDouble());
    } else {
      list.integers.push_back(list.element.isUnsignedInteger() ? bits.getZExtValue()
                                                               : bits.getSExtValue());
    }
  }
  return list;
}

std::vector<double> floatsOrTensor(Node &n, StringRef name) {
  if (n.hasAttribute(name))
    return n.getFloats(name);
  return tensorList(n, (name + "_as_tensor").str()).reals;
}

/// Winitzki's approximation of the inverse error function, as the definition of the op has it.
static Value probit(Node &n, Value scores) {
  Type element = elementOf(scores);
  Value x = n.add(n.mul(scores, 2), -1), one = n.scalar(element, 1), zero = n.scalar(element, 0);
  Value rest = n.mul(n.sub(one, x), n.add(x, 1));
  Value log = n.unary<LogOp>(rest);
  Value v = n.add(n.mul(log, 0.5), 2 / (M_PI * 0.147));
  Value root = n.unary<SqrtOp>(n.sub(n.mul(v, v), n.mul(log, 1 / 0.147)));
  Value inverse = n.mul(n.unary<SignOp>(x), n.unary<SqrtOp>(n.sub(root, v)));
  return n.mul(n.select(n.compare<EqualOp>(rest, zero), zero, inverse), 1.41421356);
}

/// Softmax in which zeros stay 0 against the rest.
static Value softmaxZero(Node &n, Value scores) {
  Type element = elementOf(scores);
  Value largest = n.reduce<ReduceMaxOp>(scores, {1}), zero = n.scalar(element, 0);
  Value isZero = n.compare<LessEqualOp>(n.unary<AbsOp>(scores), n.scalar(element, 0.0000001));
  Value powers = n.select(isZero, n.mul(scores, n.unary<ExpOp>(n.unary<NegOp>(largest))),
                          n.unary<ExpOp>(n.sub(scores, largest)));
  Value sum = n.reduce<ReduceSumOp>(powers, {1});
  return n.select(n.compare<EqualOp>(sum, zero), n.scalar(element, 0.5), n.div(powers, sum));
}

Value postTransform(Node &n, Value scores, StringRef name) {
  if (name == "NONE")
    return scores;
  if (name == "LOGISTIC")
    return sigmoid(n, scores);
  if (name == "SOFTMAX")
    return n.softmax(scores, {1});
  if (name == "SOFTMAX_ZERO")
    return softmaxZero(n, scores);
  if (name == "PROBIT")
    return probit(n, scores);
  refuse("'post_transform' is '" + name +
         "', but must be 'NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO' or 'PROBIT'");
}

int64_t labelCount(Node &n, StringRef integers) {
  return n.getInts(integers, {}).size() + n.getTexts("classlabels_strings").size();
}

void setLabels(Node &n, Value classes, StringRef integers) {
  Ints numbers = n.getInts(integers, {});
  std::vector<std::string> texts = n.getTexts("classlabels_strings");
  if (numbers.empty() == texts.empty())
    refuse("either '" + integers + "' or 'classlabels_strings' must be given");
  if (!numbers.empty())
    return n.set(0, n.gather(n.integers(numbers), classes, 0));
  n.set(0, n.gather(n.stringConstant(texts), classes, 0));
}

Value featuresOf(Node &n) {
  Value x = n.in(0);
  x = elementOf(x).isF64() ? x : n.cast(x, n.f32());
  if (rankOf(x) == 1)
    x = n.unsqueeze(x, {0});
  if (rankOf(x) != 2)
    refuse("the input must have rank 1 or 2, but has " + Twine(rankOf(x)));
  return x;
}

} // namespace heddle::onnx
