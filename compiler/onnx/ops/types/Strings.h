// Strings: ops on strings that several operators of ONNX are made of.
#ifndef HEDDLE_ONNX_STRINGS_H
#define HEDDLE_ONNX_STRINGS_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// i1: which strings match the regular expression as a whole.
Value matchText(Node &n, Value x, llvm::StringRef pattern);
/// graph.string_split, whose pieces have a fresh size.
mlir::Operation *splitText(Node &n, Value x, Value delimiter, int64_t most = -1);
/// The scanner (Regex.h) of a regular expression, to split by.
Value scannerConstant(Node &n, llvm::StringRef pattern);

/// com.microsoft.Tokenizer (Tokenizer.cpp).
void importTokenizer(Node &n);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_STRINGS_H
