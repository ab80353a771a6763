// DeviceRule: which groups a device beside the host carries out.
#ifndef HEDDLE_PLAN_DEVICERULE_H
#define HEDDLE_PLAN_DEVICERULE_H

#include "compiler/plan/Chooser.h"

namespace heddle::plan {

/// Makes another one's choices, but puts groups on the machine's preferred device that it has code
/// for and that are worth a launch there.
class DeviceChooser : public Chooser {
public:
  /// `mayBeShort`: products may round their factors to bf16.
  DeviceChooser(Chooser &choices, bool mayBeShort) : choices(choices), mayBeShort(mayBeShort) {}
  llvm::Expected<Choice> choose(graph::GroupOp group, llvm::ArrayRef<warehouse::Offer> offers,
                                const program::Machine &machine) override;

private:
  Chooser &choices;
  bool mayBeShort;
};

} // namespace heddle::plan

#endif // HEDDLE_PLAN_DEVICERULE_H
