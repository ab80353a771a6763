// Families: the meaning of each op, one overload of `compute` an op, one file a family.
#ifndef HEDDLE_REFERENCE_FAMILIES_H
#define HEDDLE_REFERENCE_FAMILIES_H

#include "compiler/reference/Environment.h"

namespace heddle::reference {

using Results = llvm::Expected<Tensors>;
inline Results single(Tensor tensor) { return Tensors{std::move(tensor)}; }

/// One evaluation of one op.
struct Call {
  mlir::Operation *op;
  llvm::ArrayRef<Tensor> operands;
  Environment &environment;

  const Tensor &operator[](size_t i) const { return operands[i]; }
  llvm::Error error(const llvm::Twine &message) const { return opError(op, message); }
  mlir::Type elementOfResult(unsigned i = 0) const { return graph::elementOf(op->getResult(i)); }
  llvm::Expected<llvm::SmallVector<int64_t>> shapeOfResult(unsigned i = 0) const {
    return environment.shapeOf(op, op->getResult(i).getType());
  }
  /// Zeros of the result's element type.
  llvm::Expected<Tensor> allocate(llvm::ArrayRef<int64_t> shape, unsigned i = 0) const {
    return environment.allocate(op, elementOfResult(i), shape);
  }
  /// The size expressions of an attribute, as numbers.
  llvm::Expected<llvm::SmallVector<int64_t>> sizesOf(graph::DimsAttr attr) const;
};

/// result[i] = x[offset + sum over d of i[d] * strides[d]], element by element.
void moveElements(Tensor &result, const Tensor &x, int64_t offset, llvm::ArrayRef<int64_t> strides);

/// Addition, subtraction and multiplication that wrap for integers.
template <typename T> T plus(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return x + y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
}
template <typename T> T times(T x, T y) {
  if constexpr (std::is_floating_point_v<T>)
    return x * y;
  else
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
}
/// NaN if either is.
template <typename T> T larger(T x, T y) { return x != x ? x : (y != y || y > x) ? y : x; }
template <typename T> T smaller(T x, T y) { return x != x ? x : (y != y || y < x) ? y : x; }

/// accumulators[r, c] += sum over d of a[r, d] * b[d, c], for one block that fits the caches.
template <typename T, typename Sum>
void multiplyAdd(int64_t rows, int64_t depth, int64_t columns, const T *a, int64_t strideOfA,
                 const T *b, int64_t strideOfB, Sum *accumulators, int64_t strideOfSums) {
  for (int64_t r = 0; r < rows; r += 4) {
    int64_t block = std::min<int64_t>(4, rows - r);
    for (int64_t d = 0; d < depth; ++d)
      for (int64_t i = 0; i < block; ++i) {
        const Sum factor = static_cast<Sum>(a[(r + i) * strideOfA + d]);
        const T *row = b + d * strideOfB;
        Sum *sums = accumulators + (r + i) * strideOfSums;
        for (int64_t c = 0; c < columns; ++c)
          sums[c] += factor * static_cast<Sum>(row[c]);
      }
  }
}

/// Calls function(T(), Sum()): the type of elements in memory and the type of their sums.
template <typename Function> auto withProduct(mlir::Type element, Function function) {
  if (element.isF64())
    return function(double(), double());
  if (isFloat(element))
    return function(float(), double());
  return function(int64_t(), uint64_t());
}
template <typename Sum> void storeSums(Tensor &tensor, const std::vector<Sum> &sums) {
  store<Sum>(tensor, sums);
}

Results computeElementwise(const Call &call);

// clang-format off
#define HEDDLE_COMPUTE(OP) Results compute(graph::OP op, const Call &call);
#define HEDDLE_FOR_EACH_OP(DO) \
  DO(ConstantOp) DO(IotaOp) DO(SizesOp) DO(ReshapeOp) \
  DO(DynamicReshapeOp) DO(BroadcastOp) DO(DynamicBroadcastOp) DO(TransposeOp) \
  DO(SliceOp) DO(DynamicSliceOp) DO(ConcatOp) DO(PadOp) \
  DO(GatherOp) DO(GatherElementsOp) DO(GatherNdOp) DO(ScatterElementsOp) \
  DO(ScatterNdOp) DO(ResizeOp) DO(ReverseSequenceOp) DO(RangeOp) \
  DO(BindSizesOp) DO(RowLengthsOp) DO(MatmulOp) DO(ConvOp) DO(ConvTransposeOp) \
  DO(ConvFilterGradientOp) DO(UnpoolOp) \
  DO(PoolOp) DO(ReduceSumOp) DO(ReduceProdOp) DO(ReduceMaxOp) \
  DO(ReduceMinOp) DO(ArgMaxOp) DO(ArgMinOp) DO(CumsumOp) \
  DO(TopkOp) DO(ListMakeOp) DO(ListInsertOp) DO(ListEraseOp) \
  DO(ListAtOp) DO(ListLengthOp) DO(ListConcatOp) DO(ListSplitOp) \
  DO(ListCastOp) DO(ListRankOp) DO(StringConcatOp) DO(StringSplitOp) DO(StringNormalizeOp) \
  DO(StringMatchOp) DO(StringCastOp) DO(ImageDecodeOp) DO(NonzeroOp) \
  DO(UniqueOp) DO(SuppressOp) DO(ForestOp) DO(FourierOp) DO(CustomOp) \
  DO(RunSeedOp)
// clang-format on
HEDDLE_FOR_EACH_OP(HEDDLE_COMPUTE)
#undef HEDDLE_COMPUTE

} // namespace heddle::reference

#endif // HEDDLE_REFERENCE_FAMILIES_H
