// Versions: answers that the rank of a value depends on, if known only at run time.
//
// A tensor of the graph dialect has one rank. If that differs from run to run (a Squeeze without
// axes at a size that may be 1, an If whose branches yield different ranks, an input without a
// declared shape), the rest of the main graph is imported once for each answer, as the branches of
// an if (Versions.cpp). A branch whose ops do not take that rank is no version: the run refuses
// that answer.
#ifndef HEDDLE_ONNX_VERSIONS_H
#define HEDDLE_ONNX_VERSIONS_H

#include "compiler/onnx/Emitter.h"

namespace heddle::onnx {

/// Asked by a node's import (Reader::ask), and thrown to where the main graph is read.
struct Question {
  std::string text; // "batch is 1"
  Value value;      // an i1 of one element, or a list of the kind any_rank; null: `size` is 1
  Dim size;         // or the rank
  Refusal ifNone;   // reported if no answer lets the model be imported

  Value condition(Emitter &e) const;
};

Question isOne(const Dim &size);
Question holds(Value condition, llvm::StringRef node);
Question hasRank(Value list, int64_t rank, llvm::StringRef input);

/// The most versions of the rest of a graph.
constexpr int64_t kMostVersions = 9;
/// And how many questions are looked into: most have one answer that its nodes can take.
constexpr int64_t kMostTried = 64;

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_VERSIONS_H
