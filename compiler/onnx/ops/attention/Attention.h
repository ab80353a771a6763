// Attention: the steps that all attention ops share. Tensors are [batch, heads, length, size].
#ifndef HEDDLE_ONNX_ATTENTION_H
#define HEDDLE_ONNX_ATTENTION_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// [batch, length, heads * size] as [batch, heads, length, size].
Value splitHeads(Emitter &e, Value x, int64_t heads);
/// The way back.
Value joinHeads(Emitter &e, Value x);
/// query * key^T, [batch, query heads, query length, key length]. Each key head serves a group of
/// query heads, which follow one another.
Value attentionScores(Emitter &e, Value query, Value key);
/// probabilities * value, [batch, query heads, query length, value size].
Value attendTo(Emitter &e, Value probabilities, Value value);
/// Whether key j may be seen from query i: j <= i + offset, [query length, key length].
Value causalMask(Emitter &e, const Dim &queries, const Dim &keys, Value offset);
/// tanh(x / cap) * cap.
Value softCap(Emitter &e, Value x, double cap);
/// Scores that `allowed` forbids become -infinity.
Value maskScores(Emitter &e, Value scores, Value allowed);
/// Rotates pairs of x's last dimension: halves, or neighbours if `interleaved`. cosine and sine
/// have half that size.
Value rotatePairs(Emitter &e, Value x, Value cosine, Value sine, bool interleaved);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_ATTENTION_H
