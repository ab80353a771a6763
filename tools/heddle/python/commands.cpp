// Commands that hand their arguments on to Heddle's Python packages, which work through the C API
// as any other user does, and have ONNX's own tools at hand.

#include "tools/heddle/command.h"
#include "tools/heddle/python/interpreter.h"

namespace heddle::cli {

int runFuzz(std::vector<std::string> arguments) {
  becomePython("heddle_lab.fuzz", "fuzz", arguments, {"numpy", "onnx"},
               {"ml_dtypes", "onnxruntime"});
}

int runReduce(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "reduce");
  return runFuzz(arguments);
}

int runTrain(std::vector<std::string> arguments) {
  becomePython("heddle.training", "train", arguments, {"numpy", "onnx", "safetensors"});
}

int runQuantize(std::vector<std::string> arguments) {
  becomePython("heddle.quantize", "quantize", arguments, {"numpy", "onnx"});
}

int runGenerate(std::vector<std::string> arguments) {
  becomePython("heddle.generate", "generate", arguments, {"numpy", "onnx"},
               {"tokenizers", "jinja2"});
}

int runServe(std::vector<std::string> arguments) {
  becomePython("heddle.serve", "serve", arguments, {"numpy", "onnx", "tokenizers"}, {"jinja2"});
}

int runCost(std::vector<std::string> arguments) {
  becomePython("heddle_lab.cost", "cost", arguments, {"numpy", "onnx", "safetensors"},
               {"lightgbm", "matplotlib", "scipy"});
}

} // namespace heddle::cli
