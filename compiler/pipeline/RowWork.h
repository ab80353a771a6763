// RowWork: what kernels do of a ragged batch with given lengths, beside what they have to.
#ifndef HEDDLE_PIPELINE_ROWWORK_H
#define HEDDLE_PIPELINE_ROWWORK_H

#include "compiler/graph/Graph.h"
#include "compiler/pipeline/Pipeline.h"

namespace heddle {

/// A size of one row, or of all rows together for what has none of its own.
using SizeOf = llvm::function_ref<std::optional<int64_t>(const graph::Dim &)>;

/// A tile of a product: rows, and columns of its panels.
struct ProductTile {
  int64_t rows = 1, columns = 1;
};

/// FLOPs of a group's products beyond those of its rows: rows that fill up the last tile, and
/// columns that fill up the last panel where these are as many as a row is long. As
/// lower::Contraction and lower::AttentionKernel do them; 0 if a size is not known.
int64_t filledUpFlops(graph::GroupOp group, const ProductTile &tile, SizeOf sizeOf);

/// The work of all rows, and of the thread that has most of it, in units of the launch.
struct Balance {
  int64_t all = 0, most = 0;
};
/// Balance of a launch over rows of these lengths; nullopt if a size is not known.
/// `sizeOf(expression, row)` is that of a row.
std::optional<Balance>
balanceOf(const program::RowLaunch &launch, int64_t rows, int64_t threads,
          llvm::function_ref<std::optional<int64_t>(const graph::Dim &, int64_t)> sizeOf);

} // namespace heddle

#endif // HEDDLE_PIPELINE_ROWWORK_H
