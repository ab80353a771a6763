// Failure: the one way in which a command ends badly: an exit code and a whole message.
#ifndef HEDDLE_TOOLS_HEDDLE_FAILURE_H
#define HEDDLE_TOOLS_HEDDLE_FAILURE_H

#include "heddle/runtime.h"

#include <stdexcept>
#include <string>
#include <vector>

namespace heddle::cli {

class Failure : public std::runtime_error {
public:
  Failure(heddle_code_t code, const std::string &message)
      : std::runtime_error(message), code(code) {}
  heddle_code_t code;
};

[[noreturn]] void failUsage(const std::string &message);

/// Throws what a status of the C API says, and destroys it.
void check(heddle_status_t *status);

/// The name that is nearest to `word`, or "" when none is near.
std::string nearest(const std::string &word, const std::vector<std::string> &names);

/// "; did you mean 'x'?" or "".
std::string didYouMean(const std::string &word, const std::vector<std::string> &names);

} // namespace heddle::cli

#endif
