// Sequence: see Sequence.h. Since units stand in a topological order, whatever leads from one to
// another lies between the two, and one scan of that stretch finds it.

#include "compiler/partition/Sequence.h"

#include "compiler/partition/Order.h"

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
  // What has regions is fixed, so that it is enough to look at the members themselves.
  return llvm::any_of(membersOf(head), isOperandAsked);
}

std::optional<SetVector<Operation *>> Sequence::followers(Operation *earlier,
                                                          Operation *later) const {
  SetVector<Operation *> found;
  auto follows = [&](Operation *head) { return head == earlier || found.contains(head); };
  for (size_t seat = seats.at(earlier) + 1; seat < seats.at(later); ++seat) {
    Operation *head = order[seat];
    if (!head)
      continue;
    if (isFixed(head))
      return std::nullopt;
    if (reads(head, follows))
      found.insert(head);
  }
  if (isFixed(earlier) || isFixed(later) ||
      reads(later, [&](Operation *head) { return found.contains(head); }))
    return std::nullopt;
  return found;
}

bool Sequence::mayJoin(Operation *earlier, Operation *later) {
  return seats.at(earlier) < seats.at(later) && seats.at(later) - seats.at(earlier) <= kFarthest &&
         followers(earlier, later).has_value();
}

void Sequence::join(Operation *earlier, Operation *later) {
  auto after = followers(earlier, later);
  size_t low = seats.at(earlier), high = seats.at(later), free = low + 1;
  SmallVector<Operation *> between(order.begin() + low + 1, order.begin() + high);
  order[low] = nullptr;
  seats.erase(earlier);
  auto seat = [&](Operation *head) {
    order[free] = head;
    seats[head] = free++;
  };
  for (Operation *head : between)
    if (head && !after->contains(head))
      seat(head);
  seat(later);
  moveBefore(earlier, membersOf(later).back());
  Operation *next = later->getNextNode();
  for (Operation *head : *after) {
    seat(head);
    moveBefore(head, next);
  }
  for (; free <= high; ++free)
    order[free] = nullptr;
}

} // namespace heddle::partition
