// Partition: splits a graph into groups, each to become one kernel.
//
// What a card claims as a whole is grown around its skeleton ops first (Growth.cpp). The rest is
// fused as Apollo's Layer I does (Zhao et al., MLSys 2022): one walk over the ops of a block, last
// to first: an op joins the group of its users when all of them are in one group and the two fit
// one loop nest. What only one group reads needs no memory, and since every use is inside, joining
// can never close a cycle. A group has one root, its last op, whose results are the group's
// results; those that walk the same elements become one with several in the end (Siblings.cpp).
//
// Keeps: every op that computes is in a group, in several only where it is cheap; reshapes (views),
// constants and control flow are in none.

#include "compiler/partition/Partition.h"

#include "compiler/graph/LoopNest.h"
#include "compiler/mechanism/Product.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/partition/AttentionGradients.h"
#include "compiler/partition/Bands.h"
#include "compiler/partition/Order.h"
#include "compiler/partition/Partitioner.h"
#include "compiler/partition/Regions.h"
#include "compiler/partition/Sinks.h"

using namespace mlir;

namespace heddle::partition {

/// The step that makes a group of these ops, operands first, for the mechanism.
static StringRef stepOf(const Mechanism &made, ArrayRef<Operation *> ops) {
  bool isGates = &made == &mechanism::kContraction && mechanism::isReadInParts(ops);
  return isGates ? kGates : made.name;
}

SmallVector<StringRef, 2> stepsOf(graph::GroupOp group) {
  SmallVector<StringRef, 2> steps;
  const Mechanism *made = mechanism::of(group);
  // What a stitch gives beside its root is its product's, and no sibling's.
  if (group.getNumResults() > 1 && made != &mechanism::kStitch)
    steps.push_back(kSeveral);
  if (made)
    steps.push_back(stepOf(*made, mechanism::opsOf(group.getBody().front())));
  return steps;
}

bool isSplittable(StringRef step) {
  const Mechanism *made = mechanism::find(step);
  return made ? made->isSplittable : step == kSeveral || step == kGates;
}

using graph::DimVector;

static bool isDepthwise(graph::ConvOp op) {
  auto outputs = graph::dimsOf(op.getW())[0].constant();
  return op.getGroups() > 1 && outputs == op.getGroups() && op.getChannelsLast() &&
         graph::dimsOf(op.getW())[1].isConstant(1);
}

static bool foldsTrailing(Operation *op) {
  ArrayRef<int64_t> axes = graph::reducedAxes(op);
  int64_t rank = graph::rankOf(op->getOperand(0));
  for (int64_t i = rank - (int64_t)axes.size(); i < rank; ++i)
    if (!llvm::is_contained(axes, i))
      return false;
  return !axes.empty();
}

bool isHost(Operation *op) {
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
    return !reshape.keepsIndices();
  if (isa<graph::SizesOp>(op)) // checks of sizes alone need no memory
    return llvm::all_of(op->getUsers(),
                        [](Operation *user) { return isa<graph::BindSizesOp>(user); });
  return isa<graph::ConstantOp, graph::GroupOp>(op) || op->hasTrait<OpTrait::IsTerminator>() ||
         graph::isOutsideKernels(op);
}

/// Whether the op can take its operands into its kernel, element by element.
static bool readsInPlace(Operation *op) {
  return graph::isElementwise(op) || isa<graph::TransposeOp>(op) || !graph::reducedAxes(op).empty();
}

const Mechanism *mechanismOf(Operation *op) {
  if (auto conv = dyn_cast<graph::ConvOp>(op))
    return isDepthwise(conv) ? &mechanism::kWindow : &mechanism::kContraction;
  if (isa<graph::MatmulOp>(op))
    return &mechanism::kContraction;
  if (isa<graph::PoolOp>(op))
    return &mechanism::kWindow;
  if (!graph::reducedAxes(op).empty())
    return foldsTrailing(op) ? &mechanism::kRows : &mechanism::kPointwise;
  if (graph::isScatter(op))
    return &mechanism::kSerial;
  return &mechanism::kPointwise;
}

bool isAlone(Operation *op) { return op->hasTrait<graph::Standalone>(); }

bool isExpensive(Operation *op) { return graph::isCostly(op) || isa<graph::ResizeOp>(op); }

static std::string sourceNameOf(Operation *op) { return graph::sourceName(op->getLoc()); }

static std::string uniqueName(Operation *root) {
  std::string name = graph::sourceName(root->getLoc());
  if (name.empty())
    name = root->getName().stripDialect().str();
  return name;
}

void Partitioner::run() {
  giveFreeOpsToEachUser();
  takeClaims();
  giveTransposesToProducts();
  for (Operation &op : llvm::reverse(block))
    if (!isHost(&op) && !groupOf.contains(&op))
      assign(&op);
  for (size_t i = 0, count = groups.size(); i < count; ++i)
    giveToReaders(groups[i]);
  for (Operation &op : block)
    places[&op] = places.size();
  joinGates();
  if (options.stitches)
    stitchAll();
  if (options.fuses && options.joinsSiblings)
    joinSiblings();
  wrap();
}

/// Whether the plan, where it names the group of this root, has the op in it, and does not want the
/// op's node apart from it.
bool Partitioner::isWanted(Operation *op, Operation *root) const {
  auto group = options.wanted.find(sourceNameOf(root));
  std::string name = sourceNameOf(op);
  if (options.apart.count(name) && name != sourceNameOf(root))
    return false;
  return group == options.wanted.end() || name.empty() || group->second.count(name) > 0;
}

/// Whether the plan has the op in the group of this root and in no other, so that it says it of all
/// that the name stands for, or wants its node joined to what reads it.
bool Partitioner::isAskedFor(Operation *op, Operation *root) const {
  std::string name = sourceNameOf(op);
  if (options.joined.count(name))
    return true;
  auto group = options.wanted.find(sourceNameOf(root));
  return group != options.wanted.end() && !options.ambiguous.count(group->first) &&
         group->second.count(name) &&
         llvm::count_if(options.wanted, [&](auto &each) { return each.second.count(name) > 0; }) ==
             1;
}

bool Partitioner::isRefused(Operation *root, StringRef step) const {
  return options.refused.count({sourceNameOf(root), step.str()}) > 0;
}

void Partitioner::takeClaims() {
  if (!options.cards)
    return;
  auto isClaimWanted = [&](const Claim &claim) {
    Operation *root = claim.ops.back();
    return !isRefused(root, stepOf(*claim.mechanism, claim.ops)) &&
           llvm::all_of(claim.ops, [&](Operation *op) { return isWanted(op, root); });
  };
  std::vector<Claim> begun = beginAttentionGradients(block, *options.cards, isClaimWanted);
  if (!begun.empty())
    giveFreeOpsToEachUser(); // copies read those of their originals
  for (Claim &claim : growClaims(block, *options.cards, isHost, std::move(begun))) {
    Operation *root = claim.ops.back();
    if (!isClaimWanted(claim))
      continue;
    for (Operation *op : claim.ops)
      groupOf[op] = groups.size();
    Group group{
        claim.mechanism, {}, llvm::to_vector(llvm::reverse(claim.ops)), {}, false, true, true};
    for (Operation *op : claim.ops)
      for (Value made : op->getResults())
        if (op != root && llvm::any_of(made.getUsers(), [&](Operation *user) {
              return !llvm::is_contained(claim.ops, block.findAncestorOpInBlock(*user));
            }))
          group.alsoRead.push_back(made);
    groups.push_back(std::move(group));
  }
}

bool isWidening(Operation *op) {
  auto cast = dyn_cast<graph::CastOp>(op);
  if (!cast)
    return false;
  auto from = dyn_cast<FloatType>(graph::elementOf(cast.getX()));
  auto to = dyn_cast<FloatType>(graph::elementOf(cast.getResult()));
  return from && to && from.getWidth() < to.getWidth();
}

void Partitioner::giveFreeOpsToEachUser() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    bool widens = options.fuses && isWidening(&op);
    if (!(graph::isFree(&op) || widens) || isHost(&op))
      continue; // else it costs nothing to do again
    SmallVector<OpOperand *> uses;
    bool isTaken = false; // the op itself, by somebody who needs a widened one in memory
    for (OpOperand &use : op.getUses())
      if (widens && !readsInPlace(use.getOwner()))
        isTaken = true;
      else
        uses.push_back(&use);
    for (OpOperand *use : ArrayRef(uses).drop_front(isTaken || uses.empty() ? 0 : 1)) {
      if (use->getOwner()->getBlock() != &block || isHost(use->getOwner()))
        continue;
      Operation *copy = OpBuilder(&op).clone(op);
      use->set(copy->getResult(0));
    }
  }
}

/// A transpose that only products read, each of which can do without it in memory.
void Partitioner::giveTransposesToProducts() {
  auto reads = [&](OpOperand &use) {
    auto product = dyn_cast<graph::MatmulOp>(use.getOwner());
    return product && product->getBlock() == &block && !groupOf.contains(product) &&
           (use.getOperandNumber() == 1 ||
            mechanism::readsThrough(product, cast<graph::TransposeOp>(use.get().getDefiningOp())));
  };
  for (auto op : llvm::make_early_inc_range(block.getOps<graph::TransposeOp>())) {
    if (!options.fuses || op->use_empty() || groupOf.contains(op) ||
        !llvm::all_of(op->getUses(), reads))
      continue;
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      uses.push_back(&use);
    for (OpOperand *use : ArrayRef<OpOperand *>(uses).drop_front())
      use->set(OpBuilder(op).clone(*op)->getResult(0));
  }
}

/// The one group that reads all results of op, if there is one.
std::optional<size_t> Partitioner::groupOfUsers(Operation *op) {
  std::optional<size_t> found;
  for (Operation *user : op->getUsers()) {
    auto known = groupOf.find(user);
    if (known == groupOf.end() || (found && *found != known->second))
      return std::nullopt;
    found = known->second;
  }
  return found;
}

void Partitioner::assign(Operation *op) {
  auto candidate = groupOfUsers(op);
  size_t index;
  if (candidate && mayJoin(op, groups[*candidate])) {
    index = *candidate;
  } else {
    if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
      return; // a view
    index = groups.size();
    groups.push_back({&mechanism::kPointwise, graph::dimsOf(op->getResult(0)), {}, {}});
  }
  Group &group = groups[index];
  if (const Mechanism *brought = mechanismOf(op); brought != &mechanism::kPointwise)
    group.mechanism = brought;
  bool isInPlace = graph::isElementwise(op) || graph::isFree(op);
  group.onlyElementwise &= isInPlace;
  group.onlySlices &= isInPlace || isa<graph::SliceOp>(op);
  group.members.push_back(op);
  groupOf[op] = index;
}

void Partitioner::wrap() {
  for (Group &group : groups) {
    if (group.members.empty())
      continue; // part of another one
    Operation *root = group.root();
    SmallVector<Value> results(root->getResults());
    llvm::append_range(results, group.alsoRead);
    OpBuilder builder(root);
    auto wrapped = builder.create<graph::GroupOp>(root->getLoc(), TypeRange(ValueRange(results)),
                                                  uniqueName(root), group.mechanism->name);
    Block *body = builder.createBlock(&wrapped.getBody());
    for (Operation *member : llvm::reverse(group.members))
      member->moveBefore(body, body->end());
    for (auto [inside, outside] : llvm::zip(results, wrapped.getResults()))
      inside.replaceUsesWithIf(
          outside, [&](OpOperand &use) { return !wrapped->isAncestor(use.getOwner()); });
    builder.setInsertionPointToEnd(body);
    builder.create<graph::YieldOp>(root->getLoc(), results);
  }
}

static constexpr StringLiteral kLayers[] = {"fusion", "stitch", "siblings", "regions"};

namespace {
/// Options have the names of `heddle compile --without`; by default no card claims anything.
struct PartitionPass : PassWrapper<PartitionPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PartitionPass)
  PartitionPass() = default;
  PartitionPass(const PartitionPass &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "heddle-partition"; }
  StringRef getDescription() const override { return "wrap ops that share a kernel into groups"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    warehouse::registerDialects(registry);
  }

  LogicalResult initialize(MLIRContext *context) override {
    for (StringRef layer : without)
      if (!llvm::is_contained(kLayers, layer))
        return emitOptionalError(UnknownLoc::get(context), "heddle-partition: no layer '", layer,
                                 "'; there are fusion, stitch, siblings and regions");
    if (!hasCards)
      return success();
    auto loaded = warehouse::Warehouse::load(*context);
    if (!loaded)
      return emitOptionalError(UnknownLoc::get(context), llvm::toString(loaded.takeError()));
    cards = std::make_shared<warehouse::Warehouse>(std::move(*loaded));
    return success();
  }

  void runOnOperation() override {
    Options groups;
    groups.cards = cards.get();
    groups.fuses = !llvm::is_contained(without, "fusion");
    groups.stitches = !llvm::is_contained(without, "stitch");
    groups.joinsSiblings = !llvm::is_contained(without, "siblings");
    groups.packs = !llvm::is_contained(without, "regions");
    for (StringRef entry : refused) {
      auto [name, step] = entry.rsplit(':');
      groups.refused.insert({name.str(), step.str()});
    }
    getOperation().walk([&](func::FuncOp function) { partition(function, groups); });
  }

private:
  Option<bool> hasCards{*this, "cards", llvm::cl::desc("nests of the built-in cards claim ops")};
  ListOption<std::string> without{*this, "without", llvm::cl::desc("layers to leave out")};
  ListOption<std::string> refused{*this, "refused",
                                  llvm::cl::desc("NAME:KIND of groups that shall not be made")};
  std::shared_ptr<warehouse::Warehouse> cards;
};

} // namespace

std::string baseName(StringRef group) { return group.split('#').first.str(); }

void partition(func::FuncOp function, const Options &options) {
  if (options.fuses)
    ownBands(function);
  SmallVector<Block *> blocks;
  function.walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks)
    Partitioner(*block, options).run();
  // Names identify groups in a plan: number those that occur twice.
  llvm::StringMap<int> seen;
  function.walk([&](graph::GroupOp group) {
    int count = seen[group.getName()]++;
    if (count > 0)
      group.setName((group.getName() + "#" + Twine(count)).str());
  });
  if (options.order.empty())
    orderGroups(function.getBody().front(), orderOfSinks(function));
  else
    for (Block *block : blocks)
      orderGroups(*block, options.order);
  if (options.packs)
    for (Block *block : blocks)
      packRegions(*block, options.regions ? &*options.regions : nullptr);
}

void registerPartitionPasses() { PassRegistration<PartitionPass>(); }

} // namespace heddle::partition
