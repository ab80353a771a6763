// Interpreter: functions as steps with numbered values; control flow.

#include "compiler/target/testing/interpreter/Interpreter.h"

#include "compiler/target/testing/interpreter/Numbers.h"

using namespace mlir;

namespace heddle::interpreter {
namespace {

class Numbering {
public:
  explicit Numbering(const Actions &actions) : actions(actions) {}

  void visit(Block &block, Body &body) {
    for (BlockArgument argument : block.getArguments())
      body.arguments.push_back(numberOf(argument));
    for (Operation &op : block.without_terminator())
      visit(op, body.steps.emplace_back());
    for (Value operand : block.getTerminator()->getOperands())
      body.results.push_back(numberOf(operand));
  }

  size_t count() const { return numbers.size(); }

  std::map<std::string, Location> unknown; // ops that are not interpreted

private:
  unsigned numberOf(Value value) {
    return numbers.try_emplace(value, numbers.size()).first->second;
  }

  void visit(Operation &op, Step &step) {
    auto known = actions.find(op.getName().getStringRef());
    step.op = &op;
    if (known == actions.end())
      unknown.try_emplace(op.getName().getStringRef().str(), op.getLoc());
    else
      step.action = &known->second;
    for (Value operand : op.getOperands())
      step.operands.push_back(numberOf(operand));
    for (Value result : op.getResults())
      step.results.push_back(numberOf(result));
    for (Region &region : op.getRegions()) {
      Body &inner = step.bodies.emplace_back();
      if (!region.empty())
        visit(region.front(), inner);
    }
    if (op.getNumOperands())
      step.element = getElementTypeOrSelf(op.getOperand(0).getType());
    if (op.getNumResults()) {
      step.resultElement = getElementTypeOrSelf(op.getResult(0).getType());
      if (auto vector = dyn_cast<VectorType>(op.getResult(0).getType()))
        step.lanes = vector.getNumElements();
    }
    step.width = step.element ? widthOf(step.element) : 0;
    step.resultWidth = step.resultElement ? widthOf(step.resultElement) : 0;
  }

  const Actions &actions;
  llvm::DenseMap<Value, unsigned> numbers;
};

const Actions &allActions() {
  static const Actions all = [] {
    Actions actions;
    for (auto add : {addControl, addIntegers, addFloats, addVectors, addMemory, addRun})
      add(actions);
    return actions;
  }();
  return all;
}

std::string textOf(Location location) {
  std::string text;
  llvm::raw_string_ostream(text) << location;
  return text;
}

} // namespace

llvm::Expected<std::unique_ptr<Code>> Code::make(ModuleOp module) {
  auto code = std::make_unique<Code>();
  std::vector<std::string> problems;
  for (auto function : module.getOps<func::FuncOp>()) {
    std::string name = function.getSymName().str();
    if (function.isExternal()) {
      problems.push_back("function '" + name + "' has no body");
      continue;
    }
    Function &made = code->functions[name];
    made.type = function.getFunctionType();
    Numbering numbering(allActions());
    numbering.visit(function.getBody().front(), made.body);
    made.values = numbering.count();
    for (auto &[op, location] : numbering.unknown)
      problems.push_back("op '" + op + "' at " + textOf(location) + " is not interpreted");
  }
  if (!problems.empty())
    return makeError(ErrorCode::Refused, "error: " + llvm::join(problems, "\nerror: "));
  return code;
}

const Function *Code::find(StringRef name) const {
  auto known = functions.find(name);
  return known == functions.end() ? nullptr : &known->second;
}

void Run::stop(const Step &step, const Twine &why) {
  if (problem.empty())
    problem =
        (step.op->getName().getStringRef() + " at " + textOf(step.op->getLoc()) + ": " + why).str();
}

llvm::SmallVector<Bits> Run::enter(const Function &function, ArrayRef<Bits> arguments) {
  Activation activation;
  activation.values.resize(function.values);
  for (auto [number, argument] : llvm::zip_equal(function.body.arguments, arguments))
    activation.values[number] = argument;
  carryOut(function.body, activation);
  for (auto &array : activation.arrays)
    memory.remove(array.get());
  llvm::SmallVector<Bits> results;
  for (unsigned number : function.body.results)
    results.push_back(activation.values[number]);
  return results;
}

void Run::carryOut(const Body &body, Activation &activation) {
  for (const Step &step : body.steps) {
    (*step.action)(*this, activation, step);
    if (!problem.empty())
      return;
  }
}

uint64_t wordOf(const Activation &activation, const Step &step, unsigned k) {
  return activation.values[step.operands[k]][0];
}

Bits bitsOf(const void *pointer) { return Bits{uint64_t(reinterpret_cast<uintptr_t>(pointer))}; }

void pass(Run &, Activation &activation, const Step &step) {
  Bits same = activation.values[step.operands[0]];
  activation.values[step.results[0]] = std::move(same);
}

static llvm::SmallVector<Bits> valuesOf(const Activation &activation, ArrayRef<unsigned> numbers) {
  return llvm::map_to_vector(numbers, [&](unsigned number) { return activation.values[number]; });
}

static void assign(Activation &activation, ArrayRef<unsigned> numbers, ArrayRef<Bits> values) {
  for (auto [number, value] : llvm::zip_equal(numbers, values))
    activation.values[number] = value;
}

static void carryOutFor(Run &run, Activation &activation, const Step &step) {
  int64_t low = wordOf(activation, step, 0), high = wordOf(activation, step, 1);
  int64_t stride = wordOf(activation, step, 2);
  const Body &body = step.bodies[0];
  auto carried = valuesOf(activation, ArrayRef(step.operands).drop_front(3));
  for (int64_t i = low; i < high && run.problem.empty(); i += stride) {
    activation.values[body.arguments[0]] = Bits{uint64_t(i)};
    assign(activation, ArrayRef(body.arguments).drop_front(), carried);
    run.carryOut(body, activation);
    carried = valuesOf(activation, body.results);
  }
  assign(activation, step.results, carried);
}

static void carryOutWhile(Run &run, Activation &activation, const Step &step) {
  const Body &before = step.bodies[0], &after = step.bodies[1];
  auto state = valuesOf(activation, step.operands);
  while (run.problem.empty()) {
    assign(activation, before.arguments, state);
    run.carryOut(before, activation);
    auto handed = valuesOf(activation, before.results); // the condition, and what follows it
    if (!run.problem.empty() || !handed[0][0]) {
      assign(activation, step.results, ArrayRef(handed).drop_front());
      return;
    }
    assign(activation, after.arguments, ArrayRef(handed).drop_front());
    run.carryOut(after, activation);
    state = valuesOf(activation, after.results);
  }
}

static void carryOutIf(Run &run, Activation &activation, const Step &step) {
  const Body &body = step.bodies[wordOf(activation, step, 0) ? 0 : 1];
  run.carryOut(body, activation);
  if (!step.results.empty() && run.problem.empty())
    assign(activation, step.results, valuesOf(activation, body.results));
}

static void carryOutCall(Run &run, Activation &activation, const Step &step) {
  const Function *function = run.code.find(cast<func::CallOp>(step.op).getCallee());
  auto results = run.enter(*function, valuesOf(activation, step.operands));
  if (run.problem.empty())
    assign(activation, step.results, results);
}

void addControl(Actions &actions) {
  actions["scf.for"] = carryOutFor;
  actions["scf.while"] = carryOutWhile;
  actions["scf.if"] = carryOutIf;
  actions["func.call"] = carryOutCall;
}

} // namespace heddle::interpreter
