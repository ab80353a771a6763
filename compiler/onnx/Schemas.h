// Schemas: what ONNX's own schemas ask of a node: how many inputs and outputs, which element types,
// which attributes. The table is made by schemas.py from the onnx package that onnx.proto is of.
#ifndef HEDDLE_ONNX_SCHEMAS_H
#define HEDDLE_ONNX_SCHEMAS_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// Refuses a node that does not fit the schema that holds for its opset. Ops without a schema, such
/// as those of com.microsoft, are left to their importers.
void checkSchema(const Node &node, llvm::StringRef domain);

/// Refuses what an attribute, such as the type of EyeLike, made of a node against its schema.
void checkResults(const Node &node, llvm::StringRef domain);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_SCHEMAS_H
