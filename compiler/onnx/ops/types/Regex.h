// Regex: a regular expression becomes an automaton that reads bytes.
#ifndef HEDDLE_ONNX_REGEX_H
#define HEDDLE_ONNX_REGEX_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// i32[states, 257]: the next state for each byte, -1 for none; last, whether the state accepts.
/// The automaton starts in state 0 and accepts the strings that match as a whole. The syntax is
/// RE2's, as far as it is here: letters, escapes, `.`, classes, groups, `|`, and repetitions.
/// Refuses the rest.
std::vector<std::array<int32_t, 257>> automatonOf(llvm::StringRef pattern);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_REGEX_H
