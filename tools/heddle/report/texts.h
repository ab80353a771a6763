// Texts: the files of this folder that the page is made of, inside the binary.
#ifndef HEDDLE_TOOLS_HEDDLE_REPORT_TEXTS_H
#define HEDDLE_TOOLS_HEDDLE_REPORT_TEXTS_H

#include <string>

namespace heddle::cli {

/// Written by cmake/EmbedTexts.cmake. `name` is a file's: "page.css".
std::string reportText(const std::string &name);

} // namespace heddle::cli

#endif
