// Activations: activation functions as the recurrent and fused ops use them, too.
#ifndef HEDDLE_ONNX_ACTIVATIONS_H
#define HEDDLE_ONNX_ACTIVATIONS_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

Value relu(Emitter &e, Value x);
Value sigmoid(Emitter &e, Value x);
Value tanhOf(Emitter &e, Value x);
Value leakyRelu(Emitter &e, Value x, double alpha);
Value elu(Emitter &e, Value x, double alpha);
Value hardSigmoid(Emitter &e, Value x, double alpha, double beta);
Value softplus(Emitter &e, Value x);
Value softsign(Emitter &e, Value x);
Value thresholdedRelu(Emitter &e, Value x, double alpha);
Value gelu(Emitter &e, Value x, bool approximate);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_ACTIVATIONS_H
