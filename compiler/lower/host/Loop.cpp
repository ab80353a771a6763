// Loop: a loop of the model as one of the program.

#include "compiler/lower/host/Control.h"

#include "compiler/graph/edit/Words.h"

using namespace mlir;

namespace heddle::lower {

/// A loop that runs this often is taken for one that never ends.
static constexpr int64_t kMostTrips = 100'000'000;

namespace {
/// A loop while it is written. Its state: iteration, condition, a pointer for each carried tensor,
/// the sizes in which these change, for each stacked result its memory and capacity in iterations,
/// then the sizes of stacked slices, learnt in the first iteration. Carried tensors live in fresh
/// memory each iteration when their size changes, else in two buffers in turn.
class Loop {
public:
  using WriteBody = llvm::function_ref<void(Block &, Value iteration)>;
  Loop(Writer &host, Sizes &sizes, Memory &memory, WriteBody writeBody, graph::LoopOp op);
  void write();

private:
  SmallVector<Value> initialState();
  void writeCondition(Block *before);
  void writeIteration(Block *each);
  void enterBody(ValueRange state);
  Value carry(unsigned number, Value iteration);
  void carrySizes(MutableArrayRef<Value> state, const std::map<std::string, Value> &outer);
  void learnSizes(unsigned number, MutableArrayRef<Value> state);
  void stack(unsigned number, MutableArrayRef<Value> state);
  void bindCarried(scf::WhileOp loop);
  void bindStacked(scf::WhileOp loop);

  Value compare(arith::CmpIPredicate how, Value x, Value y) {
    return builder.create<arith::CmpIOp>(code.loc, how, x, y);
  }
  Value argument(unsigned number) { return body.getArgument(2 + number); }
  SmallVector<Value> valuesOf(ArrayRef<Dim> dims) {
    return llvm::map_to_vector(dims, [&](const Dim &size) { return sizes.dim(size); });
  }

  Writer &host;
  Code &code;
  OpBuilder &builder;
  Sizes &sizes;
  Memory &memory;
  WriteBody writeBody;
  graph::LoopOp op;
  Block &body;
  Type i64, pointer;
  unsigned carried, scans;
  SmallVector<std::string> names, sliceNames; // of sizes in the state
  Value limit, start;
  SmallVector<bool> isFixed;        // of each carried tensor: its sizes
  SmallVector<Value> first, second; // their buffers
  unsigned stacks = 0, slices = 0;  // where these begin in the state
};

} // namespace

Loop::Loop(Writer &host, Sizes &sizes, Memory &memory, WriteBody writeBody, graph::LoopOp op)
    : host(host), code(host.code), builder(host.builder), sizes(sizes), memory(memory),
      writeBody(writeBody), op(op), body(op.getBody().front()), i64(builder.getI64Type()),
      pointer(code.pointerType()), carried(op.getInits().size()), scans(op.getScanCount()) {}

SmallVector<Value> Loop::initialState() {
  auto arguments = body.getArguments().drop_front(2);
  names = sizes.unboundSymbols(arguments);
  limit = memory.readInteger(op.getTripCount(), 0);
  start = memory.readInteger(op.getCondition(), 0);
  SmallVector<Value> state{code.number(0), start};
  for (auto [argument, init] : llvm::zip(arguments, op.getInits())) {
    state.push_back(memory.pointerOf(init));
    isFixed.push_back(llvm::none_of(graph::dimsOf(argument), [&](const Dim &dim) {
      SmallVector<std::string> used;
      dim.collectSymbols(used);
      return llvm::any_of(used, [&](auto &name) { return !sizes.symbols.count(name); });
    }));
  }
  for (auto [argument, fixed] : llvm::zip(arguments, isFixed)) {
    Value none = builder.create<program::NullOp>(code.loc);
    first.push_back(fixed ? host.alloc(sizes.dim(Storage::bytesOf(argument))) : none);
    second.push_back(fixed ? host.alloc(sizes.dim(Storage::bytesOf(argument))) : none);
  }
  auto outer = sizes.symbols;
  for (auto [argument, init] : llvm::zip(arguments, op.getInits()))
    sizes.bindFrom(argument, init);
  for (const std::string &name : names)
    state.push_back(sizes.symbols[name]);
  sizes.symbols = outer;
  stacks = state.size();
  for (unsigned i = 0; i < scans; ++i) {
    state.push_back(builder.create<program::NullOp>(code.loc));
    state.push_back(code.number(0));
  }
  sliceNames = sizes.unboundSymbols(op.getResults().drop_front(carried));
  slices = state.size();
  state.append(sliceNames.size(), code.number(0));
  return state;
}

void Loop::write() {
  SmallVector<Value> state = initialState();
  SmallVector<Type> types;
  for (Value value : state)
    types.push_back(value.getType());
  auto loop = builder.create<scf::WhileOp>(code.loc, types, state);
  OpBuilder::InsertPoint after = builder.saveInsertionPoint();
  SmallVector<Location> locations(types.size(), code.loc);
  writeCondition(builder.createBlock(&loop.getBefore(), {}, types, locations));
  writeIteration(builder.createBlock(&loop.getAfter(), {}, types, locations));
  builder.restoreInsertionPoint(after);
  bindCarried(loop);
  bindStacked(loop);
}

void Loop::writeCondition(Block *before) {
  Value goesOn = code.less(before->getArgument(0), limit);
  Value holds = compare(arith::CmpIPredicate::ne, before->getArgument(1), code.number(0));
  goesOn = builder.create<arith::AndIOp>(code.loc, goesOn, holds);
  goesOn = builder.create<arith::AndIOp>(code.loc, goesOn, host.isFine());
  Value most = code.number(kMostTrips);
  Value isEndless = compare(arith::CmpIPredicate::eq, before->getArgument(0), most);
  code.when(code.both(goesOn, isEndless), [&] {
    host.fail(graph::nodeText(op.getLoc()) + ": the loop has not ended after %lld iterations", most,
              most);
  });
  goesOn = builder.create<arith::AndIOp>(code.loc, goesOn, host.isFine());
  builder.create<scf::ConditionOp>(code.loc, goesOn, before->getArguments());
}

void Loop::writeIteration(Block *each) {
  Scope outer(sizes, memory);
  SmallVector<Value> state(each->getArguments().begin(), each->getArguments().end());
  Value iteration = state[0];
  enterBody(state);
  writeBody(body, iteration);
  auto yielded = cast<graph::YieldOp>(body.getTerminator()).getValues();
  state[1] = memory.readInteger(yielded[0], 0);
  for (unsigned i = 0; i < carried; ++i)
    state[2 + i] = carry(i, iteration);
  carrySizes(state, outer.symbols);
  for (unsigned i = 0; i < scans; ++i) {
    learnSizes(i, state);
    stack(i, state);
  }
  state[0] = code.add(iteration, code.number(1));
  builder.create<scf::YieldOp>(code.loc, state);
}

/// Binds the body's arguments: the iteration and the condition lie on the stack.
void Loop::enterBody(ValueRange state) {
  Type i8 = builder.getI8Type();
  Value scalar = host.array(2);
  code.store(i64, state[0], scalar, code.number(0));
  Value truth = code.at(scalar, i64, code.number(1));
  code.store(i8, builder.create<arith::TruncIOp>(code.loc, i8, state[1]), truth, code.number(0));
  memory.pointers[body.getArgument(0)] = scalar;
  memory.pointers[body.getArgument(1)] = truth;
  for (unsigned i = 0; i < carried; ++i)
    memory.pointers[argument(i)] = state[2 + i];
  for (auto [i, name] : llvm::enumerate(names))
    sizes.symbols[name] = state[2 + carried + i];
}

/// Memory of a carried tensor for the next iteration, with what the body has yielded.
Value Loop::carry(unsigned number, Value iteration) {
  Value source = body.getTerminator()->getOperand(1 + number), target;
  Value bytes = sizes.dim(Storage::bytesOf(source));
  if (isFixed[number]) {
    sizes.requireSizes(source, argument(number));
    Value parity = builder.create<arith::AndIOp>(code.loc, iteration, code.number(1));
    Value isEven = compare(arith::CmpIPredicate::eq, parity, code.number(0));
    target = builder.create<arith::SelectOp>(code.loc, isEven, first[number], second[number]);
  } else {
    target = host.alloc(bytes);
  }
  host.copy(target, memory.pointerOf(source), bytes);
  return target;
}

/// The sizes of carried tensors for the next iteration, checked where the loop does not carry them.
void Loop::carrySizes(MutableArrayRef<Value> state, const std::map<std::string, Value> &outer) {
  auto inside = sizes.symbols;
  sizes.symbols = outer;
  for (unsigned i = 0; i < carried; ++i) {
    std::swap(sizes.symbols, inside);
    auto values = valuesOf(graph::dimsOf(body.getTerminator()->getOperand(1 + i)));
    std::swap(sizes.symbols, inside);
    sizes.bindDims(argument(i), values);
  }
  for (auto [i, name] : llvm::enumerate(names))
    state[2 + carried + i] = sizes.symbols.count(name) ? sizes.symbols[name] : code.number(0);
  sizes.symbols = inside;
}

/// The first slice says how large all are, where the model does not.
void Loop::learnSizes(unsigned number, MutableArrayRef<Value> state) {
  DimVector slice = graph::dimsOf(body.getTerminator()->getOperand(1 + carried + number));
  DimVector result = graph::dimsOf(op.getResult(carried + number));
  Value isFirst = compare(arith::CmpIPredicate::eq, state[0], code.number(0));
  for (size_t d = 0; d < slice.size(); ++d) {
    Value size = sizes.dim(slice[d]);
    auto name = result[d + 1].symbolName();
    auto place = name ? llvm::find(sliceNames, *name) : sliceNames.end();
    if (place == sliceNames.end()) {
      sizes.requireSize(size, result[d + 1]);
      continue;
    }
    Value &learnt = state[slices + (place - sliceNames.begin())];
    learnt = builder.create<arith::SelectOp>(code.loc, isFirst, size, learnt);
    sizes.requireSize(size, learnt, "that of the slice before");
  }
}

/// Appends a slice to its stacked result, whose memory grows to more than twice its capacity.
void Loop::stack(unsigned number, MutableArrayRef<Value> state) {
  Value source = body.getTerminator()->getOperand(1 + carried + number), iteration = state[0];
  Value bytes = sizes.dim(Storage::bytesOf(source));
  Value &room = state[stacks + 2 * number], &capacity = state[stacks + 2 * number + 1];
  Value isFull = compare(arith::CmpIPredicate::sge, iteration, capacity);
  auto grown = code.choose(
      isFull, TypeRange{pointer, i64},
      [&] {
        // kMostTrips bounds the count, not its product with the bytes of a slice.
        Value larger = code.add(code.mul(capacity, code.number(2)), code.number(8));
        Value overflow;
        Value all = SizeArithmetic{code, &overflow}.mul(larger, bytes);
        host.failIf(overflow, "the stacked slices are larger than any memory");
        Value fresh = host.alloc(all);
        host.copy(fresh, room, code.mul(iteration, bytes));
        return Values{fresh, larger};
      },
      [&] { return Values{room, capacity}; });
  host.copy(code.at(grown[0], builder.getI8Type(), code.mul(iteration, bytes)),
            memory.pointerOf(source), bytes);
  room = grown[0];
  capacity = grown[1];
}

void Loop::bindCarried(scf::WhileOp loop) {
  for (unsigned i = 0; i < carried; ++i) {
    memory.pointers[op.getResult(i)] = loop.getResult(2 + i);
    auto outer = sizes.symbols;
    for (auto [k, name] : llvm::enumerate(names))
      sizes.symbols[name] = loop.getResult(2 + carried + k);
    auto values = valuesOf(graph::dimsOf(argument(i)));
    sizes.symbols = outer;
    sizes.bindDims(op.getResult(i), values);
  }
}

void Loop::bindStacked(scf::WhileOp loop) {
  for (unsigned i = 0; i < scans; ++i) {
    Value result = op.getResult(carried + i);
    memory.pointers[result] = loop.getResult(stacks + 2 * i);
    DimVector dims = graph::dimsOf(result);
    if (auto name = dims[0].symbolName(); name && !sizes.symbols.count(*name))
      sizes.symbols[*name] = loop.getResult(0);
    sizes.requireSize(loop.getResult(0), dims[0]);
  }
  for (auto [i, name] : llvm::enumerate(sliceNames))
    if (!sizes.symbols.count(name))
      sizes.symbols[name] = loop.getResult(slices + i);
}

void Control::write(graph::LoopOp op) {
  auto body = [&](Block &block, Value iteration) { writeBody(block, iteration); };
  Loop(host, sizes, memory, body, op).write();
}

} // namespace heddle::lower
