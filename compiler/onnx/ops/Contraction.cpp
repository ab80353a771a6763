// Contraction: products of matrices.

#include "compiler/onnx/ops/Products.h"

#include "compiler/onnx/Table.h"

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
  if (double alpha = n.getFloat("alpha", 1); alpha != 1)
    product = n.mul(product, alpha);
  double beta = n.getFloat("beta", 1);
  if (n.has(2) && beta != 0) {
    DimVector dims = dimsOf(product);
    Value bias = beta == 1 ? n.in(2) : n.mul(n.in(2), beta);
    product = n.add(product, bias);
    if (dimsOf(product).size() != dims.size())
      refuse("C of shape " + textOf(dimsOf(bias)) + " cannot be added to " + textOf(dims));
  }
  n.set(product);
}

namespace {
/// One operand of an Einsum whose dimensions carry letters.
struct Lettered {
  Value value;
  std::string letters;
};
} // namespace

static Lettered arrange(Emitter &e, Lettered x, StringRef order) {
  Ints permutation;
  for (char letter : order)
    permutation.push_back(x.letters.find(letter));
  return {e.transpose(x.value, permutation), order.str()};
}

/// Sums over the letters that are not wanted any more.
static Lettered keepOnly(Emitter &e, Lettered x, StringRef wanted) {
  Ints axes;
  std::string kept;
  for (auto [i, letter] : llvm::enumerate(x.letters)) {
    if (wanted.contains(letter))
      kept += letter;
    else
      axes.push_back(i);
  }
  return axes.empty() ? x : Lettered{e.reduce<ReduceSumOp>(x.value, axes, false), kept};
}

/// The product of two operands as one matmul: batch letters, then rows or columns, then what is
/// summed.
static Lettered contract(Emitter &e, Lettered a, Lettered b, StringRef wanted) {
  a = keepOnly(e, a, b.letters + wanted.str());
  b = keepOnly(e, b, a.letters + wanted.str());
  std::string batch, rows, columns, summed;
  DimVector batchDims, rowDims, columnDims, summedDims;
  DimVector left = dimsOf(a.value), right = dimsOf(b.value);
  for (auto [i, letter] : llvm::enumerate(a.letters)) {
    bool isShared = StringRef(b.letters).contains(letter), isWanted = wanted.contains(letter);
    (isShared ? (isWanted ? batch : summed) : rows) += letter;
    (isShared ? (isWanted ? batchDims : summedDims) : rowDims).push_back(left[i]);
  }
  for (auto [i, letter] : llvm::enumerate(b.letters))
    if (!StringRef(a.letters).contains(letter)) {
      columns += letter;
      columnDims.push_back(right[i]);
    }
  Dim m = elementCount(rowDims), n = elementCount(columnDims), k = elementCount(summedDims);
  auto with = [](DimVector dims, std::initializer_list<Dim> more) {
    dims.append(more.begin(), more.end());
    return dims;
  };
  Value x = e.reshape(arrange(e, a, batch + rows + summed).value, with(batchDims, {m, k}));
  Value y = e.reshape(arrange(e, b, batch + summed + columns).value, with(batchDims, {k, n}));
  DimVector dims = batchDims;
  dims.append(rowDims);
  dims.append(columnDims);
  return {e.reshape(e.matmul(x, y), dims), batch + rows + columns};
}

static void importEinsum(Node &n) {
  std::string equation;
  for (char c : n.getText("equation", ""))
    if (c != ' ')
      equation += c;
  auto [left, right] = StringRef(equation).split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (equation.find('.') != std::string::npos || terms.size() != n.inputs())
    refuse("the equation '" + equation + "' is not supported",
           "it needs one term an input, and no '...'");
  std::string wanted = right.str();
  if (equation.find("->") == std::string::npos) // letters that occur once, in alphabetic order
    for (char c = 'A'; c <= 'z'; ++c)
      if (left.count(c) == 1 && llvm::isAlpha(c))
        wanted += c;
  std::vector<Lettered> operands;
  for (auto [i, term] : llvm::enumerate(terms)) {
    for (char letter : term)
      if (term.count(letter) > 1)
        refuse("the equation '" + equation + "' repeats a letter in one term");
    if ((int64_t)term.size() != rankOf(n.in(i)))
      refuse("term '" + term + "' does not fit input " + Twine(i) + " of rank " +
             Twine(rankOf(n.in(i))));
    operands.push_back({n.in(i), term.str()});
  }
  Lettered total = operands.front();
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string later = wanted;
    for (size_t j = i + 1; j < operands.size(); ++j)
      later += operands[j].letters;
    total = contract(n, total, operands[i], later);
  }
  total = keepOnly(n, total, wanted);
  for (char letter : wanted)
    if (total.letters.find(letter) == std::string::npos)
      refuse("the equation '" + equation + "' makes a letter that no term has");
  n.set(arrange(n, total, wanted).value);
}

OpRows contractionRows() {
  static const OpRow rows[] = {
      {"MatMul", "", 1, 27, importMatMul},
      {"Gemm", "", 1, 27, importGemm},
      {"Einsum", "", 12, 27, importEinsum, false, "no '...', no letter twice in a term"},
  };
  return rows;
}

} // namespace heddle::onnx
