// Kernel: prologues that load arguments once, and size expressions as code.

#include "compiler/lower/Kernel.h"

using namespace mlir;

namespace heddle::lower {

static bool isDivision(Dim::Kind kind) {
  return kind == Dim::Kind::FloorDiv || kind == Dim::Kind::Mod;
}

/// One of the operations that say whether they left int64, or without `overflow` a plain one.
template <typename Checked, typename Plain>
static Value arithmetic(const SizeArithmetic &sizes, Value x, Value y, Plain plain,
                        bool (*leaves)(int64_t, int64_t)) {
  Code &code = sizes.code;
  if (Code::constant(x)) // folds look for constants on the right
    std::swap(x, y);
  auto p = Code::constant(x), q = Code::constant(y);
  if (p && q && sizes.overflow && leaves(*p, *q)) {
    *sizes.overflow = code.integerOf(code.b.getI1Type(), 1);
    return code.number(0);
  }
  Value simple = plain(x, y);
  if (!sizes.overflow || simple == x || simple == y || Code::constant(simple))
    return simple;
  simple.getDefiningOp()->erase(); // it said that nothing folds
  auto made = code.b.create<Checked>(code.loc, x, y);
  sizes.noteOverflow(made.getOverflow());
  return made.getResult();
}

/// The number of flags that `isAny` has counted; null if it is another test.
static Value countOf(Value isAny) {
  auto test = isAny.getDefiningOp<arith::CmpIOp>();
  auto sum = test ? test.getLhs().getDefiningOp<arith::AddIOp>() : nullptr;
  bool isCount = sum && test.getPredicate() == arith::CmpIPredicate::ne &&
                 Code::constant(test.getRhs()) == 0 && sum.getRhs().getDefiningOp<arith::ExtUIOp>();
  return isCount ? sum.getResult() : Value();
}

/// Counted, since LLVM looks for swapped bytes through a chain of `or` from each of them anew.
void SizeArithmetic::noteOverflow(Value found) const {
  if (!*overflow) {
    *overflow = found;
    return;
  }
  OpBuilder &b = code.b;
  auto flag = [&](Value is) {
    return b.createOrFold<arith::ExtUIOp>(code.loc, b.getI64Type(), is);
  };
  Value before = countOf(*overflow),
        count = code.add(before ? before : flag(*overflow), flag(found));
  *overflow =
      b.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, count, code.number(0));
}

Value SizeArithmetic::add(Value x, Value y) const {
  return arithmetic<program::AddOp>(
      *this, x, y, [&](Value x, Value y) { return code.add(x, y); },
      [](int64_t x, int64_t y) { return __builtin_add_overflow(x, y, &x); });
}

Value SizeArithmetic::mul(Value x, Value y) const {
  return arithmetic<program::MulOp>(
      *this, x, y, [&](Value x, Value y) { return code.mul(x, y); },
      [](int64_t x, int64_t y) { return __builtin_mul_overflow(x, y, &x); });
}

Value SizeArithmetic::emit(const Dim &dim, llvm::function_ref<Value(StringRef)> symbol,
                           llvm::function_ref<Value(const Dim &)> part) const {
  auto inner = [&](const Dim &operand) { return part ? part(operand) : emit(operand, symbol); };
  Value total = code.number(0);
  if (dim.isTooLarge() && overflow) {
    *overflow = code.integerOf(code.b.getI1Type(), 1);
    return total;
  }
  for (const auto &[product, coefficient] : dim.sum()) {
    Value term = code.number(coefficient);
    for (const Dim::Atom &factor : product) {
      Value value;
      if (factor.kind == Dim::Kind::Symbol) {
        value = symbol(factor.text);
      } else {
        Value left = inner(*factor.lhs), right = inner(*factor.rhs);
        // A size of 0 divides where a tensor is empty: what follows is then not used.
        if (isDivision(factor.kind) && !Code::constant(right))
          right = code.max(right, code.number(1));
        switch (factor.kind) {
        case Dim::Kind::FloorDiv:
          value = code.div(left, right);
          break;
        case Dim::Kind::Mod: // neither step leaves int64
          value = code.sub(left, code.mul(code.div(left, right), right));
          break;
        case Dim::Kind::Max:
          value = code.max(left, right);
          break;
        case Dim::Kind::Min:
          value = code.min(left, right);
          break;
        case Dim::Kind::Symbol:
          break;
        }
      }
      term = mul(term, value);
    }
    total = add(total, term);
  }
  return total;
}

KernelBuilder::KernelBuilder(ModuleOp module, StringRef name, Location location,
                             const program::Machine &machine)
    : machine(machine), module(module), location(location), body(module.getContext()),
      prologue(module.getContext()) {
  kernel.name = name.str();
  kernel.arguments.push_back({Argument::Kind::Call, {}, 0, ""});
}

const mechanism::Placement *KernelBuilder::placementOf(Value tensor) const {
  if (auto own = ownPlacements.find(tensor); own != ownPlacements.end())
    return &own->second;
  if (!placements)
    return nullptr;
  auto known = placements->find(tensor);
  return known == placements->end() ? nullptr : &known->second;
}

LogicalResult KernelBuilder::refuse(const Twine &why) {
  if (refusal.empty())
    refusal = why.str();
  return failure();
}

void KernelBuilder::beginVersion(std::vector<Bound> bounds) {
  kernel.versions.push_back(std::move(bounds));
  temporaryCount = 0;
}

void KernelBuilder::beginPhase(int64_t threads) {
  isHole = false;
  begin(kernel.name + "." + std::to_string(kernel.phases.size()),
        program::kernelType(module.getContext(), machine.space), machine.lanes);
  if (threads > 1)
    function->setAttr(program::kThreads, body.getI64IntegerAttr(threads));
}

ValueRange KernelBuilder::beginHole(StringRef name, ArrayRef<Type> inputs, Type result,
                                    int64_t lanes) {
  MLIRContext *context = module.getContext();
  SmallVector<Type> all = {program::pointerType(context)};
  all.append(inputs.begin(), inputs.end());
  isHole = true;
  begin(name, FunctionType::get(context, all, result ? TypeRange(result) : TypeRange()), lanes);
  function->setAttr(program::kInline, body.getUnitAttr());
  return function.getArguments().drop_front();
}

void KernelBuilder::endHole(Value result) {
  if (result)
    function.getBody().front().getTerminator()->setOperands(result);
}

void KernelBuilder::begin(StringRef name, FunctionType type, int64_t lanes) {
  body.setInsertionPointToEnd(module.getBody());
  function = body.create<func::FuncOp>(location, name, type);
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  body.setInsertionPointToEnd(entry);
  auto end = body.create<func::ReturnOp>(location);
  // The prologue grows before a marker, the body after it.
  body.setInsertionPoint(end);
  Operation *marker = body.create<arith::ConstantOp>(location, body.getI64IntegerAttr(0));
  prologue.setInsertionPoint(marker);
  current = std::make_unique<Code>(body, location, lanes);
  early = std::make_unique<Code>(prologue, location, lanes);
  dims.clear();
  slots.clear();
}

void KernelBuilder::endPhase(const Dim &tasks, const Dim &work, const Dim &scratchBytes) {
  kernel.phases.push_back({function.getSymName().str(), tasks, work, scratchBytes,
                           program::threadsOf(function), false,
                           (int64_t)kernel.versions.size() - 1});
}

void KernelBuilder::endLonePhase() {
  endPhase(Dim(1), Dim(0));
  kernel.phases.back().isAlone = true;
}

void KernelBuilder::forEachTask(llvm::function_ref<void(Value)> body) {
  current->forEach(function.getArgument(1), function.getArgument(2), 1, body);
}

void KernelBuilder::forEachTaskRow(Value length,
                                   llvm::function_ref<void(Value, Value, Value)> body) {
  Code &code = *current;
  Value begin = function.getArgument(1), end = function.getArgument(2);
  Value divisor = code.max(length, code.number(1)), last = code.sub(end, code.number(1));
  Value rows = code.add(code.div(last, divisor), code.number(1));
  code.forEach(code.div(begin, divisor), rows, 1, [&](Value row) {
    Value start = code.mul(row, length);
    body(row, code.max(code.sub(begin, start), code.number(0)),
         code.min(code.sub(end, start), length));
  });
}

void KernelBuilder::forEachRun(int64_t most, llvm::function_ref<void(Value, Value)> body) {
  Code &code = *current;
  Value begin = function.getArgument(1), end = function.getArgument(2);
  auto dividedUp = [&](Value x, Value y) {
    return code.div(code.sub(code.add(x, y), code.number(1)), y);
  };
  Value count = code.sub(end, begin);
  Value pieces = code.max(dividedUp(count, code.number(most)), code.number(1));
  Value size = dividedUp(count, pieces);
  code.forEach(code.number(0), pieces, 1, [&](Value piece) {
    Value first = code.min(code.add(begin, code.mul(piece, size)), end);
    body(first, code.min(code.add(first, size), end));
  });
}

Value KernelBuilder::argument(const Argument &wanted, bool isPointer) {
  int64_t slot = -1;
  for (auto [i, known] : llvm::enumerate(kernel.arguments))
    if (known.kind == wanted.kind && known.tensor == wanted.tensor && known.index == wanted.index &&
        known.text == wanted.text)
      slot = i;
  if (slot < 0) {
    slot = kernel.arguments.size();
    kernel.arguments.push_back(wanted);
  }
  Value &value = slots[slot];
  if (!value) {
    StringRef space = wanted.kind == Argument::Kind::Call ? "" : StringRef(machine.space);
    Type type =
        isPointer ? Type(program::pointerType(module.getContext(), space)) : prologue.getI64Type();
    // Mark a hole's arguments: once it is copied into a loop, nobody else can see that they stay.
    value = prologue.create<program::ArgumentOp>(location, type, function.getArgument(0), slot,
                                                 /*invariant=*/isHole);
  }
  return value;
}

Value KernelBuilder::pointer(Value tensor) {
  return argument({Argument::Kind::Tensor, tensor, 0, ""}, true);
}
Value KernelBuilder::temporary(int64_t number) {
  return argument({Argument::Kind::Temporary, {}, number, ""}, true);
}
Value KernelBuilder::data(int64_t number) {
  return argument({Argument::Kind::Data, {}, number, ""}, true);
}
Value KernelBuilder::size(StringRef text) {
  return argument({Argument::Kind::Size, {}, 0, text.str()}, false);
}

Value KernelBuilder::dim(const Dim &dim) {
  Value &value = dims[dim.str()];
  if (!value) {
    // The place in a long concat: the program around the kernels has what it grows from.
    constexpr size_t mostTerms = 4;
    Value made = dim.sum().size() > mostTerms
                     ? size(dim.str())
                     : SizeArithmetic{*early}.emit(dim, [&](StringRef name) { return size(name); });
    if (!dim.constant() && !llvm::is_contained(kernel.sizes, dim))
      kernel.sizes.push_back(dim);
    dims[dim.str()] = made;
    return made;
  }
  return value;
}

int64_t KernelBuilder::addTemporary(const Dim &bytes) {
  if (temporaryCount < kernel.temporaries.size())
    kernel.temporaries[temporaryCount] = Dim::max(kernel.temporaries[temporaryCount], bytes);
  else
    kernel.temporaries.push_back(bytes);
  return temporaryCount++;
}

int64_t KernelBuilder::addData(std::vector<char> bytes) {
  for (auto [i, known] : llvm::enumerate(kernel.data))
    if (*known == bytes)
      return i;
  kernel.data.push_back(std::make_shared<std::vector<char>>(std::move(bytes)));
  return kernel.data.size() - 1;
}

} // namespace heddle::lower
