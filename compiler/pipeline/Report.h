// Report: what a compilation made and how long it took, as JSON.
#ifndef HEDDLE_PIPELINE_REPORT_H
#define HEDDLE_PIPELINE_REPORT_H

#include "compiler/pipeline/Pipeline.h"
#include "compiler/support/Json.h"

namespace heddle {

/// `seconds` of each stage.
std::string reportOf(const Compiled &compiled, const Json &seconds);

} // namespace heddle

#endif // HEDDLE_PIPELINE_REPORT_H
