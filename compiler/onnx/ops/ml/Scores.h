// Scores: how the classifiers and regressors of ai.onnx.ml end, and the lists that they begin with.
#ifndef HEDDLE_ONNX_SCORES_H
#define HEDDLE_ONNX_SCORES_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// A list of numbers of one element type: an attribute, or a tensor in one.
struct NumberList {
  Type element;
  std::vector<double> reals; // if the type is floating-point
  Ints integers;             // if the type is an integer
  bool isReal() const { return element && mlir::isa<mlir::FloatType>(element); }
  size_t size() const { return isReal() ? reals.size() : integers.size(); }
};
/// The elements of the tensor in attribute `name`; no element type without such an attribute.
NumberList tensorList(Node &n, llvm::StringRef name);
/// Floats of attribute `name`, or of the tensor in `name`_as_tensor.
std::vector<double> floatsOrTensor(Node &n, llvm::StringRef name);

/// scores [n, classes], transformed as 'post_transform' says.
Value postTransform(Node &n, Value scores, llvm::StringRef name);
/// How many class labels the node has.
int64_t labelCount(Node &n, llvm::StringRef integers);
/// Sets result 0 to the labels of classes, i64 [n]; `integers` names the attribute of integers.
void setLabels(Node &n, Value classes, llvm::StringRef integers);
/// The input as floats: f64 stays, all else becomes f32; a vector is one row.
Value featuresOf(Node &n);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_SCORES_H
