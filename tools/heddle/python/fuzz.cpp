// heddle fuzz, heddle reduce: both hand their arguments on to python/heddle/fuzz, which works
// through the C API as any other user does, and has ONNX's own tools at hand.

#include "tools/heddle/command.h"
#include "tools/heddle/python/interpreter.h"

namespace heddle::cli {

int runFuzz(std::vector<std::string> arguments) { becomePython("heddle.fuzz", arguments); }

int runReduce(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "reduce");
  becomePython("heddle.fuzz", arguments);
}

} // namespace heddle::cli
