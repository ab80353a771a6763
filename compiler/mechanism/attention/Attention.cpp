// Attention: finds the ops between the second product and the first one, and checks the role of
// each op of a set.

#include "compiler/mechanism/attention/Attention.h"
#include "compiler/mechanism/Product.h"

#include "compiler/mechanism/Checks.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::DimVector;
using OpSet = llvm::SmallSetVector<Operation *, 32>;

/// A reshape of the dimensions outside of the rows: the last one stays.
static bool keepsRows(graph::ReshapeOp op) {
  DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
  return from.size() >= 2 && to.size() >= 2 && from.back() == to.back();
}

static bool foldsLast(Operation *op, ArrayRef<int64_t> axes, bool keepDims) {
  return keepDims && axes.size() == 1 && axes[0] + 1 == graph::rankOf(op->getOperand(0));
}

/// Through broadcasts along the last dimension, casts and reshapes of the batch.
static Value skipRowMoves(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    auto reshape = dyn_cast<graph::ReshapeOp>(op);
    if (!isa<graph::BroadcastOp, graph::CastOp>(op) && !(reshape && keepsRows(reshape)))
      break;
    value = op->getOperand(0);
  }
  return value;
}

namespace {
/// Ops between the two products, found from the second one.
struct Core {
  AttentionParts parts;
  OpSet ops; // depend on the scores, both products included; `values` last
  bool dividesAfter = false;
};

class Finder {
public:
  Finder(graph::MatmulOp values, std::string &why) : why(why) { core.parts.values = values; }

  bool find() {
    AttentionParts &p = core.parts;
    p.weights = p.values.getA();
    if (!findExp(p.weights, 8))
      return refuse("no softmax leads to the left operand of the product");
    if (!findScores(p.logits, 32))
      return refuse("the softmax is not of a product's elements");
    for (Value right : {p.scores.getB(), p.values.getB()})
      if (right.getDefiningOp<graph::ConstantOp>())
        return refuse("a constant right operand is better packed when compiling");
    if (!findSum())
      return refuse("the exponentials are not divided by their sum");
    if (!collect())
      return false;
    return checkSizes();
  }
  Core core;

private:
  bool refuse(StringRef text) {
    why = text.str();
    return false;
  }

  /// exp(x - max of x) after elementwise ops.
  bool findExp(Value value, int depth) {
    Operation *op = value.getDefiningOp();
    if (!op || depth == 0)
      return false;
    auto reshape = dyn_cast<graph::ReshapeOp>(op);
    if (!graph::isElementwise(op) && !(reshape && keepsRows(reshape)))
      return false;
    if (auto exp = dyn_cast<graph::ExpOp>(op))
      if (auto sub = exp.getX().getDefiningOp<graph::SubOp>())
        if (auto max = skipRowMoves(sub.getY()).getDefiningOp<graph::ReduceMaxOp>())
          if (max.getX() == sub.getX() && foldsLast(max, max.getAxes(), max.getKeepDims())) {
            core.parts.max = max;
            core.parts.logits = sub.getX();
            core.parts.powers = exp.getResult();
            return true;
          }
    return llvm::any_of(op->getOperands(), [&](Value in) { return findExp(in, depth - 1); });
  }

  bool findScores(Value value, int depth) {
    Operation *op = value.getDefiningOp();
    if (!op || depth == 0)
      return false;
    if (auto product = dyn_cast<graph::MatmulOp>(op)) {
      core.parts.scores = product;
      return true;
    }
    auto reshape = dyn_cast<graph::ReshapeOp>(op);
    if (!graph::isElementwise(op) && !(reshape && keepsRows(reshape)))
      return false;
    return llvm::any_of(op->getOperands(), [&](Value in) { return findScores(in, depth - 1); });
  }

  bool findSum() {
    AttentionParts &p = core.parts;
    SmallVector<Value> same{p.powers};
    for (Operation *user : p.powers.getUsers())
      if (isa<graph::CastOp>(user))
        same.push_back(user->getResult(0));
    for (Value powers : same)
      for (Operation *user : powers.getUsers())
        if (auto sum = dyn_cast<graph::ReduceSumOp>(user))
          if (foldsLast(sum, sum.getAxes(), sum.getKeepDims())) {
            if (p.sum && p.sum != sum)
              return false;
            p.sum = sum;
          }
    return !!p.sum;
  }

  bool depends(Value value) {
    AttentionParts &p = core.parts;
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != p.values->getBlock() || op->isBeforeInBlock(p.scores))
      return false;
    if (op == p.scores)
      return true;
    auto [known, isNew] = dependent.try_emplace(op, false);
    if (isNew) {
      bool any = false;
      for (Value in : op->getOperands())
        any |= depends(in);
      dependent[op] = any;
      return any;
    }
    return known->second;
  }

  void collectFrom(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !depends(value) || !core.ops.insert(op))
      return;
    if (op != core.parts.scores)
      for (Value in : op->getOperands())
        collectFrom(in);
  }

  /// The role of each op that depends on the scores and is needed for the second product.
  bool collect() {
    AttentionParts &p = core.parts;
    if (depends(p.values.getB()))
      return refuse("the right operand of the second product depends on the scores");
    collectFrom(p.weights);
    core.dividesAfter = !core.ops.contains(p.sum);
    if (core.dividesAfter)
      collectFrom(p.sum.getResult());
    core.ops.insert(p.values);
    auto order = [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); };
    SmallVector<Operation *> sorted(core.ops.begin(), core.ops.end());
    llvm::sort(sorted, order);
    core.ops = OpSet(sorted.begin(), sorted.end());
    return checkRoles();
  }

  /// Place of a value on the way from the scores to the weights.
  enum class Place { Outside, Logits, Shifted, Powers, Row };

  bool checkRoles() {
    AttentionParts &p = core.parts;
    llvm::DenseMap<Value, Place> places;
    for (Operation *op : core.ops) {
      Value result = op->getResult(0);
      if (op == p.scores) {
        places[result] = Place::Logits;
        continue;
      }
      if (op == p.values)
        continue;
      if (op == p.max || op == p.sum) {
        places[result] = Place::Row;
        continue;
      }
      Place place = Place::Outside;
      bool isMixed = false;
      for (Value in : op->getOperands())
        if (auto known = places.find(in); known != places.end()) {
          // A row's number next to a row: the row decides.
          bool first = place == Place::Outside || place == Place::Row;
          if (first)
            place = known->second;
          else
            isMixed |= known->second != place && known->second != Place::Row;
        }
      auto reshape = dyn_cast<graph::ReshapeOp>(op);
      bool isRowMove = (reshape && keepsRows(reshape)) ||
                       (isa<graph::BroadcastOp>(op) && place == Place::Row && spreadsRow(op));
      if (isMixed || (!graph::isElementwise(op) && !isRowMove))
        return refuse(
            ("'" + op->getName().getStringRef() + "' between the products is no part of a softmax")
                .str());
      bool isShift = op == p.powers.getDefiningOp()->getOperand(0).getDefiningOp();
      if (place == Place::Logits && (isShift || reads(op, p.max)))
        place = isShift ? Place::Shifted : Place::Outside;
      else if (place == Place::Shifted)
        place = result == p.powers ? Place::Powers : Place::Outside;
      if (place == Place::Outside)
        return refuse("the shifted logits are used beside the exponential");
      places[result] = place;
    }
    auto isPowers = [&](Value value) {
      auto known = places.find(value);
      return known != places.end() && known->second == Place::Powers;
    };
    p.dividesLast = isPlainDivision(p.weights);
    return isPowers(p.weights) || refuse("the second product's operand is no softmax");
  }

  static bool spreadsRow(Operation *broadcast) {
    DimVector from = graph::dimsOf(broadcast->getOperand(0)),
              to = graph::dimsOf(broadcast->getResult(0));
    return from.size() == to.size() &&
           ArrayRef<graph::Dim>(from).drop_back() == ArrayRef<graph::Dim>(to).drop_back();
  }

  static bool reads(Operation *op, Operation *row) {
    return llvm::any_of(op->getOperands(),
                        [&](Value in) { return skipRowMoves(in).getDefiningOp() == row; });
  }

  bool isPlainDivision(Value weights) {
    auto skip = [](Value value) {
      Operation *op = value.getDefiningOp();
      while (op && isa<graph::CastOp, graph::ReshapeOp>(op)) {
        value = op->getOperand(0);
        op = value.getDefiningOp();
      }
      return value;
    };
    auto div = skip(weights).getDefiningOp<graph::DivOp>();
    return div && skip(div.getX()) == core.parts.powers &&
           skipRowMoves(div.getY()) == core.parts.sum.getResult();
  }

  static DimVector batchOf(Value value) {
    DimVector dims = graph::dimsOf(value);
    dims.pop_back_n(2);
    return dims;
  }

  bool checkSizes() {
    AttentionParts &p = core.parts;
    if (batchOf(p.weights) != batchOf(p.values.getResult()))
      return refuse("one softmax serves several right operands of the second product");
    DimVector first = graph::dimsOf(p.scores.getResult()), second = graph::dimsOf(p.weights);
    if (first[first.size() - 2] != second[second.size() - 2] || first.back() != second.back())
      return refuse("the two products have different rows");
    if (graph::elementCount(batchOf(p.scores.getResult())) !=
        graph::elementCount(batchOf(p.weights)))
      return refuse("the two products have other batches");
    Type scores = graph::elementOf(p.scores.getResult()),
         values = graph::elementOf(p.values.getResult());
    for (Operation *op : core.ops)
      for (Value value : op->getResults())
        if (isa<FloatType>(graph::elementOf(value)) &&
            graph::elementOf(value).isF64() != scores.isF64())
          return refuse("f64 and narrower numbers are mixed");
    auto isFloat = [](Type type) {
      return type.isF32() || type.isF64() || type.isF16() || type.isBF16();
    };
    if (!isFloat(scores) || !isFloat(values) || !isFloat(graph::elementOf(p.powers)) ||
        !isFloat(graph::elementOf(p.logits)) || !isFloat(graph::elementOf(p.weights)))
      return refuse("the numbers are not floating point");
    return true;
  }

  std::string &why;
  llvm::DenseMap<Operation *, bool> dependent;
};

/// Checks a set of ops against a core.
class Reader {
public:
  Reader(ArrayRef<Operation *> given, Core &core, std::string &why)
      : ops(given.begin(), given.end()), core(core), why(why) {}

  Fit read() {
    AttentionParts &p = core.parts;
    if (!ops.contains(p.values))
      return refuse("the second product is not among the ops");
    SmallVector<Operation *> sorted(ops.begin(), ops.end());
    llvm::sort(sorted, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    stages[p.values.getResult()] = nullptr;
    for (Operation *op : sorted)
      if (!core.ops.contains(op) && !checkOther(op))
        return Fit::No;
    if (!checkUses())
      return Fit::No;
    for (Operation *op : core.ops)
      if (!ops.contains(op)) {
        why = "'" + op->getName().getStringRef().str() + "' of the softmax is not among the ops";
        return Fit::Partial;
      }
    return Fit::Full;
  }

private:
  Fit refuse(StringRef text) {
    why = text.str();
    return Fit::No;
  }

  /// An op after the second product, or one that feeds an operand.
  bool checkOther(Operation *op) {
    std::optional<Operation *> stage;
    for (Value in : op->getOperands()) {
      auto known = stages.find(in);
      if (known == stages.end())
        continue;
      if (stage && *stage != known->second)
        return refuse("values of two layouts meet after the second product") == Fit::Full;
      stage = known->second;
    }
    bool isMove = isa<graph::TransposeOp, graph::ReshapeOp>(op);
    bool isLazy = graph::isElementwise(op) || graph::isMovement(op) || graph::isLeaf(op);
    if (!isLazy || (stage && !isMove && !graph::isElementwise(op)))
      return refuse(
                 ("'" + op->getName().getStringRef() + "' has no place in an attention").str()) ==
             Fit::Full;
    if (stage)
      stages[op->getResult(0)] = isMove ? op : *stage;
    return true;
  }

  /// Only the root is used outside, and it comes from the second product.
  bool checkUses() {
    Operation *root = nullptr;
    for (Operation *op : ops) {
      bool isInside = !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
        return ops.contains(user);
      });
      if (isInside)
        continue;
      if (root)
        return refuse("two results are used outside") == Fit::Full;
      root = op;
    }
    if (!root || !stages.contains(root->getResult(0)))
      return refuse("a value before the second product is used outside") == Fit::Full;
    core.parts.result = root->getResult(0);
    for (Operation *move = stages[core.parts.result]; move; move = stages[move->getOperand(0)])
      core.parts.moves.insert(core.parts.moves.begin(), move);
    return checkRows();
  }

  /// Checks that the epilogue takes the softmax as a number per row, before any move.
  bool checkRows() {
    for (auto &[value, stage] : stages) {
      Operation *op = value.getDefiningOp();
      if (op == core.parts.values)
        continue;
      for (Value in : op->getOperands()) {
        if (stages.contains(in))
          continue;
        if (dependsOnCore(in) && (stage || !isRow(in)))
          return refuse("the epilogue takes more of the softmax than a number per row") ==
                 Fit::Full;
      }
    }
    return true;
  }

  bool dependsOnCore(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !ops.contains(op))
      return false;
    return core.ops.contains(op) ||
           llvm::any_of(op->getOperands(), [&](Value in) { return dependsOnCore(in); });
  }

  bool isRow(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !dependsOnCore(value) || op == core.parts.sum)
      return true;
    auto reshape = dyn_cast<graph::ReshapeOp>(op);
    bool keeps =
        graph::isElementwise(op) || isa<graph::BroadcastOp>(op) || (reshape && keepsRows(reshape));
    return keeps && !core.ops.contains(op) &&
           llvm::all_of(op->getOperands(), [&](Value in) { return isRow(in); });
  }

  OpSet ops;
  Core &core;
  std::string &why;
  /// The last transpose or reshape before each value after the second product.
  llvm::DenseMap<Value, Operation *> stages;
};
} // namespace

/// The second product: the last one.
static graph::MatmulOp lastProduct(ArrayRef<Operation *> ops) {
  graph::MatmulOp last;
  for (Operation *op : ops)
    if (auto product = dyn_cast<graph::MatmulOp>(op))
      if (!last || last->isBeforeInBlock(product))
        last = product;
  return last;
}

static Fit read(ArrayRef<Operation *> ops, AttentionParts &parts, std::string &why) {
  graph::MatmulOp values = lastProduct(ops);
  if (!values) {
    why = "there is no product";
    return Fit::No;
  }
  Finder finder(values, why);
  if (!finder.find())
    return Fit::No;
  Fit fit = Reader(ops, finder.core, why).read();
  parts = finder.core.parts;
  return fit;
}

/// Full: the ops are an attention with one result. Partial: they are the end of one whose other ops
/// are among their producers.
static Fit fitsAttention(const Mechanism &, Ops ops, std::string &why) {
  AttentionParts parts;
  return read(ops, parts, why);
}

std::optional<AttentionParts> readAttention(ArrayRef<Operation *> ops, std::string &why) {
  AttentionParts parts;
  if (read(ops, parts, why) != Fit::Full)
    return std::nullopt;
  return parts;
}

static constexpr StringLiteral kKnobs[] = {"m", "n", "rows"};
bool fitsBlocks(const AttentionParts &parts) {
  auto columns = graph::dimsOf(parts.values->getResult(0)).back().constant();
  return columns && *columns <= kMostColumnsOfBlocks;
}

bool fitsFragments(const AttentionParts &parts) {
  auto isFew = [](const graph::Dim &size) {
    return size.constant() && *size.constant() <= kMostOfFragments;
  };
  graph::MatmulOp scores = parts.scores, values = parts.values;
  return parts.dividesLast && isFew(graph::dimsOf(scores.getA()).back()) &&
         isFew(graph::dimsOf(values.getResult()).back()) &&
         !graph::elementOf(scores.getResult()).isF64();
}

Type fragmentsOf(Ops ops, bool isShort) {
  std::string why;
  auto parts = readAttention(ops, why);
  if (!parts || !fitsFragments(*parts))
    return {};
  // Few queries leave most of a fragment idle, and take the time of reading keys and values.
  constexpr int64_t kFew = 4;
  DimVector dims = graph::dimsOf(parts->scores.getResult());
  auto queries = dims[dims.size() - 2].constant();
  if (!isShort && queries && *queries <= kFew)
    return {};
  Type factors = factorsInThreads(parts->scores, isShort);
  return factors == factorsInThreads(parts->values, isShort) ? factors : Type();
}

const Mechanism kAttention = {.name = "attention",
                              .check = fitsAttention,
                              .knobs = kKnobs,
                              .takesShort = true,
                              .takesMatrices = true,
                              .takesThreads = true,
                              .takesRows = true};

} // namespace heddle::mechanism
