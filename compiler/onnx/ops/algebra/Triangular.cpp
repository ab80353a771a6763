// Triangular: a triangular matrix times a matrix, and sums and products of two triangular ones,
// element by element (CoRa, Fegade et al., MLSys 2022, section 7.1): ops of the domain `heddle`, as
// Trilu and one op of ONNX. Kernels leave out what is 0 (mechanism::triangleOf, graph::Band).

#include "compiler/onnx/ops/algebra/Triangular.h"
#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// The operands, of one floating-point type and rank 2 or more.
static std::pair<Value, Value> matricesOf(Node &n) {
  Value a = n.in(0), b = n.in(1);
  if (elementOf(a) != elementOf(b) || !isFloat(a))
    refuse("A and B must be of one floating-point type, but are " + nameOf(elementOf(a)) + " and " +
           nameOf(elementOf(b)));
  if (rankOf(a) < 2 || rankOf(b) < 2)
    refuse("A and B must have rank 2 or more, but have " + Twine(rankOf(a)) + " and " +
           Twine(rankOf(b)));
  return {a, b};
}

static void importTrmm(Node &n) {
  auto [a, b] = matricesOf(n);
  n.set(n.matmul(triangular(n, a, n.getInt("upper", 0)), b));
}

template <typename Op> static void importElementwise(Node &n) {
  auto [a, b] = matricesOf(n);
  n.set(triangular(n, n.binary<Op>(a, b), n.getInt("upper", 0)));
}

OpRows triangularRows() {
  static const OpRow rows[] = {
      {"Trmm", kHeddle, 1, 1, importTrmm, false, "a triangular matrix times a matrix"},
      {"Tradd", kHeddle, 1, 1, importElementwise<AddOp>, false, "of triangular matrices"},
      {"Trmul", kHeddle, 1, 1, importElementwise<MulOp>, false, "of triangular matrices"},
  };
  return rows;
}

} // namespace heddle::onnx
