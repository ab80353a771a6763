// Delegate: an op that is another one of ONNX, perhaps with other operands, attributes or results.
#ifndef HEDDLE_ONNX_DELEGATE_H
#define HEDDLE_ONNX_DELEGATE_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// The results of ONNX's `message` of an opset for `operands`, some of them null; results that the
/// message leaves out are null.
llvm::SmallVector<Value> importAs(Node &n, const proto::NodeProto &message, int64_t opset,
                                  llvm::ArrayRef<Value> operands);
/// The node's own message with another op's name.
proto::NodeProto renamed(const Node &n, llvm::StringRef op);
void setInt(proto::NodeProto &message, llvm::StringRef name, int64_t value);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_DELEGATE_H
