// Features: what a model of costs is told of a group and of a candidate for it, as numbers
// (docs/spec/features.md).
//
// They follow from GroupKey::text, the sizes, the candidate and the machine alone, so a file of
// records holds all that they are computed from. Names of values do not enter them.
#ifndef HEDDLE_LEARN_FEATURES_H
#define HEDDLE_LEARN_FEATURES_H

#include "compiler/estimate/Extents.h"
#include "compiler/program/Machine.h"
#include "compiler/warehouse/Card.h"

namespace heddle::learn {

/// Counts up if a feature changes its meaning. A cost model says which it has learned. A feature of
/// candidates that is added is the last one: what lacks it is a candidate for which it is 0.
constexpr int64_t kFeaturesVersion = 1;
constexpr size_t kAddedFeatures = 1; // of candidates, which the first models lack

/// The numbers are rounded to 1e-4, so that a file of them is small and as exact as they are.
struct GroupFeatures {
  std::vector<int64_t> ops;                       // one for each node, indices of opNames()
  std::vector<std::vector<double>> nodes;         // one for each node, by nodeNames()
  std::vector<std::pair<int64_t, int64_t>> edges; // from a node to one that reads it
};

llvm::ArrayRef<llvm::StringLiteral> nodeNames();
std::vector<std::string> candidateNames();

/// A way to compute the group: a mechanism with its knobs.
struct Candidate {
  llvm::StringRef mechanism; // without a card, that which the group is made for
  bool hasCard = false;
  warehouse::KnobValues knobs;
  bool isShort = false; // factors of products are rounded to bf16
};

/// The nodes of a group with constant sizes: its operands, in the order in which its ops read them,
/// then its ops.
GroupFeatures featuresOf(graph::GroupOp group);

/// One number for each of candidateNames(), of a group with constant sizes.
std::vector<double> featuresOf(graph::GroupOp group, const Candidate &candidate,
                               const program::Machine &machine);

} // namespace heddle::learn

#endif // HEDDLE_LEARN_FEATURES_H
