// Scans: what the steps of a scan do not need of each other is one product outside of it.
//
//   y[t] = x[t] w in each step        =>  y = x w before the scan
//   s += transpose(x[t]) y[t] in each  =>  s + transpose(x) y after the scan
//   x[t] that no step reads            =>  not scanned
//
// The first is what a recurrent layer's gradient computes again of its states, the second is the
// gradient of its weights.

#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

/// A scan that is taken apart and put together again with other operands and results.
class Steps {
public:
  explicit Steps(ScanOp op)
      : op(op), body(op.getBody().front()), states(op.getStateCount()), inputs(op.getInputs()),
        yielded(body.getTerminator()->getOperands()), reverseInputs(op.getReverseInputs()),
        reverseOutputs(op.getReverseOutputs()) {}

  /// The number, among the scanned tensors, of the one that the value is a slice of.
  std::optional<int64_t> scanned(Value value) const {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != &body || argument.getArgNumber() < states)
      return std::nullopt;
    return argument.getArgNumber() - states;
  }
  bool isOutside(Value value) const {
    return !body.getParent()->isAncestor(value.getParentRegion());
  }
  bool isReversed(int64_t number) const { return llvm::is_contained(reverseInputs, number); }
  Dim count() const { return dimsOf(inputs[states])[0]; }

  Value scan(Value stacked, bool isReversed) {
    if (isReversed)
      reverseInputs.push_back(inputs.size() - states);
    inputs.push_back(stacked);
    auto type =
        tensorOf(op.getContext(), ArrayRef<Dim>(dimsOf(stacked)).drop_front(), elementOf(stacked));
    return body.addArgument(type, op.getLoc());
  }
  /// The number, among the yielded values, of this one stacked in this direction.
  unsigned stack(Value slice, bool isReversed) {
    for (unsigned i = states; i < yielded.size(); ++i)
      if (yielded[i] == slice && llvm::is_contained(reverseOutputs, i - states) == isReversed)
        return i;
    if (isReversed)
      reverseOutputs.push_back(yielded.size() - states);
    yielded.push_back(slice);
    return yielded.size() - 1;
  }

  /// The scan once more, without the state `dropped`.
  ScanOp rebuild(PatternRewriter &rewriter, std::optional<unsigned> dropped = std::nullopt) {
    body.getTerminator()->setOperands(yielded);
    if (dropped) {
      body.getTerminator()->eraseOperand(*dropped);
      rewriter.eraseOp(yielded[*dropped].getDefiningOp()); // the only reader of the state
      body.eraseArgument(*dropped);
      inputs.erase(inputs.begin() + *dropped);
    }
    SmallVector<Type> types(op->getResultTypes());
    for (Value value : ArrayRef<Value>(yielded).drop_front(types.size())) {
      DimVector dims = dimsOf(value);
      dims.insert(dims.begin(), count(dropped));
      types.push_back(tensorOf(op.getContext(), dims, elementOf(value)));
    }
    if (dropped)
      types.erase(types.begin() + *dropped);
    auto made = rewriter.create<ScanOp>(op.getLoc(), types, inputs, states - (dropped ? 1 : 0),
                                        reverseInputs, reverseOutputs);
    rewriter.inlineRegionBefore(op.getBody(), made.getBody(), made.getBody().end());
    return made;
  }

  ScanOp op;
  Block &body;
  unsigned states;
  SmallVector<Value> inputs, yielded;
  SmallVector<int64_t> reverseInputs, reverseOutputs;

private:
  Dim count(std::optional<unsigned> dropped) const {
    return dimsOf(inputs[states - (dropped ? 1 : 0)])[0];
  }
};

/// The rows of all steps.
Value flat(Build &build, Value stacked) {
  DimVector dims = dimsOf(stacked);
  return build.reshape(stacked, {dims[0] * dims[1], dims[2]});
}

// y[t] = x[t] w in each step = y = x w before the scan
LogicalResult productBefore(ScanOp op, PatternRewriter &rewriter) {
  Steps steps(op);
  MatmulOp product;
  std::optional<int64_t> number;
  for (auto each : steps.body.getOps<MatmulOp>())
    if (rankOf(each.getA()) == 2 && steps.isOutside(each.getB()) && !product) {
      number = steps.scanned(each.getA());
      if (number)
        product = each;
    }
  if (!product)
    return failure();
  Build build(rewriter, product);
  Value stacked = steps.inputs[steps.states + *number];
  DimVector dims = dimsOf(stacked);
  dims.back() = dimsOf(product.getB()).back();
  Value rows = build.typed<MatmulOp>({dims[0] * dims[1], dims[2]}, elementOf(product.getResult()),
                                     flat(build, stacked), product.getB());
  Value slice = steps.scan(build.reshape(rows, dims), steps.isReversed(*number));
  rewriter.replaceOp(product, slice);
  steps.yielded.assign(steps.body.getTerminator()->operand_begin(),
                       steps.body.getTerminator()->operand_end());
  rewriter.replaceOp(op, steps.rebuild(rewriter));
  return success();
}

/// A state that is the sum of transpose(x) y over all steps.
struct Accumulated {
  unsigned state;
  Value x, y;
};

std::optional<Accumulated> accumulatedIn(const Steps &steps) {
  for (unsigned state = 0; state < steps.states; ++state) {
    BlockArgument before = steps.body.getArgument(state);
    auto sum = steps.yielded[state].getDefiningOp<AddOp>();
    if (!sum || !before.hasOneUse() || *before.user_begin() != sum || !sum->hasOneUse())
      continue;
    Value added = sum.getX() == before ? sum.getY() : sum.getX();
    auto product = added.getDefiningOp<MatmulOp>();
    auto turned = product ? product.getA().getDefiningOp<TransposeOp>() : nullptr;
    if (turned && product->getBlock() == &steps.body && product->hasOneUse() &&
        rankOf(turned.getX()) == 2)
      return Accumulated{state, turned.getX(), product.getB()};
  }
  return std::nullopt;
}

// s += transpose(x[t]) y[t] in each step = s + transpose(x) y after the scan
LogicalResult productAfter(ScanOp op, PatternRewriter &rewriter) {
  Steps steps(op);
  if (steps.inputs.size() == steps.states)
    return failure();
  auto found = accumulatedIn(steps);
  if (!found || steps.isOutside(found->x) || steps.isOutside(found->y))
    return failure();
  Value init = steps.inputs[found->state], stacked[2];
  std::optional<int64_t> number = steps.scanned(found->x);
  bool isReversed = number && steps.isReversed(*number);
  unsigned places[2] = {};
  if (number)
    stacked[0] = steps.inputs[steps.states + *number];
  else
    places[0] = steps.stack(found->x, isReversed);
  places[1] = steps.stack(found->y, isReversed);
  unsigned count = op->getNumResults();
  ScanOp made = steps.rebuild(rewriter, found->state);
  for (unsigned side = number ? 1 : 0; side < 2; ++side)
    stacked[side] = made->getResult(places[side] - 1);
  Build build(rewriter, op);
  Value left = build.transpose(flat(build, stacked[0]), {1, 0});
  Value right = flat(build, stacked[1]);
  Value product =
      build.typed<MatmulOp>({dimsOf(left)[0], dimsOf(right)[1]}, elementOf(init), left, right);
  Value total = build.add(init, build.reshape(product, dimsOf(init)));
  SmallVector<Value> results(made->getResults().take_front(count - 1));
  results.insert(results.begin() + found->state, total);
  rewriter.replaceOp(op, results);
  return success();
}

// x[t] that no step reads = not scanned; one has to stay, which counts the steps
LogicalResult unreadSlices(ScanOp op, PatternRewriter &rewriter) {
  Steps steps(op);
  SmallVector<Value> inputs(ArrayRef<Value>(steps.inputs).take_front(steps.states));
  SmallVector<int64_t> reversed;
  llvm::BitVector unread(steps.body.getNumArguments());
  unsigned left = steps.inputs.size() - steps.states;
  for (unsigned i = steps.states; i < steps.inputs.size(); ++i) {
    if (left > 1 && steps.body.getArgument(i).use_empty() &&
        dimsOf(steps.inputs[i])[0] == steps.count()) {
      unread.set(i);
      --left;
      continue;
    }
    if (steps.isReversed(i - steps.states))
      reversed.push_back(inputs.size() - steps.states);
    inputs.push_back(steps.inputs[i]);
  }
  if (unread.none())
    return failure();
  steps.body.eraseArguments(unread);
  steps.inputs = inputs;
  steps.reverseInputs = reversed;
  rewriter.replaceOp(op, steps.rebuild(rewriter));
  return success();
}

} // namespace

void addScanRules(RewritePatternSet &patterns) {
  patterns.add(productBefore).add(productAfter).add(unreadSlices);
}

} // namespace heddle::simplify
