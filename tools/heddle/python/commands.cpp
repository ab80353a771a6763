// heddle fuzz, heddle reduce: both hand their arguments on to python/heddle/fuzz, which works
// through the C API as any other user does, and has ONNX's own tools at hand.

#include "tools/heddle/command.h"
#include "tools/heddle/python/interpreter.h"

namespace heddle::cli {

static const char *const kScript = R"__script__(
import sys
try:
    import numpy, onnx
except ImportError as error:
    print(f"heddle fuzz: needs the Python packages numpy and onnx, which '{sys.executable}' lacks: "
          f"{error}\nnote: '{sys.executable} -m pip install numpy onnx ml_dtypes onnxruntime' "
          "installs them; HEDDLE_PYTHON names another Python", file=sys.stderr)
    sys.exit(2)
from heddle.fuzz.__main__ import main
sys.exit(main())
)__script__";

int runFuzz(std::vector<std::string> arguments) { becomePython(kScript, arguments); }

int runReduce(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "reduce");
  becomePython(kScript, arguments);
}

} // namespace heddle::cli
