// Interpreter: see interpreter.h. The binary is build/release/bin/heddle of a checkout, or an
// installed one.

#include "tools/heddle/python/interpreter.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::cli {

namespace fs = std::filesystem;

static bool isThere(const fs::path &path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string findPython() {
  if (const char *chosen = std::getenv("HEDDLE_PYTHON"); chosen && *chosen)
    return chosen;
  fs::path own = binaryFolder().parent_path().parent_path() / "python" / "bin" / "python";
  return isThere(own) ? own.string() : "python3";
}

static void setEnvironment() {
  fs::path folder = binaryFolder();
  fs::path library = folder.parent_path() / "lib" / "libheddle.so";
  if (isThere(library))
    setenv("HEDDLE_LIBRARY", library.c_str(), /*overwrite=*/0);
  fs::path package = folder.parent_path().parent_path().parent_path() / "python";
  if (isThere(package / "heddle" / "__init__.py")) {
    const char *others = std::getenv("PYTHONPATH");
    std::string paths = package.string() + (others && *others ? ":" + std::string(others) : "");
    setenv("PYTHONPATH", paths.c_str(), /*overwrite=*/1);
  }
}

static std::string joined(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : " ") + name;
  return text;
}

static const char *const kScript = R"__script__(
import importlib.util, sys
package, command, needed, wanted = (sys.argv.pop(1) for _ in range(4))
try:
    for name in needed.split():
        importlib.import_module(name)
except ImportError as error:
    print(f"heddle {command}: needs the Python packages {' and '.join(needed.split())}, which "
          f"'{sys.executable}' lacks: {error}\nnote: '{sys.executable} -m pip install {needed} "
          f"{wanted}' installs them; HEDDLE_PYTHON names another Python", file=sys.stderr)
    sys.exit(2)
top = package.split(".")[0]
if importlib.util.find_spec(top) is None:
    print(f"heddle {command}: is part of the Python package {top}, which '{sys.executable}' "
          f"lacks\nnote: './dev wheel' makes build/wheel/{top}-*.whl; HEDDLE_PYTHON names another "
          "Python", file=sys.stderr)
    sys.exit(2)
sys.exit(importlib.import_module(f"{package}.__main__").main())
)__script__";

void becomePython(const std::string &package, const std::string &command,
                  std::vector<std::string> arguments, const std::vector<std::string> &needed,
                  const std::vector<std::string> &wanted) {
  std::string python = findPython();
  setEnvironment();
  std::signal(SIGXFSZ, SIG_DFL); // ignored signals stay ignored in the new program
  std::signal(SIGPIPE, SIG_DFL);
  arguments.insert(arguments.begin(),
                   {python, "-c", kScript, package, command, joined(needed), joined(wanted)});
  std::vector<char *> pointers;
  for (std::string &argument : arguments)
    pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execvp(python.c_str(), pointers.data());
  failUsage("cannot run '" + python + "': " + std::strerror(errno) +
            "\nnote: HEDDLE_PYTHON names a Python that has numpy and onnx");
}

int runPython(const std::string &package, const std::string &command,
              const std::vector<std::string> &arguments, const std::vector<std::string> &needed) {
  pid_t child = fork();
  if (child < 0)
    failUsage(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM); // it ends with this process
    try {
      becomePython(package, command, arguments, needed);
    } catch (const Failure &failure) {
      std::cerr << failure.what() << std::endl;
      _exit(failure.code);
    }
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

} // namespace heddle::cli
