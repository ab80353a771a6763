// Trace: measured times as a Chrome trace, which Perfetto (ui.perfetto.dev) and chrome://tracing
// open; and what two explanations of a model differ in.
#ifndef HEDDLE_TOOLS_HEDDLE_REPORT_TRACE_H
#define HEDDLE_TOOLS_HEDDLE_REPORT_TRACE_H

#include "tools/heddle/model.h"

namespace heddle::cli {

/// A trace of one run: the groups one after the other, each as long as its median, with their
/// choices.
Json traceOf(const Json &explanation);

/// Groups whose card, knobs or time are others than in an explanation of before, a line each, and
/// those that are in one of the two only. Groups are the same when they hold the same ops.
std::string differencesOf(const Json &before, const Json &after);

} // namespace heddle::cli

#endif
