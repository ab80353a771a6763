// Joining: whether an op may be computed in a group of its readers.
#ifndef HEDDLE_PARTITION_JOINING_H
#define HEDDLE_PARTITION_JOINING_H

#include "compiler/partition/Groups.h"

namespace heddle::partition {

class Joining {
public:
  explicit Joining(Groups &groups) : groups(groups) {}

  /// Whether the op may join the group, by the table of mechanisms and the cards, and pays there.
  bool mayJoin(mlir::Operation *op, const Group &group) const;
  /// Puts the op into the group of its users, or into one of its own.
  void assign(mlir::Operation *op);

private:
  bool mayGrow(const Mechanism &mechanism, mlir::Operation *op, const Group &group) const;
  bool pays(mlir::Operation *op, const Group &group) const;
  std::optional<size_t> groupOfUsers(mlir::Operation *op) const;

  Groups &groups;
};

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_JOINING_H
