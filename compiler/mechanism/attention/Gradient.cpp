// Gradient: the role of each op of a set.

#include "compiler/mechanism/attention/Gradient.h"

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::DimVector;
using Side = WeightProduct::Side;

SmallVector<Value> AttentionGradientParts::weights() const {
  llvm::SetVector<Value> all;
  for (const WeightProduct &sum : sums)
    all.insert(sum.weights);
  return all.takeVector();
}

/// Swaps the last two dimensions and nothing else.
static bool transposesRows(graph::TransposeOp op) {
  auto permutation = op.getPermutation();
  int64_t rank = permutation.size();
  for (int64_t i = 0; i < rank; ++i)
    if (permutation[i] != (i < rank - 2 ? i : 2 * rank - 3 - i))
      return false;
  return rank >= 2;
}

namespace {
class Reader {
public:
  Reader(Ops ops, std::string &why) : ops(ops), why(why) {}

  std::optional<AttentionGradientParts> read() {
    auto rows = readRows(ops, {}, why);
    if (!rows)
      return std::nullopt;
    parts.rows = std::move(*rows);
    bool isRead = (parts.rows.kept > 0 && parts.rows.kept + 1 == parts.rows.full.size()) ||
                  no("its reductions are not those of rows");
    isRead = isRead && llvm::all_of(ops, [&](Operation *op) { return place(op); });
    if (!isRead || !checkParts() || !checkResults())
      return std::nullopt;
    return std::move(parts);
  }

private:
  bool no(const Twine &text) { return refuse(why, text) != Fit::No; }
  bool isScore(Value value) const { return scores.contains(value); }
  bool isOfRow(Value value) const { return isScore(value) || numbers.contains(value); }

  bool place(Operation *op) {
    if (auto product = dyn_cast<graph::MatmulOp>(op))
      return placeProduct(product);
    auto isSum = [&](Value in) { return stages.contains(in); };
    auto isTransposed = [&](Value in) { return transposed.contains(in); };
    auto isRow = [&](Value in) { return isOfRow(in); };
    if (llvm::any_of(op->getOperands(), isTransposed))
      return no(named(op) + " reads transposed weights");
    bool isAfter = llvm::any_of(op->getOperands(), isSum);
    if (llvm::any_of(op->getOperands(), isRow))
      return isAfter ? no(named(op) + " reads scores and a result") : placeRow(op);
    if (isAfter)
      return placeAfter(op);
    bool isAhead = graph::isElementwise(op) || graph::isMovement(op) || graph::isLeaf(op);
    return isAhead || no(named(op) + " has no place in an attention's gradient");
  }

  bool placeProduct(graph::MatmulOp product) {
    Value a = product.getA(), b = product.getB(), result = product.getResult();
    auto side = isScore(a)               ? std::optional(Side::Left)
                : transposed.contains(a) ? std::optional(Side::Transposed)
                : isScore(b)             ? std::optional(Side::Right)
                                         : std::nullopt;
    Value other = side == Side::Right ? a : b;
    auto isComputed = [&](Value in) {
      return isOfRow(in) || transposed.contains(in) || stages.contains(in);
    };
    if (isComputed(other) || (!side && isComputed(a)))
      return no(named(product) + " multiplies what is computed of scores");
    if (!side) {
      if (graph::dimsOf(result) != parts.rows.full)
        return no(named(product) + " makes other scores than are reduced");
      scores.insert(result);
      parts.scores.push_back(product);
      parts.between.push_back(product);
      return true;
    }
    DimVector dims = graph::dimsOf(result);
    if (ArrayRef<graph::Dim>(dims).drop_back(2) !=
        ArrayRef<graph::Dim>(parts.rows.full).drop_back(2))
      return no(named(product) + " has other batches than the scores");
    Value weights = side == Side::Left    ? a
                    : side == Side::Right ? b
                                          : a.getDefiningOp()->getOperand(0);
    stages[result] = {parts.sums.size(), nullptr};
    parts.sums.push_back({product, *side, weights, other, {}, {}});
    return true;
  }

  /// An op on scores, or on a number for each row.
  bool placeRow(Operation *op) {
    Value result = op->getResult(0);
    if (auto transpose = dyn_cast<graph::TransposeOp>(op);
        transpose && isScore(transpose.getX()) && transposesRows(transpose)) {
      transposed.insert(result);
      return true;
    }
    DimVector dims = graph::dimsOf(result);
    bool isFull = dims == parts.rows.full, isFold = !graph::reducedAxes(op).empty();
    bool isNumber = isRowShape(dims, parts.rows.full, 1);
    bool keepsPlace =
        graph::isElementwise(op) || isFold ||
        (isa<graph::BroadcastOp, graph::ReshapeOp>(op) && !isScore(op->getOperand(0)));
    if (!keepsPlace || !(isFull || isNumber) ||
        (isNumber && !staysInRow(result, parts.rows.full, 1)))
      return no(named(op) + " is not computed row by row");
    (isFull ? scores : numbers).insert(result);
    parts.between.push_back(op);
    return true;
  }

  /// An op after a product that takes weights.
  bool placeAfter(Operation *op) {
    std::optional<std::pair<size_t, Operation *>> stage;
    for (Value in : op->getOperands()) {
      auto known = stages.find(in);
      if (known == stages.end())
        continue;
      if (stage && *stage != known->second)
        return no(named(op) + " reads several of the results");
      stage = known->second;
    }
    bool isMove = isa<graph::TransposeOp, graph::ReshapeOp>(op);
    if (!isMove && !graph::isElementwise(op))
      return no(named(op) + " has no place in an attention's gradient");
    stages[op->getResult(0)] = {stage->first, isMove ? op : stage->second};
    return true;
  }

  bool checkParts() {
    if (parts.scores.empty())
      return no("no product makes the rows that are reduced");
    if (llvm::none_of(parts.sums, [](const WeightProduct &sum) { return sum.sumsQueries(); }))
      return no("no product sums over the queries");
    auto isFloat = [](Type type) {
      return type.isF32() || type.isF64() || type.isF16() || type.isBF16();
    };
    bool isWide = graph::elementOf(parts.scores.front().getResult()).isF64();
    auto isRight = [&](Operation *op) {
      Type type = graph::elementOf(op->getResult(0));
      return isFloat(type) && type.isF64() == isWide;
    };
    for (graph::MatmulOp product : parts.scores)
      if (!isRight(product))
        return no(named(product) +
                  " is not of floating-point numbers, or f64 is mixed with others");
    for (const WeightProduct &sum : parts.sums)
      if (!isRight(sum.product) || !isRight(sum.weights.getDefiningOp()))
        return no(named(sum.product) +
                  " is not of floating-point numbers, or f64 is mixed with others");
    return true;
  }

  /// Each product has one result that is read outside, and nothing else is.
  bool checkResults() {
    for (Value result : resultsOf(ops)) {
      auto stage = stages.find(result);
      if (stage == stages.end())
        return no(named(result.getDefiningOp()) + " is read outside");
      WeightProduct &sum = parts.sums[stage->second.first];
      if (sum.result)
        return no("two results of " + named(sum.product) + " are read outside");
      sum.result = result;
      for (Operation *move = stage->second.second; move;
           move = stages.lookup(move->getOperand(0)).second)
        sum.moves.insert(sum.moves.begin(), move);
    }
    for (const WeightProduct &sum : parts.sums)
      if (!sum.result)
        return no("nothing that is made of " + named(sum.product) + " is read outside");
    return true;
  }

  Ops ops;
  std::string &why;
  AttentionGradientParts parts;
  llvm::DenseSet<Value> scores, numbers, transposed; // numbers: one for each row
  /// Of each value after a product that takes weights: the product's number, and the last
  /// transpose or reshape before the value.
  llvm::DenseMap<Value, std::pair<size_t, Operation *>> stages;
};
} // namespace

std::optional<AttentionGradientParts> readAttentionGradient(ArrayRef<Operation *> ops,
                                                            std::string &why) {
  return Reader(ops, why).read();
}

static Fit fitsAttentionGradient(const Mechanism &, Ops ops, std::string &why) {
  return readAttentionGradient(ops, why) ? Fit::Full : Fit::No;
}

static constexpr StringLiteral kKnobs[] = {"m", "n", "rows"};
const Mechanism kAttentionGradient = {
    .name = "attention_gradient", .check = fitsAttentionGradient, .knobs = kKnobs};

} // namespace heddle::mechanism
