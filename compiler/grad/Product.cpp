// Product: the derivative of a matrix product: two more of them.

#include "compiler/grad/Rules.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

static Value swapped(Flow &f, Value x) {
  Ints permutation = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(x)));
  std::swap(permutation[rankOf(x) - 1], permutation[rankOf(x) - 2]);
  return f.transpose(x, permutation);
}

/// Whether the matrices of a product all meet one right operand, as the tokens of a batch do the
/// weights of a layer.
static bool isShared(Value right, Value product) {
  DimVector sizes = dimsOf(right);
  return rankOf(product) > 2 && llvm::all_of(ArrayRef<Dim>(sizes).drop_back(2),
                                             [](const Dim &size) { return size.isConstant(1); });
}

/// All rows of all matrices.
static Value flat(Flow &f, Value x) {
  DimVector dims = dimsOf(x);
  Dim columns = dims.pop_back_val();
  return f.reshape(x, {elementCount(dims), columns});
}

/// A shared operand has one product over all rows, and no sum over products.
static Value rightAdjoint(Flow &f, Value dy) {
  Value left = f.x(0), right = f.x(1);
  DimVector rows = dimsOf(left), all = dimsOf(dy);
  rows.pop_back();
  all.pop_back();
  if (isShared(right, dy) && rows == all)
    return f.reshape(f.matmul(swapped(f, flat(f, left)), flat(f, dy)), dimsOf(right));
  return f.sumTo(f.matmul(swapped(f, left), dy), dimsOf(right));
}

static void matmulRule(Flow &f) {
  Value dy = f.cast(f.dy(), elementOf(f.x(0)));
  if (f.wants(0))
    f.give(0, f.sumTo(f.matmul(dy, swapped(f, f.x(1))), dimsOf(f.x(0))));
  if (f.wants(1))
    f.give(1, rightAdjoint(f, dy));
}

Rows productRules() {
  static const Row rows[] = {{MatmulOp::getOperationName(), matmulRule}};
  return rows;
}

} // namespace heddle::grad
