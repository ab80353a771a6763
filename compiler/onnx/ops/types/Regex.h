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

/// As automatonOf, to find matches within a string: it starts in state 0, 1 or 2 if before the
/// match there is nothing, another byte, or a letter, digit or `_`. The last three columns say
/// whether the state accepts if one of these comes after the match.
std::vector<std::array<int32_t, 259>> scannerOf(llvm::StringRef pattern);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_REGEX_H
