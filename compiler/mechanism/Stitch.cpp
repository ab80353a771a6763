// Stitch: a product and reductions over its rows in one kernel (Apollo's Layer II).

#include "compiler/mechanism/Stitch.h"

#include "compiler/mechanism/Checks.h"
#include "compiler/mechanism/Product.h"
#include "compiler/mechanism/Shapes.h"

#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;

namespace heddle::mechanism {

Value betweenOf(Ops ops) {
  Operation *product = nullptr;
  llvm::DenseSet<Value> followsProduct, followsFold;
  SmallVector<Value> candidates;
  for (Operation *op : ops) {
    if (graph::isContraction(op)) {
      if (product)
        return {};
      product = op;
    }
    auto readsOne = [&](const llvm::DenseSet<Value> &values) {
      return llvm::any_of(op->getOperands(), [&](Value in) { return values.contains(in); });
    };
    Value result = op->getResult(0);
    if (op == product || readsOne(followsProduct))
      followsProduct.insert(result);
    if (!graph::reducedAxes(op).empty() || readsOne(followsFold))
      followsFold.insert(result);
    else if (followsProduct.contains(result) &&
             graph::dimsOf(result) == graph::dimsOf(product->getResult(0)))
      candidates.push_back(result);
  }
  llvm::SmallPtrSet<Operation *, 32> inside(ops.begin(), ops.end());
  for (Value candidate : llvm::reverse(candidates)) {
    SetVector<Operation *> before;
    BackwardSliceOptions inGroup;
    inGroup.inclusive = true;
    inGroup.filter = [&](Operation *op) { return inside.contains(op); };
    getBackwardSlice(candidate, &before, inGroup);
    bool isOnlyWay = llvm::all_of(before, [&](Operation *op) {
      Value made = op->getResult(0);
      return made == candidate || !followsProduct.contains(made) ||
             llvm::all_of(made.getUsers(), [&](Operation *user) { return before.contains(user); });
    });
    if (isOnlyWay)
      return candidate;
  }
  return {};
}

static Fit fitsStitch(const Mechanism &, Ops ops, std::string &why) {
  bool hasProduct = llvm::any_of(ops, graph::isContraction);
  bool hasFold = llvm::any_of(ops, [](Operation *op) { return !graph::reducedAxes(op).empty(); });
  if (!hasProduct || !hasFold) {
    why = "it is for a product and the reductions over its rows";
    return Fit::Partial;
  }
  Value between = betweenOf(ops);
  if (!between)
    return refuse(why, "its reductions do not all follow from one value of the product's shape");
  auto product = readProduct(ops, between, why);
  if (!product)
    return Fit::No;
  if (product->isOneRow)
    return refuse(why, "its product has one row, which is no tile, and reads a matrix once");
  auto rows = readRows(ops, resultsOf(ops), why);
  if (!rows)
    return Fit::No;
  if (graph::dimsOf(between) != rows->full || rows->kept + 1 != rows->full.size())
    return refuse(why, "its reductions are not those of the product's rows");
  return Fit::Full;
}

static constexpr StringLiteral kKnobs[] = {"m", "n", "panels", "rows"},
                               kThreadKnobs[] = {"m", "n", "threads"};
const Mechanism kStitch = {.name = "stitch",
                           .check = fitsStitch,
                           .knobs = kKnobs,
                           .takesShort = true,
                           .takesMatrices = true,
                           .takesBlocks = true,
                           .takesThreads = true,
                           .threadKnobs = kThreadKnobs,
                           .takesRows = true};

} // namespace heddle::mechanism
