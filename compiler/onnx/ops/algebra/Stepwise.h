// Stepwise: the form of Scan that opset 8 had.
#ifndef HEDDLE_ONNX_STEPWISE_H
#define HEDDLE_ONNX_STEPWISE_H

#include "compiler/onnx/Node.h"

namespace heddle::onnx {

/// Scan of opset 8: all inputs have a batch in front, whose entries may have lengths of their own.
void importBatchedScan(Node &n);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_STEPWISE_H
