// Sequence: see Sequence.h. Since units stand in a topological order, whatever leads from one to
// another lies between the two, and one scan of that stretch finds it.

#include "compiler/partition/order/Sequence.h"

#include "compiler/partition/order/Order.h"

using namespace mlir;

namespace heddle::partition {

/// Units further apart than this stay apart: what the earlier one makes would live longer, and the
/// scans of a large graph would take quadratic time.
static constexpr size_t kFarthest = 512;

Sequence::Sequence(Block &block, MembersOf membersOf, HeadOf headOf)
    : membersOf(std::move(membersOf)), headOf(std::move(headOf)) {
  for (Operation &op : block)
    if (this->headOf(&op) == &op) {
      seats[&op] = order.size();
      order.push_back(&op);
    }
  for (Operation *head : order)
    moveBefore(head, head);
}

/// Moves the ops of a unit, but for `place` itself, before it.
void Sequence::moveBefore(Operation *head, Operation *place) const {
  SmallVector<Operation *> members = membersOf(head);
  for (Operation *op : llvm::reverse(members))
    if (op != place)
      op->moveBefore(place);
}

bool Sequence::isFixed(Operation *head) const {
  return llvm::any_of(membersOf(head), [](Operation *op) { return isBarrier(*op); });
}

bool Sequence::reads(Operation *head, llvm::function_ref<bool(Operation *)> isAsked) const {
  auto isOperandAsked = [&](Operation *inner) {
    return llvm::any_of(inner->getOperands(), [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return source && isAsked(headOf(source));
    });
  };
  // Ops that have regions are fixed, so that it is enough to look at the members themselves.
  return llvm::any_of(membersOf(head), isOperandAsked);
}

std::optional<SetVector<Operation *>> Sequence::followers(ArrayRef<Operation *> heads) const {
  SetVector<Operation *> found;
  auto isFound = [&](Operation *head) { return found.contains(head); };
  auto isAmong = [&](Operation *head) { return llvm::is_contained(heads, head); };
  for (size_t seat = seats.at(heads.front()); seat <= seats.at(heads.back()); ++seat) {
    Operation *head = order[seat];
    if (!head)
      continue;
    if (isFixed(head) || (isAmong(head) && reads(head, isFound)))
      return std::nullopt;
    if (!isAmong(head) &&
        reads(head, [&](Operation *other) { return isFound(other) || isAmong(other); }))
      found.insert(head);
  }
  return found;
}

bool Sequence::mayJoin(Operation *earlier, Operation *later) const {
  return seats.at(earlier) < seats.at(later) && seats.at(later) - seats.at(earlier) <= kFarthest &&
         mayJoin({earlier, later});
}

bool Sequence::mayJoin(ArrayRef<Operation *> heads) const { return followers(heads).has_value(); }

void Sequence::join(ArrayRef<Operation *> heads) {
  auto after = followers(heads);
  Operation *later = heads.back();
  size_t low = seats.at(heads.front()), high = seats.at(later);
  SmallVector<Operation *> between(order.begin() + low, order.begin() + high);
  size_t free = low;
  auto seat = [&](Operation *head) {
    order[free] = head;
    seats[head] = free++;
  };
  for (Operation *head : heads.drop_back()) {
    order[free++] = nullptr;
    seats.erase(head);
  }
  for (Operation *head : between)
    if (head && !after->contains(head) && !llvm::is_contained(heads, head))
      seat(head);
  seat(later);
  for (Operation *head : heads.drop_back())
    moveBefore(head, membersOf(later).back());
  Operation *next = later->getNextNode();
  for (Operation *head : *after) {
    seat(head);
    moveBefore(head, next);
  }
  for (; free <= high; ++free)
    order[free] = nullptr;
}

} // namespace heddle::partition
