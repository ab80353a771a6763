// Page: the explanation of a model as one HTML file that needs nothing beside it.
#ifndef HEDDLE_TOOLS_HEDDLE_REPORT_PAGE_H
#define HEDDLE_TOOLS_HEDDLE_REPORT_PAGE_H

#include "tools/heddle/model.h"

namespace heddle::cli {

/// The page is never larger; assembly that would make it so is left out, and the page says so.
inline constexpr size_t kMostPageBytes = 1000000;

/// `assembly` is the text of the whole program; functions of equal text are shown once.
std::string pageOf(Json explanation, const std::string &assembly);

} // namespace heddle::cli

#endif
