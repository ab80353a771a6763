// Report: what a compilation made and how long it took, as JSON.
#ifndef HEDDLE_PIPELINE_REPORT_H
#define HEDDLE_PIPELINE_REPORT_H

#include "compiler/pipeline/Pipeline.h"

#include <nlohmann/json.hpp>

namespace heddle {

/// What only the stages after the plan know.
struct Made {
  int64_t objectsFound = 0; // in the cache
};

/// `seconds` of each stage; `made` is null where there is a plan only.
std::string reportOf(const Compiled &compiled, const nlohmann::ordered_json &seconds,
                     const Made *made);

} // namespace heddle

#endif // HEDDLE_PIPELINE_REPORT_H
