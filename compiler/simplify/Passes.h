// Passes: graph -> graph rewrites that need no target.
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

std::unique_ptr<mlir::Pass> createFoldPass(int64_t limitBytes = kFoldLimitBytes);
std::unique_ptr<mlir::Pass> createShapesPass();
std::unique_ptr<mlir::Pass> createAlgebraPass();
std::unique_ptr<mlir::Pass> createConvScalePass();
std::unique_ptr<mlir::Pass> createUnsignedPass();
std::unique_ptr<mlir::Pass> createQuantizedPass();
std::unique_ptr<mlir::Pass> createUnfoldedPass();
std::unique_ptr<mlir::Pass> createStoredPass();
/// `areCheap`: a table costs less than 16 simple ops.
std::unique_ptr<mlir::Pass> createTablesPass(bool areCheap = true);
std::unique_ptr<mlir::Pass> createTreesPass();
std::unique_ptr<mlir::Pass> createHalvesPass();
/// Place of the channels of convolutions and pools, by the names of their nodes: "last" or "first".
using Layouts = std::map<std::string, std::string>;
/// Attribute with the module's layouts; written by the pass.
inline constexpr llvm::StringLiteral kLayouts = "graph.layouts";
/// Channels are last but where `wanted` says otherwise.
std::unique_ptr<mlir::Pass> createChannelsLastPass(Layouts wanted = {});
std::unique_ptr<mlir::Pass> createTransposedConvPass();
std::unique_ptr<mlir::Pass> createWeightsPass();

/// Fold, shapes and algebra until nothing changes, at most 4 times. `isStrict`: by exact rules
/// only.
std::unique_ptr<mlir::Pass> createFixpointPass(int64_t foldLimitBytes = kFoldLimitBytes,
                                               bool isStrict = false);

struct SimplifyOptions {
  bool channelsLast = true;
  bool isStrict = false;       // rounds as the ops do, those of 16 bits too
  bool prefersUnsigned = true; // integer products take a left side without a sign as it is
  bool hasCheapTables = true;  // tables of 256 bytes
  int64_t foldLimitBytes = kFoldLimitBytes;
  Layouts layouts = {};
};

/// Everything in order: what the pipeline runs between import and partition.
void addSimplifyPasses(mlir::OpPassManager &manager, const SimplifyOptions &options = {});

void registerSimplifyPasses();

} // namespace heddle::simplify

#endif // HEDDLE_SIMPLIFY_PASSES_H
