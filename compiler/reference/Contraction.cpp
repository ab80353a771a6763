// Contraction: matrix products, with exact products of f32 and sums in double.

#include "compiler/reference/Families.h"

using namespace mlir;

namespace heddle::reference {

using namespace graph;

/// Rounds blocks of the rows of the left operand to 8 bits, as the op says.
static void roundBlocks(MutableArrayRef<float> rows, int64_t block) {
  for (; !rows.empty(); rows = rows.drop_front(block)) {
    float most = 0;
    bool isFinite = true;
    for (float x : rows.take_front(block)) {
      most = std::max(most, std::fabs(x));
      isFinite &= std::isfinite(x);
    }
    float scale = std::min(127 / most, 0x1p126F), step = 1 / scale;
    for (float &x : rows.take_front(block))
      x = isFinite ? std::nearbyint(x * scale) * step : std::numeric_limits<float>::quiet_NaN();
  }
}

/// Result of a batch of products; `batches` holds the numbers of the matrices of a and b.
template <typename T, typename Sum>
static void multiply(const Call &call, Tensor &result,
                     ArrayRef<std::pair<int64_t, int64_t>> batches, int64_t rounded) {
  constexpr int64_t kBlock = 256; // 256 x 256 elements of b stay in a second-level cache
  int64_t rank = result.rank(), m = result.shape[rank - 2], n = result.shape[rank - 1];
  int64_t k = call[0].shape[rank - 1];
  std::vector<T> a = load<T>(call[0]), b = load<T>(call[1]);
  if constexpr (std::is_same_v<T, float>)
    if (rounded)
      roundBlocks(a, rounded);
  std::vector<Sum> sums(result.count());
  for (auto [number, batch] : llvm::enumerate(batches))
    for (int64_t k0 = 0; k0 < k; k0 += kBlock)
      for (int64_t n0 = 0; n0 < n; n0 += kBlock)
        multiplyAdd(m, std::min(kBlock, k - k0), std::min(kBlock, n - n0),
                    a.data() + batch.first * m * k + k0, k,
                    b.data() + batch.second * k * n + k0 * n + n0, n,
                    sums.data() + number * m * n + n0, n);
  storeSums(result, sums);
}

Results compute(MatmulOp op, const Call &call) {
  const Tensor &a = call[0], &b = call[1];
  int64_t rank = a.rank();
  if (b.rank() != rank || rank < 2)
    return call.error("operands must have one rank, at least 2");
  if (a.element != b.element && (isFloat(a.element) || isFloat(b.element)))
    return call.error("operands must have one element type, or be integers both");
  if (a.shape[rank - 1] != b.shape[rank - 2])
    return call.error("shapes " + textOf(a.shape) + " and " + textOf(b.shape) +
                      " cannot be multiplied");
  SmallVector<int64_t> batchShape;
  for (int64_t i = 0; i + 2 < rank; ++i) {
    if (a.shape[i] != b.shape[i] && a.shape[i] != 1 && b.shape[i] != 1)
      return call.error("batch sizes " + Twine(a.shape[i]) + " and " + Twine(b.shape[i]) +
                        " differ");
    batchShape.push_back(a.shape[i] == 1 ? b.shape[i] : a.shape[i]);
  }
  // The number of the matrix that a batch index names, where sizes of 1 repeat.
  auto numberOf = [&](const Tensor &x, ArrayRef<int64_t> index) {
    int64_t number = 0;
    for (auto [i, place] : llvm::enumerate(index))
      number = number * x.shape[i] + (x.shape[i] == 1 ? 0 : place);
    return number;
  };
  SmallVector<std::pair<int64_t, int64_t>> batches;
  forEachIndex(batchShape, [&](ArrayRef<int64_t> index, int64_t) {
    batches.emplace_back(numberOf(a, index), numberOf(b, index));
  });
  batchShape.append({a.shape[rank - 2], b.shape[rank - 1]});
  auto result = call.allocate(batchShape);
  if (!result)
    return result.takeError();
  withProduct(a.element, [&](auto zero, auto sum) {
    multiply<decltype(zero), decltype(sum)>(call, *result, batches, op.getBlock());
  });
  return single(*result);
}

} // namespace heddle::reference
