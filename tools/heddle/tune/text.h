// Text: what tuning has found, for a terminal.
#ifndef HEDDLE_TOOLS_HEDDLE_TUNE_TEXT_H
#define HEDDLE_TOOLS_HEDDLE_TUNE_TEXT_H

#include "tools/heddle/model.h"

namespace heddle::cli {

/// A table of the groups, the reasons why others were not tried, and the next command.
std::string textOf(const Json &found);

} // namespace heddle::cli

#endif
