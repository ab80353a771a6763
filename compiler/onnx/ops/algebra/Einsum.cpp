// Einsum: sums of products over named dimensions, as matrix products.
//
// A letter is one dimension. The dimensions of '...' get the characters '0', '1', ..., counted from
// the right, so that they are aligned as NumPy aligns shapes.

#include "compiler/onnx/Table.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::onnx {

namespace {
/// An operand whose dimensions carry letters.
struct Lettered {
  Value value;
  std::string letters;
};
} // namespace

static bool has(StringRef letters, char letter) { return letters.contains(letter); }

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
    if (has(wanted, letter))
      kept += letter;
    else
      axes.push_back(i);
  }
  return axes.empty() ? x : Lettered{e.reduce<ReduceSumOp>(x.value, axes, false), kept};
}

/// A letter that a term repeats stands for the diagonal: all else counts as 0 and is summed away.
static Lettered takeDiagonals(Emitter &e, Lettered x) {
  for (size_t i = 0; i < x.letters.size(); ++i)
    for (size_t j; (j = x.letters.find(x.letters[i], i + 1)) != std::string::npos;) {
      DimVector dims = dimsOf(x.value), square = {dims[i], dims[j]};
      Value isDiagonal = e.compare<EqualOp>(e.iota(square, 0, e.i64()), e.iota(square, 1, e.i64()));
      DimVector place(dims.size(), Dim(1));
      place[i] = dims[i];
      place[j] = dims[j];
      Value kept = e.select(e.reshape(isDiagonal, place), x.value, e.scalar(elementOf(x.value), 0));
      x.value = e.reduce<ReduceSumOp>(kept, {(int64_t)j}, false);
      x.letters.erase(j, 1);
    }
  return x;
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
    bool isShared = has(b.letters, letter), isWanted = has(wanted, letter);
    (isShared ? (isWanted ? batch : summed) : rows) += letter;
    (isShared ? (isWanted ? batchDims : summedDims) : rowDims).push_back(left[i]);
  }
  for (auto [i, letter] : llvm::enumerate(b.letters))
    if (!has(a.letters, letter)) {
      columns += letter;
      columnDims.push_back(right[i]);
    }
  Dim m = elementCount(rowDims), n = elementCount(columnDims), k = elementCount(summedDims);
  auto with = [](DimVector dims, std::initializer_list<Dim> more) {
    dims.append(more.begin(), more.end());
    return dims;
  };
  // Equal letters have equal sizes, whatever symbols name them.
  DimVector secondDims = batchDims;
  secondDims.append(summedDims);
  secondDims.append(columnDims);
  Value aligned = e.broadcast(arrange(e, b, batch + summed + columns).value, secondDims);
  Value first = e.reshape(arrange(e, a, batch + rows + summed).value, with(batchDims, {m, k}));
  Value second = e.reshape(aligned, with(batchDims, {k, n}));
  DimVector dims = batchDims;
  dims.append(rowDims);
  dims.append(columnDims);
  return {e.reshape(e.matmul(first, second), dims), batch + rows + columns};
}

/// The letters of a term, with those of '...' spelt out for a value of `rank`.
static std::string lettersOf(StringRef term, int64_t rank) {
  size_t dots = term.find("...");
  int64_t named = term.size() - (dots == StringRef::npos ? 0 : 3);
  int64_t hidden = dots == StringRef::npos ? 0 : rank - named;
  if (rank != named + hidden || hidden < 0 || hidden > 10)
    refuse("term '" + term + "' does not fit an input of rank " + Twine(rank));
  std::string letters = term.str();
  if (dots != StringRef::npos) {
    std::string spelt;
    for (int64_t i = hidden; i-- > 0;)
      spelt += static_cast<char>('0' + i);
    letters.replace(dots, 3, spelt);
  }
  for (char letter : letters)
    if (!llvm::isAlnum(letter))
      refuse("term '" + term + "' has the character '" + Twine(letter) + "'");
  return letters;
}

/// Sizes of 1 are dropped where another operand has more.
static void dropOnes(Emitter &e, std::vector<Lettered> &operands) {
  std::map<char, bool> isLarge;
  for (const Lettered &x : operands)
    for (auto [letter, size] : llvm::zip(x.letters, dimsOf(x.value)))
      isLarge[letter] |= !size.isConstant(1);
  for (Lettered &x : operands) {
    Ints ones;
    std::string kept;
    for (auto [i, size] : llvm::enumerate(dimsOf(x.value))) {
      if (size.isConstant(1) && isLarge[x.letters[i]])
        ones.push_back(i);
      else
        kept += x.letters[i];
    }
    x = {e.squeeze(x.value, ones), kept};
  }
}

static void importEinsum(Node &n) {
  std::string equation;
  for (char c : n.getText("equation", ""))
    if (c != ' ')
      equation += c;
  bool isExplicit = equation.find("->") != std::string::npos;
  auto [left, right] = StringRef(equation).split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != n.inputs())
    refuse("the equation '" + equation + "' has " + Twine(terms.size()) + " terms, but there are " +
           Twine(n.inputs()) + " inputs");
  std::vector<Lettered> operands;
  std::string hidden;
  for (auto [i, term] : llvm::enumerate(terms)) {
    std::string letters = lettersOf(term, rankOf(n.in(i)));
    std::string own;
    llvm::copy_if(letters, std::back_inserter(own), llvm::isDigit);
    hidden = own.size() > hidden.size() ? own : hidden;
    operands.push_back(takeDiagonals(n, {n.in(i), letters}));
  }
  std::string wanted = right.str();
  if (!isExplicit) { // '...', then letters that occur once, in alphabetic order
    wanted = hidden;
    for (char c = 'A'; c <= 'z'; ++c)
      if (left.count(c) == 1 && llvm::isAlpha(c))
        wanted += c;
  } else if (size_t dots = wanted.find("..."); dots != std::string::npos) {
    wanted.replace(dots, 3, hidden);
  }
  dropOnes(n, operands);
  Lettered total = operands.front();
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string later = wanted;
    for (size_t j = i + 1; j < operands.size(); ++j)
      later += operands[j].letters;
    total = contract(n, total, operands[i], later);
  }
  total = keepOnly(n, total, wanted);
  for (char letter : wanted)
    if (!has(total.letters, letter) || StringRef(wanted).count(letter) > 1)
      refuse("the result of the equation '" + equation +
             "' has a letter that no term has, or one twice");
  n.set(arrange(n, total, wanted).value);
}

OpRows einsumRows() {
  static const OpRow rows[] = {
      {"Einsum", "", 12, 27, importEinsum},
  };
  return rows;
}

} // namespace heddle::onnx
