// Key: the pattern of loops by which a card says what it is for (docs/spec/cards.md).
//
// `p* { k:s(dot) }`: any number of parallel loops around one reduction that does a dot. A key sees
// loops and the ops that decide a schedule; names of ONNX nodes and of sizes never reach it.
#ifndef HEDDLE_WAREHOUSE_KEY_H
#define HEDDLE_WAREHOUSE_KEY_H

#include "compiler/graph/LoopNest.h"
#include "compiler/mechanism/Fit.h"

#include "llvm/Support/Error.h"

namespace heddle::warehouse {

/// One loop of a key, or a run of loops one inside of the other.
struct KeyLoop {
  enum class Many { One, Any, Some };

  std::string letter;            // "" when the key gives none
  std::optional<int64_t> extent; // one loop only
  graph::Loop::Kind kind = graph::Loop::Kind::Parallel;
  Many many = Many::One;
  bool takesAnyOps = false;                  // `(*)`
  std::vector<std::vector<std::string>> ops; // one entry an op, with its alternatives
  std::vector<KeyLoop> children;
};

using mechanism::Fit;

/// Extents by letter; those of a run are multiplied. Loops of one letter have one extent.
using Extents = std::map<std::string, graph::Dim>;

class Key {
public:
  /// Reads a key; `str` gives the text back.
  static llvm::Expected<Key> parse(llvm::StringRef text);
  /// `why` says at which loop the attempt that came farthest ended.
  std::optional<Extents> match(const graph::LoopNest &nest, std::string *why = nullptr) const;
  /// Fit of the nest of a subgraph (graph::nestOf), by PluS's rules (Wu et al., USENIX ATC 2025,
  /// 4.2). Full: every loop of the key is there with the ops that the key names, and all others are
  /// trivial. Partial: 1. where the key has a reduction there may be a parallel loop, which may
  /// still become one; 2. where it has a parallel loop there is one; 3. a loop has no more children
  /// than in the key; 4. all ops that are not trivial are the key's. `why` is what keeps it from
  /// being full.
  Fit fit(const graph::LoopNest &nest, Extents *extents = nullptr,
          std::string *why = nullptr) const;
  const std::string &str() const { return text; }
  bool hasLetter(llvm::StringRef letter) const;
  /// Whether some loop names this op, or takes any.
  bool hasOp(llvm::StringRef name) const;
  /// The key of exactly this nest, its extents left open.
  static Key of(const graph::LoopNest &nest);

private:
  std::string text;
  std::vector<KeyLoop> loops;
};

/// The loops of one op in the order in which its first operand is walked: a reduction of leading
/// dimensions is `m:s { n:p(sum) }`, and a convolution of one channel per group has no loop over
/// channels.
graph::LoopNest skeletonOf(mlir::Operation *op);

/// Whether an op has a loop that is not parallel.
bool decides(mlir::Operation *op);

/// The ops of a group that decide its schedule: those with reductions or windows, else all that
/// compute.
llvm::SmallVector<mlir::Operation *> decidingOps(llvm::ArrayRef<mlir::Operation *> ops);
llvm::SmallVector<mlir::Operation *> decidingOps(graph::GroupOp group);

} // namespace heddle::warehouse

#endif // HEDDLE_WAREHOUSE_KEY_H
