// Json: the values of reports, plans and records, which keep the order of their keys.
#ifndef HEDDLE_SUPPORT_JSON_H
#define HEDDLE_SUPPORT_JSON_H

#include <nlohmann/json.hpp>

namespace heddle {

using Json = nlohmann::ordered_json;

/// Returns the value of a text; it is_discarded() where the text is none. This is a function
/// because the parser takes two seconds to compile.
Json parseJson(const std::string &text);

} // namespace heddle

#endif
