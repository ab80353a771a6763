// Control: if and scan; a loop is in Loop.cpp.

#include "compiler/lower/host/Control.h"

using namespace mlir;

namespace heddle::lower {

void Control::write(graph::IfOp op) {
  Type pointer = code.pointerType();
  auto names = sizes.unboundSymbols(op.getResults());
  SmallVector<Type> types(op.getNumResults(), pointer);
  types.append(names.size(), builder.getI64Type());
  Value condition = memory.readInteger(op.getCondition(), 0);
  Value holds =
      builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, condition, code.number(0));
  auto branch = [&](Region &region) {
    Scope outer(sizes, memory);
    writeBlock(region.front());
    Values results;
    auto yielded = cast<graph::YieldOp>(region.front().getTerminator()).getValues();
    for (Value value : yielded)
      results.push_back(memory.pointerOf(value));
    for (auto [result, value] : llvm::zip(op.getResults(), yielded))
      sizes.bindFrom(result, value);
    for (const std::string &name : names)
      results.push_back(sizes.symbols.count(name) ? sizes.symbols[name] : code.number(0));
    return results;
  };
  auto made = builder.create<scf::IfOp>(code.loc, types, holds, /*withElseRegion=*/true);
  OpBuilder::InsertPoint after = builder.saveInsertionPoint();
  auto fill = [&](Block *block, Region &region) {
    if (!block->empty()) // the builder ends blocks without results by itself
      block->back().erase();
    builder.setInsertionPointToEnd(block);
    builder.create<scf::YieldOp>(code.loc, branch(region));
  };
  fill(made.thenBlock(), op.getThenRegion());
  fill(made.elseBlock(), op.getElseRegion());
  builder.restoreInsertionPoint(after);
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    memory.pointers[op.getResult(i)] = made.getResult(i);
  for (auto [i, name] : llvm::enumerate(names))
    sizes.symbols[name] = made.getResult(op.getNumResults() + i);
}

/// The body of a loop or scan.
void Control::writeBody(Block &block, Value iteration) {
  Value outer = host.isFirst;
  host.isFirst = builder.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, iteration,
                                                     code.number(0));
  writeBlock(block);
  host.isFirst = outer;
}

/// The first dimension of what is scanned gives the number of iterations; slices are read and
/// written in place.
void Control::write(graph::ScanOp op) {
  Block &body = op.getBody().front();
  unsigned states = op.getStateCount(), scanned = op.getInputs().size() - states;
  auto yield = cast<graph::YieldOp>(body.getTerminator());
  Value length = scanned ? sizes.dim(graph::dimsOf(op.getInputs()[states])[0]) : code.number(0);
  SmallVector<Value> initial, first, second;
  for (unsigned i = 0; i < states; ++i) {
    sizes.bindFrom(body.getArgument(i), op.getInputs()[i]);
    initial.push_back(memory.pointerOf(op.getInputs()[i]));
    first.push_back(host.alloc(sizes.dim(Storage::bytesOf(body.getArgument(i)))));
    second.push_back(host.alloc(sizes.dim(Storage::bytesOf(body.getArgument(i)))));
  }
  for (unsigned i = 0; i < scanned; ++i) {
    SmallVector<Value> ofSlice;
    DimVector whole = graph::dimsOf(op.getInputs()[states + i]);
    sizes.requireSize(sizes.dim(whole[0]), length, "that of what is scanned beside it");
    for (const Dim &size : ArrayRef<Dim>(whole).drop_front())
      ofSlice.push_back(sizes.dim(size));
    sizes.bindDims(body.getArgument(states + i), ofSlice);
  }
  // Stacked slices lie in memory of `length` slices. If only the body knows how large a slice is,
  // the first one says it, and the memory is made then; loops carry it with the sizes.
  struct Stack {
    Value slice, result, room; // room: null if the first slice makes it
    size_t state;              // of the memory and then the sizes, among what is carried
  };
  SmallVector<Stack> stacks;
  for (unsigned i = states; i < op.getNumResults(); ++i) {
    Stack stack{yield.getValues()[i], op.getResult(i), {}, initial.size()};
    if (sizes.unboundSymbols(stack.slice).empty()) {
      Value overflow;
      stack.room = host.alloc(
          SizeArithmetic{code, &overflow}.mul(length, sizes.dim(Storage::bytesOf(stack.slice))));
      host.failIf(overflow, "the stacked slices are larger than any memory");
    } else {
      initial.push_back(builder.create<program::NullOp>(code.loc));
      initial.append(graph::rankOf(stack.slice), code.number(0));
    }
    stacks.push_back(stack);
  }
  Values finals = code.fold(code.number(0), length, 1, initial, [&](Value i, ValueRange in) {
    Scope outer(sizes, memory);
    auto placeOf = [&](bool reverse) {
      return reverse ? code.sub(code.sub(length, code.number(1)), i) : i;
    };
    auto sliceAt = [&](Value whole, Value slice, bool reverse) {
      return code.at(whole, builder.getI8Type(),
                     code.mul(placeOf(reverse), sizes.dim(Storage::bytesOf(slice))));
    };
    for (unsigned s = 0; s < states; ++s)
      memory.pointers[body.getArgument(s)] = in[s];
    for (unsigned s = 0; s < scanned; ++s) {
      Value slice = body.getArgument(states + s);
      memory.pointers[slice] = sliceAt(memory.pointerOf(op.getInputs()[states + s]), slice,
                                       llvm::is_contained(op.getReverseInputs(), (int64_t)s));
    }
    writeBody(body, i);
    Values next;
    Value isEven = builder.createOrFold<arith::CmpIOp>(
        code.loc, arith::CmpIPredicate::eq,
        builder.createOrFold<arith::AndIOp>(code.loc, i, code.number(1)), code.number(0));
    for (unsigned s = 0; s < states; ++s) {
      Value target = builder.createOrFold<arith::SelectOp>(code.loc, isEven, first[s], second[s]);
      sizes.requireSizes(yield.getValues()[s], body.getArgument(s));
      host.copy(target, memory.pointerOf(yield.getValues()[s]),
                sizes.dim(Storage::bytesOf(yield.getValues()[s])));
      next.push_back(target);
    }
    for (auto [s, stack] : llvm::enumerate(stacks)) {
      Value room = stack.room;
      if (!room) {
        Values made = stackFirst(i, length, in.drop_front(stack.state), stack.slice);
        room = made[0];
        next.append(made);
      }
      host.copy(sliceAt(room, stack.slice, llvm::is_contained(op.getReverseOutputs(), (int64_t)s)),
                memory.pointerOf(stack.slice), sizes.dim(Storage::bytesOf(stack.slice)));
    }
    return next;
  });
  for (unsigned s = 0; s < states; ++s) {
    sizes.bindFrom(op.getResult(s), body.getArgument(s));
    memory.pointers[op.getResult(s)] = finals[s];
  }
  for (const Stack &stack : stacks) {
    SmallVector<Value> stacked{length};
    if (stack.room)
      for (const Dim &size : graph::dimsOf(stack.slice))
        stacked.push_back(sizes.dim(size));
    else
      stacked.append(finals.begin() + stack.state + 1,
                     finals.begin() + stack.state + 1 + graph::rankOf(stack.slice));
    sizes.bindDims(stack.result, stacked);
    memory.pointers[stack.result] = stack.room ? stack.room : finals[stack.state];
  }
}

/// The memory and the sizes of slices that are stacked: in iteration 0 as `slice` is, later as
/// `carried` says, which `slice` has to agree with.
Values Control::stackFirst(Value iteration, Value length, ValueRange carried, Value slice) {
  Value isFirst = builder.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, iteration,
                                                      code.number(0));
  Values found;
  for (auto [d, size] : llvm::enumerate(graph::dimsOf(slice))) {
    Value own = sizes.dim(size);
    found.push_back(builder.createOrFold<arith::SelectOp>(code.loc, isFirst, own, carried[1 + d]));
    sizes.requireSize(own, found.back(), "that of the slice before");
  }
  Value overflow;
  Value bytes = SizeArithmetic{code, &overflow}.mul(length, sizes.dim(Storage::bytesOf(slice)));
  host.failIf(overflow, "the stacked slices are larger than any memory");
  Values made = code.choose(
      isFirst, TypeRange{carried[0].getType()}, [&] { return Values{host.alloc(bytes)}; },
      [&] { return Values{carried[0]}; });
  made.append(found);
  return made;
}

} // namespace heddle::lower
