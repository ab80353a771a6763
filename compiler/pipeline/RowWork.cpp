// RowWork: see RowWork.h.

#include "compiler/pipeline/RowWork.h"

#include "compiler/estimate/Thresholds.h"
#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle {

using graph::Dim;

/// Whether the size is one of rows, or a sum over them.
static bool isOfRows(const Dim &dim) {
  return llvm::any_of(dim.symbolNames(), [](const std::string &name) {
    return !graph::rowsOf(name).empty() || graph::summedBy(name);
  });
}

/// The number of rows that tiles compute for `rows`.
static int64_t rowsOfTiles(int64_t rows, int64_t tile, bool isHalved) {
  int64_t rest = rows % tile, half = (tile + 1) / 2;
  if (rest <= 1)
    return rows;
  return rows - rest + (isHalved && rest <= half ? half : tile);
}

int64_t filledUpFlops(graph::GroupOp group, const ProductTile &tile, SizeOf sizeOf) {
  auto products = llvm::to_vector(group.getBody().front().getOps<graph::MatmulOp>());
  int64_t flops = 0;
  for (graph::MatmulOp product : products) {
    graph::DimVector dims = graph::dimsOf(product.getResult());
    Dim columns = dims.pop_back_val(), rows = dims.pop_back_val();
    Dim depth = graph::dimsOf(product.getA()).back();
    auto matrices = sizeOf(graph::elementCount(dims)), m = sizeOf(rows), n = sizeOf(columns),
         k = sizeOf(depth);
    if (!matrices || !m || !n || !k)
      return 0;
    // The last strip of an attention is one row or a whole one.
    bool isHalved = products.size() == 1 &&
                    tile.rows >= estimate::thresholdAt(product, estimate::kProductHalves);
    int64_t allRows = isOfRows(rows) ? rowsOfTiles(*m, tile.rows, isHalved) : *m;
    int64_t allColumns = isOfRows(columns) ? llvm::alignTo(*n, tile.columns) : *n;
    flops += 2 * *matrices * *k * (allRows * allColumns - *m * *n);
  }
  return flops;
}

std::optional<Balance>
balanceOf(const program::RowLaunch &launch, int64_t rows, int64_t threads,
          llvm::function_ref<std::optional<int64_t>(const Dim &, int64_t)> sizeOf) {
  Dim tasks = *Dim::parse(launch.tasks), work = *Dim::parse(launch.work);
  struct Row {
    int64_t begin, tasks, ofTask;
  };
  std::vector<Row> all;
  int64_t total = 0;
  for (int64_t row = 0; row < rows; ++row) {
    auto count = sizeOf(tasks, row), sum = sizeOf(work, row);
    if (!count || !sum)
      return std::nullopt;
    all.push_back({total, *count, std::max<int64_t>(1, *sum / std::max<int64_t>(1, *count))});
    if (llvm::AddOverflow(total, *sum, total))
      return std::nullopt;
  }
  // Each thread has the tasks that begin in its parts (lower::Rows::dispatcherOf).
  auto placeOf = [&](int64_t thread) {
    int64_t part =
        program::kRowParts / threads * thread + std::min(thread, program::kRowParts % threads);
    return total / program::kRowParts * part +
           total % program::kRowParts * part / program::kRowParts;
  };
  Balance balance{total, 0};
  for (int64_t thread = 0; thread < threads; ++thread) {
    int64_t low = placeOf(thread), high = placeOf(thread + 1), own = 0;
    for (const Row &row : all) {
      auto taskAt = [&](int64_t place) {
        return std::min(std::max<int64_t>(0, place - row.begin) / row.ofTask, row.tasks);
      };
      own += (taskAt(high) - taskAt(low)) * row.ofTask;
    }
    balance.most = std::max(balance.most, own);
  }
  return balance;
}

} // namespace heddle
