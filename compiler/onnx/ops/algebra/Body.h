// Body: what is in a node or a function, as text: for reports, and to tell whether a function that
// a model carries is that of one of our own ops.
#ifndef HEDDLE_ONNX_BODY_H
#define HEDDLE_ONNX_BODY_H

#include "onnx.pb.h"

#include "mlir/Support/LLVM.h"

namespace heddle::onnx {

namespace proto = ::onnx;

/// "1, 2, 3", of long lists the beginning.
std::string joined(size_t count, llvm::function_ref<std::string(size_t)> write);
/// The value of an attribute; of tensors the type and the sizes alone.
std::string valueOf(const proto::AttributeProto &attribute);
/// The names of inputs and outputs, then a line for each node: "y = Op(a, b){attribute=1}".
std::string textOf(const proto::FunctionProto &function);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_BODY_H
