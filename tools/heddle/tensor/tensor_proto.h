// TensorProto: the files input_0.pb and output_0.pb of ONNX's test data, read without protobuf.
#ifndef HEDDLE_TOOLS_HEDDLE_TENSOR_TENSOR_PROTO_H
#define HEDDLE_TOOLS_HEDDLE_TENSOR_TENSOR_PROTO_H

#include "tools/heddle/tensor/tensor.h"

namespace heddle::cli {

/// One onnx.TensorProto that holds its own data.
Tensor readTensorProto(const std::string &path);

} // namespace heddle::cli

#endif
