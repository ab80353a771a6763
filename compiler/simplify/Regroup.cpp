// Regroup: transpose(reshape(transpose x)) with one transpose, where the reshape merges or splits
// dimensions that stay neighbours. So detection heads and channel shuffles lose theirs.
//
//   transpose(reshape(transpose x)) = transpose(reshape x) = reshape(transpose x)
//
// So does what a product made of a transposed operand: the gradient of a weight that is read
// transposed.

#include "compiler/simplify/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {
namespace {

/// Dimensions before and after a reshape that hold the same elements; sizes of 1 are left out.
struct Group {
  SmallVector<int64_t> from, to;
};

/// How many factors the first term of a size has: of two sizes, that with more is the product.
size_t factors(const Dim &size) { return size.constant() ? 0 : size.sum().begin()->first.size(); }

/// Whether `a` must grow to become `b`, and not the other way round.
bool isSmaller(const Dim &a, const Dim &b) {
  auto x = a.constant(), y = b.constant();
  return x && y ? *x < *y : factors(a) < factors(b);
}

std::optional<SmallVector<Group>> groupsOf(ArrayRef<Dim> from, ArrayRef<Dim> to) {
  auto large = [](ArrayRef<Dim> sizes) {
    SmallVector<int64_t> axes;
    for (auto [axis, size] : llvm::enumerate(sizes))
      if (!size.isConstant(1))
        axes.push_back(axis);
    return axes;
  };
  SmallVector<int64_t> left = large(from), right = large(to);
  SmallVector<Group> groups;
  size_t i = 0, j = 0;
  while (i < left.size() && j < right.size()) {
    Group group{{left[i]}, {right[j]}};
    Dim a = from[left[i++]], b = to[right[j++]];
    while (a != b) {
      if (isSmaller(a, b) && i < left.size()) {
        a = a * from[left[i]];
        group.from.push_back(left[i++]);
      } else if (isSmaller(b, a) && j < right.size()) {
        b = b * to[right[j]];
        group.to.push_back(right[j++]);
      } else {
        return std::nullopt;
      }
    }
    groups.push_back(group);
  }
  return i == left.size() && j == right.size() ? std::optional(groups) : std::nullopt;
}

bool areNeighbours(ArrayRef<int64_t> places, ArrayRef<int64_t> order) {
  for (size_t i = 1; i < places.size(); ++i) {
    // `order` lists the dimensions of some size; `places` must follow each other in it.
    auto previous = llvm::find(order, places[i - 1]);
    if (previous == order.end() || previous + 1 == order.end() || *(previous + 1) != places[i])
      return false;
  }
  return true;
}

/// The entries of a permutation whose dimensions are not of size 1.
SmallVector<int64_t> withoutOnes(ArrayRef<int64_t> permutation, ArrayRef<Dim> sizes) {
  SmallVector<int64_t> result;
  for (int64_t axis : permutation)
    if (!sizes[axis].isConstant(1))
      result.push_back(axis);
  return result;
}

struct Sandwich {
  TransposeOp upper, lower;
  ReshapeOp reshape;
  SmallVector<Group> groups;
};

std::optional<Sandwich> sandwichAt(TransposeOp op) {
  auto reshape = op.getX().getDefiningOp<ReshapeOp>();
  auto lower = reshape ? reshape.getX().getDefiningOp<TransposeOp>() : nullptr;
  if (!lower || !reshape->hasOneUse())
    return std::nullopt;
  auto groups = groupsOf(dimsOf(lower.getResult()), dimsOf(reshape.getResult()));
  return groups ? std::optional(Sandwich{op, lower, reshape, *groups}) : std::nullopt;
}

// transpose(reshape(transpose x)) = transpose(reshape x)
LogicalResult lowerGoesUp(TransposeOp op, PatternRewriter &rewriter) {
  auto sandwich = sandwichAt(op);
  if (!sandwich)
    return failure();
  auto [upper, lower, reshape, groups] = *sandwich;
  DimVector inner = dimsOf(lower.getX()), to = dimsOf(reshape.getResult());
  SmallVector<int64_t> place = inverse(lower.getPermutation());
  // The order of x, in the names that its dimensions have above the lower transpose.
  SmallVector<int64_t> order = withoutOnes(place, dimsOf(lower.getResult()));
  for (const Group &group : groups)
    if (!areNeighbours(group.from, order))
      return failure();
  llvm::sort(groups, [&](const Group &a, const Group &b) {
    return lower.getPermutation()[a.from[0]] < lower.getPermutation()[b.from[0]];
  });
  SmallVector<int64_t> axes; // the old reshape's, in the order of the new one
  for (auto [axis, size] : llvm::enumerate(to))
    if (size.isConstant(1))
      axes.push_back(axis);
  for (const Group &group : groups)
    axes.append(group.to);
  Value x = Build(rewriter, op).reshape(lower.getX(), permuted(to, axes));
  SmallVector<int64_t> placeOf = inverse(axes), both;
  for (int64_t axis : upper.getPermutation())
    both.push_back(placeOf[axis]);
  rewriter.replaceOp(op, Build(rewriter, op).transpose(x, both));
  return success();
}

// transpose(reshape(transpose x)) = reshape(transpose x)
LogicalResult upperGoesDown(TransposeOp op, PatternRewriter &rewriter) {
  auto sandwich = sandwichAt(op);
  if (!sandwich)
    return failure();
  auto [upper, lower, reshape, groups] = *sandwich;
  DimVector from = dimsOf(lower.getResult());
  SmallVector<int64_t> order = withoutOnes(upper.getPermutation(), dimsOf(reshape.getResult()));
  for (const Group &group : groups)
    if (!areNeighbours(group.to, order))
      return failure();
  SmallVector<int64_t> place = inverse(upper.getPermutation());
  llvm::sort(groups,
             [&](const Group &a, const Group &b) { return place[a.to[0]] < place[b.to[0]]; });
  SmallVector<int64_t> both;
  for (auto [axis, size] : llvm::enumerate(from))
    if (size.isConstant(1))
      both.push_back(lower.getPermutation()[axis]);
  for (const Group &group : groups)
    for (int64_t axis : group.from)
      both.push_back(lower.getPermutation()[axis]);
  Value x = Build(rewriter, op).transpose(lower.getX(), both);
  rewriter.replaceOp(op, Build(rewriter, op).reshape(x, dimsOf(op.getResult())));
  return success();
}

/// Whether the op swaps the last two dimensions and no others.
bool isOfMatrices(TransposeOp op) {
  SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, op.getPermutation().size()));
  if (order.size() < 2)
    return false;
  std::swap(order.back(), order[order.size() - 2]);
  return op.getPermutation() == ArrayRef<int64_t>(order);
}

// transpose(matmul(a, b)) = matmul(transpose b, transpose a), where that takes away a transpose
LogicalResult transposedProduct(TransposeOp op, PatternRewriter &rewriter) {
  auto product = op.getX().getDefiningOp<MatmulOp>();
  if (!product || !product->hasOneUse() || !isOfMatrices(op))
    return failure();
  auto isTransposed = [](Value x) {
    auto inner = x.getDefiningOp<TransposeOp>();
    return inner && isOfMatrices(inner);
  };
  if (!isTransposed(product.getA()) && !isTransposed(product.getB()))
    return failure();
  Build build(rewriter, op);
  auto swapped = [&](Value x) { return build.transpose(x, op.getPermutation()); };
  Value left = swapped(product.getB()), right = swapped(product.getA());
  rewriter.replaceOp(op, build.cast(build.matmul(left, right), elementOf(op.getResult())));
  return success();
}

} // namespace

void addRegroupRules(RewritePatternSet &patterns) {
  patterns.add(lowerGoesUp).add(upperGoesDown).add(transposedProduct);
}

} // namespace heddle::simplify
