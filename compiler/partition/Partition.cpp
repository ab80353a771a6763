// Partition: splits a graph into groups, each to become one kernel.
//
// What a card claims as a whole is grown around its skeleton ops first (Growth.cpp). The rest is
// fused as Apollo's Layer I does (Zhao et al., MLSys 2022): one walk over the ops of a block, last
// to first: an op joins the group of its users when all of them are in one group and the two fit
// one loop nest. What only one group reads needs no memory, and since every use is inside, joining
// can never close a cycle. A group has one root, its last op, whose results are the group's
// results.
//
// Keeps: every op that computes is in a group, in several only where it is cheap; reshapes (views),
// constants and control flow are in none.

#include "compiler/partition/Partition.h"

#include "compiler/graph/LoopNest.h"
#include "compiler/mechanism/Shapes.h"
#include "compiler/partition/Partitioner.h"
#include "compiler/partition/Regions.h"

using namespace mlir;

namespace heddle::partition {

StringRef nameOf(Kind kind) {
  switch (kind) {
  case Kind::Pointwise:
    return "pointwise";
  case Kind::Rows:
    return "rows";
  case Kind::Contraction:
    return "contraction";
  case Kind::Window:
    return "window";
  case Kind::Serial:
    return "serial";
  case Kind::Stitch:
    return "stitch";
  case Kind::Gates:
    return "gates";
  }
  llvm_unreachable("all kinds have names");
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

static bool isHost(Operation *op) {
  if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
    return !reshape.keepsIndices();
  return isa<graph::ConstantOp, graph::DynamicReshapeOp, graph::BindSizesOp, graph::IfOp,
             graph::LoopOp, graph::ScanOp, graph::YieldOp, graph::GroupOp, func::ReturnOp>(op) ||
         op->hasTrait<graph::Hosted>();
}

static Kind kindOf(Operation *op) {
  if (auto conv = dyn_cast<graph::ConvOp>(op))
    return isDepthwise(conv) ? Kind::Window : Kind::Contraction;
  if (isa<graph::MatmulOp>(op))
    return Kind::Contraction;
  if (isa<graph::PoolOp>(op))
    return Kind::Window;
  if (!graph::reducedAxes(op).empty())
    return foldsTrailing(op) ? Kind::Rows : Kind::Pointwise;
  if (isa<graph::ScatterElementsOp, graph::ScatterNdOp>(op))
    return Kind::Serial;
  return Kind::Pointwise;
}

/// Must stand alone: others neither join it nor does it join others.
static bool isAlone(Operation *op) {
  return kindOf(op) == Kind::Serial ||
         isa<graph::DynamicBroadcastOp, graph::DynamicSliceOp, graph::RangeOp,
             graph::ConvTransposeOp, graph::ArgMaxOp, graph::ArgMinOp>(op);
}

/// What a product's epilogue reads in place: memory, in another shape or a part of it.
static bool isRead(Operation *op) { return graph::isView(op) || isa<graph::SliceOp>(op); }

/// Whether a broadcast shows elements more than once, other than where a size turns out to be 1.
static bool repeats(graph::BroadcastOp op) {
  DimVector from = graph::dimsOf(op.getX()), to = graph::dimsOf(op.getResult());
  size_t added = to.size() - from.size();
  from.insert(from.begin(), added, graph::Dim(1));
  return llvm::any_of(llvm::zip(from, to), [](auto sizes) {
    auto [x, result] = sizes;
    return x.isConstant(1) && !result.isConstant(1);
  });
}

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
  wrap();
}

/// Whether the plan, where it names the group of this root, has the op in it.
bool Partitioner::isWanted(Operation *op, Operation *root) const {
  auto group = options.wanted.find(sourceNameOf(root));
  std::string name = sourceNameOf(op);
  return group == options.wanted.end() || name.empty() || group->second.count(name) > 0;
}

bool Partitioner::isRefused(Operation *root, StringRef kind) const {
  return options.refused.count({sourceNameOf(root), kind.str()}) > 0;
}

void Partitioner::takeClaims() {
  if (!options.cards)
    return;
  for (Claim &claim : growClaims(block, *options.cards, options.target, isHost)) {
    Operation *root = claim.ops.back();
    if (isRefused(root, claim.form) ||
        !llvm::all_of(claim.ops, [&](Operation *op) { return isWanted(op, root); }))
      continue;
    for (Operation *op : claim.ops)
      groupOf[op] = groups.size();
    Group group{claim.form, {},    {},   0,   llvm::to_vector(llvm::reverse(claim.ops)),
                {},         false, true, true};
    for (Operation *op : claim.ops)
      for (Value made : op->getResults())
        if (op != root && llvm::any_of(made.getUsers(), [&](Operation *user) {
              return !llvm::is_contained(claim.ops, block.findAncestorOpInBlock(*user));
            }))
          group.alsoRead.push_back(made);
    groups.push_back(std::move(group));
  }
}

void Partitioner::giveFreeOpsToEachUser() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!graph::isFree(&op) || isHost(&op))
      continue; // else it costs nothing to do again
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op.getUses())
      uses.push_back(&use);
    for (OpOperand *use : ArrayRef<OpOperand *>(uses).drop_front(uses.empty() ? 0 : 1)) {
      if (use->getOwner()->getBlock() != &block || isHost(use->getOwner()))
        continue;
      Operation *copy = OpBuilder(&op).clone(op);
      use->set(copy->getResult(0));
    }
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

bool Partitioner::usesAllow(Operation *op) {
  // A product, a window or a sampled op reads its operand from memory, often and out of order.
  for (OpOperand &use : op->getUses()) {
    Operation *user = use.getOwner();
    Kind kind = kindOf(user);
    if (isa<graph::MatmulOp>(user))
      return isa<graph::TransposeOp>(op) && use.getOperandNumber() == 1 &&
             !op->getOperand(0).getDefiningOp<graph::ConstantOp>();
    if (kind == Kind::Contraction || kind == Kind::Window || kind == Kind::Serial || isAlone(user))
      return false;
    bool isData = isa<graph::GatherOp, graph::GatherElementsOp, graph::GatherNdOp, graph::ResizeOp,
                      graph::ReverseSequenceOp>(user) &&
                  use.getOperandNumber() == 0;
    if (isData)
      return false;
  }
  return true;
}

/// Whether the op, and what it is computed from element by element, would be computed again for
/// each element that a broadcast shows of its result, and costs too much for that. What follows a
/// fold over rows is computed once a row where the fold is in the group too.
bool Partitioner::isRepeated(Operation *op, Group &group) {
  if (llvm::none_of(op->getUsers(), [](Operation *user) {
        auto broadcast = dyn_cast<graph::BroadcastOp>(user);
        return broadcast && repeats(broadcast);
      }))
    return false;
  bool isCostly = false;
  llvm::SetVector<Operation *> sources;
  sources.insert(op);
  for (size_t i = 0; i < sources.size() && i < kMostOps; ++i) {
    Operation *source = sources[i];
    isCostly |= isExpensive(source);
    if (source != op && source->hasOneUse() && kindOf(source) == Kind::Rows &&
        mayJoin(source, group))
      return false;
    if (graph::isElementwise(source))
      for (Value operand : source->getOperands())
        if (Operation *next = operand.getDefiningOp();
            next && !isHost(next) && !groupOf.contains(next))
          sources.insert(next);
  }
  return isCostly;
}

/// Whether the op makes fewer bytes of what another product gives, so that it is better stored by
/// that product's kernel than computed by a reader.
static bool narrowsProduct(Operation *op) {
  auto bytes = [](Value value) { return graph::bytesOf(graph::elementOf(value)); };
  return graph::isElementwise(op) && llvm::any_of(op->getOperands(), [&](Value in) {
           return graph::followsProduct(in) && bytes(in) > bytes(op->getResult(0)) &&
                  graph::dimsOf(in) == graph::dimsOf(op->getResult(0));
         });
}

bool Partitioner::mayJoin(Operation *op, Group &group) {
  Operation *root = group.root();
  if (group.isClaimed || !options.fuses || group.members.size() >= kMostOps || isAlone(op) ||
      isAlone(root) || !isWanted(op, root) || !usesAllow(op) || isRepeated(op, group))
    return false;
  Kind kind = kindOf(op);
  if (isRefused(root, kind == Kind::Pointwise ? StringRef(group.kind) : partition::nameOf(kind)))
    return false;
  DimVector dims = graph::dimsOf(op->getResult(0));
  switch (kind) {
  case Kind::Contraction:
  case Kind::Window:
    return group.is(Kind::Pointwise) &&
           (kind == Kind::Contraction ? group.onlySlices : group.onlyElementwise) &&
           dims == group.domain && readOnlyElementwise(op, group);
  case Kind::Rows: {
    DimVector rows = graph::dimsOf(op->getOperand(0));
    size_t axes = graph::reducedAxes(op).size();
    if (!mechanism::staysInRow(op->getResult(0), rows, axes))
      return false;
    if (group.is(Kind::Rows))
      return rows == group.rows && axes == group.rowAxes;
    return group.is(Kind::Pointwise) && group.onlyElementwise &&
           (group.domain == rows || mechanism::isRowShape(group.domain, rows, axes));
  }
  case Kind::Pointwise:
    break;
  case Kind::Serial:
  case Kind::Stitch:
  case Kind::Gates:
    return false;
  }
  // A fold of leading dimensions: once for each element of the result.
  if (!graph::reducedAxes(op).empty())
    return group.is(Kind::Pointwise) && group.onlyElementwise && dims == group.domain &&
           readOnlyElementwise(op, group);
  if (group.is(Kind::Contraction) || group.is(Kind::Window)) {
    // Beside the product itself only elementwise ops and broadcasts wait in registers, and reads of
    // memory.
    bool isReadOfMemory = group.is(Kind::Contraction) && isRead(op);
    return !narrowsProduct(op) && !llvm::any_of(op->getUsers(), isRead) &&
           (graph::isElementwise(op) || isa<graph::BroadcastOp>(op) || isReadOfMemory ||
            (isa<graph::TransposeOp>(op) && isa<graph::MatmulOp>(*op->user_begin())));
  }
  if (group.is(Kind::Rows) && !graph::isElementwise(op) && !graph::isFree(op))
    return false;
  // What can be an epilogue is no prologue: each pass over the row would compute it again, and a
  // product stores its result where a concat wants it.
  bool isBetterBehind =
      group.is(Kind::Rows) || (!group.onlySlices && narrowsProduct(op)) ||
      llvm::any_of(op->getUsers(), [](Operation *user) { return isa<graph::ConcatOp>(user); });
  if (isBetterBehind && graph::isElementwise(op) && llvm::any_of(op->getOperands(), [&](Value in) {
        return graph::followsProduct(in) && graph::dimsOf(in) == dims;
      }))
    return false;
  bool isGuarded = isa<graph::ConcatOp, graph::PadOp>(op);
  return !isGuarded || group.onlyElementwise;
}

/// Whether every path from op to the root goes through ops that keep the place.
bool Partitioner::readOnlyElementwise(Operation *op, Group &group) {
  bool mayRead = kindOf(op) == Kind::Contraction;
  return llvm::all_of(op->getUsers(),
                      [&](Operation *user) { return graph::isElementwise(user); }) &&
         llvm::all_of(group.members, [&](Operation *member) {
           return graph::isElementwise(member) || isa<graph::BroadcastOp>(member) ||
                  (mayRead && isRead(member));
         });
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
    groups.push_back({"pointwise", graph::dimsOf(op->getResult(0)), {}, 0, {}, {}});
  }
  Group &group = groups[index];
  Kind kind = kindOf(op);
  if (kind != Kind::Pointwise)
    group.kind = partition::nameOf(kind).str();
  if (kind == Kind::Rows) {
    group.rows = graph::dimsOf(op->getOperand(0));
    group.rowAxes = graph::reducedAxes(op).size();
  }
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
                                                  uniqueName(root), group.kind);
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
      if (!llvm::is_contained({"fusion", "stitch", "regions"}, layer))
        return emitOptionalError(UnknownLoc::get(context), "heddle-partition: no layer '", layer,
                                 "'; there are fusion, stitch and regions");
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
    groups.packs = !llvm::is_contained(without, "regions");
    for (StringRef entry : refused) {
      auto [name, kind] = entry.rsplit(':');
      groups.refused.insert({name.str(), kind.str()});
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
  if (options.packs)
    for (Block *block : blocks)
      packRegions(*block, options.regions ? &*options.regions : nullptr);
}

void registerPartitionPasses() { PassRegistration<PartitionPass>(); }

} // namespace heddle::partition
