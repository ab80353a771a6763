// Printer: statements, names, types and control flow.

#include "compiler/target/c/Printer.h"

#include "compiler/support/Error.h"

using namespace mlir;

namespace heddle::c {

int64_t lanesOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.getNumElements() : 0;
}

unsigned widthOf(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
}

static unsigned containerOf(unsigned width) {
  return width <= 8 ? 8 : width <= 16 ? 16 : width <= 32 ? 32 : 64;
}

std::string unsignedOf(unsigned width) {
  return "uint" + std::to_string(containerOf(width)) + "_t";
}
std::string signedOf(unsigned width) { return "int" + std::to_string(containerOf(width)) + "_t"; }

std::string literal(const llvm::APInt &value) { return std::to_string(value.getZExtValue()) + "u"; }

bool isLiteral(const llvm::APFloat &value) { return !value.isNaN(); }

std::string literal(const llvm::APFloat &value) {
  bool isSingle = &value.getSemantics() == &llvm::APFloat::IEEEsingle();
  if (value.isInfinity())
    return std::string(value.isNegative() ? "(-" : "(") + (isSingle ? "HUGE_VALF)" : "HUGE_VAL)");
  char text[64];
  std::snprintf(text, sizeof text, "%a%s",
                isSingle ? double(value.convertToFloat()) : value.convertToDouble(),
                isSingle ? "f" : "");
  return value.isNegative() ? "(" + std::string(text) + ")" : text;
}

static std::string elementOf(Type type) {
  if (isa<program::PtrType>(type))
    return "unsigned char *";
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  return unsignedOf(widthOf(type));
}

std::string Printer::typeOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return elementOf(type);
  std::string element = elementOf(vector.getElementType());
  std::string name = "h_" + element + "_x" + std::to_string(vector.getNumElements());
  vectors.insert({name, element + " v[" + std::to_string(vector.getNumElements()) + "]"});
  return name;
}

void Printer::line(const Twine &text) {
  functions.append(2 * depth, ' ');
  functions += text.str() + "\n";
}

static std::string declared(const std::string &type, const std::string &name) {
  return type + (StringRef(type).ends_with("*") ? "" : " ") + name;
}

std::string Printer::define(Value value) {
  std::string name = "v" + std::to_string(++count);
  names[value] = name;
  return declared(typeOf(value.getType()), name);
}

std::string Printer::nameOf(Value value) {
  auto found = names.find(value);
  return found == names.end() ? "0" : found->second;
}

std::string Printer::helper(StringRef name) {
  helpers.insert(name.str());
  return "h_" + name.str();
}

void Printer::unsupported(Operation *op, const Twine &why) {
  if (problem.empty())
    problem = ("'" + op->getName().getStringRef() + "' " + why).str();
}

std::string Printer::laneOf(Value value, StringRef index) {
  std::string name = nameOf(value);
  return isa<VectorType>(value.getType()) ? name + ".v[" + index.str() + "]" : name;
}

void Printer::lanes(Operation *op, Lane expression) {
  Value result = op->getResult(0);
  std::vector<std::string> operands;
  for (Value operand : op->getOperands())
    operands.push_back(laneOf(operand, "i"));
  std::string type = define(result);
  if (!isa<VectorType>(result.getType())) {
    line(type + " = " + expression(operands) + ";");
    return;
  }
  line(type + ";");
  line("for (int i = 0; i < " + Twine(lanesOf(result.getType())) + "; ++i)");
  line("  " + nameOf(result) + ".v[i] = " + expression(operands) + ";");
}

/// A literal, or a call that makes a NaN of its bits.
std::string Printer::constant(Attribute value, Type type) {
  if (auto number = dyn_cast<IntegerAttr>(value))
    return literal(number.getValue());
  llvm::APFloat number = cast<FloatAttr>(value).getValue();
  if (!type.isF32() && !type.isF64())
    return literal(number.bitcastToAPInt());
  if (isLiteral(number))
    return literal(number);
  return helper(type.isF32() ? "float_of" : "double_of") + "(" + literal(number.bitcastToAPInt()) +
         ")";
}

void Printer::assign(ValueRange targets, ValueRange values) {
  std::vector<std::string> sources;
  for (auto [target, value] : llvm::zip(targets, values))
    sources.push_back(nameOf(value));
  // A value that an earlier assignment overwrites is kept first.
  for (size_t i = 0; i < sources.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (sources[i] == nameOf(targets[j]) && sources[j] != nameOf(targets[j])) {
        std::string kept = "v" + std::to_string(++count);
        line(typeOf(values[i].getType()) + " " + kept + " = " + sources[i] + ";");
        sources[i] = kept;
        break;
      }
  for (size_t i = 0; i < sources.size(); ++i)
    if (nameOf(targets[i]) != sources[i])
      line(nameOf(targets[i]) + " = " + sources[i] + ";");
}

void Printer::forLoop(scf::ForOp loop) {
  for (auto [result, argument, initial] :
       llvm::zip(loop.getResults(), loop.getRegionIterArgs(), loop.getInitArgs())) {
    std::string source = nameOf(initial);
    line(define(result) + " = " + source + ";");
    names[argument] = nameOf(result);
  }
  std::string low = nameOf(loop.getLowerBound()), high = nameOf(loop.getUpperBound());
  std::string step = nameOf(loop.getStep());
  std::string at = "i" + std::to_string(++count);
  line("for (int64_t " + at + " = (int64_t)" + low + "; " + at + " < (int64_t)" + high + "; " + at +
       " += (int64_t)" + step + ") {");
  ++depth;
  if (!loop.getInductionVar().use_empty())
    line(define(loop.getInductionVar()) + " = (uint64_t)" + at + ";");
  block(*loop.getBody());
  assign(loop.getResults(), loop.getBody()->getTerminator()->getOperands());
  --depth;
  line("}");
  for (Value result : loop.getResults())
    if (result.use_empty())
      line("(void)" + nameOf(result) + ";");
}

void Printer::whileLoop(scf::WhileOp loop) {
  for (auto [argument, initial] : llvm::zip(loop.getBeforeArguments(), loop.getInits())) {
    std::string source = nameOf(initial);
    line(define(argument) + " = " + source + ";");
  }
  for (auto [result, argument] : llvm::zip(loop.getResults(), loop.getAfterArguments())) {
    line(define(result) + ";");
    names[argument] = nameOf(result);
  }
  line("for (;;) {");
  ++depth;
  block(*loop.getBeforeBody());
  scf::ConditionOp condition = loop.getConditionOp();
  assign(loop.getResults(), condition.getArgs());
  line("if (!" + nameOf(condition.getCondition()) + ")");
  line("  break;");
  block(*loop.getAfterBody());
  assign(loop.getBeforeArguments(), loop.getAfterBody()->getTerminator()->getOperands());
  --depth;
  line("}");
  for (Value result : loop.getResults())
    if (result.use_empty())
      line("(void)" + nameOf(result) + ";");
}

void Printer::branch(scf::IfOp branch) {
  for (Value result : branch.getResults())
    line(define(result) + ";");
  auto side = [&](Block &body) {
    ++depth;
    block(body);
    assign(branch.getResults(), body.getTerminator()->getOperands());
    --depth;
  };
  line("if (" + nameOf(branch.getCondition()) + ") {");
  side(*branch.thenBlock());
  if (Block *otherwise = branch.elseBlock()) {
    line("} else {");
    side(*otherwise);
  }
  line("}");
  for (Value result : branch.getResults())
    if (result.use_empty())
      line("(void)" + nameOf(result) + ";");
}

void Printer::call(func::CallOp call) {
  std::string arguments;
  for (Value operand : call.getOperands())
    arguments += (arguments.empty() ? "" : ", ") + nameOf(operand);
  std::string text = "h_" + call.getCallee().str() + "(" + arguments + ")";
  if (call.getNumResults() > 1)
    return unsupported(call, "has several results");
  if (call.getNumResults() == 0)
    return line(text + ";");
  line(define(call.getResult(0)) + " = " + text + ";");
}

bool Printer::control(Operation *op) {
  return TypeSwitch<Operation *, bool>(op)
      .Case([&](scf::ForOp each) { return forLoop(each), true; })
      .Case([&](scf::WhileOp each) { return whileLoop(each), true; })
      .Case([&](scf::IfOp each) { return branch(each), true; })
      .Case([&](func::CallOp each) { return call(each), true; })
      .Case([&](func::ReturnOp each) {
        if (each.getNumOperands() == 1)
          line("return " + nameOf(each.getOperand(0)) + ";");
        return true;
      })
      .Default(false);
}

void Printer::statement(Operation *op) {
  if (isa<scf::YieldOp, scf::ConditionOp>(op))
    return; // printed by the op around it
  if (isOpTriviallyDead(op))
    return;
  if (!control(op) && !arithmetic(op) && !memory(op) && !maskedMemory(op) && !values(op) &&
      !vectorOps(op) && !run(op))
    unsupported(op, "cannot be written in C");
  if (op->getNumRegions() == 0)
    for (Value result : op->getResults())
      if (result.use_empty() && names.count(result))
        line("(void)" + nameOf(result) + ";");
}

void Printer::block(Block &block) {
  for (Operation &op : block)
    statement(&op);
}

std::string Printer::signatureOf(func::FuncOp function) {
  std::string result = "void ";
  if (function.getNumResults() == 1)
    result = typeOf(function.getResultTypes()[0]) + " ";
  std::string text = "static " + result + "h_" + function.getName().str() + "(";
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
    text += (i ? ", " : "") + declared(typeOf(type), "a" + std::to_string(i));
  return text + (function.getNumArguments() ? ")" : "void)");
}

llvm::Error Printer::print(func::FuncOp function) {
  if (function.isExternal())
    return makeError(ErrorCode::Internal, "internal error: function '" + function.getName() +
                                              "' has no body, and C text is compiled alone");
  names.clear();
  count = 0;
  depth = 0;
  problem.clear();
  line("\n" + signatureOf(function) + " {");
  ++depth;
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    names[argument] = "a" + std::to_string(i);
    if (argument.use_empty())
      line("(void)" + nameOf(argument) + ";");
  }
  // Their memory lasts until the function returns.
  function.walk([&](program::ArrayOp array) {
    std::string words = "w" + std::to_string(++count);
    names[array.getResult()] = "(unsigned char *)" + words;
    line("uint64_t " + words + "[" + Twine(std::max<int64_t>(1, array.getWords())) + "];");
  });
  block(function.getBody().front());
  --depth;
  line("}");
  if (!problem.empty())
    return makeError(ErrorCode::Internal,
                     "internal error: function '" + function.getName() + "': " + problem);
  return llvm::Error::success();
}

} // namespace heddle::c
