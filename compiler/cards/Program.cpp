// Program: compiled as models are, from lower on; run through the runtime as artefacts are.

#include "compiler/cards/Program.h"

#include "compiler/pipeline/Pipeline.h"
#include "compiler/support/Error.h"
#include "compiler/target/cpu/Jit.h"

#include "mlir/Parser/Parser.h"

#include <nlohmann/json.hpp>

using namespace mlir;

namespace heddle::cards {

using reference::Tensor;

Program::Program() = default;

Program::~Program() {
  heddle_session_destroy(session);
  heddle_module_destroy(module);
}

static llvm::Error errorOf(heddle_status_t *status) {
  if (!status)
    return llvm::Error::success();
  auto code = static_cast<ErrorCode>(heddle_status_code(status));
  std::string message = heddle_status_message(status);
  heddle_status_destroy(status);
  return makeError(code, message);
}

/// The module with the card's schedule on its group.
static llvm::Expected<OwningOpRef<ModuleOp>> schedule(MLIRContext &context, const std::string &text,
                                                      const std::string &cardText, StringRef path,
                                                      const warehouse::KnobValues &knobs) {
  auto card = warehouse::parseCard(context, cardText, path);
  if (!card)
    return card.takeError();
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return makeError(ErrorCode::Internal, "internal error: a trial cannot be read:\n" + text);
  if (llvm::Error error = warehouse::apply(*card, groupOf(*module), knobs))
    return std::move(error);
  return module;
}

llvm::Expected<std::unique_ptr<Program>> Program::make(const std::string &text,
                                                       const std::string &cardText, StringRef path,
                                                       const warehouse::KnobValues &knobs) {
  auto context = makeContext();
  auto module = schedule(*context, text, cardText, path, knobs);
  if (!module)
    return module.takeError();
  CompileOptions options;
  options.isPlanned = true;
  auto compiled = compileGraph(std::move(context), std::move(*module), options);
  if (!compiled)
    return compiled.takeError();
  std::unique_ptr<Program> program(new Program);
  program->compiled = std::move(*compiled);
  auto report = nlohmann::json::parse(program->compiled->reportJson);
  program->isCarriedOut = report.at("pointwise_instead").empty();
  if (llvm::Error error = program->load())
    return std::move(error);
  return program;
}

llvm::Error Program::load() {
  auto made = cpu::load(compiled->program, compiled->target, compiled->objects);
  if (!made)
    return made.takeError();
  loaded = std::move(*made);
  if (llvm::Error error =
          errorOf(heddle_module_from_executable(loaded->executable(), nullptr, nullptr, &module)))
    return error;
  heddle_session_options_t options = {};
  options.size = sizeof options;
  options.threads = 2; // so that tasks meet
  return errorOf(heddle_session_create(module, &options, &session));
}

/// Elements of less than 8 bits as the C API has them.
static Tensor packed(const Tensor &tensor) {
  int bits = heddle_dtype_bits(graph::onnxTypeOf(tensor.element));
  if (bits >= 8)
    return tensor;
  Tensor result = tensor;
  result.owned = std::make_shared<std::vector<char>>(llvm::divideCeil(tensor.count() * bits, 8));
  for (int64_t i = 0; i < tensor.count(); ++i)
    (*result.owned)[i * bits / 8] |= (tensor.bytes()[i] & ((1 << bits) - 1)) << (i * bits % 8);
  return result;
}

/// A copy of a result in the interpreter's form.
static Tensor unpacked(Type element, const heddle_tensor_t &view) {
  Tensor tensor = Tensor::zeros(element, ArrayRef<int64_t>(view.dims, view.rank));
  const char *bytes = static_cast<const char *>(view.data);
  int bits = heddle_dtype_bits(view.dtype);
  if (bits >= 8 && tensor.count() > 0)
    std::memcpy(tensor.data(), bytes, tensor.count() * graph::bytesOf(element));
  for (int64_t i = 0; bits < 8 && i < tensor.count(); ++i)
    tensor.data()[i] = (bytes[i * bits / 8] >> (i * bits % 8)) & ((1 << bits) - 1);
  return tensor;
}

llvm::Expected<reference::Tensors> Program::run(ArrayRef<Tensor> inputs, ArrayRef<Type> elements) {
  std::vector<Tensor> given;
  std::vector<heddle_tensor_t> views, outputs(elements.size());
  for (const Tensor &input : inputs) {
    given.push_back(packed(input));
    heddle_tensor_t view = {};
    view.data = const_cast<char *>(given.back().bytes().data());
    view.bytes = given.back().bytes().size();
    view.dtype = graph::onnxTypeOf(input.element);
    view.rank = input.rank();
    llvm::copy(input.shape, view.dims);
    views.push_back(view);
  }
  if (llvm::Error error = errorOf(
          heddle_session_run(session, views.data(), views.size(), outputs.data(), outputs.size())))
    return std::move(error);
  reference::Tensors results;
  for (auto [element, view] : llvm::zip(elements, outputs)) {
    results.push_back(unpacked(element, view));
    heddle_tensor_release(&view);
  }
  return results;
}

} // namespace heddle::cards
