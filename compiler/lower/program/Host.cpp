// Host: code of heddle_program_sizes and heddle_program_run for straight-line programs; control
// flow is in HostControl.cpp.

#include "compiler/lower/program/Host.h"
#include "compiler/lower/program/RowBlocks.h"
#include "compiler/support/Mapped.h"

using namespace mlir;

namespace heddle::lower {

Host::Host(func::FuncOp model, const std::map<Operation *, std::shared_ptr<Kernel>> &kernels,
           const mechanism::Placements &placements, program::Program &program)
    : model(model), kernels(kernels), program(program), tables(model, kernels),
      storage(model, kernels, placements, tables, program), builder(model.getContext()),
      entry(model.getContext()) {}

llvm::Error Host::write() {
  writeRun(); // first: it says which sizes have to be checked
  writeSizes();
  if (program.bindsValues)
    writeBind();
  program.rowBlocks = rowBlocksOf(model, tables, storage);
  return llvm::Error::success();
}

void Host::beginFunction(StringRef name, unsigned pointerCount) {
  MLIRContext *context = model.getContext();
  Type pointer = program::pointerType(context);
  Location loc = model.getLoc();
  builder.setInsertionPointToEnd(program.module->getBody());
  function = builder.create<func::FuncOp>(
      loc, name,
      FunctionType::get(context, SmallVector<Type>(pointerCount, pointer), builder.getI32Type()));
  Block *block = function.addEntryBlock();
  builder.setInsertionPointToEnd(block);
  Operation *marker = builder.create<arith::ConstantOp>(loc, builder.getI64IntegerAttr(0));
  entry.setInsertionPoint(marker);
  code = std::make_unique<Code>(builder, loc, 1);
  entryCode = std::make_unique<Code>(entry, loc, 1);
  sizeCode.emplace(*code);
  pointers.clear();
  weightOf.clear();
}

/// In heddle_program_run.
Value Host::dim(const Dim &dim) {
  if (dim.constant() || dim.symbolName())
    return sizeCode->of(dim, nullptr);
  if (storage.isEntryKnown(dim)) {
    entrySizes.try_emplace(dim.str(), dim, node);
    return sizeCode->of(dim, nullptr);
  }
  Value overflow, value = sizeCode->of(dim, &overflow);
  failIf(overflow, "size '" + dim.str() + "' is larger than any memory");
  return value;
}

/// Of what an op makes. Its sizes are tested one after the other where they are bound; so what
/// their product is in int64, it is also where products of its terms have left int64 on the way.
Value Host::checkedBytes(Value result) {
  Dim bytes = Storage::bytesOf(result);
  return storage.isEntryKnown(bytes) ? dim(bytes) : sizeCode->of(bytes, nullptr);
}

/// Ends the run where arithmetic of sizes has left int64.
void Host::failIf(Value overflow, const Twine &what) {
  if (overflow)
    code->when(overflow, [&] { fail(node + what.str(), code->number(0), code->number(0)); });
}

/// Offsets of all storage.buffers; returns the size of the arena.
Value Host::placeBuffers(Value *overflow) {
  SizeArithmetic arithmetic{*code, overflow};
  std::map<std::string, Value> sizes; // many are alike
  auto alignedSize = [&](const Dim &bytes) {
    Value &size = sizes[bytes.str()];
    if (!size) {
      Value last = arithmetic.add(sizeCode->of(bytes, overflow), code->number(kAlignment - 1));
      size = code->mul(code->div(last, code->number(kAlignment)), code->number(kAlignment));
    }
    return size;
  };
  Value zero = code->number(0), total = zero;
  offsets.assign(storage.buffers.size(), zero);
  for (size_t i : storage.plan.order) {
    for (size_t below : storage.plan.below[i])
      offsets[i] = code->max(
          offsets[i], arithmetic.add(offsets[below], alignedSize(storage.buffers[below].bytes)));
    total = code->max(total, arithmetic.add(offsets[i], alignedSize(storage.buffers[i].bytes)));
  }
  return total;
}

void Host::writeSizes() {
  beginFunction("heddle_program_sizes", 4);
  Type i64 = builder.getI64Type();
  for (auto &[name, index] : storage.inputSymbols)
    sizeCode->symbols[name] = code->load(i64, function.getArgument(0), code->number(index));
  Value isUnbound = areUnbound();
  auto unless = [&](Value isSo, Value value, Value otherwise) {
    return isSo ? builder.createOrFold<arith::SelectOp>(code->loc, isSo, otherwise, value) : value;
  };
  Value overflow, arenaBytes = placeBuffers(&overflow);
  if (overflow) // the runtime's word for it
    arenaBytes =
        builder.createOrFold<arith::SelectOp>(code->loc, overflow, code->number(-1), arenaBytes);
  code->store(i64, arenaBytes, function.getArgument(1), code->number(0));
  int64_t place = 0;
  auto results = cast<func::ReturnOp>(model.getBody().front().getTerminator());
  for (Value output : results.getOperands())
    for (const Dim &size : graph::dimsOf(output)) {
      Value value = storage.isEntryKnown(size) ? sizeCode->of(size, nullptr)
                                               : code->number(program::kDynamic);
      if (!storage.isOfShapes(size))
        value = unless(isUnbound, value, code->number(program::kDynamic));
      code->store(i64, value, function.getArgument(2), code->number(place++));
    }
  Value status = writeEntryChecks(function.getArgument(3));
  status = unless(isUnbound, status, code->integerOf(builder.getI32Type(), 0));
  builder.create<func::ReturnOp>(code->loc, status);
}

Value Host::area(program::Area which) {
  return entry.create<program::AreaOp>(code->loc, call, which);
}

void Host::writeRun() {
  beginFunction("heddle_program_run", 1);
  call = function.getArgument(0);
  Type i64 = builder.getI64Type(), pointer = code->pointerType();
  Value given = area(program::Area::Symbols);
  for (auto &[name, index] : storage.inputSymbols)
    sizeCode->symbols[name] = entryCode->load(i64, given, entryCode->number(index));
  arguments = entry.create<program::ArrayOp>(code->loc, argumentSlots());
  arena = area(program::Area::Arena);
  placeBuffers(nullptr);
  Value inputs = area(program::Area::Inputs);
  for (BlockArgument input : model.getArguments()) {
    Value address = entryCode->at(inputs, pointer, entryCode->number(input.getArgNumber()));
    pointers[input] = entry.create<program::LoadOp>(code->loc, pointer, address, 8);
  }
  Value outputs = area(program::Area::Outputs);
  for (auto &[value, index] : storage.outputOf) {
    Value address = entryCode->at(outputs, pointer, entryCode->number(index));
    pointers[value] = entry.create<program::LoadOp>(code->loc, pointer, address, 8);
  }
  auto &known = checked.emplace_back();
  forEachEntryCheck([&](const Check &check) { known.insert(keyOf(check)); });
  writeBlock(model.getBody().front());
  Value status = builder.create<program::StatusOp>(code->loc, call);
  builder.create<func::ReturnOp>(code->loc, status);
}

/// Where the op comes from in the model: of one that a rewrite made without saying so, that of the
/// nearest op which reads it, or which it reads, or which is around it.
static Location sourceOf(Operation &op) {
  auto isNamed = [](Location location) { return !graph::sourceName(location).empty(); };
  SmallVector<Operation *> found{&op};
  llvm::SmallPtrSet<Operation *, 16> seen{&op};
  auto visit = [&](Operation *next) {
    if (next && seen.insert(next).second)
      found.push_back(next);
  };
  for (size_t i = 0; i < found.size(); ++i) {
    if (isNamed(found[i]->getLoc()))
      return found[i]->getLoc();
    llvm::for_each(found[i]->getUsers(), visit);
    for (Value operand : found[i]->getOperands())
      visit(operand.getDefiningOp());
    if (Operation *around = found[i]->getParentOp(); !isa<func::FuncOp>(around))
      visit(around);
  }
  return op.getLoc();
}

void Host::writeBlock(Block &block) {
  std::string outer = node;
  Location before = code->loc;
  checked.emplace_back();
  for (Operation &op : block) {
    code->loc = sourceOf(op);
    node = graph::nodeText(code->loc) + ": ";
    if (isa<graph::GroupOp>(op))
      bindSymbols(&op);
    if (isa<graph::GroupOp, graph::ReshapeOp>(op))
      writeChecks(&op);
    if (auto group = dyn_cast<graph::GroupOp>(op))
      writeGroup(group);
    else if (auto branch = dyn_cast<graph::IfOp>(op))
      writeIf(branch);
    else if (auto loop = dyn_cast<graph::LoopOp>(op))
      writeLoop(loop);
    else if (auto scan = dyn_cast<graph::ScanOp>(op))
      writeScan(scan);
    else if (auto reshape = dyn_cast<graph::DynamicReshapeOp>(op)) {
      bindReshape(reshape);
      writeChecks(reshape);
    } else if (auto bind = dyn_cast<graph::BindSizesOp>(op))
      bindSizes(bind);
    else if (auto lengths = dyn_cast<graph::RowLengthsOp>(op))
      writeTables(lengths);
    else if (op.hasTrait<graph::Routine>() || isa<graph::CustomOp>(op))
      writeRoutine(&op);
    else if (op.hasTrait<graph::Hosted>())
      writeHosted(&op);
    else if (auto results = dyn_cast<func::ReturnOp>(op))
      writeOutputs(results);
  }
  checked.pop_back();
  node = outer;
  code->loc = before;
}

/// Memory of a value; weights, arena, or what control flow bound.
Value Host::pointerOf(Value value) {
  value = storage.rootOf(value);
  if (auto known = pointers.find(value); known != pointers.end())
    return known->second;
  if (auto constant = value.getDefiningOp<graph::ConstantOp>()) {
    Attribute key = constant.getValue();
    if (!weightOf.count(key)) {
      std::vector<char> storage;
      ArrayRef<char> bytes = graph::constantBytes(constant.getValue(), storage);
      bool isBorrowed = storage.empty();
      weightOf[key] =
          isBorrowed ? program.weights.borrow(bytes) : program.weights.own(std::move(storage));
      if (isBorrowed)
        support::letPagesGo(bytes); // until they are written
    }
    Value weights = area(program::Area::Weights);
    return entryCode->at(weights, entry.getI8Type(), entryCode->number(weightOf[key]));
  }
  if (auto buffer = storage.bufferOf.find(value); buffer != storage.bufferOf.end())
    return code->at(arena, builder.getI8Type(), offsets[buffer->second]);
  // Made now: its size became known while running.
  Value bytes = checkedBytes(value);
  auto late = storage.lateOutputOf.find(value);
  Value memory =
      late == storage.lateOutputOf.end() ? alloc(bytes) : allocOutput(late->second, bytes);
  pointers[value] = memory;
  return memory;
}

Value Host::alloc(Value bytes) { return builder.create<program::AllocOp>(code->loc, call, bytes); }

Value Host::allocOutput(int64_t output, Value bytes) {
  return builder.create<program::AllocOutputOp>(code->loc, call, output, bytes);
}

void Host::fail(StringRef message, Value value, Value limit) {
  program.messages.push_back(message.str());
  Value number = code->number(program.messages.size() - 1);
  builder.create<program::FailOp>(code->loc, call, number, value, limit);
}

Value Host::isFine() {
  Value status = builder.create<program::StatusOp>(code->loc, call);
  return builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, status,
                                       code->integerOf(builder.getI32Type(), 0));
}

void Host::copy(Value target, Value source, Value bytes) {
  code->when(isFine(), [&] {
    builder.create<program::CopyOp>(code->loc, target, source, bytes, /*overlapping=*/true);
  });
}

void Host::writeOutputs(func::ReturnOp op) {
  Type i64 = builder.getI64Type(), pointer = code->pointerType();
  Values saved = savedInputs(op);
  Value dims = area(program::Area::OutputDims);
  int64_t place = 0;
  for (auto [i, output] : llvm::enumerate(op.getOperands())) {
    bool isKnown = storage.isEntryKnown(output);
    for (const Dim &size : graph::dimsOf(output)) {
      if (!isKnown)
        code->store(i64, dim(size), dims, code->number(place));
      ++place;
    }
    auto direct = storage.outputOf.find(storage.rootOf(output));
    if (direct != storage.outputOf.end() && direct->second == (int64_t)i)
      continue;
    auto late = storage.lateOutputOf.find(storage.rootOf(output));
    if (late != storage.lateOutputOf.end() && late->second == (int64_t)i)
      continue;
    Value bytes = checkedBytes(output), target;
    Value source = saved[i] ? saved[i] : pointerOf(output);
    if (isKnown) {
      Value outputs = area(program::Area::Outputs);
      Value address = code->at(outputs, pointer, code->number(i));
      target = builder.create<program::LoadOp>(code->loc, pointer, address, 8);
    } else {
      target = allocOutput(i, bytes);
    }
    copy(target, source, bytes);
  }
}

} // namespace heddle::lower
