// Text: the explanation of a model for a terminal: one line per group, or all about one group.
#ifndef HEDDLE_TOOLS_HEDDLE_REPORT_TEXT_H
#define HEDDLE_TOOLS_HEDDLE_REPORT_TEXT_H

#include "tools/heddle/model.h"

namespace heddle::cli {

std::string tableOf(const Json &explanation);
std::string detailsOf(const Json &explanation, const Json &group);

} // namespace heddle::cli

#endif
