// Model: what has learned from records how long candidates take, whoever runs it.
#ifndef HEDDLE_LEARN_MODEL_H
#define HEDDLE_LEARN_MODEL_H

#include "compiler/learn/Features.h"

#include "llvm/Support/Error.h"

namespace heddle::learn {

/// Note of messages on a file that is of no use.
constexpr llvm::StringLiteral kWayOut =
    " ('heddle cost train' makes one, and 'heddle compile' an artefact of it)";

class Model {
public:
  virtual ~Model() = default;

  struct Scores {
    std::vector<double> logarithms; // each candidate's seconds, up to a per-group constant
    std::vector<double> outside;    // features that are beyond what was trained with
  };
  /// `candidates`: numbers by candidateNames(), of each.
  virtual llvm::Expected<Scores> score(const GroupFeatures &group,
                                       llvm::ArrayRef<std::vector<double>> candidates) = 0;
};

} // namespace heddle::learn

#endif // HEDDLE_LEARN_MODEL_H
