// Instances: the sizes that a joint tuning is for.
#ifndef HEDDLE_TUNER_JOINT_INSTANCES_H
#define HEDDLE_TUNER_JOINT_INSTANCES_H

#include "compiler/trial/Group.h"

#include "llvm/Support/Error.h"

#include <set>

namespace heddle::tuner {

/// A size of one symbol, and how much it counts.
struct Observed {
  int64_t size;
  double weight = 1;
};
using Over = std::map<std::string, std::vector<Observed>>; // keyed by symbol

/// "seq=5,24:0.2,43", "seq=1..128" or "seq=@lengths.txt", a file of observed sizes, each of which
/// counts as often as it is there. Sizes come in order, each once.
llvm::Error addOver(llvm::StringRef text, Over &over);

/// Whether all of them are among the symbols of groups.
llvm::Error checkOver(const Over &over, const std::set<std::string> &known);

struct Instance {
  trial::Sizes sizes;
  double weight = 1;
};

/// Every combination of the sizes of these symbols; if there are more than `most`, about evenly
/// spread ones of them.
std::vector<Instance> instancesOf(const Over &over, llvm::ArrayRef<std::string> symbols,
                                  size_t most = 4096);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_JOINT_INSTANCES_H
