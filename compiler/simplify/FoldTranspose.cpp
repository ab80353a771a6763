// FoldTranspose: the bytes of a constant in another order, block by block.

#include "compiler/simplify/Rewriting.h"

#include "mlir/IR/AsmState.h"

using namespace mlir;
using namespace heddle::graph;

namespace heddle::simplify {

namespace {
/// result[i] = source[sum of i * strides], over all i below sizes; result is row-major.
template <typename Word> struct Mover {
  ArrayRef<int64_t> sizes, strides;
  size_t turned; // the dimension along which the source is contiguous

  void move(const Word *source, Word *result, size_t dimension = 0) {
    int64_t inside = 1;
    for (int64_t size : sizes.drop_front(dimension + 1))
      inside *= size;
    if (dimension + 1 == sizes.size() || (dimension == turned && dimension + 2 == sizes.size())) {
      dimension + 1 == sizes.size() ? moveRow(source, result, dimension)
                                    : moveSquares(source, result);
      return;
    }
    for (int64_t i = 0; i < sizes[dimension]; ++i)
      move(source + i * strides[dimension], result + i * inside, dimension + 1);
  }

private:
  void moveRow(const Word *source, Word *result, size_t dimension) {
    for (int64_t i = 0; i < sizes[dimension]; ++i)
      result[i] = source[i * strides[dimension]];
  }

  /// Moves the last two dimensions; the first of them is contiguous in the source.
  void moveSquares(const Word *source, Word *result) {
    constexpr int64_t kSide = 16;
    int64_t rows = sizes[turned], columns = sizes.back();
    for (int64_t top = 0; top < rows; top += kSide)
      for (int64_t left = 0; left < columns; left += kSide)
        for (int64_t i = top; i < std::min(top + kSide, rows); ++i)
          for (int64_t j = left; j < std::min(left + kSide, columns); ++j)
            result[i * columns + j] = source[i + j * strides.back()];
  }
};

template <typename Word>
void moveWords(ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, size_t turned,
               ArrayRef<char> source, MutableArrayRef<char> result) {
  Mover<Word>{sizes, strides, turned}.move(reinterpret_cast<const Word *>(source.data()),
                                           reinterpret_cast<Word *>(result.data()));
}
} // namespace

ElementsAttr permuted(DenseResourceElementsAttr constant, ArrayRef<int64_t> permutation) {
  auto type = cast<RankedTensorType>(constant.getType());
  ArrayRef<int64_t> shape = type.getShape();
  SmallVector<int64_t> sizes, strides, inShape(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    inShape[i - 1] = inShape[i] * shape[i];
  size_t turned = 0;
  for (auto [i, from] : llvm::enumerate(permutation)) {
    sizes.push_back(shape[from]);
    strides.push_back(inShape[from]);
    if (from == (int64_t)shape.size() - 1)
      turned = i;
  }
  ArrayRef<char> bytes = constant.getRawHandle().getBlob()->getData();
  AsmResourceBlob blob = HeapAsmResourceBlob::allocate(bytes.size(), 64, /*dataIsMutable=*/true);
  MutableArrayRef<char> result = blob.getMutableData();
  switch (bytesOf(type.getElementType())) {
  case 1:
    moveWords<uint8_t>(sizes, strides, turned, bytes, result);
    break;
  case 2:
    moveWords<uint16_t>(sizes, strides, turned, bytes, result);
    break;
  case 4:
    moveWords<uint32_t>(sizes, strides, turned, bytes, result);
    break;
  default:
    moveWords<uint64_t>(sizes, strides, turned, bytes, result);
  }
  return DenseResourceElementsAttr::get(RankedTensorType::get(sizes, type.getElementType()),
                                        "constant", std::move(blob));
}

} // namespace heddle::simplify
