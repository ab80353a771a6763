// Sinks: one walk over the groups in the model's order; after each, the sinks near it are tried.

#include "compiler/partition/order/Sinks.h"

#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/graph/edit/Clone.h"
#include "compiler/graph/edit/Sharing.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace heddle::partition {

using graph::GroupOp;

namespace {
/// Most groups that run earlier for one sink, and most that are looked at to find sinks.
constexpr size_t kMostMoved = 8, kMostNear = 64;

class Scheduler {
public:
  explicit Scheduler(func::FuncOp function) : function(function) {
    Block &block = function.getBody().front();
    for (Operation &op : block)
      if (!isa<graph::ConstantOp, graph::ReshapeOp>(op))
        add(&op);
    auto results = cast<func::ReturnOp>(block.getTerminator());
    for (auto [i, output] : llvm::enumerate(results.getOperands())) {
      returned.insert(graph::unshaped(output));
      auto input = function.getResultAttrOfType<IntegerAttr>(i, graph::kShares);
      if (Operation *maker = graph::unshaped(output).getDefiningOp(); input && maker)
        updated[maker].push_back(function.getArgument(input.getInt()));
    }
  }

  std::map<std::string, int64_t> run() {
    for (Operation *op : ops)
      if (!done.contains(op))
        schedule(op);
    return std::move(order);
  }

private:
  void add(Operation *op) {
    ops.push_back(op);
    auto &reads = readsOf[op];
    for (Value used : graph::usedBy(op)) {
      Value root = graph::unshaped(used);
      if (!root.getDefiningOp<graph::ConstantOp>() && reads.insert(root))
        readersOf[root].push_back(op);
    }
  }

  void schedule(Operation *op) {
    SmallVector<Operation *> run;
    auto add = [&](Operation *next) {
      done.insert(next);
      run.push_back(next);
      if (auto group = dyn_cast<GroupOp>(next))
        order.try_emplace(group.getName().str(), order.size());
    };
    add(op);
    for (size_t i = 0; i < run.size(); ++i)
      for (auto moved = nearestThatPays(run[i]); !moved.empty(); moved = nearestThatPays(run[i]))
        llvm::for_each(moved, add);
  }

  /// Ops that have to run for the sink that waits for the fewest.
  SmallVector<Operation *> nearestThatPays(Operation *op) const {
    SmallVector<Operation *> nearest;
    for (Operation *sink : sinksNear(op))
      if (auto moved = whatPays(sink); moved && (nearest.empty() || moved->size() < nearest.size()))
        nearest = std::move(*moved);
    return nearest;
  }

  bool isSink(Operation *op) const {
    return isa<GroupOp>(op) && llvm::all_of(op->getResults(), [&](Value result) {
             auto readers = readersOf.find(result);
             return returned.contains(result) &&
                    (readers == readersOf.end() ||
                     llvm::all_of(readers->second,
                                  [](Operation *reader) { return isa<func::ReturnOp>(reader); }));
           });
  }

  /// Sinks that read what the op makes or reads, directly or through a few others.
  SmallVector<Operation *> sinksNear(Operation *op) const {
    llvm::SetVector<Operation *> near;
    auto addReaders = [&](Value value) {
      auto readers = readersOf.find(value);
      if (readers == readersOf.end() || readers->second.size() > kMostNear)
        return;
      for (Operation *reader : readers->second)
        if (!done.contains(reader) && near.size() < kMostNear)
          near.insert(reader);
    };
    for (Value read : readsOf.find(op)->second)
      addReaders(read);
    for (Value result : op->getResults())
      addReaders(result);
    for (size_t i = 0; i < near.size(); ++i)
      for (Value result : near[i]->getResults())
        addReaders(result);
    SmallVector<Operation *> sinks;
    llvm::copy_if(near, std::back_inserter(sinks), [&](Operation *each) { return isSink(each); });
    return sinks;
  }

  int64_t bytesOf(Value value) const {
    if (isa<BlockArgument>(value) || returned.contains(value))
      return 0; // memory of the caller
    return graph::typicalSize(function, estimate::bytesOf(value));
  }

  /// Ops that have to run for the sink, in order, if it can run now and that frees memory.
  std::optional<SmallVector<Operation *>> whatPays(Operation *sink) const {
    llvm::SetVector<Operation *> moved;
    moved.insert(sink);
    for (size_t i = 0; i < moved.size(); ++i)
      for (Value read : readsOf.find(moved[i])->second)
        if (Operation *maker = read.getDefiningOp(); maker && !done.contains(maker)) {
          if (!isa<GroupOp>(maker) || moved.size() == kMostMoved)
            return std::nullopt;
          moved.insert(maker);
        }
    auto areRead = [&](Value value) { // by others that are still to run
      auto readers = readersOf.find(value);
      return readers != readersOf.end() && llvm::any_of(readers->second, [&](Operation *reader) {
               return !done.contains(reader) && !moved.contains(reader);
             });
    };
    if (auto places = updated.find(sink); places != updated.end())
      for (Value place : places->second)
        if (areRead(place))
          return std::nullopt;
    int64_t freed = 0, kept = 0;
    llvm::SetVector<Value> seen;
    for (Operation *op : moved) {
      for (Value read : readsOf.find(op)->second)
        if (!moved.contains(read.getDefiningOp()) && seen.insert(read) && !areRead(read))
          freed += bytesOf(read);
      for (Value result : op->getResults())
        if (areRead(result))
          kept += bytesOf(result);
    }
    if (freed == 0 || kept > freed)
      return std::nullopt;
    auto ordered = moved.takeVector();
    llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return SmallVector<Operation *>(ordered.begin(), ordered.end());
  }

  func::FuncOp function;
  std::vector<Operation *> ops;
  DenseMap<Operation *, llvm::SmallSetVector<Value, 4>> readsOf;
  DenseMap<Value, SmallVector<Operation *>> readersOf;
  DenseMap<Operation *, SmallVector<Value>> updated; // inputs, by the group that writes them
  DenseSet<Value> returned;
  DenseSet<Operation *> done;
  std::map<std::string, int64_t> order;
};
} // namespace

std::map<std::string, int64_t> orderOfSinks(func::FuncOp function) {
  return Scheduler(function).run();
}

} // namespace heddle::partition
