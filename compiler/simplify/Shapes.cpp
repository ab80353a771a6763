// Shapes: turn what is known about sizes into constants, static ops and types.
//
//   %s = graph.concat %batch, %c {axis = 0}          =>  graph.sizes {values = #graph.dims<"n",
//   12>} graph.dynamic_reshape %x, %s : tensor<?x..."$r.0">  =>  graph.reshape %x :
//   tensor<?x12x..."n"> graph.if %true { a } else { b }                  =>  a
//
// The fresh symbols of an op that becomes static are replaced in all types of the module. One walk
// forward: an op is looked at after its operands, so no chain of shape arithmetic is walked twice.

#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Static.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_SHAPESPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

/// A tensor of integers as `values`: a constant where all are known, else graph.sizes.
Value materialize(OpBuilder &builder, Location location, RankedTensorType type,
                  ArrayRef<Dim> values) {
  int64_t width = bytesOf(type.getElementType());
  std::vector<char> bytes(width * values.size());
  for (auto [i, value] : llvm::enumerate(values)) {
    auto number = value.constant();
    if (!number)
      return builder.create<SizesOp>(location, type, dimsAttr(type.getContext(), values));
    std::memcpy(bytes.data() + i * width, &*number, width);
  }
  return builder.create<ConstantOp>(location, type, constantAttr(type, bytes));
}

/// The elements of an op's result as sizes, after those of its operands.
std::optional<DimVector> knownResult(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 || isa<ConstantOp, IotaOp>(op))
    return std::nullopt;
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || !type.getElementType().isIntOrIndex() || type.getRank() > 1)
    return std::nullopt;
  bool isKnown = llvm::all_of(op->getOperands(), [](Value operand) {
    return isa_and_nonnull<ConstantOp, SizesOp, IotaOp>(operand.getDefiningOp());
  });
  auto values = isKnown ? shapeValue(op->getResult(0)) : std::nullopt;
  bool isConstant =
      values && llvm::all_of(*values, [](const Dim &dim) { return dim.constant().has_value(); });
  // Sizes are written in i32 and i64 only: a narrower type might wrap.
  if (!values || (!isConstant && (type.getElementTypeBitWidth() < 32 || isa<SizesOp>(op))))
    return std::nullopt;
  return values;
}

void inlineRegion(Operation *op, Region &region) {
  Block &block = region.front();
  auto yield = cast<YieldOp>(block.getTerminator());
  op->replaceAllUsesWith(yield.getValues());
  yield.erase();
  op->getBlock()->getOperations().splice(op->getIterator(), block.getOperations());
}

class ShapePropagation {
public:
  explicit ShapePropagation(ModuleOp module) : module(module) {}

  void run() {
    module.walk([&](func::FuncOp function) {
      for (Block &block : function.getBody())
        visit(block);
    });
    applyRefinement(module, refinement);
  }

private:
  void visit(Block &block) {
    for (Operation *op = block.empty() ? nullptr : &block.front(); op;) {
      Operation *next = op->getNextNode();
      if (auto branch = dyn_cast<IfOp>(op)) {
        if (Operation *first = inlineIf(branch)) {
          op = first;
          continue;
        }
      }
      for (Region &region : op->getRegions())
        for (Block &inner : region)
          visit(inner);
      visit(op);
      op = next;
    }
  }

  /// The first op to look at next, or null when the condition is not known.
  Operation *inlineIf(IfOp op) {
    auto condition = splatOf(op.getCondition());
    if (!condition)
      return nullptr;
    Region &taken = *condition != 0 ? op.getThenRegion() : op.getElseRegion();
    auto yield = cast<YieldOp>(taken.front().getTerminator());
    OpBuilder builder(yield);
    for (auto [result, yielded] : llvm::zip(op.getResults(), yield->getOpOperands())) {
      DimVector sizes = refine(refinement, dimsOf(result), dimsOf(yielded.get()));
      // A reshape checks at run time that the branch's size agrees with the result's, if their
      // names differ.
      if (sizes != resolve(refinement, dimsOf(yielded.get())))
        yielded.set(Build(builder, op).reshape(yielded.get(), sizes));
    }
    Operation *before = op->getPrevNode();
    Block *block = op->getBlock();
    inlineRegion(op, taken);
    op->erase();
    return before ? before->getNextNode() : &block->front();
  }

  void visit(Operation *op) {
    if (auto bind = dyn_cast<BindSizesOp>(op))
      return settle(bind);
    OpBuilder builder(op);
    Value replacement;
    if (auto values = knownResult(op))
      replacement = materialize(builder, op->getLoc(),
                                cast<RankedTensorType>(op->getResult(0).getType()), *values);
    else
      replacement = makeStatic(builder, op, refinement);
    if (!replacement)
      return;
    op->getResult(0).replaceAllUsesWith(replacement);
    op->erase();
  }

  /// Values known from shapes need not be bound; a negative constant is refused at run time.
  void settle(BindSizesOp op) {
    auto values = shapeValue(op.getX());
    if (!values || !llvm::all_of(*values, [](const Dim &dim) { return dim.isNeverNegative(); }))
      return;
    refine(refinement, dimsOf(op.getSymbols()), *values);
    op.erase();
  }

  ModuleOp module;
  Refinement refinement;
};

/// How often types and attributes name each symbol.
class SymbolUses {
public:
  void count(Operation *op, int64_t sign) {
    for (NamedAttribute attribute : op->getAttrs())
      if (auto dims = dyn_cast<DimsAttr>(attribute.getValue()))
        count(dimsOf(dims), sign);
    for (Type type : op->getResultTypes())
      if (isa<RankedTensorType>(type))
        count(dimsOf(type), sign);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          if (isa<RankedTensorType>(type))
            count(dimsOf(type), sign);
  }
  bool isNamed(const std::string &symbol) const { return uses.lookup(symbol) > 0; }

private:
  void count(ArrayRef<Dim> dims, int64_t sign) {
    SmallVector<std::string> names;
    for (const Dim &dim : dims)
      dim.collectSymbols(names);
    for (const std::string &name : names)
      uses[name] += sign;
  }
  llvm::StringMap<int64_t> uses;
};

/// Ops that bind sizes stay while a type or an attribute names one, also when their results are
/// unused. Last to first, so that what only they used goes with them.
void eraseUnusedBindings(ModuleOp module) {
  SymbolUses uses;
  SmallVector<Operation *> binding;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    uses.count(op, 1);
    if (bindsSizes(op) && !isa<BindSizesOp, RowLengthsOp>(op))
      binding.push_back(op);
  });
  for (Operation *op : llvm::reverse(binding)) {
    if (!op->use_empty())
      continue;
    SmallVector<std::string> bound;
    for (Value result : op->getResults())
      for (const Dim &dim : dimsOf(result))
        dim.collectSymbols(bound);
    op->walk([&](Operation *inner) { uses.count(inner, -1); });
    if (llvm::any_of(bound, [&](const std::string &name) {
          return StringRef(name).starts_with("$") && uses.isNamed(name);
        }))
      op->walk([&](Operation *inner) { uses.count(inner, 1); });
    else
      op->erase();
  }
}

struct ShapesPass : impl::ShapesPassBase<ShapesPass> {
  void runOnOperation() override {
    ShapePropagation(getOperation()).run();
    eraseUnusedBindings(getOperation());
    (void)applyRules(getOperation(), RewritePatternSet(&getContext())); // erases what is dead
  }
};

} // namespace

} // namespace heddle::simplify
