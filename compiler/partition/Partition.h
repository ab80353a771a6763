// Partition: which ops share a kernel.
#ifndef HEDDLE_PARTITION_PARTITION_H
#define HEDDLE_PARTITION_PARTITION_H

#include "compiler/partition/policy/FusionPolicy.h"
#include "compiler/warehouse/Warehouse.h"

namespace heddle::partition {

/// Steps that make groups larger and have no mechanism of their own: groups that are one because
/// they walk the same elements, and products with their readers in parts.
inline constexpr llvm::StringLiteral kSeveral = "several", kGates = "gates";
/// The step that makes a group of these ops, operands first, for the mechanism.
llvm::StringRef stepOf(const Mechanism &made, llvm::ArrayRef<mlir::Operation *> ops);
/// The names of steps, or of the mechanism, that made a group of more than one: any of them can be
/// refused (Options::refused), the first of them first.
llvm::SmallVector<llvm::StringRef, 2> stepsOf(graph::GroupOp group);
/// Whether the step made a group of what could be several.
bool isSplittable(llvm::StringRef step);

/// Names of ops, by the name of the group that they are in.
using Members = std::map<std::string, std::set<std::string>>;

/// Ops by the names of their nodes: their numbers among all that a node has become.
using Parts = std::map<std::string, std::set<int64_t>>;

/// A group as a plan has it op by op.
struct GivenGroup {
  std::string name; // of the root
  std::string mechanism;
  Parts parts;
};

struct Options {
  /// Cards whose nests claim subgraphs; none without it.
  const warehouse::Warehouse *cards = nullptr;
  /// Decides what pays.
  const FusionPolicy *policy = &lanes();
  /// Whether what no card claims is fused, Apollo's first layer; else each op is a group.
  bool fuses = true;
  /// Whether independent groups are launched at once, Apollo's third layer.
  bool packs = true;
  /// Groups that are made whatever the policy finds.
  std::vector<GivenGroup> given;
  /// Whether the parts of all groups are asked for.
  bool isExact = false;
  /// Groups that hold these ops and no others: how a plan splits a group, and joins what would not
  /// be joined, or computed again by each reader, of itself.
  Members wanted;
  /// Names in `wanted` that several groups have: which of them an op is in is not said.
  std::set<std::string> ambiguous;
  /// Nodes whose results no group of other nodes takes in, and those that their readers take in
  /// wherever a mechanism can, even where that costs more.
  std::set<std::string> apart, joined;
  /// Positions of groups by their names: in a block they are in this order, as far as what they
  /// read allows.
  std::map<std::string, int64_t> order;
  /// Whether a product and the reductions over its rows become one group, Apollo's second layer.
  bool stitches = true;
  /// Whether groups that walk the same elements or rows become one with several results.
  bool joinsSiblings = true;
  /// Name and step of groups that turned out to be no kernel, or not worth it: such are not made.
  std::set<std::pair<std::string, std::string>> refused;
  /// Regions of groups that are launched together with others, if there is a plan.
  std::optional<std::map<std::string, int64_t>> regions;
};

/// The name of a group's root: names that occur twice are numbered after a '#'.
std::string baseName(llvm::StringRef group);

/// Wraps the ops of every block below `function` into graph.group ops. The parts of each by its
/// name, if the options ask for them or have some.
std::map<std::string, Parts> partition(mlir::func::FuncOp function, const Options &options = {});

void registerPartitionPasses();

} // namespace heddle::partition

#endif // HEDDLE_PARTITION_PARTITION_H
