// Custom: nodes of ops that the user has registered (include/heddle/custom_op.h).
#ifndef HEDDLE_ONNX_OPS_CUSTOM_H
#define HEDDLE_ONNX_OPS_CUSTOM_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

bool isRegistered(llvm::StringRef domain, llvm::StringRef name);
void importCustom(Node &node, llvm::StringRef domain);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_OPS_CUSTOM_H
