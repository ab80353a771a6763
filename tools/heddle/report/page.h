// Page: the explanation of a model as one HTML file that needs nothing beside it.
#ifndef HEDDLE_TOOLS_HEDDLE_REPORT_PAGE_H
#define HEDDLE_TOOLS_HEDDLE_REPORT_PAGE_H

#include "tools/heddle/model.h"

namespace heddle::cli {

/// Assembly that would make the page larger is left out, and the page says so. Its account of the
/// groups is always whole: some thousands of them would be more.
inline constexpr size_t kMostPageBytes = 1000000;

/// `assembly` is the text of the whole program; functions of equal text are shown once.
std::string pageOf(Json explanation, const std::string &assembly);

} // namespace heddle::cli

#endif
