// heddle train: hands its arguments on to python/heddle/training, which works through the C API as
// any other user does.

#include "tools/heddle/command.h"
#include "tools/heddle/python/interpreter.h"

namespace heddle::cli {

static const char *const kScript = R"__script__(
import sys
try:
    import numpy, onnx, safetensors
except ImportError as error:
    print(f"heddle train: needs the Python packages numpy, onnx and safetensors, which "
          f"'{sys.executable}' lacks: {error}\nnote: '{sys.executable} -m pip install numpy onnx "
          "safetensors' installs them; HEDDLE_PYTHON names another Python", file=sys.stderr)
    sys.exit(2)
from heddle.training.__main__ import main
sys.exit(main())
)__script__";

int runTrain(std::vector<std::string> arguments) { becomePython(kScript, arguments); }

} // namespace heddle::cli
