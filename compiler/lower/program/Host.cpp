// Host: code of heddle_program_sizes and heddle_program_run for straight-line programs; control
// flow is in HostControl.cpp.

#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

Host::Host(func::FuncOp model, const std::map<Operation *, std::shared_ptr<Kernel>> &kernels,
           const mechanism::Placements &placements, program::Program &program)
    : model(model), kernels(kernels), placements(placements), program(program),
      builder(model.getContext()), entry(model.getContext()) {}

llvm::Error Host::write() {
  describe();
  number();
  place();
  writeRun(); // first: it says which sizes have to be checked
  writeSizes();
  if (!boundByValues.empty())
    writeBind();
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
  symbols.clear();
  pointers.clear();
  weightOf.clear();
}

Value Host::symbolValue(StringRef name) {
  auto found = symbols.find(name.str());
  // A symbol that nothing binds can only be the size of a tensor that is never made.
  return found == symbols.end() ? code->number(0) : found->second;
}

/// Whether a value that was written before can be read at the place of writing now: it is in this
/// block, or in one around it.
static bool isVisible(Value value, OpBuilder &builder) {
  for (Block *block = builder.getInsertionBlock(); block;
       block = block->getParentOp() ? block->getParentOp()->getBlock() : nullptr)
    if (value.getParentBlock() == block)
      return true;
  return false;
}

SmallVector<Value> Host::symbolsOf(const Dim &dim) {
  SmallVector<std::string> names;
  dim.collectSymbols(names);
  return SmallVector<Value>(
      llvm::map_range(names, [&](const std::string &name) { return symbolValue(name); }));
}

bool Host::isReadable(const WrittenSize &known, ArrayRef<Value> symbols, bool isTested) {
  return known.value && ArrayRef<Value>(known.symbols) == symbols &&
         isVisible(known.value, builder) && (!isTested || known.isTested);
}

/// A sum that is another one and a term or two is written as that: the places of n operands in a
/// concat would else have n^2 / 2 terms.
Value Host::writeSize(const Dim &dim, Value *overflow) {
  SizeArithmetic arithmetic{*code, overflow};
  constexpr size_t few = 2, kept = 4;
  bool isLong = dim.sum().size() > few;
  Value before, value;
  Dim rest;
  for (const Dim &sum : lastSums) {
    auto known = writtenSizes.find(sum.str());
    rest = dim - sum;
    if (isLong && rest.sum().size() <= few && !rest.isTooLarge() && known != writtenSizes.end() &&
        isReadable(known->second, symbolsOf(sum), overflow != nullptr)) {
      before = checkedDim(sum, overflow);
      break;
    }
  }
  // Behind the loop: what is written for `rest` may be among the last sums itself.
  if (before)
    value = arithmetic.add(before, checkedDim(rest, overflow));
  if (!value) {
    auto part = [&](const Dim &operand) { return checkedDim(operand, overflow); };
    value = arithmetic.emit(dim, [&](StringRef name) { return symbolValue(name); }, part);
  }
  if (isLong) {
    lastSums.push_front(dim);
    lastSums.resize(std::min(lastSums.size(), kept));
  }
  return value;
}

/// A size is written once where all that follows can read it: sizes that are made of sizes would
/// else be written again at each use, and so would the tests of their overflow.
Value Host::checkedDim(const Dim &dim, Value *overflow) {
  if (dim.constant() || dim.symbolName())
    return SizeArithmetic{*code, overflow}.emit(dim,
                                                [&](StringRef name) { return symbolValue(name); });
  SmallVector<Value> values = symbolsOf(dim);
  WrittenSize &known = writtenSizes[dim.str()];
  if (!isReadable(known, values, overflow != nullptr)) {
    Value found, value = writeSize(dim, overflow ? &found : nullptr);
    known = {value, found, std::move(values), overflow != nullptr};
  }
  if (overflow && known.overflow)
    SizeArithmetic{*code, overflow}.noteOverflow(known.overflow);
  return known.value;
}

/// In heddle_program_run.
Value Host::dim(const Dim &dim) {
  if (dim.constant() || dim.symbolName())
    return checkedDim(dim, nullptr);
  if (isEntryKnown(dim)) {
    entrySizes.try_emplace(dim.str(), dim, node);
    return checkedDim(dim, nullptr);
  }
  Value overflow, value = checkedDim(dim, &overflow);
  failIf(overflow, "size '" + dim.str() + "' is larger than any memory");
  return value;
}

/// Of what an op makes. Its sizes are tested one after the other where they are bound; so what
/// their product is in int64, it is also where products of its terms have left int64 on the way.
Value Host::checkedBytes(Value result) {
  Dim bytes = bytesOf(result);
  return isEntryKnown(bytes) ? dim(bytes) : checkedDim(bytes, nullptr);
}

/// Ends the run where arithmetic of sizes has left int64.
void Host::failIf(Value overflow, const Twine &what) {
  if (overflow)
    code->when(overflow, [&] { fail(node + what.str(), code->number(0), code->number(0)); });
}

/// Offsets of all buffers; returns the size of the arena.
Value Host::placeBuffers(Value *overflow) {
  SizeArithmetic arithmetic{*code, overflow};
  std::map<std::string, Value> sizes; // many are alike
  auto alignedSize = [&](const Dim &bytes) {
    Value &size = sizes[bytes.str()];
    if (!size) {
      Value last = arithmetic.add(checkedDim(bytes, overflow), code->number(kAlignment - 1));
      size = code->mul(code->div(last, code->number(kAlignment)), code->number(kAlignment));
    }
    return size;
  };
  Value zero = code->number(0), total = zero;
  offsets.assign(buffers.size(), zero);
  for (size_t i : plan.order) {
    for (size_t below : plan.below[i])
      offsets[i] =
          code->max(offsets[i], arithmetic.add(offsets[below], alignedSize(buffers[below].bytes)));
    total = code->max(total, arithmetic.add(offsets[i], alignedSize(buffers[i].bytes)));
  }
  return total;
}

void Host::writeSizes() {
  beginFunction("heddle_program_sizes", 4);
  Type i64 = builder.getI64Type();
  for (auto &[name, index] : inputSymbols)
    symbols[name] = code->load(i64, function.getArgument(0), code->number(index));
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
      Value value =
          isEntryKnown(size) ? checkedDim(size, nullptr) : code->number(program::kDynamic);
      if (!isOfShapes(size))
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
  for (auto &[name, index] : inputSymbols)
    symbols[name] = entryCode->load(i64, given, entryCode->number(index));
  arguments = entry.create<program::ArrayOp>(code->loc, argumentSlots());
  arena = area(program::Area::Arena);
  placeBuffers(nullptr);
  Value inputs = area(program::Area::Inputs);
  for (BlockArgument input : model.getArguments()) {
    Value address = entryCode->at(inputs, pointer, entryCode->number(input.getArgNumber()));
    pointers[input] = entry.create<program::LoadOp>(code->loc, pointer, address, 8);
  }
  Value outputs = area(program::Area::Outputs);
  for (auto &[value, index] : outputOf) {
    Value address = entryCode->at(outputs, pointer, entryCode->number(index));
    pointers[value] = entry.create<program::LoadOp>(code->loc, pointer, address, 8);
  }
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
  for (Operation &op : block) {
    code->loc = sourceOf(op);
    node = "node '" + graph::sourceName(code->loc) + "': ";
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
    else if (op.hasTrait<graph::Routine>() || isa<graph::CustomOp>(op))
      writeRoutine(&op);
    else if (op.hasTrait<graph::Hosted>())
      writeHosted(&op);
    else if (auto results = dyn_cast<func::ReturnOp>(op))
      writeOutputs(results);
  }
  node = outer;
  code->loc = before;
}

/// Memory of a value; weights, arena, or what control flow bound.
Value Host::pointerOf(Value value) {
  value = rootOf(value);
  if (auto known = pointers.find(value); known != pointers.end())
    return known->second;
  if (auto constant = value.getDefiningOp<graph::ConstantOp>()) {
    Attribute key = constant.getValue();
    if (!weightOf.count(key)) {
      std::vector<char> storage;
      ArrayRef<char> bytes = graph::constantBytes(constant.getValue(), storage);
      weightOf[key] =
          storage.empty() ? program.weights.borrow(bytes) : program.weights.own(std::move(storage));
    }
    Value weights = area(program::Area::Weights);
    return entryCode->at(weights, entry.getI8Type(), entryCode->number(weightOf[key]));
  }
  if (auto buffer = bufferOf.find(value); buffer != bufferOf.end())
    return code->at(arena, builder.getI8Type(), offsets[buffer->second]);
  // Made now: its size became known while running.
  Value bytes = checkedBytes(value);
  auto late = lateOutputOf.find(value);
  Value memory = late == lateOutputOf.end() ? alloc(bytes) : allocOutput(late->second, bytes);
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
    bool isKnown = isEntryKnown(output);
    for (const Dim &size : graph::dimsOf(output)) {
      if (!isKnown)
        code->store(i64, dim(size), dims, code->number(place));
      ++place;
    }
    auto direct = outputOf.find(rootOf(output));
    if (direct != outputOf.end() && direct->second == (int64_t)i)
      continue;
    auto late = lateOutputOf.find(rootOf(output));
    if (late != lateOutputOf.end() && late->second == (int64_t)i)
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

Value Host::loadInteger(Type element, Value memory, int64_t index) {
  Value value = code->load(element, memory, code->number(index));
  if (element.getIntOrFloatBitWidth() == 64)
    return value;
  Type i64 = builder.getI64Type();
  if (element.isSignlessInteger(1) || element.isUnsignedInteger())
    return builder.create<arith::ExtUIOp>(code->loc, i64, value);
  return builder.create<arith::ExtSIOp>(code->loc, i64, value);
}

Value Host::readInteger(Value tensor, int64_t index) {
  Type element = graph::elementOf(tensor);
  Value memory = pointerOf(tensor);
  return code->choose(
      isFine(), builder.getI64Type(), [&] { return Values{loadInteger(element, memory, index)}; },
      [&] { return Values{code->number(0)}; })[0];
}

void Host::bindDims(Value result, ArrayRef<Value> sizes) {
  for (auto [dim, size] : llvm::zip(graph::dimsOf(result), sizes))
    if (auto name = dim.symbolName(); name && !symbols.count(*name))
      symbols[*name] = size;
  for (auto [dim, size] : llvm::zip(graph::dimsOf(result), sizes))
    requireSize(size, dim);
}

/// What memory was made for a size of the type is what the run found.
void Host::requireSize(Value found, const Dim &expected) {
  requireSize(found, dim(expected), expected.str());
}

void Host::requireSize(Value found, Value wanted, StringRef name) {
  Value differs =
      found == wanted
          ? code->integerOf(builder.getI1Type(), 0)
          : builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne, found, wanted);
  code->when(differs, [&] {
    fail(node + "a size is %lld where the model says %lld ('" + name.str() + "')", found, wanted);
  });
}

/// Ops that bind symbols stand alone in their group, so that what they read is in memory.
void Host::bindSymbols(Operation *group) {
  for (Operation &op : group->getRegion(0).front()) {
    if (auto broadcast = dyn_cast<graph::DynamicBroadcastOp>(op))
      bindBroadcast(broadcast);
    else if (auto slice = dyn_cast<graph::DynamicSliceOp>(op))
      bindSlice(slice);
    else if (auto range = dyn_cast<graph::RangeOp>(op))
      bindRange(range);
  }
}

void Host::bindReshape(graph::DynamicReshapeOp op) {
  DimVector from = graph::dimsOf(op.getX());
  int64_t rank = graph::rankOf(op.getResult());
  Value total = dim(graph::elementCount(from)), product = code->number(1);
  Value unknown = code->number(0), lowest = code->number(0);
  SmallVector<Value> sizes;
  Value overflow;
  SizeArithmetic arithmetic{*code, &overflow};
  for (int64_t i = 0; i < rank; ++i) {
    Value size = readInteger(op.getShape(), i);
    if (!op.getAllowZero() && i < (int64_t)from.size()) {
      Value isZero =
          builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, size, code->number(0));
      size = builder.createOrFold<arith::SelectOp>(code->loc, isZero, dim(from[i]), size);
    }
    Value isFree = code->less(size, code->number(0));
    unknown = code->add(
        unknown, builder.createOrFold<arith::ExtUIOp>(code->loc, builder.getI64Type(), isFree));
    lowest = code->min(lowest, size);
    product = arithmetic.mul(
        product, builder.createOrFold<arith::SelectOp>(code->loc, isFree, code->number(1), size));
    sizes.push_back(size);
  }
  Value divisor = code->max(product, code->number(1)), filled = code->number(1);
  for (Value &size : sizes) {
    Value isFree = code->less(size, code->number(0));
    size =
        builder.createOrFold<arith::SelectOp>(code->loc, isFree, code->div(total, divisor), size);
    filled = arithmetic.mul(filled, size);
  }
  failIf(overflow, "cannot reshape to sizes whose product is larger than any memory");
  code->when(code->less(lowest, code->number(-1)), [&] {
    fail(node + "a size of %lld in the shape, but only -1 may stand for what is left", lowest,
         lowest);
  });
  code->when(code->less(code->number(1), unknown), [&] {
    fail(node + "%lld sizes of the shape are -1, but only one may be", unknown, unknown);
  });
  Value isWrong = builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne, filled, total);
  code->when(isWrong, [&] {
    fail(node + "cannot reshape %lld elements to a shape of %lld", total, filled);
  });
  bindDims(op.getResult(), sizes);
}

void Host::bindBroadcast(graph::DynamicBroadcastOp op) {
  DimVector from = graph::dimsOf(op.getX());
  int64_t rank = graph::rankOf(op.getResult()),
          entries = graph::dimsOf(op.getShape())[0].constant().value_or(rank);
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t inShape = i - (rank - entries), inSource = i - (rank - (int64_t)from.size());
    Value asked = inShape >= 0 ? readInteger(op.getShape(), inShape) : code->number(1);
    Value own = inSource >= 0 ? dim(from[inSource]) : code->number(1);
    Value isOne =
        builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, own, code->number(1));
    Value size = builder.createOrFold<arith::SelectOp>(code->loc, isOne, asked, own);
    Value same = builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, asked, size);
    Value one =
        builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, asked, code->number(1));
    Value isFineHere = builder.create<arith::OrIOp>(code->loc, same, one);
    isFineHere = code->both(isFineHere, code->less(code->number(-1), asked));
    code->choose(
        isFineHere, TypeRange(), [&] { return Values(); },
        [&] {
          fail(node + "a size of %lld cannot be expanded to %lld", own, asked);
          return Values();
        });
    sizes.push_back(size);
  }
  bindDims(op.getResult(), sizes);
}

void Host::bindSlice(graph::DynamicSliceOp op) {
  DimVector from = graph::dimsOf(op.getX());
  SmallVector<Value> sizes;
  for (const Dim &size : from)
    sizes.push_back(dim(size));
  for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
    Value size = sizes[axis], zero = code->number(0);
    Value step = readInteger(op.getSteps(), i);
    code->when(
        builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, step, zero),
        [&] { fail(node + "a step is %lld, but must be positive or negative", zero, zero); });
    Value isBack = code->less(step, zero);
    auto clamped = [&](Value tensor) {
      Value raw = readInteger(tensor, i);
      Value wrapped = builder.createOrFold<arith::SelectOp>(code->loc, code->less(raw, zero),
                                                            code->add(raw, size), raw);
      Value low = builder.createOrFold<arith::SelectOp>(code->loc, isBack, code->number(-1), zero);
      Value high = builder.createOrFold<arith::SelectOp>(code->loc, isBack,
                                                         code->sub(size, code->number(1)), size);
      return code->min(code->max(wrapped, low), high);
    };
    Value start = clamped(op.getStarts()), end = clamped(op.getEnds());
    Value distance = builder.createOrFold<arith::SelectOp>(code->loc, isBack, code->sub(start, end),
                                                           code->sub(end, start));
    // The lowest number has no opposite; the one above it takes no more steps.
    Value back = code->sub(zero, code->max(step, code->number(-INT64_MAX)));
    Value stride = code->max(builder.createOrFold<arith::SelectOp>(code->loc, isBack, back, step),
                             code->number(1));
    Value count =
        code->add(code->div(code->sub(distance, code->number(1)), stride), code->number(1));
    sizes[axis] = code->max(count, zero);
  }
  bindDims(op.getResult(), sizes);
}

void Host::bindRange(graph::RangeOp op) {
  Type element = graph::elementOf(op.getStart()), i64 = builder.getI64Type();
  Type f64 = builder.getF64Type();
  bool isFloat = isa<FloatType>(element);
  Value zero = code->number(0);
  auto refuse = [&] {
    fail(node + "start, limit and delta make no number of elements", zero, zero);
    return Values{zero};
  };
  auto read = [&](Value tensor) -> Value {
    if (!isFloat)
      return builder.create<arith::SIToFPOp>(code->loc, f64, readInteger(tensor, 0));
    Value value = code->load(element, pointerOf(tensor), zero);
    return value.getType() == f64 ? value : builder.create<arith::ExtFOp>(code->loc, f64, value);
  };
  // Of integers, what the quotient says about the largest counts only decides whether to refuse.
  auto exactly = [&](Value steps) -> Value {
    if (isFloat)
      return builder.create<arith::FPToSIOp>(code->loc, i64, steps);
    Value delta = readInteger(op.getDelta(), 0);
    Value start = readInteger(op.getStart(), 0), limit = readInteger(op.getLimit(), 0);
    // As unsigned numbers the distance and the opposite of delta are exact, whatever they are.
    Value isBack = code->less(delta, zero);
    auto choose = [&](Value yes, Value no) -> Value {
      return builder.createOrFold<arith::SelectOp>(code->loc, isBack, yes, no);
    };
    Value low = choose(limit, start), high = choose(start, limit);
    Value magnitude = choose(code->sub(zero, delta), delta);
    Value isNone =
        builder.createOrFold<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, delta, zero);
    magnitude =
        builder.createOrFold<arith::SelectOp>(code->loc, isNone, code->number(1), magnitude);
    Value whole = builder.create<arith::DivUIOp>(
        code->loc, code->sub(code->sub(high, low), code->number(1)), magnitude);
    return builder.createOrFold<arith::SelectOp>(code->loc, code->less(low, high),
                                                 code->add(whole, code->number(1)), zero);
  };
  Value count = code->choose(
      isFine(), i64,
      [&] {
        Value span =
            builder.create<arith::SubFOp>(code->loc, read(op.getLimit()), read(op.getStart()));
        Value steps = builder.create<math::CeilOp>(
            code->loc, builder.create<arith::DivFOp>(code->loc, span, read(op.getDelta())));
        // Fails for NaN, infinities and what no memory holds.
        auto below = [&](Value x, Value y) -> Value {
          return builder.create<arith::CmpFOp>(code->loc, arith::CmpFPredicate::OLT, x, y);
        };
        Value isCount = code->both(below(steps, code->constantOf(f64, 1e12)),
                                   below(code->constantOf(f64, -1e300), steps));
        Value isSome = isFloat ? below(code->constantOf(f64, 0), steps)
                               : code->integerOf(builder.getI1Type(), 1);
        return code->choose(
            isCount, i64,
            [&] {
              return code->choose(
                  isSome, i64, [&] { return Values{exactly(steps)}; },
                  [&] { return Values{zero}; });
            },
            refuse);
      },
      [&] { return Values{zero}; })[0];
  bindDims(op.getResult(), {code->max(count, zero)});
}

} // namespace heddle::lower
