// Control: derivatives of branches and loops.
//
// A branch is differentiated inside of an `if` of its own, which runs it again. A loop or scan is
// replaced by one that also stacks the state that each step began with, and values that follow from
// a product if its derivative reads them; a scan then takes the steps from the last to the first,
// computes the rest of a step again, and carries the adjoints of the states and of values that the
// body captures.

#include "compiler/grad/Gradients.h"
#include "compiler/grad/Rules.h"
#include "compiler/graph/edit/Clone.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

static bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

/// A copy of the block's ops at the builder's place; gives what it yields.
static SmallVector<Value> cloneBody(Flow &f, Block &body, IRMapping &mapping) {
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    ops.push_back(&op);
  cloneOps(f.builder, ops, mapping);
  SmallVector<Value> yielded;
  for (Value value : body.getTerminator()->getOperands())
    yielded.push_back(mapping.lookupOrDefault(value));
  return yielded;
}

/// gradients() of those ys that have a seed; null, and the op refused, if there are none.
static SmallVector<Value> adjointsOf(Flow &f, ArrayRef<Value> ys, ArrayRef<Value> seeds,
                                     ArrayRef<Value> xs) {
  SmallVector<Value> seeded, given;
  for (auto [y, seed] : llvm::zip(ys, seeds))
    if (seed) {
      seeded.push_back(y);
      given.push_back(f.reshape(seed, dimsOf(y)));
    }
  auto found = gradients(f.builder, f.location, seeded, xs, given);
  if (found)
    return std::move(*found);
  f.refuse(llvm::toString(found.takeError()));
  SmallVector<Value> none;
  for (Value x : xs)
    none.push_back(f.zeros(x));
  return none;
}

static void ifRule(Flow &f) {
  auto op = f.as<IfOp>();
  SmallVector<unsigned> places;
  SmallVector<Value> xs, seeds;
  for (unsigned i = 0; i < f.used.size(); ++i)
    if (f.wants(i)) {
      places.push_back(i);
      xs.push_back(f.used[i]);
    }
  for (unsigned i = 0; i < op->getNumResults(); ++i)
    seeds.push_back(f.dy(i));
  auto back = f.builder.create<IfOp>(f.location, ValueRange(xs).getTypes(), op.getCondition());
  for (unsigned branch : {0, 1}) {
    OpBuilder::InsertionGuard guard(f.builder);
    f.builder.createBlock(&back->getRegion(branch));
    IRMapping mapping;
    SmallVector<Value> ys = cloneBody(f, op->getRegion(branch).front(), mapping);
    f.builder.create<YieldOp>(f.location, adjointsOf(f, ys, seeds, xs));
  }
  for (auto [place, adjoint] : llvm::zip(places, back.getResults()))
    f.give(place, adjoint);
}

namespace {
/// State common to the steps of a loop or scan. Argument i of the body begins as operand i.
struct Steps {
  Block &body;
  unsigned firstState, states, firstYield;
  SmallVector<Value> arguments; // stacked, one an argument; null: true in all steps
  SmallVector<bool> endsFirst;  // whether the first step took the last slice
  ArrayRef<int64_t> reversedOutputs;
  Dim count;
  Operation *recorded = nullptr; // the op that replaces the loop or scan
  IRMapping toRecorded = {};     // from values in the body

  unsigned behindStates() const { return firstState + states; }
};
} // namespace

/// Replaces the loop or scan by one that stacks these values of its body, too. Returns the stacked
/// ones.
static SmallVector<Value> stack(Flow &f, Operation *&op, ArrayRef<Value> values, const Dim &count) {
  OpBuilder::InsertionGuard guard(f.builder);
  f.builder.setInsertionPoint(op);
  SmallVector<Type> types(op->getResultTypes());
  SmallVector<Value> yielded(op->getRegion(0).front().getTerminator()->getOperands());
  for (Value value : values) {
    DimVector dims = dimsOf(value);
    dims.insert(dims.begin(), count);
    types.push_back(tensorOf(f.builder.getContext(), dims, elementOf(value)));
    yielded.push_back(value);
  }
  OperationState state(f.location, op->getName(), op->getOperands(), types, op->getAttrs());
  state.addRegion();
  Operation *made = f.builder.create(state);
  made->getRegion(0).takeBody(op->getRegion(0));
  made->getRegion(0).front().getTerminator()->setOperands(yielded);
  if (auto loop = dyn_cast<LoopOp>(made))
    loop.setScanCount(loop.getScanCount() + values.size());
  op->replaceAllUsesWith(made->getResults().take_front(op->getNumResults()));
  op->erase();
  op = made;
  return made->getResults().take_back(values.size());
}

/// Replaces the op by one with the given arguments of its body stacked, too. Without a count the op
/// makes one.
static SmallVector<Value> record(Flow &f, Steps &steps, ArrayRef<unsigned> arguments,
                                 std::optional<Dim> count) {
  OpBuilder::InsertionGuard guard(f.builder);
  f.builder.setInsertionPoint(f.op);
  steps.recorded = cloneToReplace(f.builder, f.op, steps.toRecorded);
  f.op->replaceAllUsesWith(steps.recorded->getResults());
  auto loop = dyn_cast<LoopOp>(steps.recorded);
  if (!count && loop.getScanCount() > 0)
    count = dimsOf(steps.recorded->getResults().back())[0];
  if (!count)
    count = freshSymbol(f.builder.getInsertionBlock()->getParentOp(), "loop");
  SmallVector<Value> values;
  for (unsigned number : arguments)
    values.push_back(steps.recorded->getRegion(0).front().getArgument(number));
  return stack(f, steps.recorded, values, *count);
}

/// Values of a step to be stacked, not computed again: those that follow from a product or a
/// reduction and are read by ops other than copies of the step's. Moved elements and masks are
/// computed again from their operands.
static llvm::SetVector<Value> costly(Block &body, const IRMapping &copies) {
  llvm::DenseSet<Operation *> copied;
  for (Operation &op : body.without_terminator())
    for (Value made : op.getResults())
      copied.insert(copies.lookup(made).getDefiningOp());
  SmallVector<std::string> known;
  for (Value argument : body.getArguments())
    for (const Dim &dim : dimsOf(argument))
      dim.collectSymbols(known);
  auto isKnown = [&](Value value) {
    SmallVector<std::string> used;
    for (const Dim &dim : dimsOf(value))
      dim.collectSymbols(used);
    return isFloat(value) &&
           llvm::all_of(used, [&](auto &name) { return llvm::is_contained(known, name); });
  };
  auto isCostly = [](Operation *op) {
    return isContraction(op) || !reducedAxes(op).empty() || op->getNumRegions() > 0;
  };
  llvm::DenseSet<Value> follows;
  llvm::SetVector<Value> read, found;
  for (Operation &op : body.without_terminator())
    for (Value made : op.getResults()) {
      if (isCostly(&op) ||
          llvm::any_of(op.getOperands(), [&](Value in) { return follows.contains(in); }))
        follows.insert(made);
      if (llvm::any_of(copies.lookup(made).getUsers(),
                       [&](Operation *user) { return !copied.contains(user); }))
        read.insert(made);
    }
  for (size_t i = 0; i < read.size(); ++i) {
    Value value = read[i];
    if (!follows.contains(value))
      continue;
    Operation *op = value.getDefiningOp();
    if ((isElementwise(op) || isCostly(op)) && isKnown(value))
      found.insert(value);
    else
      read.insert(op->operand_begin(), op->operand_end());
  }
  return found;
}

/// Whether states keep their sizes; else the op is refused.
static bool keepsSizes(Flow &f, const Steps &steps) {
  for (unsigned i = steps.firstState; i < steps.behindStates(); ++i)
    if (steps.body.getArgument(i).getType() != f.x(i).getType()) {
      f.refuse("a value that it carries changes its size from step to step");
      return false;
    }
  return true;
}

/// The scan on the way back, which reads what is costly of a step where it computed that again.
static ScanOp readStacked(Flow &f, Steps &steps, ScanOp back, const IRMapping &copies) {
  llvm::SetVector<Value> found = costly(steps.body, copies);
  SmallVector<Value> values;
  for (Value value : found)
    values.push_back(steps.toRecorded.lookup(value));
  SmallVector<Value> added = stack(f, steps.recorded, values, steps.count);
  SmallVector<Value> operands(back.getInputs());
  SmallVector<int64_t> reversed(back.getReverseInputs());
  Block &body = back.getBody().front();
  for (auto [value, stacked] : llvm::zip(found, added)) {
    reversed.push_back(operands.size() - back.getStateCount());
    operands.push_back(stacked);
    copies.lookup(value).replaceAllUsesWith(body.addArgument(value.getType(), f.location));
  }
  auto made = f.builder.create<ScanOp>(f.location, back.getResultTypes(), operands,
                                       back.getStateCount(), reversed, back.getReverseOutputs());
  made.getBody().takeBody(back.getBody());
  back.erase();
  return made;
}

/// A scan from the last step to the first. Its states are the adjoints of the states, then those of
/// captured values; it stacks the adjoints of scanned values.
static void stepsRule(Flow &f, Steps &steps) {
  SmallVector<Value> inits, scanned, captured;
  SmallVector<int64_t> reverseInputs, reverseOutputs;
  SmallVector<unsigned> stateArguments, sliceArguments, capturedPlaces, sliceOfOutput;
  SmallVector<Type> types, stackedTypes;
  for (unsigned i = 0; i < steps.states; ++i) {
    unsigned argument = steps.firstState + i;
    if (!isFloat(f.x(argument)))
      continue;
    stateArguments.push_back(argument);
    inits.push_back(f.dy(i) ? f.reshape(f.dy(i), dimsOf(f.x(argument))) : f.zeros(f.x(argument)));
  }
  for (unsigned i = f.op->getNumOperands(); i < f.used.size(); ++i)
    if (f.wants(i)) {
      capturedPlaces.push_back(i);
      captured.push_back(f.used[i]);
      inits.push_back(f.zeros(f.used[i]));
    }
  auto scan = [&](Value stacked, bool endsFirst) {
    if (!endsFirst)
      reverseInputs.push_back(scanned.size());
    scanned.push_back(stacked);
  };
  for (auto [stacked, endsFirst] : llvm::zip(steps.arguments, steps.endsFirst))
    if (stacked)
      scan(stacked, endsFirst);
  for (unsigned i = steps.states; i < f.op->getNumResults(); ++i)
    if (Value dy = f.dy(i)) {
      DimVector dims = dimsOf(dy);
      dims[0] = steps.count;
      sliceOfOutput.push_back(i);
      scan(f.reshape(dy, dims), llvm::is_contained(steps.reversedOutputs, i - steps.states));
    }
  for (unsigned i = steps.behindStates(); i < steps.body.getNumArguments(); ++i)
    if (f.wants(i)) {
      if (!steps.endsFirst[i])
        reverseOutputs.push_back(sliceArguments.size());
      sliceArguments.push_back(i);
      stackedTypes.push_back(f.x(i).getType());
    }
  llvm::append_range(types, ValueRange(inits).getTypes());
  llvm::append_range(types, stackedTypes);
  SmallVector<Value> operands(inits);
  llvm::append_range(operands, scanned);
  auto back = f.builder.create<ScanOp>(f.location, types, operands, inits.size(), reverseInputs,
                                       reverseOutputs);
  IRMapping mapping;
  {
    OpBuilder::InsertionGuard guard(f.builder);
    SmallVector<Type> inside(ValueRange(inits).getTypes());
    for (Value stacked : scanned)
      inside.push_back(tensorOf(f.builder.getContext(), ArrayRef<Dim>(dimsOf(stacked)).drop_front(),
                                elementOf(stacked)));
    Block *block = f.builder.createBlock(&back.getBody(), {}, inside,
                                         SmallVector<Location>(inside.size(), f.location));
    unsigned next = inits.size();
    for (auto [argument, stacked] : llvm::zip(steps.body.getArguments(), steps.arguments))
      mapping.map(argument, stacked ? Value(block->getArgument(next++))
                                    : f.full(dimsOf(argument), elementOf(argument), 1));
    SmallVector<Value> ys = cloneBody(f, steps.body, mapping), seeds(ys.size()), xs;
    for (auto [i, argument] : llvm::enumerate(stateArguments))
      seeds[steps.firstYield + argument - steps.firstState] = block->getArgument(i);
    for (unsigned output : sliceOfOutput)
      seeds[steps.firstYield + output] = block->getArgument(next++);
    for (unsigned argument : stateArguments)
      xs.push_back(mapping.lookup(steps.body.getArgument(argument)));
    llvm::append_range(xs, captured);
    for (unsigned argument : sliceArguments)
      xs.push_back(mapping.lookup(steps.body.getArgument(argument)));
    SmallVector<Value> found = adjointsOf(f, ys, seeds, xs);
    for (unsigned i = stateArguments.size(); i < inits.size(); ++i)
      found[i] = f.add(block->getArgument(i), found[i]);
    f.builder.create<YieldOp>(f.location, found);
  }
  back = readStacked(f, steps, back, mapping);
  unsigned next = 0;
  for (unsigned argument : stateArguments)
    f.give(argument, back.getResult(next++));
  for (unsigned place : capturedPlaces)
    f.give(place, back.getResult(next++));
  for (unsigned argument : sliceArguments)
    f.give(argument, back.getResult(next++));
}

static void scanRule(Flow &f) {
  auto op = f.as<ScanOp>();
  unsigned states = op.getStateCount(), inputs = op.getInputs().size();
  if (states == inputs) {
    f.refuse("it scans nothing");
    return;
  }
  Steps steps{op.getBody().front(),  0, states, 0, {}, {}, op.getReverseOutputs(),
              dimsOf(f.x(states))[0]};
  if (!keepsSizes(f, steps))
    return;
  steps.arguments = record(f, steps, llvm::to_vector(llvm::seq<unsigned>(0, states)), steps.count);
  steps.endsFirst.assign(inputs, false);
  for (unsigned i = states; i < inputs; ++i) {
    steps.arguments.push_back(f.x(i));
    steps.endsFirst[i] = llvm::is_contained(op.getReverseInputs(), i - states);
  }
  stepsRule(f, steps);
}

static void loopRule(Flow &f) {
  auto op = f.as<LoopOp>();
  unsigned states = op.getInits().size();
  Steps steps{op.getBody().front(), 2, states, 1, {}, {}, {}, Dim()};
  if (!keepsSizes(f, steps))
    return;
  SmallVector<unsigned> numbers{0};
  llvm::append_range(numbers, llvm::seq<unsigned>(2, states + 2));
  steps.arguments = record(f, steps, numbers, std::nullopt);
  steps.count = dimsOf(steps.arguments[0])[0];
  steps.arguments.insert(steps.arguments.begin() + 1, Value());
  steps.endsFirst.assign(states + 2, false);
  stepsRule(f, steps);
}

Rows controlRules() {
  static const Row rows[] = {
      {IfOp::getOperationName(), ifRule},
      {LoopOp::getOperationName(), loopRule},
      {ScanOp::getOperationName(), scanRule},
  };
  return rows;
}

} // namespace heddle::grad
