// Json: see Json.h.

#include "compiler/support/Json.h"

namespace heddle {

Json parseJson(const std::string &text) {
  return Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
}

} // namespace heddle
