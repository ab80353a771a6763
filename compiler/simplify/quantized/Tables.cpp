// Tables: what becomes of a tensor of 8 bits, element by element, until it is of 8 bits again.
//
// Such a function has 256 values, whatever it is spelled with: quantised models dequantise, take a
// sigmoid, quantise, dequantise both and multiply them, and quantise. The interpreter computes it
// of all 256 here, so nothing is rounded otherwise than step by step.
//
// Before   %y = cast(min(max(round(sigmoid(cast(%x) * s) / t), 0), 255)), %x of 8 bits
// After    %y = graph.lookup %x {table}
// Leaves alone functions that take fewer instructions than a table, as a requantisation does.

#include "compiler/estimate/Thresholds.h"
#include "compiler/simplify/Chain.h"
#include "compiler/simplify/Passes.h"

#include <numeric>

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

#define GEN_PASS_DEF_TABLESPASS
#include "compiler/simplify/Passes.h.inc"
namespace {

constexpr int64_t kValues = 256;

bool isByte(Type element) { return element.isInteger(8); }

/// The longest chain after `root`: all ways from it lead through the source.
std::optional<Chain> chainBehind(CastOp root) {
  constexpr size_t kMostOps = 128;
  std::optional<Chain> found;
  SmallVector<Operation *> ops;              // from the last one
  SmallVector<Value> open{root.getResult()}; // values that the chain has yet to go after
  auto isBefore = [](Value x, Value y) {
    Operation *a = x.getDefiningOp(), *b = y.getDefiningOp();
    return b && (!a || a->isBeforeInBlock(b));
  };
  while (!open.empty() && ops.size() < kMostOps) {
    // All that reads the last one has been passed.
    auto last = llvm::max_element(open, isBefore);
    Operation *op = last->getDefiningOp();
    if (!op || !op->hasTrait<Elementwise>())
      break;
    open.erase(last);
    ops.push_back(op);
    for (Value operand : op->getOperands()) {
      Operation *before = operand.getDefiningOp();
      if (before && before->getBlock() != root->getBlock())
        return found;
      if (!isUniform(operand) && !llvm::is_contained(open, operand))
        open.push_back(operand);
    }
    if (open.size() == 1 && isByte(elementOf(open[0])) && !isConstant(open[0]))
      found = Chain{open[0], SmallVector<Operation *>(llvm::reverse(ops))};
  }
  return found;
}

/// Whether the ops take more instructions than a table.
bool isLong(ArrayRef<Operation *> ops, bool areTablesCheap) {
  int64_t least = estimate::thresholdAt(ops.front(), estimate::kTableOps);
  return llvm::any_of(ops, isCostly) || (areTablesCheap && (int64_t)ops.size() >= least);
}

/// False if the interpreter cannot say.
bool lookUp(const Chain &chain) {
  std::vector<char> values(kValues);
  std::iota(values.begin(), values.end(), char(0));
  auto all = reference::Tensor::borrow(elementOf(chain.source), {kValues}, values);
  auto table = resultsOf(chain, all);
  if (!table)
    return false;
  Operation *root = chain.ops.back();
  auto type = RankedTensorType::get({kValues}, elementOf(root->getResult(0)));
  auto attr = DenseElementsAttr::getFromRawBuffer(type, table->bytes());
  OpBuilder builder(root);
  root->replaceAllUsesWith(
      builder.create<LookupOp>(root->getLoc(), root->getResultTypes(), chain.source, attr));
  return true;
}

struct TablesPass : impl::TablesPassBase<TablesPass> {
  using TablesPassBase::TablesPassBase;
  void runOnOperation() override {
    SmallVector<CastOp> roots;
    getOperation().walk([&](CastOp op) {
      if (isByte(elementOf(op.getResult())))
        roots.push_back(op);
    });
    // The last ones first, whose chains may take in others.
    llvm::DenseSet<Operation *> gone;
    for (CastOp root : llvm::reverse(roots)) {
      auto chain = gone.contains(root) ? std::nullopt : chainBehind(root);
      if (!chain || !isLong(chain->ops, areCheap) || !lookUp(*chain))
        continue;
      for (Operation *op : llvm::reverse(chain->ops))
        if (op->use_empty()) {
          gone.insert(op);
          op->erase();
        }
    }
  }
};

} // namespace
} // namespace heddle::simplify
