// Mechanism: the ways in which a group becomes one kernel, a row each. Whoever asks what a
// mechanism may do asks here: the partitioner, the warehouse, the chooser and lower.
//
// A mechanism is a file of this folder with its row, a function of lower that carries it out, and
// a transform op by which cards name it. Matching is pure: it looks at ops alone.
#ifndef HEDDLE_MECHANISM_MECHANISM_H
#define HEDDLE_MECHANISM_MECHANISM_H

#include "compiler/graph/Graph.h"
#include "compiler/mechanism/Fit.h"

namespace heddle::mechanism {

/// The ops of one block, operands first.
using Ops = llvm::ArrayRef<mlir::Operation *>;

/// Kinds of a card that names the mechanism.
enum class CardType {
  Schedule, // generated code, as its knobs say
  Call,     // a function of an existing library
  Kernel    // a kernel that is written by hand, with the group's ops in its holes
};
llvm::StringRef nameOf(CardType type);

struct Mechanism {
  llvm::StringLiteral name;
  /// Whether these ops, of which only the last one's result is read elsewhere, can be one kernel.
  Fit (*check)(const Mechanism &mechanism, Ops ops, std::string &why);
  CardType type = CardType::Schedule;
  /// Knobs that a card may set; a kernel has its own instead.
  llvm::ArrayRef<llvm::StringLiteral> knobs = {};
  /// Knobs that only say how the work is shared among workers: one worker runs the same code
  /// whatever they are.
  llvm::ArrayRef<llvm::StringLiteral> sharing = {};
  /// All results are stored element by element, so that each may lie inside of a larger tensor.
  bool storesElements = false;
  /// Serves only some of the ops that have its loops, by properties that no key has: strides, or
  /// the other operands of a concat.
  bool readsParameters = false;
  /// Whether it serves a group depends on the groups that make its operands.
  bool readsProducers = false;
  /// Several of its ops may be read elsewhere, so that a group may grow by ops that others read
  /// too.
  bool storesSeveral = false;
  /// It computes products in register tiles.
  bool hasTiles = true;
  /// It can round the factors of its product to bf16 (whyNotShort).
  bool takesShort = false;
  /// It can multiply in registers that hold matrices, with tiles of 16 or 32 rows and columns.
  bool takesMatrices = false;
  /// It can multiply rows that are rounded in blocks (graph.matmul's `block`).
  bool takesBlocks = false;
  /// It has code for devices of threads, with knobs of its own.
  bool takesThreads = false;
  llvm::ArrayRef<llvm::StringLiteral> threadKnobs = {};
  /// A task takes as many rows as the knob `rows` says.
  bool takesRows = false;
  /// A part of the ops of its groups is a kernel of it as well, if it has all that are not
  /// elementwise.
  bool takesParts = false;
  /// Its groups are made of several possible groups. All others are built around one op.
  bool isSplittable = true;
  /// The file of a call's library, "libdnnl.so.2".
  llvm::StringLiteral library = "";

  Verdict fits(Ops ops) const;
  /// Knobs of either form.
  llvm::SmallVector<llvm::StringLiteral> allKnobs() const;
};

/// The rows, each defined in the file of its mechanism.
#define HEDDLE_MECHANISM(name) extern const Mechanism k##name;
#include "compiler/mechanism/mechanisms.def"
#undef HEDDLE_MECHANISM
llvm::ArrayRef<const Mechanism *> all();
/// Null for a name that no mechanism has.
const Mechanism *find(llvm::StringRef name);

/// The row that the group is made for, and the one that its schedule names; null if none is named.
const Mechanism *of(graph::GroupOp group);
const Mechanism *chosenFor(graph::GroupOp group);

/// The ops of a group.
llvm::SmallVector<mlir::Operation *> opsOf(mlir::Block &group);

} // namespace heddle::mechanism

#endif // HEDDLE_MECHANISM_MECHANISM_H
