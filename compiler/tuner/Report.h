// Report: what a tuning says of one group.
#ifndef HEDDLE_TUNER_REPORT_H
#define HEDDLE_TUNER_REPORT_H

#include "compiler/support/Json.h"
#include "compiler/tuner/GroupTuning.h"

namespace heddle::tuner {

/// `whole`: the weight of all groups.
Json describe(const GroupTuning &work, double whole);

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_REPORT_H
