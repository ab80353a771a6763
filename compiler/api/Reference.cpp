// Reference: heddle_reference_run, the oracle behind the C API.

#include "compiler/api/Options.h"
#include "compiler/api/Status.h"
#include "compiler/pipeline/Pipeline.h"
#include "compiler/reference/Interpreter.h"

#include "heddle/compiler.h"

#include <deque>

using namespace heddle;
using namespace mlir;

namespace {
/// Results as the C API has them, as long as this lives.
struct Views {
  explicit Views(const reference::Environment &environment) : environment(environment) {}

  heddle_tensor_t of(const reference::Tensor &tensor) {
    heddle_tensor_t view{};
    view.data = const_cast<char *>(tensor.bytes().data());
    view.bytes = tensor.bytes().size();
    view.dtype = graph::onnxTypeOf(tensor.element);
    view.rank = tensor.shape.size();
    for (size_t i = 0; i < tensor.shape.size() && i < HEDDLE_MAX_RANK; ++i)
      view.dims[i] = tensor.shape[i];
    if (isa<graph::ListType>(tensor.element))
      fillList(view, tensor);
    else if (graph::isString(tensor.element))
      fillStrings(view, tensor);
    else if (int bits = heddle_dtype_bits(view.dtype); bits < 8)
      pack(view, tensor, bits);
    return view;
  }

private:
  static int64_t wordAt(const reference::Tensor &tensor, int64_t i) {
    int64_t word;
    std::memcpy(&word, tensor.bytes().data() + i * sizeof word, sizeof word);
    return word;
  }

  void fillList(heddle_tensor_t &view, const reference::Tensor &tensor) {
    const reference::Tensors *list = environment.list(wordAt(tensor, 0));
    if (cast<graph::ListType>(tensor.element).getKind() == graph::kAnyRank) {
      view = of((*list)[0]);
      return;
    }
    view.dtype = HEDDLE_SEQUENCE;
    view.rank = 1;
    view.dims[0] = list ? static_cast<int64_t>(list->size()) : -1;
    std::vector<heddle_tensor_t> items;
    for (const reference::Tensor &item : list ? *list : reference::Tensors())
      items.push_back(of(item));
    lists.push_back(std::move(items));
    view.data = lists.back().data();
    view.bytes = lists.back().size() * sizeof(heddle_tensor_t);
  }

  void fillStrings(heddle_tensor_t &view, const reference::Tensor &tensor) {
    std::vector<heddle_string_t> items;
    for (int64_t i = 0; i < tensor.count(); ++i) {
      auto text = environment.stringOf(nullptr, wordAt(tensor, i));
      texts.push_back(text ? *text : std::string());
      llvm::consumeError(text.takeError());
      items.push_back({texts.back().data(), texts.back().size()});
    }
    strings.push_back(std::move(items));
    view.data = strings.back().data();
    view.bytes = strings.back().size() * sizeof(heddle_string_t);
  }

  void pack(heddle_tensor_t &view, const reference::Tensor &tensor, int bits) {
    std::string packed(llvm::divideCeil(tensor.count() * bits, 8), 0);
    for (int64_t i = 0; i < tensor.count(); ++i)
      packed[i * bits / 8] |= (tensor.bytes()[i] & ((1 << bits) - 1)) << (i * bits % 8);
    texts.push_back(std::move(packed));
    view.data = texts.back().data();
    view.bytes = texts.back().size();
  }

  const reference::Environment &environment;
  std::deque<std::string> texts;
  std::deque<std::vector<heddle_string_t>> strings;
  std::deque<std::vector<heddle_tensor_t>> lists;
};

reference::Tensor ofWords(Type element, llvm::ArrayRef<int64_t> shape,
                          llvm::ArrayRef<int64_t> words) {
  reference::Tensor tensor = reference::Tensor::zeros(element, shape);
  std::memcpy(tensor.data(), words.data(), words.size() * sizeof words[0]);
  return tensor;
}

/// An input of the C API as the interpreter has it.
llvm::Expected<reference::Tensor> tensorOf(Type element, const heddle_tensor_t &input,
                                           reference::Environment &environment) {
  auto list = dyn_cast<graph::ListType>(element);
  if (list && list.getKind() == graph::kAnyRank) {
    auto only = tensorOf(list.getElement(), input, environment);
    return only ? ofWords(element, {}, environment.addList({*only})) : std::move(only);
  }
  int32_t wanted = list ? HEDDLE_SEQUENCE : graph::onnxTypeOf(element);
  if (wanted != input.dtype)
    return makeError(ErrorCode::Usage, "error: an input has dtype " + llvm::Twine(input.dtype) +
                                           ", but the model takes " + llvm::Twine(wanted));
  llvm::ArrayRef<int64_t> shape(input.dims, input.rank);
  if (list) {
    reference::Tensors items;
    for (int64_t i = 0; i < input.dims[0]; ++i) {
      auto item =
          tensorOf(list.getElement(), static_cast<heddle_tensor_t *>(input.data)[i], environment);
      if (!item)
        return item;
      items.push_back(*item);
    }
    return ofWords(element, {}, input.dims[0] < 0 ? 0 : environment.addList(std::move(items)));
  }
  int64_t count = reference::countOf(shape);
  if (graph::isString(element)) {
    std::vector<int64_t> words;
    for (int64_t i = 0; i < count; ++i) {
      const auto &text = static_cast<const heddle_string_t *>(input.data)[i];
      words.push_back(environment.numberOf({text.data, text.size}));
    }
    return ofWords(element, shape, words);
  }
  const char *bytes = static_cast<const char *>(input.data);
  if (int bits = heddle_dtype_bits(wanted); bits < 8) {
    reference::Tensor tensor = reference::Tensor::zeros(element, shape);
    for (int64_t i = 0; i < count; ++i)
      tensor.data()[i] = (bytes[i * bits / 8] >> (i * bits % 8)) & ((1 << bits) - 1);
    return tensor;
  }
  return reference::Tensor::borrow(element, shape,
                                   {bytes, static_cast<size_t>(count * graph::bytesOf(element))});
}
} // namespace

extern "C" heddle_status_t *
heddle_reference_run(const char *path, const heddle_tensor_t *inputs, size_t count,
                     void (*each)(void *data, const char *node, const char *op, const char *value,
                                  const heddle_tensor_t *result),
                     void *data) {
  return heddle_reference_run_with(path, nullptr, inputs, count, each, data);
}

extern "C" heddle_status_t *
heddle_reference_run_with(const char *path, const heddle_compile_options_t *given,
                          const heddle_tensor_t *inputs, size_t count,
                          void (*each)(void *data, const char *node, const char *op,
                                       const char *value, const heddle_tensor_t *result),
                          void *data) {
  return guarded([&]() -> llvm::Error {
    CompileOptions options;
    if (given) {
      auto read = optionsOf(given);
      if (!read)
        return read.takeError();
      options = std::move(*read);
    }
    MLIRContext context;
    auto graph = importGraph(context, {path, std::nullopt}, options);
    if (!graph)
      return graph.takeError();
    auto main = (*graph)->lookupSymbol<func::FuncOp>("main");
    if (main.getNumArguments() != count)
      return makeError(ErrorCode::Usage, "error: the model has " +
                                             llvm::Twine(main.getNumArguments()) + " inputs, but " +
                                             llvm::Twine(count) + " were given");
    reference::Interpreter interpreter(**graph);
    reference::Tensors tensors;
    for (size_t i = 0; i < count; ++i) {
      auto tensor =
          tensorOf(graph::elementOf(main.getArgument(i)), inputs[i], interpreter.memory());
      if (!tensor)
        return tensor.takeError();
      tensors.push_back(*tensor);
    }
    auto report = [&](const std::string &node, llvm::StringRef op, const std::string &value,
                      const reference::Tensor &tensor) {
      Views views(interpreter.memory());
      heddle_tensor_t view = views.of(tensor);
      each(data, node.c_str(), op.str().c_str(), value.c_str(), &view);
    };
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
