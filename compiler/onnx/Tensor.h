// Tensor: an ONNX TensorProto becomes a constant whose bytes stay where they are.
#ifndef HEDDLE_ONNX_TENSOR_H
#define HEDDLE_ONNX_TENSOR_H

#include "compiler/onnx/ModelFile.h"
#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// The element type for a TensorProto::DataType; null if MLIR has none.
Type elementType(mlir::MLIRContext *context, int dataType);
std::string dataTypeName(int dataType);

/// The model's strings, each once; their numbers are in tensors.
struct StringTable {
  std::vector<std::string> texts;
  llvm::StringMap<int64_t> numbers;
  int64_t numberOf(llvm::StringRef text);
};

/// Reads a tensor or throws Refusal. `file` owns the message's bytes.
mlir::ElementsAttr readTensor(mlir::MLIRContext *context, const proto::TensorProto &tensor,
                              ModelFile &file, int64_t maxBytes, StringTable &strings);
/// The dense tensor that a sparse one stands for.
mlir::ElementsAttr readSparse(mlir::MLIRContext *context, const proto::SparseTensorProto &sparse,
                              ModelFile &file, int64_t maxBytes, StringTable &strings);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_TENSOR_H
