// Commands that hand their arguments on to Heddle's Python package, which works through the C API
// as any other user does, and has ONNX's own tools at hand.

#include "tools/heddle/command.h"
#include "tools/heddle/python/interpreter.h"

namespace heddle::cli {

int runFuzz(std::vector<std::string> arguments) {
  becomePython("fuzz", "fuzz", arguments, {"numpy", "onnx"}, {"ml_dtypes", "onnxruntime"});
}

int runReduce(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "reduce");
  return runFuzz(arguments);
}

int runTrain(std::vector<std::string> arguments) {
  becomePython("training", "train", arguments, {"numpy", "onnx", "safetensors"});
}

int runCost(std::vector<std::string> arguments) {
  becomePython("cost", "cost", arguments, {"numpy", "onnx", "safetensors"},
               {"lightgbm", "matplotlib", "scipy"});
}

} // namespace heddle::cli
