// Joining: whether an op may join the group of its users, which the table of mechanisms says, and
// whether that pays, which is said here: what would be computed more often than once, and what is
// better stored by the kernel that makes its operand.

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/mechanism/Product.h"
#include "compiler/partition/Partitioner.h"

using namespace mlir;

namespace heddle::partition {

using graph::DimVector;

bool Partitioner::serves(const Mechanism &mechanism, Ops ops) const {
  auto ordered = ops.takeVector();
  llvm::sort(ordered, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return servesInOrder(mechanism, ordered);
}

bool Partitioner::servesInOrder(const Mechanism &mechanism, ArrayRef<Operation *> ordered) const {
  return mechanism.fits(ordered).isFull() &&
         (!options.cards || options.cards->takes(ordered, mechanism));
}

/// Whether the mechanism serves the group with the op. Where it does not serve what the op
/// would be added to either, all is computed element by element, which any op allows.
bool Partitioner::mayGrow(const Mechanism &mechanism, Operation *op, const Group &group) const {
  Ops before(group.members.begin(), group.members.end()), after(before);
  after.insert(op);
  if (serves(mechanism, after))
    return true;
  if (&mechanism == &mechanism::kRows) // a pass over the row for each reduction
    return false;
  if (!group.is(mechanism))
    before = Ops(&op, &op + 1);
  return !serves(mechanism, before);
}

static bool isSliced(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<graph::SliceOp>(user); });
}

bool Partitioner::mayJoin(Operation *op, Group &group) {
  Operation *root = group.root();
  if (op->hasAttr(graph::kIsStored) || group.isClaimed || !options.fuses ||
      group.members.size() >= kMostOps || isAlone(op) || !isWanted(op, root) ||
      graph::rowsOf(op) != graph::rowsOf(root))
    return false;
  if (group.is(mechanism::kSerial)) { // which stores all elements of the first operand anyway
    Ops all(group.members.begin(), group.members.end());
    all.insert(op);
    return !isRefused(root, group.mechanism->name) && serves(mechanism::kSerial, all);
  }
  if (isAlone(root))
    return false;
  const Mechanism *brought = mechanismOf(op);
  bool bringsLoops = brought != &mechanism::kPointwise;
  // A product that is read in parts is for Gates.cpp.
  bool isAsked = isAskedFor(op, root) && !(brought == &mechanism::kContraction && isSliced(op));
  if (isRefused(root, (bringsLoops ? brought : group.mechanism)->name) ||
      !(isAsked || pays(op, group)))
    return false;
  if (bringsLoops)
    return (group.is(mechanism::kPointwise) ||
            (brought == &mechanism::kRows && group.is(mechanism::kRows))) &&
           mayGrow(*brought, op, group);
  // Element by element, any op may join.
  return group.is(mechanism::kPointwise) || mayGrow(*group.mechanism, op, group);
}

/// What a product's epilogue reads in place: memory, in another shape or a part of it.
static bool isRead(Operation *op) { return graph::isView(op) || isa<graph::SliceOp>(op); }

/// Whether readers ask for each element of the op about once.
static bool isReadOnce(Operation *op) {
  // A product, a window or a sampled op reads its operand from memory, often and out of order.
  for (OpOperand &use : op->getUses()) {
    Operation *user = use.getOwner();
    const Mechanism *reader = mechanismOf(user);
    if (auto product = dyn_cast<graph::MatmulOp>(user);
        product && (use.getOperandNumber() == 0 || isa<graph::SelectOp>(op)))
      return mechanism::leavesOut(product) ||
             (isa<graph::TransposeOp>(op) && mechanism::transposedLeft(product));
    if (isa<graph::MatmulOp>(user))
      return isa<graph::TransposeOp>(op) && !op->getOperand(0).getDefiningOp<graph::ConstantOp>();
    if (reader == &mechanism::kContraction || reader == &mechanism::kWindow || isAlone(user))
      return false;
    bool isData = !isa<graph::IotaOp, graph::BroadcastOp>(op) &&
                  (graph::isGather(user) || isa<graph::ResizeOp, graph::ReverseSequenceOp>(user)) &&
                  use.getOperandNumber() == 0;
    if (isData)
      return false;
  }
  return true;
}

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

/// Whether the op only checks an index: a kernel of rows takes the result, but cannot take it in.
static bool checksIndex(Operation *op) {
  auto gather = dyn_cast<graph::GatherElementsOp>(op);
  return gather && gather.getX().getDefiningOp<graph::IotaOp>();
}

/// Whether the op, and what each of its elements is computed from, would be computed again for each
/// element that a broadcast shows of its result, and costs too much for that. What follows a
/// reduction over rows is computed once per row where the reduction is in the group too.
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
    isCostly |= isExpensive(source) || checksIndex(source);
    if (source != op && source->hasOneUse() && mechanismOf(source) == &mechanism::kRows &&
        mayJoin(source, group))
      return false;
    if (graph::isElementwise(source) || isRead(source) || isa<graph::TransposeOp>(source))
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

/// Whether every path from op to the root goes through ops that keep the place.
bool Partitioner::readOnlyElementwise(Operation *op, Group &group) {
  bool mayRead = mechanismOf(op) == &mechanism::kContraction;
  return llvm::all_of(op->getUsers(),
                      [&](Operation *user) { return graph::isElementwise(user); }) &&
         llvm::all_of(group.members, [&](Operation *member) {
           return graph::isElementwise(member) || isa<graph::BroadcastOp, graph::IotaOp>(member) ||
                  (mayRead && isRead(member));
         });
}

/// Whether the op stores along another axis than it reads along, sizes of 1 aside: a kernel of its
/// own turns squares of registers.
static bool turnsRows(Operation *op) {
  auto transpose = dyn_cast<graph::TransposeOp>(op);
  if (!transpose)
    return false;
  DimVector dims = graph::dimsOf(transpose.getX());
  auto isLasting = [&](int64_t axis) { return !dims[axis].isConstant(1); };
  auto last = llvm::find_if(llvm::reverse(transpose.getPermutation()), isLasting);
  return last != llvm::reverse(transpose.getPermutation()).end() &&
         llvm::any_of(llvm::seq<int64_t>(*last + 1, dims.size()), isLasting);
}

/// Whether the op, computed in the group, costs no more than stored and read.
bool Partitioner::pays(Operation *op, Group &group) {
  if (!isReadOnce(op) || isRepeated(op, group))
    return false;
  DimVector dims = graph::dimsOf(op->getResult(0));
  bool isStored = group.is(mechanism::kContraction) || group.is(mechanism::kWindow);
  const Mechanism *brought = mechanismOf(op);
  if (brought == &mechanism::kRows)
    return true;
  // What makes an element of many others is computed once for each element of the result.
  if (brought != &mechanism::kPointwise || !graph::reducedAxes(op).empty())
    return group.is(mechanism::kPointwise) &&
           (brought == &mechanism::kContraction ? group.onlySlices : group.onlyElementwise) &&
           dims == group.domain && readOnlyElementwise(op, group);
  // What a slice or a view reads lies in memory.
  if (isStored)
    return !narrowsProduct(op) && !llvm::any_of(op->getUsers(), isRead);
  // What can be an epilogue is no prologue: each pass over the row would compute it again, and a
  // product stores its result where a concat wants it.
  bool isBetterBehind =
      group.is(mechanism::kRows) || (!group.onlySlices && narrowsProduct(op)) ||
      llvm::any_of(op->getUsers(), [](Operation *user) { return isa<graph::ConcatOp>(user); });
  if (isBetterBehind && graph::isElementwise(op) && llvm::any_of(op->getOperands(), [&](Value in) {
        return graph::followsProduct(in) && graph::dimsOf(in) == dims;
      }))
    return false;
  // A concat computes its elements one by one, and a kernel of the transpose stores them in place.
  if (turnsRows(op) &&
      llvm::any_of(op->getUsers(), [](Operation *user) { return isa<graph::ConcatOp>(user); }))
    return false;
  bool isGuarded = isa<graph::ConcatOp, graph::PadOp>(op);
  return !isGuarded || group.onlyElementwise;
}

} // namespace heddle::partition
