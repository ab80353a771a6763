// Rematerialise: the schedule as steps and tensors, and the walk over it.

#include "compiler/plan/Rematerialise.h"

#include "compiler/estimate/Seconds.h"
#include "compiler/estimate/Traffic.h"
#include "compiler/graph/Typical.h"
#include "compiler/graph/edit/Clone.h"
#include "compiler/graph/edit/Sharing.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace heddle::plan {

using graph::GroupOp;

namespace {
constexpr int64_t kNever = INT64_MAX;

/// One step of the program, with what it reads and makes: a group, those of a region, or an op.
struct Step {
  SmallVector<GroupOp> groups;
  SmallVector<int64_t> reads, makes; // tensors
  int64_t temporaryBytes = 0;
};

struct Tensor {
  Value value;
  int64_t bytes = 0, madeAt = 0;
  GroupOp group; // null: not of a group, and never computed again
  SmallVector<int64_t> readAt;
  int64_t keptUntil = -1; // somebody else than a group reads it until then
};

/// A way to compute tensors of a group again, from others.
struct Recipe {
  SmallVector<int64_t> results, from; // their numbers
  SmallVector<int64_t> makes, reads;  // tensors
  double seconds = 0;
};

/// The schedule, which no walk changes.
class Schedule {
public:
  Schedule(func::FuncOp function, const std::map<std::string, int64_t> &temporaries,
           const program::Machine &machine)
      : function(function), temporaries(temporaries), machine(machine) {
    for (Operation &op : function.getBody().front())
      add(op);
    findUpdates();
    for (Step &step : steps)
      for (GroupOp group : step.groups)
        seconds += secondsOf(wholeOf(group), group.getResults());
  }

  std::optional<int64_t> tensorOf(Value value) const {
    auto found = numbers.find(graph::unshaped(value));
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }

  /// The way to compute the tensor again where tensors of the same group are there, which is what
  /// `isThere` says; all that the group makes and that `isWanted` is made as well where it is on
  /// the way.
  const Recipe *recipeOf(int64_t tensor, llvm::function_ref<bool(int64_t)> isThere,
                         llvm::function_ref<bool(int64_t)> isWanted) const {
    GroupOp group = tensors[tensor].group;
    if (!group || group.getNumResults() > 64)
      return nullptr;
    uint64_t there = 0, wanted = 0;
    for (Value result : group.getResults()) {
      uint64_t bit = uint64_t(1) << cast<OpResult>(result).getResultNumber();
      int64_t number = numbers.at(result);
      there |= number != tensor && isThere(number) ? bit : 0;
      wanted |= number == tensor || (!isThere(number) && isWanted(number)) ? bit : 0;
    }
    auto [known, isNew] = recipes.try_emplace({tensor, there, wanted});
    if (isNew)
      known->second = makeRecipe(group, tensor, there, wanted);
    return known->second ? &*known->second : nullptr;
  }

  /// Until which step all that the group reads is what it was: an update in place changes it.
  int64_t deadlineOf(GroupOp group) const { return deadlines.lookup(group); }

  std::vector<Step> steps;
  std::vector<Tensor> tensors;
  double seconds = 0;

private:
  void add(Operation &op) {
    if (isa<graph::ConstantOp>(op))
      return;
    if (auto view = dyn_cast<graph::ReshapeOp>(op))
      return;
    auto group = dyn_cast<GroupOp>(op);
    bool isSame = group && group.getRegion() && !steps.empty() && !steps.back().groups.empty() &&
                  steps.back().groups.back().getRegion() == group.getRegion();
    if (!isSame)
      steps.emplace_back();
    Step &step = steps.back();
    int64_t at = (int64_t)steps.size() - 1;
    for (Value used : graph::usedBy(&op))
      if (auto tensor = tensorOf(used)) {
        if (!llvm::is_contained(step.reads, *tensor)) {
          step.reads.push_back(*tensor);
          tensors[*tensor].readAt.push_back(at);
        }
        if (isa<graph::DynamicReshapeOp>(op)) // has the same memory
          tensors[*tensor].keptUntil = kNever;
        if (!group)
          tensors[*tensor].keptUntil = std::max(tensors[*tensor].keptUntil, at);
      }
    if (group) {
      step.groups.push_back(group);
      auto needed = temporaries.find(group.getName().str());
      step.temporaryBytes += needed == temporaries.end() ? 0 : needed->second;
    }
    for (Value result : op.getResults()) {
      numbers[result] = tensors.size();
      step.makes.push_back(tensors.size());
      tensors.push_back({result, bytesOf(result), at, group, {}, -1});
    }
  }

  /// Bytes in the arena: what the function returns is memory of the caller.
  int64_t bytesOf(Value value) const {
    for (Operation *user : value.getUsers())
      if (isa<func::ReturnOp>(user))
        return 0;
    return isa<graph::DynamicReshapeOp>(value.getDefiningOp())
               ? 0
               : graph::typicalSize(function, estimate::bytesOf(value));
  }

  void findUpdates() {
    DenseMap<Value, int64_t> updatedAt;
    auto results = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    for (auto [i, output] : llvm::enumerate(results.getOperands()))
      if (auto input = function.getResultAttrOfType<IntegerAttr>(i, graph::kShares))
        if (auto tensor = tensorOf(output))
          updatedAt[function.getArgument(input.getInt())] = tensors[*tensor].madeAt;
    for (const Step &step : steps)
      for (GroupOp group : step.groups) {
        int64_t &deadline = deadlines[group] = kNever;
        for (Value used : graph::usedBy(group))
          if (auto updated = updatedAt.find(graph::unshaped(used)); updated != updatedAt.end())
            deadline = std::min(deadline, updated->second);
      }
  }

  static SmallVector<Operation *> wholeOf(GroupOp group) {
    SmallVector<Operation *> ops;
    for (Operation &op : group.getBody().front().without_terminator())
      ops.push_back(&op);
    return ops;
  }

  double secondsOf(ArrayRef<Operation *> ops, ValueRange results) const {
    return estimate::secondsOf(estimate::workOf(ops, results,
                                                [&](const graph::Dim &size) {
                                                  return (double)graph::typicalSize(function, size);
                                                }),
                               machine);
  }

  std::optional<Recipe> makeRecipe(GroupOp group, int64_t tensor, uint64_t there,
                                   uint64_t wanted) const {
    auto numbersIn = [&](uint64_t bits) {
      SmallVector<int64_t> found;
      for (int64_t i = 0; i < (int64_t)group.getNumResults(); ++i)
        if (bits >> i & 1)
          found.push_back(i);
      return found;
    };
    int64_t own = cast<OpResult>(tensors[tensor].value).getResultNumber();
    uint64_t all =
        group.getNumResults() == 64 ? ~uint64_t(0) : (uint64_t(1) << group.getNumResults()) - 1;
    Recipe recipe;
    std::optional<GroupPart> part;
    auto attempt = [&](SmallVector<int64_t> results, SmallVector<int64_t> from) {
      if (part)
        return;
      recipe.results = std::move(results);
      recipe.from = std::move(from);
      part = partOf(group, recipe.results, recipe.from);
    };
    attempt({own}, numbersIn(there));
    if (part && part->mechanism != &mechanism::kPointwise)
      part.reset(); // costs as much as all that is wanted of the group
    attempt(numbersIn(wanted), {});
    attempt(numbersIn(all), {});
    if (!part)
      return std::nullopt;
    // Keep the results that it reads, of those that it might.
    Operation *yield = group.getBody().front().getTerminator();
    SmallPtrSet<Value, 8> read;
    for (Operation *op : part->ops)
      read.insert(op->operand_begin(), op->operand_end());
    llvm::erase_if(recipe.from,
                   [&](int64_t number) { return !read.contains(yield->getOperand(number)); });
    SmallVector<Value> made;
    for (int64_t number : recipe.results) {
      made.push_back(group.getResult(number));
      recipe.makes.push_back(numbers.at(made.back()));
    }
    llvm::SetVector<int64_t> reads;
    for (int64_t number : recipe.from)
      reads.insert(numbers.at(group.getResult(number)));
    for (Value value : read)
      if (auto outside = tensorOf(value))
        reads.insert(*outside);
    recipe.reads.assign(reads.begin(), reads.end());
    llvm::sort(recipe.reads);
    recipe.seconds = secondsOf(part->ops, made);
    return recipe;
  }

  func::FuncOp function;
  const std::map<std::string, int64_t> &temporaries;
  const program::Machine &machine;
  DenseMap<Value, int64_t> numbers;
  DenseMap<Operation *, int64_t> deadlines;
  mutable std::map<std::tuple<int64_t, uint64_t, uint64_t>, std::optional<Recipe>> recipes;
};

/// Exponents of distance and cost in the score of a tensor that may go.
struct Weighting {
  double distance, cost;
};

class Walk {
public:
  Walk(const Schedule &schedule, int64_t limit, Weighting weighting)
      : schedule(schedule), limit(limit), weighting(weighting),
        isThere(schedule.tensors.size(), false), pins(schedule.tensors.size(), 0),
        holders(schedule.tensors.size(), -1), chosen(schedule.tensors.size(), nullptr) {}

  Rematerialisation run() {
    for (now = 0; now < (int64_t)schedule.steps.size(); ++now) {
      const Step &step = schedule.steps[now];
      provideAll(step.reads);
      for (int64_t tensor : step.reads)
        if (holders[tensor] >= 0)
          for (GroupOp group : step.groups)
            if (reads(group, tensor))
              addReader(holders[tensor], group.getName());
      int64_t bytes = step.temporaryBytes;
      for (int64_t tensor : step.makes)
        bytes += schedule.tensors[tensor].bytes;
      makeRoom(bytes);
      for (int64_t tensor : step.makes)
        put(tensor, -1);
      for (int64_t tensor : step.reads)
        --pins[tensor];
    }
    found.share = again / schedule.seconds;
    dropUnread();
    return std::move(found);
  }

private:
  bool reads(GroupOp group, int64_t tensor) const {
    return llvm::any_of(graph::usedBy(group),
                        [&](Value used) { return schedule.tensorOf(used) == tensor; });
  }
  void addReader(int64_t copy, StringRef name) {
    auto &readers = found.all[copy].readers;
    if (!llvm::is_contained(readers, name))
      readers.push_back(name.str());
  }

  /// A later recomputation may have taken the place of one before anybody has read that.
  void dropUnread() {
    for (size_t i = found.all.size(); i-- > 0;) {
      if (!found.all[i].readers.empty())
        continue;
      for (Recomputation &each : found.all)
        std::erase(each.readers, found.all[i].name);
      found.all.erase(found.all.begin() + i);
    }
  }

  /// Lets go of what shall be computed again. How is settled now, for its ancestors that are gone
  /// too: later other results of a group are there, and another way may need what nobody has kept.
  void giveUp(int64_t tensor) {
    SmallVector<int64_t> open{tensor};
    while (!open.empty()) {
      int64_t gone = open.pop_back_val();
      chosen[gone] = recipeOf(gone);
      for (int64_t read : chosen[gone]->reads)
        if (!isThere[read] && !chosen[read])
          open.push_back(read);
    }
    drop(tensor);
  }

  void put(int64_t tensor, int64_t holder) {
    isThere[tensor] = true;
    chosen[tensor] = nullptr;
    holders[tensor] = holder;
    alive += schedule.tensors[tensor].bytes;
  }
  void drop(int64_t tensor) {
    isThere[tensor] = false;
    alive -= schedule.tensors[tensor].bytes;
  }

  /// The step, from now on, at which a step reads the tensor.
  int64_t nextRead(int64_t tensor) const {
    ArrayRef<int64_t> all = schedule.tensors[tensor].readAt;
    auto next = llvm::lower_bound(all, now);
    return next == all.end() ? kNever : *next;
  }
  bool wasMade(int64_t tensor) const { return schedule.tensors[tensor].madeAt < now; }

  const Recipe *recipeOf(int64_t tensor) const {
    if (const Recipe *known = chosen[tensor])
      return known;
    return schedule.recipeOf(
        tensor, [&](int64_t other) { return isThere[other]; },
        [&](int64_t other) { return wasMade(other) && nextRead(other) != kNever; });
  }

  /// Makes sure that the tensors are there, and that they stay.
  void provideAll(ArrayRef<int64_t> all) {
    for (int64_t tensor : all)
      ++pins[tensor];
    for (int64_t tensor : all)
      provide(tensor);
  }

  /// Computes the tensor again unless it is there.
  void provide(int64_t tensor) {
    if (isThere[tensor])
      return;
    const Recipe *recipe = recipeOf(tensor);
    assert(recipe && "a tensor that cannot be computed again stays");
    provideAll(recipe->reads);
    GroupOp group = schedule.tensors[tensor].group;
    std::string name = group.getName().str();
    name += "~" + std::to_string(++copies[group]);
    int64_t bytes = 0;
    for (int64_t made : recipe->makes)
      bytes += isThere[made] ? 0 : schedule.tensors[made].bytes;
    makeRoom(bytes);
    int64_t copy = found.all.size();
    for (int64_t read : recipe->reads) {
      if (holders[read] >= 0)
        addReader(holders[read], name);
      --pins[read];
    }
    found.all.push_back({name,
                         group.getName().str(),
                         {recipe->results.begin(), recipe->results.end()},
                         {recipe->from.begin(), recipe->from.end()},
                         {}});
    for (int64_t made : recipe->makes) {
      if (isThere[made])
        drop(made); // what the form of the kernel makes once more takes its place
      put(made, copy);
    }
    again += recipe->seconds;
  }

  /// Finds when each tensor is read next, by a step or by what is computed again, and when last.
  void findNeeds() {
    size_t count = schedule.tensors.size();
    next.assign(count, kNever);
    last.assign(count, -1);
    SmallVector<int64_t> open;
    for (size_t tensor = 0; tensor < count; ++tensor) {
      next[tensor] = nextRead(tensor);
      ArrayRef<int64_t> all = schedule.tensors[tensor].readAt;
      if (next[tensor] == kNever)
        continue;
      last[tensor] = all.back();
      if (!isThere[tensor] && wasMade(tensor))
        open.push_back(tensor);
    }
    while (!open.empty()) {
      int64_t gone = open.pop_back_val();
      const Recipe *recipe = recipeOf(gone);
      if (!recipe)
        continue;
      for (int64_t read : recipe->reads) {
        bool isChanged = next[read] > next[gone] || last[read] < last[gone];
        next[read] = std::min(next[read], next[gone]);
        last[read] = std::max(last[read], last[gone]);
        if (isChanged && !isThere[read])
          open.push_back(read);
      }
    }
  }

  /// Seconds to compute the tensor again, with its ancestors that are gone; `deadline` is that of
  /// all of them.
  double costOf(int64_t tensor, int64_t &deadline) const {
    double seconds = 0;
    llvm::SmallSetVector<int64_t, 16> open;
    open.insert(tensor);
    for (size_t i = 0; i < open.size(); ++i) {
      const Recipe *recipe = recipeOf(open[i]);
      if (!recipe) {
        deadline = -1;
        return 0;
      }
      seconds += recipe->seconds;
      deadline = std::min(deadline, schedule.deadlineOf(schedule.tensors[open[i]].group));
      for (int64_t read : recipe->reads)
        if (!isThere[read])
          open.insert(read);
    }
    return seconds;
  }

  void makeRoom(int64_t bytes) {
    if (alive + bytes > std::min(limit, found.bytes)) {
      findNeeds();
      for (size_t tensor = 0; tensor < isThere.size(); ++tensor)
        if (isThere[tensor] && !pins[tensor] && next[tensor] == kNever)
          drop(tensor);
    }
    bool isStale = false;
    while (alive + bytes > limit) {
      if (isStale)
        findNeeds();
      auto worst = worstToKeep();
      if (!worst)
        break;
      giveUp(*worst);
      isStale = true;
    }
    found.bytes = std::max(found.bytes, alive + bytes);
  }

  std::optional<int64_t> worstToKeep() const {
    std::optional<int64_t> worst;
    double most = 0;
    for (size_t tensor = 0; tensor < isThere.size(); ++tensor) {
      const Tensor &each = schedule.tensors[tensor];
      if (!isThere[tensor] || pins[tensor] || each.bytes == 0 || each.keptUntil >= now)
        continue;
      int64_t deadline = kNever;
      double seconds = costOf(tensor, deadline);
      if (last[tensor] > deadline)
        continue;
      double score = (double)each.bytes *
                     std::pow((double)(next[tensor] - now + 1), weighting.distance) /
                     std::pow(seconds, weighting.cost);
      if (score > most) {
        most = score;
        worst = tensor;
      }
    }
    return worst;
  }

  const Schedule &schedule;
  int64_t limit;
  Weighting weighting;
  std::vector<bool> isThere;
  std::vector<int> pins;
  std::vector<int64_t> holders; // the recomputation whose result it is; -1: of the group itself
  std::vector<const Recipe *> chosen; // for what is gone, once it is known to be wanted again
  std::vector<int64_t> next, last;
  DenseMap<Operation *, int> copies;
  int64_t now = 0, alive = 0;
  double again = 0;
  Rematerialisation found;
};
} // namespace

static Rematerialisation bestOf(const Schedule &schedule, int64_t bytes) {
  std::optional<Rematerialisation> best;
  for (Weighting weighting : {Weighting{1, 1}, {0.5, 1}, {0, 1}, {1, 0.5}, {2, 1}}) {
    Rematerialisation found = Walk(schedule, bytes, weighting).run();
    bool isNearer =
        best && (best->bytes > bytes ? found.bytes < best->bytes
                                     : found.bytes <= bytes && found.share < best->share);
    if (!best || isNearer)
      best = std::move(found);
    if (best->all.empty())
      break; // it suffices as it is
  }
  return *best;
}

Rematerialisation rematerialise(func::FuncOp function, int64_t bytes,
                                const std::map<std::string, int64_t> &temporaries,
                                const program::Machine &machine) {
  return bestOf(Schedule(function, temporaries, machine), bytes);
}

Rematerialisation rematerialiseWithin(func::FuncOp function, double share,
                                      const std::map<std::string, int64_t> &temporaries,
                                      const program::Machine &machine) {
  constexpr int kHalvings = 6;
  Schedule schedule(function, temporaries, machine);
  Rematerialisation best = bestOf(schedule, kNever);
  int64_t tooFew = 0, enough = best.bytes;
  for (int i = 0; i < kHalvings; ++i) {
    int64_t bytes = tooFew + (enough - tooFew) / 2;
    Rematerialisation found = bestOf(schedule, bytes);
    if (found.bytes > bytes || found.share > share) {
      tooFew = bytes;
      continue;
    }
    enough = bytes;
    best = std::move(found);
  }
  return best;
}

} // namespace heddle::plan
