// Versions: what the rank of a value depends on, where that is known only at run time.
//
// A tensor of the graph dialect has one rank. Where that differs from run to run, as of Squeeze
// without axes at a size that may be 1, of an If whose branches yield different ranks or of an
// input without a declared shape, the rest of the main graph is imported once for each answer, as
// the branches of an if (Versions.cpp). What a branch cannot be, as its ops do not take that rank,
// is no version: the run refuses that answer.
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

/// How many versions of what follows there are at most.
constexpr int64_t kMostVersions = 9;
/// And how many questions are looked into: most have one answer that its nodes can take.
constexpr int64_t kMostTried = 64;

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_VERSIONS_H
