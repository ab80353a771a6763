// Interpreter: the Python that commands start, and Heddle's own packages in it.
#ifndef HEDDLE_TOOLS_HEDDLE_PYTHON_INTERPRETER_H
#define HEDDLE_TOOLS_HEDDLE_PYTHON_INTERPRETER_H

#include <string>
#include <vector>

namespace heddle::cli {

/// $HEDDLE_PYTHON, else build/python/bin/python of this checkout, else python3.
std::string findPython();

/// Runs `main()` of PACKAGE as `becomePython` does, and returns its exit code.
int runPython(const std::string &package, const std::string &command,
              const std::vector<std::string> &arguments, const std::vector<std::string> &needed);

/// Becomes `main()` of PACKAGE, whose exit code is the command's. It finds the packages of this
/// checkout, if there is one, and this build's library, unless HEDDLE_LIBRARY is set.
/// `command` is its name in messages; `needed` are names of packages that it cannot do without,
/// `wanted` others that it uses.
[[noreturn]] void becomePython(const std::string &package, const std::string &command,
                               std::vector<std::string> arguments,
                               const std::vector<std::string> &needed,
                               const std::vector<std::string> &wanted = {});

} // namespace heddle::cli

#endif
