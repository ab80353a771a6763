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

static void matmulRule(Flow &f) {
  Value dy = f.cast(f.dy(), elementOf(f.x(0)));
  if (f.wants(0))
    f.give(0, f.sumTo(f.matmul(dy, swapped(f, f.x(1))), dimsOf(f.x(0))));
  if (f.wants(1))
    f.give(1, f.sumTo(f.matmul(swapped(f, f.x(0)), dy), dimsOf(f.x(1))));
}

Rows productRules() {
  static const Row rows[] = {{MatmulOp::getOperationName(), matmulRule}};
  return rows;
}

} // namespace heddle::grad
