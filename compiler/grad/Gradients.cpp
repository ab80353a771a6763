// Gradients: walks the ops between some values and y: forward to see what depends on what, backward
// with the rule of each op.

#include "compiler/grad/Gradients.h"

#include "compiler/grad/Rules.h"
#include "compiler/grad/StraightThrough.h"
#include "compiler/graph/edit/Clone.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::grad {

const Row *findRule(Operation *op) {
  static const auto index = [] {
    llvm::StringMap<const Row *> map;
    for (Rows rows : {elementwiseRules(), movementRules(), indexRules(), reductionRules(),
                      routineRules(), productRules(), windowRules(), controlRules()})
      for (const Row &row : rows)
        map[row.op] = &row;
    return map;
  }();
  return index.lookup(op->getName().getStringRef());
}

static bool isFloat(Value value) { return isa<FloatType>(elementOf(value)); }

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

/// The ops that the ys follow from, each after those that it uses; nothing before `ends` is looked
/// at.
static SmallVector<Operation *> opsBefore(ArrayRef<Value> ys, const DenseSet<Value> &ends) {
  SmallVector<Operation *> order;
  DenseSet<Operation *> seen;
  SmallVector<std::pair<Operation *, SmallVector<Value>>> open;
  auto enter = [&](Value value) {
    Operation *op = ends.contains(value) ? nullptr : value.getDefiningOp();
    if (op && seen.insert(op).second)
      open.emplace_back(op, usedBy(op));
  };
  for (Value y : ys) {
    enter(y);
    while (!open.empty()) {
      auto &[op, left] = open.back();
      if (left.empty()) {
        order.push_back(op);
        open.pop_back();
      } else {
        enter(left.pop_back_val());
      }
    }
  }
  return order;
}

static std::string nameOf(Operation *op) {
  return "'" + op->getName().getStringRef().str() + "' of '" + sourceName(op->getLoc()) + "'";
}

/// Whether the maximum of x only shifts x where that changes nothing: exp(x - m) / sum(exp(x - m))
/// and (x - m) - log(sum(exp(x - m))) are the same for any m, so that their slope to m is 0.
static bool onlyShifts(ReduceMaxOp maximum) {
  auto repeated = [&](Value row, llvm::function_ref<bool(Operation * user, Value whole)> isFit) {
    return llvm::all_of(row.getUsers(), [&](Operation *user) {
      auto whole = dyn_cast<BroadcastOp>(user);
      return whole && llvm::all_of(whole->getUsers(), [&](Operation *reader) {
               return isFit(reader, whole.getResult());
             });
    });
  };
  auto isSecond = [](Operation *user, Value first, Value second) {
    return user->getNumOperands() == 2 && user->getOperand(0) == first &&
           user->getOperand(1) == second;
  };
  auto isSumFit = [&](ReduceSumOp sum, Value power, Value shifted) {
    return sum.getAxes() == maximum.getAxes() &&
           llvm::all_of(sum->getUsers(), [&](Operation *user) {
             if (auto log = dyn_cast<LogOp>(user))
               return repeated(log.getResult(), [&](Operation *reader, Value whole) {
                 return isa<SubOp>(reader) && isSecond(reader, shifted, whole);
               });
             auto whole = dyn_cast<BroadcastOp>(user);
             return whole && llvm::all_of(whole->getUsers(), [&](Operation *reader) {
                      return isa<DivOp>(reader) && isSecond(reader, power, whole.getResult());
                    });
           });
  };
  auto isPowerFit = [&](ExpOp power, Value shifted) {
    return llvm::all_of(power->getUsers(), [&](Operation *user) {
      if (auto sum = dyn_cast<ReduceSumOp>(user))
        return isSumFit(sum, power, shifted);
      auto whole = isa<DivOp>(user) ? user->getOperand(1).getDefiningOp<BroadcastOp>() : nullptr;
      auto sum = whole ? whole.getX().getDefiningOp<ReduceSumOp>() : nullptr;
      return sum && sum.getX() == power.getResult() && user->getOperand(0) == power.getResult();
    });
  };
  return repeated(maximum.getResult(), [&](Operation *reader, Value whole) {
    if (!isa<SubOp>(reader) || !isSecond(reader, maximum.getX(), whole))
      return false;
    Value shifted = reader->getResult(0);
    return llvm::all_of(shifted.getUsers(), [&](Operation *user) {
      if (auto power = dyn_cast<ExpOp>(user))
        return isPowerFit(power, shifted);
      auto sums = isa<SubOp>(user) ? user->getOperand(1).getDefiningOp<BroadcastOp>() : nullptr;
      auto log = sums ? sums.getX().getDefiningOp<LogOp>() : nullptr;
      auto sum = log ? log.getX().getDefiningOp<ReduceSumOp>() : nullptr;
      auto power = sum ? sum.getX().getDefiningOp<ExpOp>() : nullptr;
      return power && power.getX() == shifted && user->getOperand(0) == shifted;
    });
  });
}

/// The one user of a value if it is an Op, or null.
template <typename Op> static Op onlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
}

/// Whether the maximum of x is only the m of log(sum(exp(x - m))) + m, which is the same for any m.
/// It may be another number where it is infinite.
static bool isShiftOfLogSum(ReduceMaxOp maximum) {
  Value m = maximum.getResult();
  for (Operation *user : maximum->getUsers())
    if (auto select = dyn_cast<SelectOp>(user); select && select.getY() == maximum.getResult())
      m = select.getResult();
    else if (!isa<IsInfOp>(user))
      break;
  auto isOther = [&](Operation *user) { return user != m.getDefiningOp() && !isa<IsInfOp>(user); };
  if (m != maximum.getResult() && llvm::any_of(maximum->getUsers(), isOther))
    return false;
  auto users = llvm::to_vector(m.getUsers());
  if (users.size() != 2)
    return false;
  for (int i : {0, 1}) {
    auto whole = dyn_cast<BroadcastOp>(users[i]);
    auto shifted = whole ? onlyUser<SubOp>(whole.getResult()) : SubOp();
    auto power = shifted && shifted.getX() == maximum.getX() ? onlyUser<ExpOp>(shifted.getResult())
                                                             : ExpOp();
    auto sum = power ? onlyUser<ReduceSumOp>(power.getResult()) : ReduceSumOp();
    auto log =
        sum && sum.getAxes() == maximum.getAxes() ? onlyUser<LogOp>(sum.getResult()) : LogOp();
    if (log && onlyUser<AddOp>(log.getResult()) == users[1 - i])
      return true;
  }
  return false;
}

namespace {
class Backward {
public:
  Backward(OpBuilder &builder, Location location, ArrayRef<Value> xs)
      : maker(builder, location), ends(xs.begin(), xs.end()), active(ends) {}

  llvm::Error run(ArrayRef<Value> ys, ArrayRef<Value> seeds) {
    SmallVector<Operation *> order = opsBefore(ys, ends);
    for (Operation *op : order)
      if (llvm::Error error = markActive(op))
        return error;
    for (auto [y, seed] : llvm::zip(ys, seeds))
      accumulate(y, seed);
    for (Operation *op : llvm::reverse(order))
      if (llvm::Error error = passBack(op))
        return error;
    return llvm::Error::success();
  }

  Value adjointOf(Value x) const { return adjoints.lookup(x); }

private:
  /// Marks values that follow from the xs with a slope that is not 0 everywhere.
  llvm::Error markActive(Operation *op) {
    if (auto rounding = roundingBefore(op)) {
      if (active.contains(rounding->x))
        active.insert(op->getResult(0));
      return llvm::Error::success();
    }
    if (llvm::none_of(usedBy(op), [&](Value used) { return active.contains(used); }))
      return llvm::Error::success();
    const Row *row = findRule(op);
    if (!row)
      return makeError(ErrorCode::Refused, "op " + nameOf(op) +
                                               " lies between what is differentiated and the "
                                               "variables, but has no derivative");
    auto maximum = dyn_cast<ReduceMaxOp>(op);
    if (row->rule && !(maximum && (onlyShifts(maximum) || isShiftOfLogSum(maximum))))
      for (Value result : op->getResults())
        if (isFloat(result))
          active.insert(result);
    return llvm::Error::success();
  }

  void accumulate(Value value, Value adjoint) {
    if (!active.contains(value))
      return;
    adjoint = maker.reshape(maker.cast(adjoint, elementOf(value)), dimsOf(value));
    Value &sum = adjoints[value];
    sum = sum ? maker.add(sum, adjoint) : adjoint;
  }

  llvm::Error passBack(Operation *op) {
    if (auto rounding = roundingBefore(op)) {
      Value dy = adjoints.lookup(op->getResult(0));
      if (dy && !ends.contains(op->getResult(0))) {
        maker.location = locationOf(op);
        accumulate(rounding->x, straightThrough(maker, *rounding, dy));
      }
      return llvm::Error::success();
    }
    SmallVector<Value> flowing, used = usedBy(op);
    for (Value result : op->getResults()) // after an x nothing is followed
      flowing.push_back(ends.contains(result) ? Value() : adjoints.lookup(result));
    SmallVector<bool> wanted;
    for (Value value : used)
      wanted.push_back(active.contains(value));
    bool isPassed = llvm::any_of(flowing, [](Value adjoint) { return adjoint != nullptr; });
    if (!isPassed || !llvm::is_contained(wanted, true))
      return llvm::Error::success();
    maker.location = locationOf(op);
    Flow flow(maker.builder, maker.location, op, used, flowing, wanted);
    findRule(op)->rule(flow);
    if (!flow.refusal.empty())
      return makeError(ErrorCode::Refused,
                       "op " + nameOf(op) + " has no derivative: " + flow.refusal);
    for (auto [operand, adjoint] : llvm::zip(used, flow.given))
      if (adjoint)
        accumulate(operand, adjoint);
    return llvm::Error::success();
  }

  /// Ops of a rule have the differentiated op's name, so that reports and plans tell them apart.
  Location locationOf(Operation *op) const {
    std::string name = sourceName(op->getLoc()) + ".gradient";
    return NameLoc::get(maker.builder.getStringAttr(name));
  }

  Maker maker;
  DenseSet<Value> ends, active;
  DenseMap<Value, Value> adjoints;
};
} // namespace

static llvm::Error requireFloat(Value value, const Twine &name) {
  if (isFloat(value))
    return llvm::Error::success();
  return makeError(ErrorCode::Refused, name + " is " + textOf(value.getType()) +
                                           ", but must be of a floating-point type");
}

llvm::Expected<SmallVector<Value>> gradientsOrNull(OpBuilder &builder, Location location,
                                                   ArrayRef<Value> ys, ArrayRef<Value> xs,
                                                   ArrayRef<Value> seeds) {
  for (auto [y, seed] : llvm::zip(ys, seeds)) {
    if (llvm::Error error = requireFloat(y, "what is differentiated"))
      return error;
    if (seed.getType() != y.getType())
      return makeError(ErrorCode::Refused, "the seed is " + textOf(seed.getType()) +
                                               ", but must be " + textOf(y.getType()) +
                                               " as what is differentiated");
  }
  for (auto [i, x] : llvm::enumerate(xs))
    if (llvm::Error error = requireFloat(x, "variable " + Twine(i)))
      return error;
  Backward backward(builder, location, xs);
  if (llvm::Error error = backward.run(ys, seeds))
    return error;
  SmallVector<Value> found;
  for (Value x : xs)
    found.push_back(backward.adjointOf(x));
  return found;
}

llvm::Expected<SmallVector<Value>> gradients(OpBuilder &builder, Location location,
                                             ArrayRef<Value> ys, ArrayRef<Value> xs,
                                             ArrayRef<Value> seeds) {
  auto found = gradientsOrNull(builder, location, ys, xs, seeds);
  if (found)
    for (auto [x, slope] : llvm::zip(xs, *found))
      if (!slope)
        slope = Maker(builder, location).zeros(x);
  return found;
}

llvm::Expected<SmallVector<Value>> gradients(OpBuilder &builder, Location location, Value y,
                                             ArrayRef<Value> xs, Value seed) {
  if (llvm::Error error = requireFloat(y, "what is differentiated"))
    return error;
  if (!seed)
    seed = Maker(builder, location).like(y, 1);
  return gradients(builder, location, ArrayRef<Value>(y), xs, ArrayRef<Value>(seed));
}

llvm::Expected<Substituted> substitute(OpBuilder &builder, Location location, Value y,
                                       ArrayRef<Value> from, ArrayRef<Value> to) {
  IRMapping mapping;
  DenseSet<Value> ends;
  Substituted result;
  for (auto [i, was, is] : llvm::enumerate(from, to)) {
    if (elementOf(was) != elementOf(is) || rankOf(was) != rankOf(is))
      return makeError(ErrorCode::Refused, "variable " + Twine(i) + " is " + textOf(was.getType()) +
                                               ", but is given " + textOf(is.getType()));
    for (auto [wanted, found] : llvm::zip(dimsOf(was), dimsOf(is)))
      if (wanted.constant() && found.constant() && wanted != found)
        return makeError(ErrorCode::Refused, "variable " + Twine(i) + " has shape " +
                                                 textOf(dimsOf(was)) + ", but is given " +
                                                 textOf(dimsOf(is)));
    if (!ends.insert(was).second)
      return makeError(ErrorCode::Refused, "variable " + Twine(i) +
                                               " is one tensor with another, but is given a value");
    result.variables.push_back(builder.create<ReshapeOp>(location, was.getType(), is));
    mapping.map(was, result.variables.back());
  }
  DenseSet<Value> replaced = ends;
  SmallVector<Operation *> copied;
  for (Operation *op : opsBefore(y, ends)) {
    if (llvm::none_of(usedBy(op), [&](Value used) { return replaced.contains(used); }))
      continue;
    replaced.insert(op->result_begin(), op->result_end());
    copied.push_back(op);
  }
  cloneOps(builder, copied, mapping);
  result.y = mapping.lookupOrDefault(y);
  return result;
}

} // namespace heddle::grad
