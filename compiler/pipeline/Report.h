// Report: what a compilation made and how long it took, as JSON.
#ifndef HEDDLE_PIPELINE_REPORT_H
#define HEDDLE_PIPELINE_REPORT_H

#include "compiler/pipeline/Pipeline.h"

#include <nlohmann/json.hpp>

namespace heddle {

/// `seconds` of each stage.
std::string reportOf(const Compiled &compiled, const nlohmann::ordered_json &seconds);

} // namespace heddle

#endif // HEDDLE_PIPELINE_REPORT_H
