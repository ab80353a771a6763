// Contraction: products of matrices.

#include "compiler/onnx/ops/Products.h"

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// x with its last two dimensions swapped.
Value transposeMatrix(Emitter &e, Value x) {
  int64_t rank = rankOf(x);
  if (rank < 2)
    refuse("a matrix is needed, but the shape is " + textOf(dimsOf(x)));
  Ints order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[rank - 1], order[rank - 2]);
  return e.transpose(x, order);
}

static void importMatMul(Node &n) { n.set(n.matmul(n.in(0), n.in(1))); }

static void importGemm(Node &n) {
  Value a = n.in(0), b = n.in(1);
  if (rankOf(a) != 2 || rankOf(b) != 2)
    refuse("A and B must have rank 2, but have " + Twine(rankOf(a)) + " and " + Twine(rankOf(b)));
  if (n.getInt("transA", 0))
    a = transposeMatrix(n, a);
  if (n.getInt("transB", 0))
    b = transposeMatrix(n, b);
  Value product = n.matmul(a, b);
  double alpha = n.getFloat("alpha", 1), beta = n.getFloat("beta", 1);
  // Factors of integers that are no integers are applied in f64, and the sum is rounded.
  Type element = elementOf(product), wide = element;
  if (!isFloat(product) && (std::trunc(alpha) != alpha || std::trunc(beta) != beta))
    wide = n.builder.getF64Type();
  product = n.cast(product, wide);
  if (alpha != 1)
    product = n.mul(product, alpha);
  if (n.has(2) && beta != 0) {
    DimVector dims = dimsOf(product);
    Value bias = n.cast(n.in(2), wide);
    if (beta != 1)
      bias = n.mul(bias, beta);
    product = n.add(product, bias);
    if (dimsOf(product).size() != dims.size())
      refuse("C of shape " + textOf(dimsOf(bias)) + " cannot be added to " + textOf(dims));
  }
  n.set(n.cast(product, element));
}

OpRows contractionRows() {
  static const OpRow rows[] = {
      {"MatMul", "", 1, 27, importMatMul},
      {"Gemm", "", 1, 27, importGemm},
  };
  return rows;
}

} // namespace heddle::onnx
