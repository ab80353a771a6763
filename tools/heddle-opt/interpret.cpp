// interpret: runs @main of a module with the reference and prints its results as nested lists.
//
// Arguments are filled by the option `fill`: iota (0, 1, 2, ...) or random (from `seed`, in -1 ..
// 1, or 0 .. 9 for integers). The option `sizes` gives symbols their values: sizes=batch=2,h=3.

#include "compiler/reference/Interpreter.h"
#include "tools/heddle-opt/passes.h"

#include <random>

using namespace mlir;

namespace heddle::opt {

#define GEN_PASS_DEF_INTERPRETPASS
#include "tools/heddle-opt/Passes.h.inc"

using reference::Tensor;

static void printElements(llvm::raw_ostream &stream, const Tensor &tensor, size_t dimension,
                          int64_t &next) {
  if (dimension == tensor.shape.size()) {
    int64_t i = next++;
    if (!reference::isFloat(tensor.element)) {
      int64_t value = reference::integerAt(tensor, i);
      if (reference::isUnsigned(tensor.element))
        stream << static_cast<uint64_t>(value);
      else
        stream << value;
      return;
    }
    stream << llvm::format(tensor.element.isF64() ? "%.17g" : "%.7g",
                           reference::numberAt(tensor, i));
    return;
  }
  stream << "[";
  for (int64_t i = 0; i < tensor.shape[dimension]; ++i) {
    stream << (i ? ", " : "");
    printElements(stream, tensor, dimension + 1, next);
  }
  stream << "]";
}

static void print(llvm::raw_ostream &stream, const Tensor &tensor) {
  for (int64_t size : tensor.shape)
    stream << size << "x";
  stream << tensor.element << " ";
  int64_t next = 0;
  printElements(stream, tensor, 0, next);
  stream << "\n";
}

namespace {
struct InterpretPass : impl::InterpretPassBase<InterpretPass> {
  using InterpretPassBase::InterpretPassBase;

  void runOnOperation() final {
    if (llvm::Error error = interpret()) {
      emitError(UnknownLoc::get(&getContext())) << llvm::toString(std::move(error));
      signalPassFailure();
    }
  }

private:
  Tensor argument(RankedTensorType type, ArrayRef<int64_t> shape, std::mt19937 &generator) {
    Tensor tensor = Tensor::zeros(type.getElementType(), shape);
    std::vector<double> values(tensor.count());
    for (auto [i, value] : llvm::enumerate(values))
      if (fill == "iota")
        value = static_cast<double>(i);
      else if (reference::isFloat(tensor.element))
        value = std::uniform_real_distribution<double>(-1, 1)(generator);
      else
        value = static_cast<double>(generator() % 10);
    reference::store<double>(tensor, values);
    return tensor;
  }

  llvm::Error interpret() {
    auto main = getOperation().lookupSymbol<func::FuncOp>("main");
    if (!main)
      return makeError(ErrorCode::Usage, "the module has no function @main");
    reference::Environment environment;
    for (const std::string &size : sizes) {
      auto [name, text] = StringRef(size).split('=');
      int64_t value;
      if (text.getAsInteger(10, value))
        return makeError(ErrorCode::Usage, "'" + size + "' is not name=number");
      auto type = graph::tensorOf(&getContext(), {graph::Dim::symbol(name)},
                                  IntegerType::get(&getContext(), 8));
      if (llvm::Error error = environment.bind(main, type, {value}))
        return error;
    }
    std::mt19937 generator(seed);
    std::vector<Tensor> inputs;
    for (Type type : main.getArgumentTypes()) {
      auto shape = environment.shapeOf(main, type);
      if (!shape)
        return shape.takeError();
      inputs.push_back(argument(cast<RankedTensorType>(type), *shape, generator));
    }
    reference::Limits limits;
    limits.bytes = limitBytes;
    limits.trips = limitTrips;
    auto results = reference::Interpreter(getOperation(), limits).run(inputs);
    if (!results)
      return results.takeError();
    for (const Tensor &result : *results)
      print(llvm::outs(), result);
    return llvm::Error::success();
  }
};
} // namespace

} // namespace heddle::opt
