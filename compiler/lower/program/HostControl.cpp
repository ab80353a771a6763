// HostControl: if, loop and scan. Results are pointers and sizes that the regions hand out.

#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

/// A loop that runs this often is taken for one that never ends.
static constexpr int64_t kMostTrips = 100'000'000;

SmallVector<std::string> Host::unboundSymbols(ValueRange values) const {
  SmallVector<std::string> names;
  for (Value value : values)
    for (const Dim &dim : graph::dimsOf(value))
      if (auto name = dim.symbolName();
          name && !symbols.count(*name) && !llvm::is_contained(names, *name))
        names.push_back(*name);
  return names;
}

/// Gives the unbound sizes of `result` the values that `source` has.
void Host::bindFrom(Value result, Value source) {
  SmallVector<Value> sizes;
  for (const Dim &size : graph::dimsOf(source))
    sizes.push_back(dim(size));
  bindDims(result, sizes);
}

void Host::requireSizes(Value found, Value expected) {
  for (auto [size, wanted] : llvm::zip(graph::dimsOf(found), graph::dimsOf(expected)))
    if (size != wanted)
      requireSize(dim(size), wanted);
}

void Host::writeIf(graph::IfOp op) {
  Type pointer = LLVM::LLVMPointerType::get(builder.getContext());
  auto names = unboundSymbols(op.getResults());
  SmallVector<Type> types(op.getNumResults(), pointer);
  types.append(names.size(), builder.getI64Type());
  Value condition = readInteger(op.getCondition(), 0);
  Value holds = builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne, condition,
                                              code->number(0));
  auto branch = [&](Region &region) {
    auto outerSymbols = symbols;
    auto outerPointers = pointers;
    writeBlock(region.front());
    Values results;
    auto yielded = cast<graph::YieldOp>(region.front().getTerminator()).getValues();
    for (Value value : yielded)
      results.push_back(pointerOf(value));
    for (auto [result, value] : llvm::zip(op.getResults(), yielded))
      bindFrom(result, value);
    for (const std::string &name : names)
      results.push_back(symbols.count(name) ? symbols[name] : code->number(0));
    symbols = outerSymbols;
    pointers = outerPointers;
    return results;
  };
  auto made = builder.create<scf::IfOp>(code->loc, types, holds, /*withElseRegion=*/true);
  OpBuilder::InsertPoint after = builder.saveInsertionPoint();
  auto fill = [&](Block *block, Region &region) {
    if (!block->empty()) // the builder ends blocks without results by itself
      block->back().erase();
    builder.setInsertionPointToEnd(block);
    builder.create<scf::YieldOp>(code->loc, branch(region));
  };
  fill(made.thenBlock(), op.getThenRegion());
  fill(made.elseBlock(), op.getElseRegion());
  builder.restoreInsertionPoint(after);
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    pointers[op.getResult(i)] = made.getResult(i);
  for (auto [i, name] : llvm::enumerate(names))
    symbols[name] = made.getResult(op.getNumResults() + i);
}

/// Carried tensors live in fresh memory each iteration when their size changes, else in two buffers
/// in turn.
void Host::writeLoop(graph::LoopOp op) {
  Type i64 = builder.getI64Type(), pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Block &body = op.getBody().front();
  unsigned carried = op.getInits().size(), scans = op.getScanCount();
  auto arguments = body.getArguments().drop_front(2);
  auto yield = cast<graph::YieldOp>(body.getTerminator());
  auto names = unboundSymbols(arguments);
  Value limit = readInteger(op.getTripCount(), 0);
  Value start = readInteger(op.getCondition(), 0);

  // State: iteration, condition, carried pointers, spare pointers, sizes, then for each stacked
  // result its memory and capacity in iterations.
  SmallVector<Value> state{code->number(0), start};
  SmallVector<bool> isFixed;
  for (auto [argument, init] : llvm::zip(arguments, op.getInits())) {
    state.push_back(pointerOf(init));
    isFixed.push_back(llvm::none_of(graph::dimsOf(argument), [&](const Dim &dim) {
      SmallVector<std::string> used;
      dim.collectSymbols(used);
      return llvm::any_of(used, [&](auto &name) { return !symbols.count(name); });
    }));
  }
  SmallVector<Value> first, second;
  for (auto [argument, fixed] : llvm::zip(arguments, isFixed)) {
    Value none = builder.create<LLVM::ZeroOp>(code->loc, pointer);
    first.push_back(fixed ? alloc(dim(bytesOf(argument))) : none);
    second.push_back(fixed ? alloc(dim(bytesOf(argument))) : none);
  }
  {
    auto outerSymbols = symbols;
    for (auto [argument, init] : llvm::zip(arguments, op.getInits()))
      bindFrom(argument, init);
    for (const std::string &name : names)
      state.push_back(symbols[name]);
    symbols = outerSymbols;
  }
  unsigned stacks = state.size();
  for (unsigned i = 0; i < scans; ++i) {
    state.push_back(builder.create<LLVM::ZeroOp>(code->loc, pointer));
    state.push_back(code->number(0));
  }
  // Sizes of one stacked slice, learnt in the first iteration.
  auto sliceNames = unboundSymbols(op.getResults().drop_front(carried));
  unsigned sliceStart = state.size();
  state.append(sliceNames.size(), code->number(0));
  SmallVector<Type> types;
  for (Value value : state)
    types.push_back(value.getType());

  auto loop = builder.create<scf::WhileOp>(code->loc, types, state);
  OpBuilder::InsertPoint after = builder.saveInsertionPoint();
  SmallVector<Location> locations(types.size(), code->loc);
  Block *before = builder.createBlock(&loop.getBefore(), {}, types, locations);
  {
    Value goesOn = code->less(before->getArgument(0), limit);
    Value holds = builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne,
                                                before->getArgument(1), code->number(0));
    goesOn = builder.create<arith::AndIOp>(code->loc, goesOn, holds);
    goesOn = builder.create<arith::AndIOp>(code->loc, goesOn, isFine());
    Value most = code->number(kMostTrips);
    Value isEndless = builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq,
                                                    before->getArgument(0), most);
    isEndless = code->both(goesOn, isEndless);
    code->when(isEndless, [&] {
      fail("node '" + graph::sourceName(op.getLoc()) +
               "': the loop has not ended after %lld iterations",
           most, most);
    });
    goesOn = builder.create<arith::AndIOp>(code->loc, goesOn, isFine());
    builder.create<scf::ConditionOp>(code->loc, goesOn, before->getArguments());
  }
  Block *each = builder.createBlock(&loop.getAfter(), {}, types, locations);
  {
    auto outerSymbols = symbols;
    auto outerPointers = pointers;
    SmallVector<Value> next(each->getArguments().begin(), each->getArguments().end());
    Value iteration = next[0];
    Value scalar = entry.create<LLVM::AllocaOp>(code->loc, pointer, i64, entryCode->number(2));
    code->store(i64, iteration, scalar, code->number(0));
    Value truth = code->at(scalar, i64, code->number(1));
    code->store(builder.getI8Type(),
                builder.create<arith::TruncIOp>(code->loc, builder.getI8Type(), next[1]), truth,
                code->number(0));
    pointers[body.getArgument(0)] = scalar;
    pointers[body.getArgument(1)] = truth;
    for (unsigned i = 0; i < carried; ++i)
      pointers[arguments[i]] = next[2 + i];
    for (auto [i, name] : llvm::enumerate(names))
      symbols[name] = next[2 + carried + i];
    writeBlock(body);
    auto values = yield.getValues();
    next[1] = readInteger(values[0], 0);
    for (unsigned i = 0; i < carried; ++i) {
      Value source = values[1 + i], bytes = dim(bytesOf(source)), target;
      if (isFixed[i]) {
        requireSizes(source, arguments[i]);
        Value isEven = builder.create<arith::CmpIOp>(
            code->loc, arith::CmpIPredicate::eq,
            builder.create<arith::AndIOp>(code->loc, iteration, code->number(1)), code->number(0));
        target = builder.create<arith::SelectOp>(code->loc, isEven, first[i], second[i]);
      } else {
        target = alloc(bytes);
      }
      copy(target, pointerOf(source), bytes);
      next[2 + i] = target;
    }
    auto inside = symbols;
    symbols = outerSymbols;
    for (auto [i, argument] : llvm::enumerate(arguments)) {
      SmallVector<Value> sizes;
      std::swap(symbols, inside);
      for (const Dim &size : graph::dimsOf(values[1 + i]))
        sizes.push_back(dim(size));
      std::swap(symbols, inside);
      bindDims(argument, sizes);
    }
    for (auto [i, name] : llvm::enumerate(names))
      next[2 + carried + i] = symbols.count(name) ? symbols[name] : code->number(0);
    symbols = inside;
    for (unsigned i = 0; i < scans; ++i) {
      Value source = values[1 + carried + i], bytes = dim(bytesOf(source));
      Value memory = next[stacks + 2 * i], capacity = next[stacks + 2 * i + 1];
      // The first slice says how large all are, where the model does not.
      DimVector result = graph::dimsOf(op.getResult(carried + i)), slice = graph::dimsOf(source);
      Value isFirst = builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, iteration,
                                                    code->number(0));
      for (size_t d = 0; d < slice.size(); ++d) {
        Value size = dim(slice[d]);
        auto name = result[d + 1].symbolName();
        auto place = name ? llvm::find(sliceNames, *name) : sliceNames.end();
        if (place == sliceNames.end()) {
          requireSize(size, result[d + 1]);
          continue;
        }
        Value &learnt = next[sliceStart + (place - sliceNames.begin())];
        learnt = builder.create<arith::SelectOp>(code->loc, isFirst, size, learnt);
        requireSize(size, learnt, "that of the slice before");
      }
      Value isFull =
          builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::sge, iteration, capacity);
      auto grown = code->choose(
          isFull, TypeRange{pointer, i64},
          [&] {
            // kMostTrips bounds the count, not its product with the bytes of a slice.
            Value larger = code->add(code->mul(capacity, code->number(2)), code->number(8));
            Value overflow;
            Value all = SizeArithmetic{*code, &overflow}.mul(larger, bytes);
            failIf(overflow, "the stacked slices are larger than any memory");
            Value fresh = alloc(all);
            copy(fresh, memory, code->mul(iteration, bytes));
            return Values{fresh, larger};
          },
          [&] { return Values{memory, capacity}; });
      copy(code->at(grown[0], builder.getI8Type(), code->mul(iteration, bytes)), pointerOf(source),
           bytes);
      next[stacks + 2 * i] = grown[0];
      next[stacks + 2 * i + 1] = grown[1];
    }
    next[0] = code->add(iteration, code->number(1));
    builder.create<scf::YieldOp>(code->loc, next);
    symbols = outerSymbols;
    pointers = outerPointers;
  }
  builder.restoreInsertionPoint(after);
  for (unsigned i = 0; i < carried; ++i) {
    Value result = op.getResult(i);
    pointers[result] = loop.getResult(2 + i);
    auto outer = symbols;
    for (auto [k, name] : llvm::enumerate(names))
      symbols[name] = loop.getResult(2 + carried + k);
    SmallVector<Value> sizes;
    for (const Dim &size : graph::dimsOf(arguments[i]))
      sizes.push_back(dim(size));
    symbols = outer;
    bindDims(result, sizes);
  }
  for (unsigned i = 0; i < scans; ++i) {
    Value result = op.getResult(carried + i);
    pointers[result] = loop.getResult(stacks + 2 * i);
    DimVector dims = graph::dimsOf(result);
    if (auto name = dims[0].symbolName(); name && !symbols.count(*name))
      symbols[*name] = loop.getResult(0);
    requireSize(loop.getResult(0), dims[0]);
  }
  for (auto [i, name] : llvm::enumerate(sliceNames))
    if (!symbols.count(name))
      symbols[name] = loop.getResult(sliceStart + i);
}

/// The first dimension of what is scanned gives the number of iterations; slices are read and
/// written in place.
void Host::writeScan(graph::ScanOp op) {
  Block &body = op.getBody().front();
  unsigned states = op.getStateCount(), scanned = op.getInputs().size() - states;
  auto yield = cast<graph::YieldOp>(body.getTerminator());
  Value length = scanned ? dim(graph::dimsOf(op.getInputs()[states])[0]) : code->number(0);
  SmallVector<Value> initial, first, second;
  for (unsigned i = 0; i < states; ++i) {
    bindFrom(body.getArgument(i), op.getInputs()[i]);
    initial.push_back(pointerOf(op.getInputs()[i]));
    first.push_back(alloc(dim(bytesOf(body.getArgument(i)))));
    second.push_back(alloc(dim(bytesOf(body.getArgument(i)))));
  }
  for (unsigned i = 0; i < scanned; ++i) {
    SmallVector<Value> sizes;
    DimVector whole = graph::dimsOf(op.getInputs()[states + i]);
    requireSize(dim(whole[0]), length, "that of what is scanned beside it");
    for (const Dim &size : ArrayRef<Dim>(whole).drop_front())
      sizes.push_back(dim(size));
    bindDims(body.getArgument(states + i), sizes);
  }
  // What is stacked lies in memory of `length` slices. Where only the body knows how large a slice
  // is, the first one says it, and the memory is made then; loops carry it with the sizes.
  struct Stack {
    Value slice, result, memory; // memory: null where the first slice makes it
    size_t state;                // of the memory and then the sizes, among what is carried
  };
  SmallVector<Stack> stacks;
  for (unsigned i = states; i < op.getNumResults(); ++i) {
    Stack stack{yield.getValues()[i], op.getResult(i), {}, initial.size()};
    if (unboundSymbols(stack.slice).empty()) {
      Value overflow;
      stack.memory = alloc(SizeArithmetic{*code, &overflow}.mul(length, dim(bytesOf(stack.slice))));
      failIf(overflow, "the stacked slices are larger than any memory");
    } else {
      initial.push_back(builder.create<LLVM::ZeroOp>(
          code->loc, LLVM::LLVMPointerType::get(builder.getContext())));
      initial.append(graph::rankOf(stack.slice), code->number(0));
    }
    stacks.push_back(stack);
  }
  Values finals = code->fold(code->number(0), length, 1, initial, [&](Value i, ValueRange in) {
    auto outerSymbols = symbols;
    auto outerPointers = pointers;
    auto placeOf = [&](bool reverse) {
      return reverse ? code->sub(code->sub(length, code->number(1)), i) : i;
    };
    auto sliceAt = [&](Value memory, Value slice, bool reverse) {
      return code->at(memory, builder.getI8Type(),
                      code->mul(placeOf(reverse), dim(bytesOf(slice))));
    };
    for (unsigned s = 0; s < states; ++s)
      pointers[body.getArgument(s)] = in[s];
    for (unsigned s = 0; s < scanned; ++s) {
      Value slice = body.getArgument(states + s);
      pointers[slice] = sliceAt(pointerOf(op.getInputs()[states + s]), slice,
                                llvm::is_contained(op.getReverseInputs(), (int64_t)s));
    }
    writeBlock(body);
    Values next;
    Value isEven = builder.createOrFold<arith::CmpIOp>(
        code->loc, arith::CmpIPredicate::eq,
        builder.createOrFold<arith::AndIOp>(code->loc, i, code->number(1)), code->number(0));
    for (unsigned s = 0; s < states; ++s) {
      Value target = builder.createOrFold<arith::SelectOp>(code->loc, isEven, first[s], second[s]);
      requireSizes(yield.getValues()[s], body.getArgument(s));
      copy(target, pointerOf(yield.getValues()[s]), dim(bytesOf(yield.getValues()[s])));
      next.push_back(target);
    }
    for (auto [s, stack] : llvm::enumerate(stacks)) {
      Value memory = stack.memory;
      if (!memory) {
        Values made = stackFirst(i, length, in.drop_front(stack.state), stack.slice);
        memory = made[0];
        next.append(made);
      }
      copy(sliceAt(memory, stack.slice, llvm::is_contained(op.getReverseOutputs(), (int64_t)s)),
           pointerOf(stack.slice), dim(bytesOf(stack.slice)));
    }
    symbols = outerSymbols;
    pointers = outerPointers;
    return next;
  });
  for (unsigned s = 0; s < states; ++s) {
    bindFrom(op.getResult(s), body.getArgument(s));
    pointers[op.getResult(s)] = finals[s];
  }
  for (const Stack &stack : stacks) {
    SmallVector<Value> sizes{length};
    if (stack.memory)
      for (const Dim &size : graph::dimsOf(stack.slice))
        sizes.push_back(dim(size));
    else
      sizes.append(finals.begin() + stack.state + 1,
                   finals.begin() + stack.state + 1 + graph::rankOf(stack.slice));
    bindDims(stack.result, sizes);
    pointers[stack.result] = stack.memory ? stack.memory : finals[stack.state];
  }
}

/// The memory and the sizes of slices that are stacked: in iteration 0 as `slice` is, later as
/// `carried` says, which `slice` has to agree with.
Values Host::stackFirst(Value iteration, Value length, ValueRange carried, Value slice) {
  Value isFirst = builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq,
                                                      iteration, code->number(0));
  Values sizes;
  for (auto [d, size] : llvm::enumerate(graph::dimsOf(slice))) {
    Value own = dim(size);
    sizes.push_back(builder.createOrFold<arith::SelectOp>(code->loc, isFirst, own, carried[1 + d]));
    requireSize(own, sizes.back(), "that of the slice before");
  }
  Value overflow;
  Value bytes = SizeArithmetic{*code, &overflow}.mul(length, dim(bytesOf(slice)));
  failIf(overflow, "the stacked slices are larger than any memory");
  Values made = code->choose(
      isFirst, TypeRange{carried[0].getType()}, [&] { return Values{alloc(bytes)}; },
      [&] { return Values{carried[0]}; });
  made.append(sizes);
  return made;
}

} // namespace heddle::lower
