// HostControl: if and scan. Results are pointers and sizes that the regions hand out.

#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

SmallVector<std::string> Host::unboundSymbols(ValueRange values) const {
  SmallVector<std::string> names;
  for (Value value : values)
    for (const Dim &dim : graph::dimsOf(value))
      if (auto name = dim.symbolName();
          name && !sizeCode->symbols.count(*name) && !llvm::is_contained(names, *name))
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
  Type pointer = code->pointerType();
  auto names = unboundSymbols(op.getResults());
  SmallVector<Type> types(op.getNumResults(), pointer);
  types.append(names.size(), builder.getI64Type());
  Value condition = readInteger(op.getCondition(), 0);
  Value holds = builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne, condition,
                                              code->number(0));
  auto branch = [&](Region &region) {
    auto outerSymbols = sizeCode->symbols;
    auto outerPointers = pointers;
    writeBlock(region.front());
    Values results;
    auto yielded = cast<graph::YieldOp>(region.front().getTerminator()).getValues();
    for (Value value : yielded)
      results.push_back(pointerOf(value));
    for (auto [result, value] : llvm::zip(op.getResults(), yielded))
      bindFrom(result, value);
    for (const std::string &name : names)
      results.push_back(sizeCode->symbols.count(name) ? sizeCode->symbols[name] : code->number(0));
    sizeCode->symbols = outerSymbols;
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
    sizeCode->symbols[name] = made.getResult(op.getNumResults() + i);
}

/// The body of a loop or scan.
void Host::writeBody(Block &block, Value iteration) {
  Value outer = isFirst;
  isFirst = builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, iteration,
                                                code->number(0));
  writeBlock(block);
  isFirst = outer;
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
    first.push_back(alloc(dim(Storage::bytesOf(body.getArgument(i)))));
    second.push_back(alloc(dim(Storage::bytesOf(body.getArgument(i)))));
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
      stack.memory =
          alloc(SizeArithmetic{*code, &overflow}.mul(length, dim(Storage::bytesOf(stack.slice))));
      failIf(overflow, "the stacked slices are larger than any memory");
    } else {
      initial.push_back(builder.create<program::NullOp>(code->loc));
      initial.append(graph::rankOf(stack.slice), code->number(0));
    }
    stacks.push_back(stack);
  }
  Values finals = code->fold(code->number(0), length, 1, initial, [&](Value i, ValueRange in) {
    auto outerSymbols = sizeCode->symbols;
    auto outerPointers = pointers;
    auto placeOf = [&](bool reverse) {
      return reverse ? code->sub(code->sub(length, code->number(1)), i) : i;
    };
    auto sliceAt = [&](Value memory, Value slice, bool reverse) {
      return code->at(memory, builder.getI8Type(),
                      code->mul(placeOf(reverse), dim(Storage::bytesOf(slice))));
    };
    for (unsigned s = 0; s < states; ++s)
      pointers[body.getArgument(s)] = in[s];
    for (unsigned s = 0; s < scanned; ++s) {
      Value slice = body.getArgument(states + s);
      pointers[slice] = sliceAt(pointerOf(op.getInputs()[states + s]), slice,
                                llvm::is_contained(op.getReverseInputs(), (int64_t)s));
    }
    writeBody(body, i);
    Values next;
    Value isEven = builder.createOrFold<arith::CmpIOp>(
        code->loc, arith::CmpIPredicate::eq,
        builder.createOrFold<arith::AndIOp>(code->loc, i, code->number(1)), code->number(0));
    for (unsigned s = 0; s < states; ++s) {
      Value target = builder.createOrFold<arith::SelectOp>(code->loc, isEven, first[s], second[s]);
      requireSizes(yield.getValues()[s], body.getArgument(s));
      copy(target, pointerOf(yield.getValues()[s]), dim(Storage::bytesOf(yield.getValues()[s])));
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
           pointerOf(stack.slice), dim(Storage::bytesOf(stack.slice)));
    }
    sizeCode->symbols = outerSymbols;
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
  Value bytes = SizeArithmetic{*code, &overflow}.mul(length, dim(Storage::bytesOf(slice)));
  failIf(overflow, "the stacked slices are larger than any memory");
  Values made = code->choose(
      isFirst, TypeRange{carried[0].getType()}, [&] { return Values{alloc(bytes)}; },
      [&] { return Values{carried[0]}; });
  made.append(sizes);
  return made;
}

} // namespace heddle::lower
