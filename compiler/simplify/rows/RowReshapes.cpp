// RowReshapes: ops on rows do not care how the rows are counted.
//
// Exporters flatten [batch, sequence, features] to two dimensions around each product. Without
// those reshapes the product and what follows it are one kernel.

#include "compiler/graph/LoopNest.h"
#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

/// A reshape that counts the rows in another way and leaves each as it is.
ReshapeOp rowReshape(Value value, bool inProduct) {
  auto op = value.getDefiningOp<ReshapeOp>();
  if (!op || rankOf(op.getX()) < 2 || rankOf(op.getResult()) < 2)
    return nullptr;
  auto rowsOf = [](Value x) {
    DimVector dims = dimsOf(x);
    dims.pop_back();
    llvm::erase_if(dims, [](const Dim &size) { return size.isConstant(1); });
    return dims;
  };
  // Rows of nothing may be of any number before and after.
  DimVector from = rowsOf(op.getX()), to = rowsOf(op.getResult());
  bool keepsRows = dimsOf(op.getX()).back() == dimsOf(op.getResult()).back() &&
                   elementCount(from) == elementCount(to);
  // Sizes of 1 alone part nothing, but for what waits in the registers of a product.
  bool isWanted = from != to || inProduct;
  return keepsRows && isWanted ? op : nullptr;
}

// matmul(reshape x, c) = reshape(matmul(x, c)), where the reshape flattens the rows of x
LogicalResult flattenedProduct(MatmulOp op, PatternRewriter &rewriter) {
  auto inner = rowReshape(op.getA(), true);
  if (!inner || rankOf(op.getA()) != 2 || rankOf(inner.getX()) < 3)
    return failure();
  Value weights = op.getB();
  Operation *source = weights.getDefiningOp();
  if (!source || !(isa<ConstantOp>(source) ||
                   (isa<ReshapeOp>(source) && source->getOperand(0).getDefiningOp<ConstantOp>())))
    return failure();
  DimVector dims = dimsOf(inner.getX()), filter(dims.size() - 2, Dim(1));
  filter.append(dimsOf(weights));
  dims.back() = filter.back();
  Location loc = op.getLoc();
  auto type = tensorOf(op.getContext(), dims, elementOf(op.getResult()));
  Value wide = Build(rewriter, loc).reshape(weights, filter);
  Operation *product = rebuild(rewriter, op, {inner.getX(), wide}, type);
  rewriter.replaceOpWithNewOp<ReshapeOp>(op, op.getType(), product->getResult(0));
  return success();
}

// matmul(a, reshape(transpose w)) = matmul(a, transpose(reshape w)), where the reshape only adds
// sizes of 1 before the matrix: the product then packs w as it lies
LogicalResult transposedMatrix(MatmulOp op, PatternRewriter &rewriter) {
  auto reshape = op.getB().getDefiningOp<ReshapeOp>();
  auto transpose = reshape ? reshape.getX().getDefiningOp<TransposeOp>() : nullptr;
  if (!transpose || rankOf(transpose.getX()) != 2 ||
      transpose.getPermutation() != ArrayRef<int64_t>({1, 0}))
    return failure();
  DimVector dims = dimsOf(reshape.getResult());
  size_t rank = dims.size();
  if (ArrayRef<Dim>(dims).take_back(2) != ArrayRef<Dim>(dimsOf(transpose.getResult())) ||
      !llvm::all_of(ArrayRef<Dim>(dims).drop_back(2),
                    [](const Dim &size) { return size.isConstant(1); }))
    return failure();
  std::swap(dims[rank - 1], dims[rank - 2]);
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[rank - 1], order[rank - 2]);
  Build build(rewriter, op);
  Value right = build.transpose(build.reshape(transpose.getX(), dims), order);
  rewriter.modifyOpInPlace(op, [&] { op.getBMutable().assign(right); });
  return success();
}

/// One value for all rows: the last dimension is its only one.
std::optional<Value> sharedByRows(Value value) {
  auto op = value.getDefiningOp<BroadcastOp>();
  if (!op)
    return std::nullopt;
  DimVector dims = dimsOf(op.getX());
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    if (!dims[i].isConstant(1))
      return std::nullopt;
  return op.getX();
}

/// Whether nothing is lost when the value is seen through a reshape: no other op waits for it, and
/// it is not spread as it is read.
bool isInMemory(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || isa<ConstantOp>(op) || !(op->hasOneUse() || isa<BroadcastOp>(op));
}

// f(reshape x, broadcast c, y) = reshape(f(x, broadcast c, reshape y)), where c is the same for all
// rows and y, if there is one, lies in memory while x waits in the registers of a product
struct ElementwiseOfReshape : RewritePattern {
  explicit ElementwiseOfReshape(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op, PatternRewriter &rewriter) const override {
    if (!op->hasTrait<Elementwise>() || op->getNumResults() != 1)
      return failure();
    std::optional<DimVector> rows;
    SmallVector<Value> operands;
    llvm::SmallDenseSet<size_t> whole;
    bool waits = false;
    for (Value operand : op->getOperands()) {
      if (auto shared = sharedByRows(operand)) {
        operands.push_back(*shared);
        continue;
      }
      auto last = operand.getDefiningOp<ReshapeOp>();
      bool inProduct = last && last->hasOneUse() && followsProduct(last.getX());
      ReshapeOp reshape = rowReshape(operand, inProduct);
      if (!reshape) {
        if (!isInMemory(operand))
          return failure();
        whole.insert(operands.size());
        operands.push_back(operand);
        continue;
      }
      if (rows && *rows != dimsOf(reshape.getX()))
        return failure();
      rows = dimsOf(reshape.getX());
      waits |= inProduct;
      operands.push_back(reshape.getX());
    }
    if (!rows || (!whole.empty() && !waits))
      return failure();
    Location loc = op->getLoc();
    for (auto [i, operand] : llvm::enumerate(operands)) {
      if (whole.contains(i))
        operand = Build(rewriter, loc).reshape(operand, *rows);
      if (dimsOf(operand) == *rows)
        continue;
      DimVector own = dimsOf(operand);
      Value vector = own.empty() ? operand : Build(rewriter, loc).reshape(operand, {own.back()});
      operand = Build(rewriter, loc).broadcast(vector, *rows);
    }
    Type type = tensorOf(op->getContext(), *rows, elementOf(op->getResult(0)));
    Operation *wide = rebuild(rewriter, op, operands, type);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op->getResult(0).getType(), wide->getResult(0));
    return success();
  }
};

} // namespace

void addRowRules(RewritePatternSet &patterns) {
  patterns.add(flattenedProduct).add(transposedMatrix);
  patterns.add<ElementwiseOfReshape>(patterns.getContext());
}

} // namespace heddle::simplify
