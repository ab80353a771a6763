// Recipe: what a model is trained for and how, as JSON (docs/spec/training.md).
#ifndef HEDDLE_TRAINING_RECIPE_H
#define HEDDLE_TRAINING_RECIPE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heddle::training {

/// The part of training that one artefact does.
enum class Phase {
  Step,       // a loss, its gradients, and the update of all weights
  Gradients,  // a loss, and its gradients added to what was accumulated
  Update,     // the update of all weights by what was accumulated
  Evaluate,   // the loss and the model's outputs as in inference, of weights that are inputs
  Predict,    // the outputs alone
  Derivative, // the derivative of one output with respect to some inputs and weights
};

/// Overrides for the weights whose names match one of the patterns; the first group counts.
struct Group {
  std::vector<std::string> match;
  std::optional<double> weightDecay;
  double rate = 1; // times the learning rate
};

struct Recipe {
  Phase phase = Phase::Step;
  std::string loss = "cross_entropy", output, labels = "labels";
  int64_t classAxis = -1;
  std::optional<int64_t> ignoreIndex;
  double labelSmoothing = 0, delta = 1;
  std::string optimizer = "sgd";
  std::map<std::string, double> settings; // all that the optimiser knows
  bool isNesterov = false;
  std::vector<std::string> trainable = {"*"}, frozen; // patterns of names, "*" and "?"
  std::vector<Group> groups;
  double clipNorm = 0, clipValue = 0; // 0: none
  int64_t accumulate = 1;             // micro-batches of an update
  bool usesBatchStatistics = true, drops = true;
  bool keepsUnbiased = false;         // running variances, which are divided by count - 1
  bool narrowsActivations = false;    // those that the derivative reads are bf16 in memory
  std::vector<std::string> variables; // for Phase::Derivative

  bool trains() const {
    return phase == Phase::Step || phase == Phase::Gradients || phase == Phase::Update;
  }
  double setting(llvm::StringRef name) const { return settings.at(name.str()); }
};

/// Values that a number of a recipe may have.
struct Range {
  double least, most;
  bool isBelow = false; // `most` itself is too large

  bool contains(double x) const { return x >= least && (isBelow ? x < most : x <= most); }
  std::string text() const; // "from 0 to 1"
};
inline constexpr double kLargest = std::numeric_limits<float>::max(); // most weights are f32
inline constexpr Range kPositive = {1e-30, kLargest};                 // range of a divisor

/// Refuses unknown fields and values out of range, all in one message.
llvm::Expected<Recipe> readRecipe(llvm::StringRef json);

/// Whether a name matches one of the patterns.
bool matches(llvm::StringRef name, const std::vector<std::string> &patterns);

} // namespace heddle::training

#endif // HEDDLE_TRAINING_RECIPE_H
