// Tensor: a value of the interpreter, and its elements as numbers to compute with.
//
// Row-major; each element takes graph::bytesOf(element) bytes (i1, i4 and ui4 one byte each). There
// are three kinds of numbers: double for all floats, int64_t for signed and uint64_t for unsigned
// integers and i1. Rounding a double once to f32 (or narrower) gives the bits of the narrow
// operation for
// + - * / and sqrt, because 53 >= 2 * 24 + 2.
#ifndef HEDDLE_REFERENCE_TENSOR_H
#define HEDDLE_REFERENCE_TENSOR_H

#include "compiler/Prelude.h"

namespace heddle::reference {

struct Tensor {
  mlir::Type element;
  llvm::SmallVector<int64_t> shape;
  std::shared_ptr<std::vector<char>> owned; // null if the bytes are another's
  llvm::ArrayRef<char> borrowed;

  /// A tensor of zeros. The shape must be one whose bytes can be counted.
  static Tensor zeros(mlir::Type element, llvm::ArrayRef<int64_t> shape);
  /// A view of bytes that outlive the tensor.
  static Tensor borrow(mlir::Type element, llvm::ArrayRef<int64_t> shape,
                       llvm::ArrayRef<char> bytes);

  int64_t rank() const { return shape.size(); }
  int64_t count() const;
  int64_t width() const;
  llvm::ArrayRef<char> bytes() const { return owned ? llvm::ArrayRef<char>(*owned) : borrowed; }
  char *data() { return owned->data(); }
  /// The tensor in another shape of as many elements.
  Tensor reshaped(llvm::ArrayRef<int64_t> to) const;
  /// The elements i * count() / shape[0] ... of one index of the first dimension.
  Tensor row(int64_t index) const;
};

using Tensors = std::vector<Tensor>;

/// All elements as T, one of double, float, int64_t, uint64_t. Floats truncate to integers.
template <typename T> std::vector<T> load(const Tensor &tensor);
/// The element `index`, as load would give it.
int64_t integerAt(const Tensor &tensor, int64_t index);
double numberAt(const Tensor &tensor, int64_t index);
/// Writes all elements: floats round to nearest even, integers wrap, i1 is "not 0".
template <typename T> void store(Tensor &tensor, llvm::ArrayRef<T> values, bool saturate = false);

/// The number that counts as lower (higher) than all: an infinity where the type has one.
template <typename T> T lowestOf(mlir::Type element);
template <typename T> T highestOf(mlir::Type element);

inline bool isFloat(mlir::Type element) { return mlir::isa<mlir::FloatType>(element); }
inline bool isUnsigned(mlir::Type element) {
  return element.isUnsignedInteger() || element.isInteger(1);
}

/// Calls function(T()) with the T that the elements are computed in.
template <typename Function> auto withNumber(mlir::Type element, Function function) {
  if (isFloat(element))
    return function(double());
  if (isUnsigned(element))
    return function(uint64_t());
  return function(int64_t());
}

/// Row-major distances between neighbours along each dimension, in elements.
llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);
int64_t countOf(llvm::ArrayRef<int64_t> shape);
/// Calls function(index, number) for each index of a box, in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>, int64_t)> function);

} // namespace heddle::reference

#endif // HEDDLE_REFERENCE_TENSOR_H
