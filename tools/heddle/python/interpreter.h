// Interpreter: the Python that commands start, and Heddle's own package in it.
#ifndef HEDDLE_TOOLS_HEDDLE_PYTHON_INTERPRETER_H
#define HEDDLE_TOOLS_HEDDLE_PYTHON_INTERPRETER_H

#include <string>
#include <vector>

namespace heddle::cli {

/// $HEDDLE_PYTHON, else build/python/bin/python of this checkout, else python3.
std::string findPython();

/// Becomes `python -m MODULE ARGUMENTS...`, whose exit code is the command's. It finds the package
/// of this checkout, where there is one, and this build's library, unless HEDDLE_LIBRARY is set.
[[noreturn]] void becomePython(const std::string &module, std::vector<std::string> arguments);

} // namespace heddle::cli

#endif
