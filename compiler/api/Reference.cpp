// Reference: heddle_reference_run, the oracle behind the C API.

#include "compiler/api/Status.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/reference/Interpreter.h"

#include "heddle/compiler.h"

using namespace heddle;
using namespace mlir;

static heddle_tensor_t viewOf(const reference::Tensor &tensor) {
  heddle_tensor_t view{};
  view.data = const_cast<char *>(tensor.bytes().data());
  view.bytes = tensor.bytes().size();
  view.dtype = graph::onnxTypeOf(tensor.element);
  view.rank = tensor.shape.size();
  for (size_t i = 0; i < tensor.shape.size() && i < HEDDLE_MAX_RANK; ++i)
    view.dims[i] = tensor.shape[i];
  return view;
}

extern "C" heddle_status_t *
heddle_reference_run(const char *path, const heddle_tensor_t *inputs, size_t count,
                     void (*each)(void *data, const char *node, const char *op, const char *value,
                                  const heddle_tensor_t *result),
                     void *data) {
  return guarded([&]() -> llvm::Error {
    MLIRContext context;
    auto graph = importGraph(context, {path, std::nullopt}, {});
    if (!graph)
      return graph.takeError();
    auto main = (*graph)->lookupSymbol<func::FuncOp>("main");
    if (main.getNumArguments() != count)
      return makeError(ErrorCode::Usage, "error: the model has " +
                                             llvm::Twine(main.getNumArguments()) + " inputs, but " +
                                             llvm::Twine(count) + " were given");
    reference::Tensors tensors;
    for (size_t i = 0; i < count; ++i) {
      Type element = graph::elementOf(main.getArgument(i));
      if (graph::onnxTypeOf(element) != inputs[i].dtype)
        return makeError(ErrorCode::Usage, "error: input " + llvm::Twine(i) + " has dtype " +
                                               llvm::Twine(inputs[i].dtype) +
                                               ", but the model takes " +
                                               llvm::Twine(graph::onnxTypeOf(element)));
      llvm::ArrayRef<int64_t> shape(inputs[i].dims, inputs[i].rank);
      int64_t bytes = reference::countOf(shape) * graph::bytesOf(element);
      tensors.push_back(reference::Tensor::borrow(
          element, shape, {static_cast<const char *>(inputs[i].data), static_cast<size_t>(bytes)}));
    }
    auto report = [&](const std::string &node, llvm::StringRef op, const std::string &value,
                      const reference::Tensor &tensor) {
      heddle_tensor_t view = viewOf(tensor);
      each(data, node.c_str(), op.str().c_str(), value.c_str(), &view);
    };
    reference::Interpreter interpreter(**graph);
    auto results =
        interpreter.run(tensors, [&](Operation *op, llvm::ArrayRef<reference::Tensor> values) {
          std::string node = graph::sourceName(op->getLoc());
          for (const reference::Tensor &value : values)
            report(node, op->getName().getStringRef(), "", value);
        });
    if (!results)
      return results.takeError();
    for (auto [i, value] : llvm::enumerate(*results)) {
      auto name = main.getResultAttrOfType<StringAttr>(i, "graph.name");
      report("", "output", name ? name.str() : "", value);
    }
    return llvm::Error::success();
  });
}
