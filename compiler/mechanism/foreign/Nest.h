// Nest: a group as a kernel of the frame "nest" sees it: loops, the ops that decide, and a hole for
// each operand of these and for each result.
//
// Any number of reductions, arg reductions and products, in the order of the model, with
// elementwise ops between them. Dimensions that these ops make equal are one loop, and neighbours
// that all operands walk together are one, too. Loops are numbered as the holes meet them, which
// are
//   read_D(indices, values...)         one element of the operand of decider D, or
//   read_D_a, read_D_b                 of a product's
//   write_R(indices, values...)        computes, stores and gives one element of result R
//   store_R(indices, element)          stores an element that the kernel has already
//   load_R(indices)                    an element that was stored
// where the indices are those of the loops that the tensor has, and the values those that its
// element follows from: results of deciders, then what a hole reads or writes that other
// elementwise ops of the group read, so that each op is computed in one hole.
#ifndef HEDDLE_MECHANISM_FOREIGN_NEST_H
#define HEDDLE_MECHANISM_FOREIGN_NEST_H

#include "compiler/mechanism/Mechanism.h"

namespace heddle::mechanism {

struct NestHole {
  enum class Kind { Read, Write, Store, Load };
  Kind kind;
  std::string name;
  mlir::Value value; // tensor that it reads or writes
  /// Loop of a dimension of the value, and its place among that loop's dimensions; none for sizes
  /// of 1 that no loop walks.
  struct Place {
    int64_t loop = -1, part = 0;
  };
  llvm::SmallVector<Place> places;
  llvm::SmallVector<int64_t> loops; // loops of the indices
  llvm::SmallVector<int64_t> taken; // numbers of the values that it takes
};

struct Nest {
  llvm::SmallVector<mlir::Operation *> deciders;
  std::vector<graph::DimVector> loops; // the dimensions of each, the outermost first
  /// Values that holes take: results of the deciders, then values that other holes read or write.
  llvm::SmallVector<mlir::Value> values;
  std::vector<llvm::SmallVector<int64_t>> valueLoops; // loops of each value
  std::vector<NestHole> holes;

  /// The type of the first operand that is read: that of a kernel's elements and vectors.
  mlir::Type element() const;
  /// Whether the value differs between lanes, which the hole's last loop has.
  bool variesInLanes(const NestHole &hole, int64_t value) const;
  /// Text of the frame that a kernel is written for: groups of one text differ in sizes and in
  /// elementwise ops alone. `isC`: in C a value's type has a name, so that integers of both sizes
  /// are one.
  std::string str(bool isC) const;
};

/// Nullopt, with the reason, where the frame cannot show the group.
std::optional<Nest> readNest(Ops ops, std::string &why);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_FOREIGN_NEST_H
