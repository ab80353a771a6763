// Partition: splits a graph into groups, each to become one kernel.
//
// What a card claims as a whole is grown around its skeleton ops first (Growth.cpp). The rest is
// fused as Apollo's Layer I does (Joining.cpp). What only one group reads needs no memory, and
// since every use is inside, joining can never close a cycle. A group has one root, its last op,
// whose results are the group's results; those that walk the same elements become one with several
// in the end (Siblings.cpp).
//
// What may be one kernel is said by the table of mechanisms and the cards; what pays, by the policy
// (policy/FusionPolicy.h), which a plan overrides: by names of nodes (given/Wishes.cpp), or op by
// op (given/Given.cpp).
//
// Keeps: every op that computes is in a group, in several only where it is cheap; reshapes (views),
// constants and control flow are in none.

#include "compiler/partition/Partition.h"

#include "compiler/graph/Function.h"
#include "compiler/mechanism/Product.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/partition/Bands.h"
#include "compiler/partition/Steps.h"
#include "compiler/partition/given/Parts.h"
#include "compiler/partition/order/Order.h"
#include "compiler/partition/order/Regions.h"
#include "compiler/partition/order/Sinks.h"

using namespace mlir;

namespace heddle::partition {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#define GEN_PASS_DEF_PARTITIONPASS
#include "compiler/partition/Passes.h.inc"

StringRef stepOf(const Mechanism &made, ArrayRef<Operation *> ops) {
  bool isGates = &made == &mechanism::kContraction && mechanism::isReadInParts(ops);
  return isGates ? kGates : made.name;
}

SmallVector<StringRef, 2> stepsOf(graph::GroupOp group) {
  SmallVector<StringRef, 2> steps;
  const Mechanism *made = mechanism::of(group);
  // Results of a stitch beside its root's are its product's, and no sibling's.
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

static void split(Block &block, const Options &options) {
  Groups groups(block, options);
  copyFreeOps(groups);
  takeGiven(groups);
  takeClaims(groups);
  copyTransposes(groups);
  joinOps(groups);
  recompute(groups);
  groups.notePlaces();
  joinGates(groups);
  if (options.stitches)
    stitch(groups);
  if (options.fuses && options.joinsSiblings)
    joinSiblings(groups);
  groups.wrap();
}

static constexpr StringLiteral kLayers[] = {"fusion", "stitch", "siblings", "regions"};

namespace {
struct PartitionPass : impl::PartitionPassBase<PartitionPass> {
  using PartitionPassBase::PartitionPassBase;
  void getDependentDialects(DialectRegistry &registry) const override {
    warehouse::registerDialects(registry);
  }

  LogicalResult initialize(MLIRContext *context) override {
    for (StringRef layer : without)
      if (!llvm::is_contained(kLayers, layer))
        return emitOptionalError(UnknownLoc::get(context), "heddle-partition: no layer '", layer,
                                 "'; there are fusion, stitch, siblings and regions");
    if (!findPolicy(policy))
      return emitOptionalError(UnknownLoc::get(context), "heddle-partition: no policy '", policy,
                               "'; there are lanes, nothing and all");
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
    groups.policy = findPolicy(policy);
    groups.fuses = !llvm::is_contained(without, "fusion");
    groups.stitches = !llvm::is_contained(without, "stitch");
    groups.joinsSiblings = !llvm::is_contained(without, "siblings");
    groups.packs = !llvm::is_contained(without, "regions");
    for (StringRef entry : refused) {
      auto [name, step] = entry.rsplit(':');
      groups.refused.insert({name.str(), step.str()});
    }
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (failed(graph::verifyFunction(function)))
        return signalPassFailure();
      partition(function, groups);
    }
  }

private:
  std::shared_ptr<warehouse::Warehouse> cards;
};

} // namespace

std::string baseName(StringRef group) { return group.split('#').first.str(); }

std::map<std::string, Parts> partition(func::FuncOp function, const Options &options) {
  bool hasParts = options.isExact || !options.given.empty();
  if (hasParts)
    numberParts(function);
  if (options.fuses)
    ownBands(function);
  SmallVector<Block *> blocks;
  function.walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks)
    split(*block, options);
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
      packRegions(*block, options.regions ? &*options.regions : nullptr,
                  options.policy->mostAtOnce());
  return hasParts ? takeParts(function) : std::map<std::string, Parts>();
}

void registerPartitionPasses() { registerGeneratedPasses(); }

} // namespace heddle::partition
