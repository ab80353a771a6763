// Profile: how long each group of a model takes, and how near that is to the machine's limit.
#ifndef HEDDLE_TOOLS_HEDDLE_REPORT_PROFILE_H
#define HEDDLE_TOOLS_HEDDLE_REPORT_PROFILE_H

#include "tools/heddle/model.h"
#include "tools/heddle/report/machine.h"

namespace heddle::cli {

/// Runs a model that was compiled with `profiles` for `seconds`, at least ten times, and adds the
/// medians: "run" to the explanation, "seconds" to each group that was timed, "launched_with" to
/// those whose time is in that of another one.
void addTimes(Json &explanation, const Module &module, int threads, const Feeds &feeds,
              double seconds);

/// Adds "machine", and to each group with known sizes "bound_seconds": the least time that its work
/// and traffic need on this machine; where it was timed "flops_per_second", "bytes_per_second" and
/// "of_bound" too. Groups that are launched at once count together.
void addRoofline(Json &explanation, const Machine &machine, int threads);

} // namespace heddle::cli

#endif
