// Card: one schedule, as read from an .mlir file: what it is for, its knobs, and what it does
// (docs/spec/cards.md).
#ifndef HEDDLE_WAREHOUSE_CARD_H
#define HEDDLE_WAREHOUSE_CARD_H

#include "compiler/mechanism/Mechanism.h"
#include "compiler/warehouse/Key.h"

#include "mlir/IR/OwningOpRef.h"

namespace heddle::warehouse {

/// A number that the chooser sets: an argument of @schedule after the group.
struct Knob {
  std::string name;
  std::vector<int64_t> domain;
  int64_t initial = 0;

  bool allows(int64_t value) const { return llvm::is_contained(domain, value); }
  /// The largest value of the domain that is at most `wanted`, else the smallest.
  int64_t atMost(int64_t wanted) const;
};

using KnobValues = std::map<std::string, int64_t>;

/// The target of cards that are for the machine itself.
constexpr llvm::StringLiteral kHostCards = "cpu";

struct Card {
  std::string path, name; // the name is the file's, without folder and suffix
  std::string target;     // the folder below schedules/ of such cards
  int64_t priority = 0;
  std::vector<Key> keys;          // each deciding op of a group must match one of them
  std::vector<Key> nests;         // or: the whole of a group must match one of them
  bool readsThroughMoves = false; // ops that only move elements are no part of the nest
  const mechanism::Mechanism *mechanism = nullptr; // named by @schedule
  std::string source, code;        // of a kernel: its file, "" for the card itself, and the text
  int64_t reductions = 0;          // number of reductions that a kernel of rows is written for
  std::string nestText;            // the example's, for a kernel of a nest: mechanism::Nest::str
  std::optional<bool> readsParts;  // whether a product of the group is read in parts; none: any
  std::vector<std::string> dtypes; // the deciding ops' types; empty for any
  std::map<std::string, int64_t> least, most;  // guards on extents, by letter
  std::vector<Knob> knobs;                     // in the order of the arguments
  bool hasPrologue = true, hasEpilogue = true; // whether other ops may be before, after
  bool isStrict = true; // rounds as the ops say, but for the order of sums and fused additions
  std::string text, hash;
  bool isBuiltIn = false;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp example; // the module's, or null

  /// Whether it is for a device, whose tasks are carried out by threads.
  bool isOfThreads() const { return target != kHostCards; }
  const Knob *knob(llvm::StringRef name) const;
  /// "" if these are knobs of the card, with values of their domains, else why not.
  std::string knobRefusal(const KnobValues &values) const;
  /// The knobs with the values that are worth a trial: for one worker, those that only share the
  /// work among workers have the one that they are written with.
  std::vector<Knob> knobsFor(int64_t workers) const;
  /// The ops of @example, operands first, without constants.
  llvm::SmallVector<mlir::Operation *> exampleOps() const;
  /// How these ops, operands first, stand to the card's nests: what the partitioner grows by.
  /// No for a card without nests.
  Fit fit(llvm::ArrayRef<mlir::Operation *> ops) const;
  /// "" when the card is for this group, else why not. Its target, and what it needs besides, a
  /// library or a compiler, are not asked.
  std::string refusal(graph::GroupOp group) const;
  /// As above, for ops, operands first.
  std::string refusal(llvm::ArrayRef<mlir::Operation *> ops) const;

  /// The loops of ops as this card sees them.
  graph::LoopNest nestOf(llvm::ArrayRef<mlir::Operation *> ops) const;

private:
  std::string kernelRefusal(llvm::ArrayRef<mlir::Operation *> ops) const;
  std::string mechanismRefusal(llvm::ArrayRef<mlir::Operation *> ops) const;
  std::string nestRefusal(llvm::ArrayRef<mlir::Operation *> ops) const;
  bool names(mlir::Operation *op) const;
  /// The first op, of ops in their order, that the card does not name, nor any op before (after)
  /// it.
  mlir::Operation *prologueOf(llvm::ArrayRef<mlir::Operation *> ops) const;
  mlir::Operation *epilogueOf(llvm::ArrayRef<mlir::Operation *> ops) const;
  std::string aroundRefusal(llvm::ArrayRef<mlir::Operation *> ops) const;
};

/// Reads and checks a card. `path` is in messages. The context must know the ops of
/// registerDialects.
llvm::Expected<Card> parseCard(mlir::MLIRContext &context, llvm::StringRef text,
                               llvm::StringRef path);

/// Runs @schedule on the group with these knobs, defaults for the others. Leaves `schedule`,
/// `card` and `card_hash` on the group.
llvm::Error apply(const Card &card, graph::GroupOp group, const KnobValues &knobs = {});

} // namespace heddle::warehouse

#endif // HEDDLE_WAREHOUSE_CARD_H
