// ShortResults: finds the results, and rewrites the groups that make and read them.

#include "compiler/lower/ShortResults.h"

#include "compiler/lower/Schedule.h"
#include "compiler/mechanism/Product.h"
#include "compiler/mechanism/attention/Attention.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace heddle::lower {
namespace {

/// Whether the op can be carried out on 16 bits in place of f32, and gives these numbers rounded.
bool takesShort(Operation *op) {
  auto pool = dyn_cast<graph::PoolOp>(op);
  return graph::isRearrangement(op) || (pool && pool.getKind() == "max");
}

/// Whether rounding what the op reads is rounding what it makes: it moves numbers, or takes some of
/// them.
bool commutesWithRounding(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<graph::SelectOp>(op))
    return use.getOperandNumber() > 0;
  if (isa<graph::PadOp, graph::GatherOp>(op))
    return use.getOperandNumber() == 0;
  return isa<graph::ConcatOp, graph::MaxOp, graph::MinOp>(op) || takesShort(op);
}

class ShortResults {
public:
  ShortResults(func::FuncOp model, const program::Machine &machine, Type element)
      : model(model), machine(machine), element(element) {}

  void run() {
    auto hasNone = [](const program::Machine &each) {
      return each.shortFloats == program::ShortFloats::None;
    };
    if (hasNone(machine) && llvm::all_of(machine.others, hasNone))
      return;
    model.walk([&](Operation *op) {
      if (isa<graph::GroupOp>(op) || isView(op))
        for (Value result : op->getResults())
          if (graph::elementOf(result).isF32())
            stored.insert(result);
    });
    do
      narrowDown();
    while (refuseGroups());
    for (Value value : stored)
      setElement(value, element);
    model.walk([&](graph::GroupOp group) {
      if (!touchedBy(group).empty())
        rewrite(group, readBy(group));
    });
  }

private:
  static bool isView(Operation *op) {
    return isa<graph::ReshapeOp>(op) && !op->getParentOfType<graph::GroupOp>();
  }

  static void setElement(Value value, Type element) {
    value.setType(cast<RankedTensorType>(value.getType()).clone(element));
  }

  /// Leaves the values that are read rounded alone, and views of such.
  void narrowDown() {
    bool isChanged = true;
    while (isChanged) {
      isChanged = false;
      SmallVector<Value> values(stored.begin(), stored.end());
      for (Value value : llvm::reverse(values)) {
        Operation *op = value.getDefiningOp();
        bool isMade = !isView(op) || stored.contains(op->getOperand(0));
        if (isMade && isReadRounded(value))
          continue;
        stored.remove(value);
        isChanged = true;
      }
    }
  }

  bool isReadRounded(Value value) {
    SmallVector<Value> open{value};
    llvm::DenseSet<Value> seen;
    while (!open.empty())
      for (OpOperand &use : open.pop_back_val().getUses()) {
        Operation *op = use.getOwner();
        auto group = op->getParentOfType<graph::GroupOp>();
        if (isView(op) ? stored.contains(op->getResult(0))
                       : group && (isFactor(group, use) || isYielded(group, use)))
          continue;
        if (!group || !commutesWithRounding(use))
          return false;
        for (Value result : op->getResults())
          if (seen.insert(result).second)
            open.push_back(result);
      }
    return true;
  }

  /// Whether the group rounds what a product of it reads to the element, at any sizes.
  bool isFactor(graph::GroupOp group, OpOperand &use) {
    return graph::isContraction(use.getOwner()) && use.getOperandNumber() < 2 &&
           factorsOf(group, use.getOwner()) == element && !mayReadExactly(group, use.getOwner());
  }

  /// The type that the group rounds factors of its product to.
  Type factorsOf(graph::GroupOp group, Operation *product) {
    if (group.isShort())
      return BFloat16Type::get(product->getContext());
    const mechanism::Mechanism *mechanism = mechanism::of(group);
    bool isOfThreads = machine.on(group.deviceNumber()).mostThreads > 1;
    if (!isOfThreads || mechanism == &mechanism::kFilterGradient)
      return {};
    return mechanism == &mechanism::kAttention
               ? mechanism::fragmentsOf(mechanism::opsOf(group.getBody().front()), false)
               : mechanism::factorsInThreads(product, false);
  }

  /// Whether an attention reads few queries, which may come at run time, and their keys and values
  /// as they are (AttentionLayout::mostDirect).
  bool mayReadExactly(graph::GroupOp group, Operation *product) {
    DimVector dims = graph::dimsOf(product->getResult(0));
    return machine.on(group.deviceNumber()).hasMatrices &&
           mechanism::chosenFor(group) == &mechanism::kAttention &&
           !dims[dims.size() - 2].constant();
  }

  bool isYielded(graph::GroupOp group, OpOperand &use) {
    return isa<graph::YieldOp>(use.getOwner()) &&
           stored.contains(group.getResult(use.getOperandNumber()));
  }

  /// Takes out what groups read and make that cannot be carried out with it; whether there was
  /// something.
  bool refuseGroups() {
    bool isRefused = false;
    model.walk([&](graph::GroupOp group) {
      SmallVector<Value> touched = touchedBy(group);
      if (touched.empty() || !tried.insert({group, touched.size()}).second || isServed(group))
        return;
      isRefused = true;
      for (Value value : touched)
        stored.remove(value);
    });
    return isRefused;
  }

  /// The stored values that the group reads, then those that it makes.
  SmallVector<Value> touchedBy(graph::GroupOp group) {
    SmallVector<Value> touched = readBy(group);
    llvm::copy_if(group.getResults(), std::back_inserter(touched),
                  [&](Value result) { return stored.contains(result); });
    return touched;
  }

  SmallVector<Value> readBy(graph::GroupOp group) {
    llvm::SetVector<Value> read;
    group.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (stored.contains(operand))
          read.insert(operand);
    });
    return read.takeVector();
  }

  /// Whether a copy of the group could be carried out so.
  bool isServed(graph::GroupOp group) {
    OpBuilder builder(group);
    SmallVector<Value> read;
    IRMapping inputs;
    for (Value value : readBy(group)) {
      auto type = cast<RankedTensorType>(value.getType()).clone(element);
      read.push_back(builder.create<graph::CastOp>(group.getLoc(), type, value));
      inputs.map(value, read.back());
    }
    auto copy = cast<graph::GroupOp>(builder.clone(*group, inputs));
    for (auto [result, original] : llvm::zip(copy.getResults(), group.getResults()))
      if (stored.contains(original))
        setElement(result, element);
    rewrite(copy, read);
    bool isServed = refusal(copy, machine).kind == Refusal::Kind::None;
    copy.erase();
    for (Value value : read)
      value.getDefiningOp()->erase();
    return isServed;
  }

  /// Widens what a group reads of 16 bits, and rounds what it yields as such.
  void rewrite(graph::GroupOp group, ValueRange read) {
    Block &block = group.getBody().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&block);
    for (Value value : read) {
      Value wide = widen(builder, value);
      value.replaceUsesWithIf(wide, [&](OpOperand &use) {
        return group->isProperAncestor(use.getOwner()) && use.getOwner() != wide.getDefiningOp();
      });
    }
    if (llvm::none_of(block, [](Operation &op) { return graph::isContraction(&op); }))
      for (Operation &op : llvm::make_early_inc_range(block))
        if (takesShort(&op))
          makeShort(&op);
    Operation *yield = block.getTerminator();
    builder.setInsertionPoint(yield);
    for (auto [operand, result] : llvm::zip(yield->getOpOperands(), group.getResults())) {
      Value value = operand.get();
      if (value.getType() == result.getType())
        continue;
      auto wide = value.getDefiningOp<graph::CastOp>();
      if (wide && wide.getX().getParentBlock() == &block &&
          graph::elementOf(wide.getX()) == element)
        operand.set(wide.getX());
      else
        operand.set(builder.create<graph::CastOp>(group.getLoc(), result.getType(), value,
                                                  /*saturate=*/true, /*factor=*/element.isBF16()));
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isa<graph::CastOp>(op) && op.use_empty())
        op.erase();
  }

  static Value widen(OpBuilder &builder, Value value) {
    Type type = cast<RankedTensorType>(value.getType()).clone(builder.getF32Type());
    return builder.create<graph::CastOp>(value.getLoc(), type, value);
  }

  /// Carries an op out on what its operand was widened from.
  void makeShort(Operation *op) {
    auto wide = op->getOperand(0).getDefiningOp<graph::CastOp>();
    if (!wide || graph::elementOf(wide.getX()) != element)
      return;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value result = op->getResult(0);
    op->setOperand(0, wide.getX());
    setElement(result, element);
    Value again = widen(builder, result);
    result.replaceAllUsesExcept(again, again.getDefiningOp());
  }

  func::FuncOp model;
  const program::Machine &machine;
  const Type element;
  llvm::SetVector<Value> stored;
  llvm::DenseSet<std::pair<Operation *, size_t>> tried;
};

} // namespace

void storeShortResults(func::FuncOp model, const program::Machine &machine) {
  MLIRContext *context = model.getContext();
  for (Type element : {Type(BFloat16Type::get(context)), Type(Float16Type::get(context))})
    ShortResults(model, machine, element).run();
}

} // namespace heddle::lower
