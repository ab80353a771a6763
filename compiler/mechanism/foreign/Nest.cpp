// Nest: dimensions that ops make equal, by union-find, and the loops that follow from them.

#include "compiler/mechanism/foreign/Nest.h"

#include "compiler/mechanism/Checks.h"

#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::Dim;
using graph::DimVector;

static bool isDecider(Operation *op) {
  return isa<graph::MatmulOp>(op) || !graph::combinedAxes(op).empty();
}

namespace {
class Reader {
public:
  Reader(Ops ops, std::string &why) : ops(ops), inside(ops.begin(), ops.end()), why(why) {}

  std::optional<Nest> read() {
    for (Operation *op : ops)
      if (isDecider(op))
        nest.deciders.push_back(op);
    if (!llvm::all_of(ops, [&](Operation *op) { return join(op); }))
      return std::nullopt;
    results = resultsOf(ops);
    for (Operation *op : nest.deciders)
      nest.values.push_back(op->getResult(0));
    for (Operation *op : nest.deciders)
      for (Value operand : op->getOperands())
        addValue(operand);
    for (Value result : results)
      addValue(result);
    addHoles();
    for (NestHole &hole : nest.holes)
      classes.push_back(classesOf(hole.value));
    for (Value value : nest.values)
      classes.push_back(classesOf(value));
    if (!llvm::all_of(classes, [&](const Classes &list) { return isSet(list); }))
      return std::nullopt;
    nameLoops();
    if (!placeHoles())
      return std::nullopt;
    return std::move(nest);
  }

private:
  using Axis = std::pair<void *, int64_t>; // a dimension of a value
  using Classes = SmallVector<Axis>;       // leaders, of the dimensions that a loop walks

  bool no(const Twine &text) {
    refuse(why, text);
    return false;
  }

  static Axis axis(Value value, int64_t dim) { return {value.getAsOpaquePointer(), dim}; }
  void link(Value a, int64_t i, Value b, int64_t j) { equal.unionSets(axis(a, i), axis(b, j)); }
  /// A size of 1 that stands for none of the loops.
  void drop(Value value, int64_t dim) { dropped.push_back(axis(value, dim)); }

  /// Sizes of x are those of the result from `added` on, or 1; of weights, which have as many
  /// dimensions as what they are multiplied with, 1 stands for no loop.
  bool joinRepeated(Operation *op, Value x, size_t added, size_t count) {
    DimVector from = graph::dimsOf(x), to = graph::dimsOf(op->getResult(0));
    for (size_t i = 0; i < count; ++i) {
      if (isWeight(x) && from[i].isConstant(1))
        drop(x, i);
      else if (from[i] == to[i + added])
        link(x, i, op->getResult(0), i + added);
      else if (from[i].isConstant(1))
        drop(x, i);
      else
        return no("whether " + named(op) + " repeats a dimension is only known at run time");
    }
    return true;
  }

  void joinView(Value x, Value result) {
    DimVector from = graph::dimsOf(x), to = graph::dimsOf(result);
    for (size_t i = 0, j = 0; i < from.size() || j < to.size();) {
      bool isOne = i < from.size() && from[i].isConstant(1);
      bool becomesOne = j < to.size() && to[j].isConstant(1);
      if (isOne != becomesOne && isOne)
        drop(x, i++);
      else if (isOne != becomesOne)
        drop(result, j++);
      else
        link(x, i++, result, j++);
    }
  }

  void joinReduced(Operation *op) {
    Value x = op->getOperand(0), result = op->getResult(0);
    auto axes = graph::combinedAxes(op);
    bool keepsDims = graph::rankOf(x) == graph::rankOf(result);
    for (int64_t i = 0, j = 0; i < graph::rankOf(x); ++i) {
      bool isReduced = llvm::is_contained(axes, i);
      if (isReduced && keepsDims)
        drop(result, j);
      else if (!isReduced)
        link(x, i, result, j);
      j += !isReduced || keepsDims;
    }
  }

  bool joinProduct(graph::MatmulOp op) {
    int64_t rank = graph::rankOf(op.getResult()), m = rank - 2, n = rank - 1;
    link(op.getA(), m, op.getResult(), m);
    link(op.getB(), n, op.getResult(), n);
    link(op.getA(), n, op.getB(), m);
    return joinRepeated(op, op.getA(), 0, m) && joinRepeated(op, op.getB(), 0, m);
  }

  bool join(Operation *op) {
    Value result = op->getResult(0);
    if (isa<graph::ConstantOp, graph::IotaOp, graph::SizesOp>(op))
      return true;
    if (auto matmul = dyn_cast<graph::MatmulOp>(op))
      return joinProduct(matmul);
    if (isDecider(op)) {
      joinReduced(op);
    } else if (isa<graph::BroadcastOp>(op)) {
      size_t rank = graph::rankOf(op->getOperand(0));
      return joinRepeated(op, op->getOperand(0), graph::rankOf(result) - rank, rank);
    } else if (graph::isView(op)) {
      joinView(op->getOperand(0), result);
    } else if (auto transpose = dyn_cast<graph::TransposeOp>(op)) {
      for (auto [i, from] : llvm::enumerate(transpose.getPermutation()))
        link(op->getOperand(0), from, result, i);
    } else if (graph::isElementwise(op)) {
      for (Value operand : op->getOperands())
        for (int64_t i = 0; i < graph::rankOf(result); ++i)
          link(operand, i, result, i);
    } else {
      return no(named(op) + " is no reduction, no product, and not computed element by element");
    }
    return true;
  }

  /// The tensor's dimensions that are walked: not those of size 1 that are dropped somewhere.
  Classes classesOf(Value value) {
    Classes found;
    for (int64_t i = 0; i < graph::rankOf(value); ++i)
      if (auto leader = leaderOf(value, i))
        found.push_back(*leader);
    return found;
  }

  std::optional<Axis> leaderOf(Value value, int64_t i) {
    Axis leader = equal.getOrInsertLeaderValue(axis(value, i));
    bool isDropped = llvm::any_of(
        dropped, [&](const Axis &one) { return equal.getOrInsertLeaderValue(one) == leader; });
    if (isDropped && graph::dimsOf(value)[i].isConstant(1))
      return std::nullopt;
    return leader;
  }

  bool isSet(const Classes &list) {
    for (size_t i = 0; i < list.size(); ++i)
      if (llvm::is_contained(ArrayRef(list).drop_front(i + 1), list[i]))
        return no("one loop would walk two dimensions of a tensor");
    return true;
  }

  /// Lets holes take a value that an op other than a decider reads, so that it is computed in one.
  void addValue(Value value) {
    Operation *op = value.getDefiningOp();
    bool isShared = llvm::any_of(value.getUsers(), [&](Operation *user) {
      return inside.contains(user) && !isDecider(user);
    });
    if (op && inside.contains(op) && !isa<graph::ConstantOp>(op) && isShared &&
        !llvm::is_contained(nest.values, value))
      nest.values.push_back(value);
  }

  void addHoles() {
    for (auto [number, op] : llvm::enumerate(nest.deciders)) {
      std::string name = "read_" + std::to_string(number);
      if (isa<graph::MatmulOp>(op)) {
        addHole(NestHole::Kind::Read, name + "_a", op->getOperand(0));
        addHole(NestHole::Kind::Read, name + "_b", op->getOperand(1));
      } else {
        addHole(NestHole::Kind::Read, name, op->getOperand(0));
      }
    }
    for (auto [number, result] : llvm::enumerate(results)) {
      addHole(NestHole::Kind::Write, "write_" + std::to_string(number), result);
      addHole(NestHole::Kind::Store, "store_" + std::to_string(number), result);
      addHole(NestHole::Kind::Load, "load_" + std::to_string(number), result);
    }
  }

  void addHole(NestHole::Kind kind, std::string name, Value value) {
    NestHole hole{kind, std::move(name), value, {}, {}, {}};
    bool follows = kind == NestHole::Kind::Read || kind == NestHole::Kind::Write;
    llvm::DenseSet<Value> seen;
    SmallVector<Value> open;
    if (follows)
      open.push_back(value);
    while (!open.empty()) {
      Value next = open.pop_back_val();
      Operation *op = next.getDefiningOp();
      if (!op || !inside.contains(op) || !seen.insert(next).second)
        continue;
      auto known = llvm::find(nest.values, next);
      bool isOwn = next == value && !isDecider(op);
      if (known != nest.values.end() && !isOwn)
        hole.taken.push_back(known - nest.values.begin());
      else
        llvm::append_range(open, op->getOperands());
    }
    llvm::sort(hole.taken);
    nest.holes.push_back(std::move(hole));
  }

  /// Whether `next` follows `one` in every list that has either.
  bool areNeighbours(const Axis &one, const Axis &next) const {
    return llvm::all_of(classes, [&](const Classes &list) {
      auto at = llvm::find(list, one), after = llvm::find(list, next);
      return at == list.end() ? after == list.end()
                              : std::next(at) != list.end() && *std::next(at) == next;
    });
  }

  void nameLoops() {
    for (auto [number, hole] : llvm::enumerate(nest.holes)) {
      int64_t dim = 0;
      const Axis *last = nullptr;
      for (const Axis &one : classes[number]) {
        while (leaderOf(hole.value, dim) != one)
          ++dim;
        if (!loopOf.count(one)) {
          if (!last || !areNeighbours(*last, one))
            nest.loops.emplace_back();
          loopOf[one] = {(int64_t)nest.loops.size() - 1, (int64_t)nest.loops.back().size()};
          nest.loops.back().push_back(graph::dimsOf(hole.value)[dim]);
          last = &one;
        } else {
          last = nullptr;
        }
      }
    }
  }

  SmallVector<int64_t> loopsOf(const Classes &list) {
    SmallVector<int64_t> loops;
    for (const Axis &one : list)
      if (int64_t loop = loopOf.at(one).loop; !llvm::is_contained(loops, loop))
        loops.push_back(loop);
    return loops;
  }

  bool placeHoles() {
    for (size_t i = 0; i < nest.values.size(); ++i) {
      const Classes &list = classes[nest.holes.size() + i];
      if (!llvm::all_of(list, [&](const Axis &one) { return loopOf.count(one) > 0; }))
        return no("no operand has a dimension of the result of " +
                  named(nest.values[i].getDefiningOp()));
      nest.valueLoops.push_back(loopsOf(list));
    }
    for (auto [number, hole] : llvm::enumerate(nest.holes)) {
      hole.loops = loopsOf(classes[number]);
      for (int64_t i = 0; i < graph::rankOf(hole.value); ++i) {
        auto leader = leaderOf(hole.value, i);
        hole.places.push_back(leader ? loopOf.at(*leader) : NestHole::Place());
      }
      for (int64_t value : hole.taken)
        if (!llvm::all_of(nest.valueLoops[value],
                          [&](int64_t loop) { return llvm::is_contained(hole.loops, loop); }))
          return no("an element of what reads " + named(nest.values[value].getDefiningOp()) +
                    " follows from several of its results");
    }
    return true;
  }

  Ops ops;
  llvm::SmallPtrSet<Operation *, 32> inside;
  std::string &why;
  Nest nest;
  SmallVector<Value> results;
  llvm::EquivalenceClasses<Axis> equal;
  SmallVector<Axis> dropped;
  std::vector<Classes> classes; // classes of the holes, then of the values
  std::map<Axis, NestHole::Place> loopOf;
};
} // namespace

Type Nest::element() const { return graph::elementOf(holes.front().value); }

bool Nest::variesInLanes(const NestHole &hole, int64_t value) const {
  return !hole.loops.empty() && llvm::is_contained(valueLoops[value], hole.loops.back());
}

std::string Nest::str(bool isC) const {
  std::string text;
  llvm::raw_string_ostream out(text);
  auto nameOf = [&](Value value) {
    Type type = graph::elementOf(value);
    std::string name;
    llvm::raw_string_ostream(name) << type;
    return isC && type != element() && isa<IntegerType>(type) ? std::string("int") : name;
  };
  for (auto [number, op] : llvm::enumerate(deciders)) {
    auto last = op->getAttrOfType<BoolAttr>("last");
    out << number << ":" << op->getName().stripDialect()
        << (last && last.getValue() ? " last " : " ") << nameOf(op->getResult(0)) << "; ";
  }
  StringRef separator;
  llvm::DenseMap<Value, StringRef> known; // the first hole of a value
  for (const NestHole &hole : holes) {
    if (hole.kind == NestHole::Kind::Store || hole.kind == NestHole::Kind::Load)
      continue;
    auto [first, isNew] = known.try_emplace(hole.value, hole.name);
    out << separator << hole.name;
    separator = ", ";
    if (!isNew) {
      out << " = " << first->second;
      continue;
    }
    out << "(";
    std::vector<std::string> arguments;
    for (int64_t loop : hole.loops)
      arguments.push_back("loop " + std::to_string(loop));
    for (int64_t value : hole.taken)
      arguments.push_back("value " + std::to_string(value));
    out << llvm::join(arguments, ", ") << ") " << nameOf(hole.value);
  }
  return text;
}

std::optional<Nest> readNest(Ops ops, std::string &why) { return Reader(ops, why).read(); }

static Fit fitsNest(const Mechanism &, Ops ops, std::string &why) {
  bool decides = llvm::any_of(ops, isDecider);
  auto nest = readNest(ops, why);
  if (!nest)
    return Fit::No;
  auto hasType = [](Value value) {
    Type type = graph::elementOf(value);
    return type.isF32() || type.isF64() || type.isSignlessInteger(32) || type.isSignlessInteger(64);
  };
  for (const NestHole &hole : nest->holes)
    if (!hasType(hole.value))
      return refuse(why, "no kernel is written for the element type of " + hole.name);
  for (Value value : nest->values)
    if (!hasType(value))
      return refuse(why,
                    "no kernel is written for the element type of " + named(value.getDefiningOp()));
  if (!decides)
    why = "it has no reduction and no product";
  return decides ? Fit::Full : Fit::Partial;
}

const Mechanism kKernelNest = {.name = "kernel.nest",
                               .check = fitsNest,
                               .type = CardType::Kernel,
                               .readsParameters = true,
                               .storesSeveral = true};

} // namespace heddle::mechanism
