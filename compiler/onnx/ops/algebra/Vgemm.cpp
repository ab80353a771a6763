// Vgemm: a batch of products of different sizes (CoRa, Fegade et al., MLSys 2022, section 7.1), an
// op of the domain `heddle`. Its meaning is a function of ONNX, which a model carries for engines
// that do not know it: python/heddle/ops.py writes it, and kBody is it.
//
// Operands are 0 beyond the sizes, as its function has it, and so is the result; the kernel of the
// product leaves these zeros out (mechanism::limitsOf). Sizes that are none are refused by the run.

#include "compiler/onnx/Table.h"
#include "compiler/onnx/ops/Numbers.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

/// Text of the function, as textOf(FunctionProto) prints it.
static constexpr const char *kBody = R"((A, B, m, k, n) => (C)
zero_i = Constant(){value_int=0}
one_i = Constant(){value_int=1}
zero_f = Constant(){value_float=0}
axis_0 = Constant(){value_ints=[0]}
axis_1 = Constant(){value_ints=[1]}
axis_2 = Constant(){value_ints=[2]}
zero = CastLike(zero_f, A){}
M_1 = Shape(A){end=2, start=1}
K_1 = Shape(A){end=3, start=2}
N_1 = Shape(B){end=3, start=2}
M = Squeeze(M_1, axis_0){}
K = Squeeze(K_1, axis_0){}
N = Squeeze(N_1, axis_0){}
rows = Range(zero_i, M, one_i){}
depths = Range(zero_i, K, one_i){}
columns = Range(zero_i, N, one_i){}
m_1 = Unsqueeze(m, axis_1){}
k_1 = Unsqueeze(k, axis_1){}
n_1 = Unsqueeze(n, axis_1){}
in_m = Less(rows, m_1){}
in_k = Less(depths, k_1){}
in_n = Less(columns, n_1){}
m_down = Unsqueeze(in_m, axis_2){}
k_down = Unsqueeze(in_k, axis_2){}
k_along = Unsqueeze(in_k, axis_1){}
n_along = Unsqueeze(in_n, axis_1){}
in_A = And(m_down, k_along){}
in_B = And(k_down, n_along){}
in_C = And(m_down, n_along){}
A_0 = Where(in_A, A, zero){}
B_0 = Where(in_B, B, zero){}
AB = MatMul(A_0, B_0){}
C = Where(in_C, AB, zero){}
)";

/// The run refuses a size below 0 or above `most`, with the number of the first such matrix.
static void checkSizes(Node &n, Value sizes, const Dim &most, StringRef name) {
  // One that is allowed after all others: there may be none.
  Value all = n.concat({sizes, n.integers({0})}, 0);
  Value isWrong = n.binary<OrOp>(n.compare<LessOp>(all, n.integerScalar(n.i64(), 0)),
                                 n.compare<GreaterOp>(all, n.size(most)));
  Value first =
      n.infer<ArgMaxOp>(n.cast(isWrong, n.i32()),
                        {n.integer("axis", 0), n.flag("keep_dims", true), n.flag("last", false)});
  Value told = n.concat({first, n.gather(all, first, 0)}, 0);
  Value isFine = n.reshape(n.gather(isWrong, first, 0), {});
  n.requireNotNegative(n.select(isFine, n.integerScalar(n.i64(), -1), n.integerScalar(n.i64(), 0)),
                       "'" + name + "' of row %lld is %lld, which must be from 0 to " + most.str(),
                       told);
}

static void importVgemm(Node &n) {
  Value a = n.in(0), b = n.in(1);
  DimVector left = dimsOf(a), right = dimsOf(b);
  if (left.size() != 3 || right.size() != 3)
    refuse("A and B must have rank 3, but have " + Twine(left.size()) + " and " +
           Twine(right.size()));
  if (elementOf(a) != elementOf(b) || !isFloat(a))
    refuse("A and B must be of one floating-point type, but are " + nameOf(elementOf(a)) + " and " +
           nameOf(elementOf(b)));
  auto differ = [](const Dim &x, const Dim &y) { return x.constant() && y.constant() && x != y; };
  if (differ(left[0], right[0]) || differ(left[2], right[1]))
    refuse("A and B of the shapes " + textOf(left) + " and " + textOf(right) +
           " cannot be multiplied");
  const Dim most[] = {left[1], Dim::min(left[2], right[1]), right[2]};
  SmallVector<Value> limits;
  for (auto [i, name] : llvm::enumerate(ArrayRef<const char *>{"m", "k", "n"})) {
    Value sizes = n.vector(2 + i, name);
    if (elementOf(sizes) != n.i64() || differ(dimsOf(sizes)[0], left[0]))
      refuse("'" + Twine(name) + "' must be i64" + textOf({left[0]}) + ", but is " +
             nameOf(elementOf(sizes)) + textOf(dimsOf(sizes)));
    checkSizes(n, sizes, most[i], name);
    limits.push_back(n.unsqueeze(sizes, {1, 2}));
  }
  auto within = [&](Value x, Value rows, Value columns) {
    DimVector dims = dimsOf(x);
    auto isBelow = [&](Value limit, int64_t axis) {
      return n.compare<LessOp>(n.iota(dims, axis, n.i64()), n.broadcast(limit, dims));
    };
    Value isInside = n.binary<AndOp>(isBelow(rows, 1), isBelow(columns, 2));
    return n.select(isInside, x, n.scalar(elementOf(x), 0));
  };
  Value product = n.matmul(within(a, limits[0], limits[1]), within(b, limits[1], limits[2]));
  n.set(within(product, limits[0], limits[2]));
}

OpRows heddleRows() {
  static const OpRow rows[] = {
      {"Vgemm", kHeddle, 1, 1, importVgemm, false,
       "a function with this name is this op where its body is that of heddle.ops.vgemm", false,
       kBody},
  };
  return rows;
}

} // namespace heddle::onnx
