// Tensor: an ONNX TensorProto becomes a constant whose bytes stay where they are.
#ifndef HEDDLE_ONNX_TENSOR_H
#define HEDDLE_ONNX_TENSOR_H

#include "compiler/onnx/ModelFile.h"
#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// The element type for a TensorProto::DataType; null where MLIR has none.
Type elementType(mlir::MLIRContext *context, int dataType);
std::string dataTypeName(int dataType);

struct TensorValue {
  mlir::ElementsAttr value;
  LabelsPtr labels; // of a string tensor, whose value counts 0, 1, 2 ...
};

/// Reads a tensor or throws Refusal. `shared` owns the message's bytes.
TensorValue readTensor(mlir::MLIRContext *context, const proto::TensorProto &tensor,
                       ModelFile &file, int64_t maxBytes);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_TENSOR_H
