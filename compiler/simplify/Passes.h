// Passes: graph -> graph rewrites that need no target. Passes.td describes each.
//
// No rule changes results for NaN and infinities; the sign of a zero may change. Rules.h lists the
// sets of rules that round otherwise than the ops.
#ifndef HEDDLE_SIMPLIFY_PASSES_H
#define HEDDLE_SIMPLIFY_PASSES_H

#include "compiler/Prelude.h"

namespace heddle::simplify {

/// A result larger than this stays an op.
inline constexpr int64_t kFoldLimitBytes = int64_t(64) << 20;

/// Attribute of a module: the ops of a quantised model that still compute on dequantised values, a
/// list of {node, op, why}: the ONNX node's name, the graph op and the reason.
inline constexpr llvm::StringLiteral kUnfolded = "graph.unfolded";

/// Place of the channels of convolutions and pools, by the names of their nodes: "last" or "first".
using Layouts = std::map<std::string, std::string>;
/// Attribute with the module's layouts; written by the pass.
inline constexpr llvm::StringLiteral kLayouts = "graph.layouts";
/// Channels are last but where `wanted` says otherwise.
std::unique_ptr<mlir::Pass> createChannelsLastPass(Layouts wanted = {});

/// Products of floats that are computed with integers of 8 bits, by the names of their nodes.
struct Integers {
  bool all = false; // those that can be
  std::set<std::string> names = {};
  bool allowed = false;     // those that have graph::kAllowsIntegers
  bool takesBlocks = false; // rows may be rounded in blocks
};
/// Attribute with the nodes whose products can be, and whether they are; written by the pass.
inline constexpr llvm::StringLiteral kIntegers = "graph.integers";
std::unique_ptr<mlir::Pass> createDynamicPass(Integers wanted = {true, {}, true, true},
                                              bool prefersUnsigned = true);

#define GEN_PASS_DECL
#include "compiler/simplify/Passes.h.inc"

struct SimplifyOptions {
  bool channelsLast = true;
  bool isStrict = false;       // rounds as the ops do, those of 16 bits too
  bool prefersUnsigned = true; // integer products take a left side without a sign as it is
  bool hasCheapTables = true;  // tables of 256 bytes
  int64_t foldLimitBytes = kFoldLimitBytes;
  Layouts layouts = {};
  Integers integers = {};
};

/// Everything in order: what the pipeline runs between import and partition.
void addSimplifyPasses(mlir::OpPassManager &manager, const SimplifyOptions &options = {});

void registerSimplifyPasses();

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_PASSES_H
