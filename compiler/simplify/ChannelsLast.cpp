// ChannelsLast: convolutions and pools work on [n, spatial..., c], and so does what lies between.
//
//   conv(x) -> relu -> conv   =>   transpose -> conv' -> relu' -> conv' -> transpose
//
// Each op that can work in either layout is put on one side of a cut; a value that crosses the cut
// costs a transpose of its elements. The cut begins around everything that convolutions reach, is
// drawn in while that costs nothing, and let out again: both ways fewer elements are transposed. A
// transpose that the model had already merges with one of ours, and sizes of 1 move by a reshape.
//
// A plan may leave single convolutions and pools as they are; which are how is noted at the module.
//
// Leaves alone: ops that are channels last already, and all that no convolution reaches.

#include "compiler/graph/Typical.h"
#include "compiler/simplify/Layout.h"
#include "compiler/simplify/Passes.h"
#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_CHANNELSLASTPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

class LayoutChange {
public:
  LayoutChange(ModuleOp module, const Layouts &wanted) : module(module), wanted(wanted) {
    module.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  }

  bool run() {
    reach();
    if (chosen.empty())
      return false;
    for (int i = 0; i < kSweeps; ++i) {
      sweep(llvm::reverse(reached), /*inward=*/true);
      sweep(reached, /*inward=*/true);
    }
    for (int i = 0; i < kSweeps; ++i) {
      sweep(reached, /*inward=*/false);
      sweep(llvm::reverse(reached), /*inward=*/false);
    }
    rewrite();
    return true;
  }

private:
  static constexpr int kSweeps = 2;

  /// Chooses the anchors and all flexible ops that they reach through values of either layout.
  void reach() {
    SmallVector<Operation *> work;
    auto add = [&](Operation *op) {
      if (chosen.insert(op).second)
        work.push_back(op);
    };
    NamedAttrList layouts;
    Builder builder(module.getContext());
    for (Operation *op : ops) {
      if (roleOf(op) != Role::Anchor)
        continue;
      std::string name = sourceName(op->getLoc());
      auto wish = wanted.find(name);
      bool isLast = wish == wanted.end() || wish->second == "last";
      if (isLast)
        add(op);
      if (!name.empty())
        layouts.set(name, builder.getStringAttr(isLast ? "last" : "first"));
    }
    if (!layouts.empty())
      module->setAttr(kLayouts, layouts.getDictionary(module.getContext()));
    anchors = chosen;
    auto visit = [&](Value value) {
      if (hasBothLayouts(value))
        return;
      Operation *producer = value.getDefiningOp();
      if (producer && roleOf(producer) == Role::Flexible && isPermutedResult(producer))
        add(producer);
      for (OpOperand &use : value.getUses())
        if (roleOf(use.getOwner()) == Role::Flexible &&
            isPermutedOperand(use.getOwner(), use.getOperandNumber()))
          add(use.getOwner());
    };
    DenseSet<Value> seen;
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      for (OpOperand &operand : op->getOpOperands())
        if (isPermutedOperand(op, operand.getOperandNumber()) && seen.insert(operand.get()).second)
          visit(operand.get());
      for (Value result : op->getResults())
        if (isPermutedResult(op) && seen.insert(result).second)
          visit(result);
    }
    for (Operation *op : ops)
      if (chosen.contains(op) && !anchors.contains(op))
        reached.push_back(op);
  }

  bool isStoredPermuted(Value value) {
    Operation *op = value.getDefiningOp();
    return op && chosen.contains(op) && isPermutedResult(op);
  }

  bool wantsPermuted(OpOperand &use) {
    return chosen.contains(use.getOwner()) &&
           isPermutedOperand(use.getOwner(), use.getOperandNumber());
  }

  /// Elements of a value that are transposed: all when its producer and a user are on different
  /// sides.
  double costOf(Value value) {
    int64_t rank = rankOf(value);
    if (rank < 3 || hasBothLayouts(value) || isReshape(dimsOf(value), channelsLastOrder(rank)))
      return 0;
    bool isStored = isStoredPermuted(value), isWantedOtherwise = false, isWantedSo = false;
    for (OpOperand &use : value.getUses()) {
      // A transpose of the model absorbs ours.
      if (isa<TransposeOp>(use.getOwner()))
        continue;
      (wantsPermuted(use) == isStored ? isWantedSo : isWantedOtherwise) = true;
    }
    bool isAbsorbed = isa_and_nonnull<TransposeOp>(value.getDefiningOp()) && !isWantedSo;
    return isWantedOtherwise && !isAbsorbed ? typicalCount(value) : 0;
  }

  static double typicalCount(Value value) {
    double count = 1;
    for (const Dim &size : dimsOf(value))
      count *= static_cast<double>(typicalSize(value.getParentBlock()->getParentOp(), size));
    return count;
  }

  double costAround(Operation *op) {
    SmallPtrSet<Value, 4> values;
    values.insert(op->operand_begin(), op->operand_end());
    values.insert(op->result_begin(), op->result_end());
    double cost = 0;
    for (Value value : values)
      cost += costOf(value);
    return cost;
  }

  /// Moves each op to the other side of the cut where that costs no more.
  template <typename Range> void sweep(Range &&range, bool inward) {
    for (Operation *op : range) {
      if (chosen.contains(op) != inward)
        continue;
      double before = costAround(op);
      inward ? (void)chosen.erase(op) : (void)chosen.insert(op);
      if (costAround(op) > before)
        inward ? (void)chosen.insert(op) : (void)chosen.erase(op);
    }
  }

  Value channelsLast(Value value) {
    Value &form = permutedForms[value];
    if (form)
      return form;
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    form = hasBothLayouts(value)
               ? remakeChannelsLast(builder, value)
               : Build(builder, value).transpose(value, channelsLastOrder(rankOf(value)));
    return form;
  }

  /// The layout of the model, of a value that a chosen op makes channels last.
  Value asWritten(Value value) {
    Value &form = writtenForms[value];
    if (form)
      return form;
    Value stored = permutedForms.lookup(value);
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(stored);
    form = Build(builder, value).transpose(stored, inverse(channelsLastOrder(rankOf(value))));
    return form;
  }

  void rewrite() {
    SmallVector<Operation *> dead;
    for (Operation *op : ops) {
      SmallVector<Value> operands;
      for (OpOperand &operand : op->getOpOperands()) {
        Value value = operand.get();
        if (wantsPermuted(operand))
          operands.push_back(channelsLast(value));
        else
          operands.push_back(isStoredPermuted(value) ? asWritten(value) : value);
      }
      if (!chosen.contains(op)) {
        op->setOperands(operands);
        continue;
      }
      OpBuilder builder(op);
      Operation *fresh = rebuildChannelsLast(builder, op, operands);
      for (auto [was, is] : llvm::zip(op->getResults(), fresh->getResults())) {
        if (isPermutedResult(op))
          permutedForms[was] = is;
        else
          was.replaceAllUsesWith(is);
      }
      dead.push_back(op);
    }
    for (Operation *op : llvm::reverse(dead))
      op->erase();
  }

  ModuleOp module;
  const Layouts &wanted;
  std::vector<Operation *> ops, reached; // in program order
  DenseSet<Operation *> chosen, anchors;
  DenseMap<Value, Value> permutedForms, writtenForms;
};

struct ChannelsLastPass : impl::ChannelsLastPassBase<ChannelsLastPass> {
  explicit ChannelsLastPass(Layouts wanted) : wanted(std::move(wanted)) {}
  void runOnOperation() override {
    if (!LayoutChange(getOperation(), wanted).run())
      return;
    RewritePatternSet patterns(&getContext());
    addMovementRules(patterns);
    addRegroupRules(patterns);
    (void)applyRules(getOperation(), std::move(patterns));
  }

private:
  Layouts wanted;
};

} // namespace

std::unique_ptr<Pass> createChannelsLastPass(Layouts wanted) {
  return std::make_unique<ChannelsLastPass>(std::move(wanted));
}

} // namespace heddle::simplify
