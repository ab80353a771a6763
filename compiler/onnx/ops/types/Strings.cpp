// Strings: ops that make strings, or look inside of them.

#include "compiler/onnx/ops/types/Strings.h"

#include "compiler/onnx/Reader.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/types/Regex.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

static Value strings(Node &n, size_t i) {
  if (!isString(elementOf(n.in(i))))
    refuse("input " + Twine(i) + " has elements of " + nameOf(elementOf(n.in(i))) +
           ", but must have strings");
  return n.in(i);
}

static Value stringScalar(Node &n, StringRef text) {
  return n.reshape(n.stringConstant({text.str()}), {});
}

static void importStringConcat(Node &n) {
  Value x = strings(n, 0), y = strings(n, 1);
  n.broadcastTogether({&x, &y});
  n.set(n.typed<StringConcatOp>(x.getType(), {x, y}));
}

Operation *splitText(Node &n, Value x, Value delimiter, int64_t most) {
  DimVector dims = dimsOf(x), wide = dims;
  wide.push_back(n.freshSymbol("pieces"));
  OperationState state(n.location, StringSplitOp::getOperationName(), {x, delimiter},
                       {n.tensor(wide, elementOf(x)), n.tensor(dims, n.i64())},
                       {n.integer("most", most)});
  return n.emit(state);
}

static void importStringSplit(Node &n) {
  int64_t most = n.hasAttribute("maxsplit") ? n.getInt("maxsplit", -1) : -1;
  Operation *op = splitText(n, strings(n, 0), stringScalar(n, n.getText("delimiter", "")), most);
  n.set(0, op->getResult(0));
  if (n.wants(1))
    n.set(1, op->getResult(1));
}

static void importStringNormalizer(Node &n) {
  Value x = strings(n, 0);
  DimVector dims = dimsOf(x);
  if (dims.size() == 2 && dims[0].constant().value_or(1) != 1)
    refuse("the input has shape " + textOf(dims) + ", but must be a vector or have one row");
  if (dims.size() < 1 || dims.size() > 2)
    refuse("the input has rank " + Twine(dims.size()) + ", but must have 1 or 2");
  std::string change = n.getText("case_change_action", "NONE");
  if (!llvm::is_contained({"NONE", "LOWER", "UPPER"}, change))
    refuse("'case_change_action' is '" + change + "', but must be 'NONE', 'LOWER' or 'UPPER'");
  StringRef letterCase = change == "LOWER" ? "lower" : change == "UPPER" ? "upper" : "none";
  bool isSensitive = n.getInt("is_case_sensitive", 0);
  if (dims.size() == 2)
    x = n.reshape(x, dims[1]);
  Value result = n.typed<StringNormalizeOp>(
      n.tensor(n.freshSymbol("words"), elementOf(x)),
      {x, n.stringConstant(n.getTexts("stopwords"))},
      {n.text("letter_case", letterCase), n.flag("case_sensitive", isSensitive)});
  n.set(dims.size() == 2 ? n.unsqueeze(result, {0}) : result);
}

template <size_t columns>
static Value tableConstant(Node &n, ArrayRef<std::array<int32_t, columns>> rows) {
  ArrayRef<char> bytes(reinterpret_cast<const char *>(rows.data()), rows.size() * sizeof rows[0]);
  auto type = RankedTensorType::get({static_cast<int64_t>(rows.size()), columns}, n.i32());
  return n.constant(constantAttr(type, bytes));
}

Value matchText(Node &n, Value x, StringRef pattern) {
  Value automaton = tableConstant<257>(n, automatonOf(pattern));
  return n.typed<StringMatchOp>(n.tensor(dimsOf(x), n.i1()), {x, automaton});
}

Value scannerConstant(Node &n, StringRef pattern) {
  return tableConstant<259>(n, scannerOf(pattern));
}

static void importRegexFullMatch(Node &n) {
  n.set(matchText(n, strings(n, 0), n.getText("pattern", "")));
}

OpRows stringRows() {
  static const OpRow rows[] = {
      {"StringConcat", "", 20, 27, importStringConcat},
      {"StringSplit", "", 20, 27, importStringSplit},
      {"StringNormalizer", "", 10, 27, importStringNormalizer, false,
       "case of Latin, Greek, Cyrillic and Armenian letters, whatever the locale"},
      {"RegexFullMatch", "", 20, 27, importRegexFullMatch, false,
       "no classes of letters beyond ASCII, no anchors inside, no flags"},
      {"Tokenizer", kMicrosoft, 1, 1, importTokenizer, false, "expressions as in RegexFullMatch"},
  };
  return rows;
}

} // namespace heddle::onnx
