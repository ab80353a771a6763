// Thresholds: numbers that were measured, and that decide how something is computed, never what.
//
// All of them are in this table and none elsewhere: a target may set each (program::Machine), and a
// plan (docs/spec/plan.md), so that a search or a learned model can reach them. The values of the
// table are those of x86-64 servers. The module carries all that are set, so that all stages, and
// what is cut out of the graph, see the same ones.
#ifndef HEDDLE_ESTIMATE_THRESHOLDS_H
#define HEDDLE_ESTIMATE_THRESHOLDS_H

#include "compiler/graph/Graph.h"
#include "compiler/program/Machine.h"

namespace heddle::estimate {

struct Threshold {
  llvm::StringLiteral name, what; // `what` it decides, with its unit
  int64_t value;                  // by default
  int64_t least = 1, most = int64_t(1) << 40;
};

// Launches.
inline constexpr Threshold kParallelWork = {
    "parallel_work",
    "a kernel of fewer scalar operations runs on the caller's thread: waking others takes longer",
    16384, 0};

inline constexpr Threshold kDeviceElements = {
    "device_elements",
    "a group whose tensors all have fewer elements is carried out by the host, not by a device "
    "beside it",
    4096, 0};

// Products (bench/notes/2026-11-21-two-threads.md, 2026-11-21-kernels.md,
// 2026-11-22-dynamic.md).
inline constexpr Threshold kProductTasks = {"product_tasks", "tasks of a product for each worker",
                                            8};
inline constexpr Threshold kProductTiles = {"product_tiles", "most register tiles of a task", 8};
inline constexpr Threshold kProductPanels = {
    "product_panels",
    "up to so many panels a tile fetches the next tile's rows, else its share of the next panels",
    4, 0};
inline constexpr Threshold kProductHalves = {
    "product_halves", "tiles of so many rows have another form of half as many, for the last rows",
    4};
inline constexpr Threshold kProductCopy = {
    "product_copy", "elements of a task that converts the left operand", 16 << 10};
inline constexpr Threshold kIdleTaps = {
    "idle_taps", "taps in a convolution's border are left out if they are more than one in so many",
    32};

inline constexpr Threshold kShortSaving = {
    "bf16_saving",
    "percent of its time, by a roofline, that products of bf16 save a group at least; 0: factors "
    "are rounded wherever they can be",
    2, 0, 100};

// Attention (2026-11-21-attention.md).
inline constexpr Threshold kAttentionTasks = {
    "attention_tasks", "fewer heads than this share their rows among workers", 8};
inline constexpr Threshold kAttentionRows = {
    "attention_rows", "least query rows of a task of such heads, if no card says", 64};
inline constexpr Threshold kAttentionStrips = {
    "attention_strips", "most strips of query rows that meet a panel of keys together", 8, 1, 64};
inline constexpr Threshold kAttentionDirect = {
    "attention_direct", "up to so many queries read keys and values where they lie, unpacked", 8, 0,
    64};
inline constexpr Threshold kAttentionBounds = {
    "attention_bounds", "from so many queries on, keys that no query sees are looked for", 8};

// Winograd (2026-11-21-winograd.md).
inline constexpr Threshold kWinogradTiles = {
    "winograd_tiles", "least tiles of a block, even where they leave the L2", 24};
inline constexpr Threshold kWinogradLateTiles = {
    "winograd_late_tiles", "the same if the filters are transformed in the run", 64};
inline constexpr Threshold kWinogradRows = {
    "winograd_rows", "least tiles of the parts into which a block is split", 4};

// Rows (2026-11-23-lanes.md).
inline constexpr Threshold kLongRow = {
    "long_row", "rows of so many elements are shared among workers if there are fewer than those",
    1 << 18};
inline constexpr Threshold kLongRowPieces = {"long_row_pieces", "pieces of such a row per worker",
                                             4, 1, 1 << 10};
inline constexpr Threshold kLongRowPiece = {"long_row_piece", "least elements of a piece", 4096};
inline constexpr Threshold kShortRowsTask = {
    "short_rows_task", "elements of a task of rows that lie side by side in lanes", 4096};

// Ragged batches (2026-11-24-ragged.md).
inline constexpr Threshold kRowBlock = {
    "row_block",
    "KiB for each thread: a ragged batch whose intermediate tensors need more is run as blocks of "
    "rows; 0: never",
    12 << 10, 0, 1 << 30};

// Distances ahead at which memory is asked for (2026-11-21-kernels.md, 2026-11-23-kernels.md,
// 2026-11-22-stored-weights.md).
inline constexpr Threshold kFetchFilters = {
    "fetch_filters", "elements of a filter that is packed in the run", 128, 0, 1 << 20};
inline constexpr Threshold kFetchPanels = {
    "fetch_panels", "bytes of a panel of weights in fewer bits", 4096, 0, 1 << 20};
inline constexpr Threshold kFetchWinograd = {
    "fetch_winograd", "vectors of filters that are transformed in the run", 8, 0, 1 << 20};
inline constexpr Threshold kFetchColumns = {"fetch_columns", "rows of a reduction down columns", 12,
                                            0, 1 << 20};

// Rewrites (2026-11-22-tables.md, 2026-11-22-stored-weights.md).
inline constexpr Threshold kTableOps = {
    "table_ops", "so many cheap ops on 8-bit values become a lookup, if lookups are cheap", 16};
inline constexpr Threshold kStoredElements = {
    "stored_elements", "weights of fewer elements become floats at compile time", 1 << 14};
inline constexpr Threshold kStoredBlock = {
    "stored_block", "so do weights with a scale for fewer rows than these", 16};
inline constexpr Threshold kArgRow = {
    "arg_row", "argmax and argmin of rows of so many elements become two reductions", 64};

/// All of them, in order.
llvm::ArrayRef<const Threshold *> thresholds();

/// The value that the module around `at`, which may be null, sets, else the default.
int64_t thresholdAt(mlir::Operation *at, const Threshold &threshold);

/// Notes in the module the machine's own, and `values`, which a plan sets, over them.
void setThresholds(mlir::ModuleOp module, const program::Machine &machine,
                   const std::map<std::string, int64_t> &values);

} // namespace heddle::estimate

#endif // HEDDLE_ESTIMATE_THRESHOLDS_H
