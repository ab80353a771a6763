// Program: compiled as models are, from lower on; run through the runtime as artefacts are.

#include "compiler/trial/Program.h"

#include "compiler/pipeline/Pipeline.h"
#include "compiler/plan/Versions.h"
#include "compiler/support/Error.h"
#include "compiler/support/Guard.h"
#include "compiler/support/Json.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace heddle::trial {

using reference::Tensor;

Program::Program() = default;

Program::~Program() {
  heddle_session_destroy(session);
  heddle_module_destroy(module);
}

llvm::Error errorOf(heddle_status_t *status) {
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
                                                      const warehouse::KnobValues &knobs,
                                                      std::vector<plan::Version> versions) {
  auto card = warehouse::parseCard(context, cardText, path);
  if (!card)
    return card.takeError();
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return makeError(ErrorCode::Internal, "internal error: a trial cannot be read:\n" + text);
  std::erase_if(versions, [&](const plan::Version &version) {
    return !plan::whyNoCondition(groupOf(*module), version.when).empty();
  });
  if (llvm::Error error = plan::applyChoice({&*card, knobs, versions}, groupOf(*module)))
    return std::move(error);
  return module;
}

llvm::Expected<std::unique_ptr<Program>> Program::make(const std::string &text,
                                                       const std::string &cardText, StringRef path,
                                                       const warehouse::KnobValues &knobs,
                                                       std::vector<plan::Version> versions) {
  auto context = makeContext();
  auto module = schedule(*context, text, cardText, path, knobs, std::move(versions));
  if (!module)
    return module.takeError();
  CompileOptions options;
  options.isPlanned = true;
  return load(std::move(context), std::move(*module), options);
}

llvm::Expected<std::unique_ptr<Program>>
Program::borrow(MLIRContext &context, OwningOpRef<ModuleOp> module, CompileOptions options) {
  options.isPlanned = true;
  return whole(context, std::move(module), options);
}

llvm::Expected<std::unique_ptr<Program>>
Program::whole(MLIRContext &context, OwningOpRef<ModuleOp> module, const CompileOptions &options) {
  std::shared_ptr<MLIRContext> borrowed(&context, [](MLIRContext *) {});
  return load(borrowed, std::move(module), options);
}

llvm::Expected<std::unique_ptr<Program>> Program::load(std::shared_ptr<MLIRContext> context,
                                                       OwningOpRef<ModuleOp> graph,
                                                       const CompileOptions &options) {
  auto compiled = compileGraph(std::move(context), std::move(graph), options);
  if (!compiled)
    return compiled.takeError();
  std::unique_ptr<Program> program(new Program);
  program->compiled = std::move(*compiled);
  auto report = parseJson(program->compiled->reportJson);
  program->isCarriedOut = report.at("pointwise_instead").empty();
  if (llvm::Error error = program->place())
    return std::move(error);
  return program;
}

llvm::Error Program::place() {
  heddle_session_destroy(std::exchange(session, nullptr));
  heddle_module_destroy(std::exchange(module, nullptr));
  auto made = compiled->code->load(compiled->program);
  if (!made)
    return made.takeError();
  std::swap(loaded, *made); // the old place is given up only now, so the new one is another
  return errorOf(heddle_module_from_executable(loaded->executable(), nullptr, nullptr, &module));
}

int64_t Program::weightsBytes() const { return compiled->program.weights.size; }

/// Tasks meet if there are two threads.
static heddle_status_t *begin(heddle_module_t *module, heddle_session_t **session) {
  heddle_session_options_t options = {};
  options.size = sizeof options;
  options.threads = 2;
  return heddle_session_create(module, &options, session);
}

Tensor packed(const Tensor &tensor) {
  int bits = heddle_dtype_bits(graph::onnxTypeOf(tensor.element));
  if (bits >= 8)
    return tensor;
  Tensor result = tensor;
  result.owned = std::make_shared<std::vector<char>>(llvm::divideCeil(tensor.count() * bits, 8));
  for (int64_t i = 0; i < tensor.count(); ++i)
    (*result.owned)[i * bits / 8] |= (tensor.bytes()[i] & ((1 << bits) - 1)) << (i * bits % 8);
  return result;
}

heddle_tensor_t viewOf(const Tensor &packed) {
  heddle_tensor_t view = {};
  view.data = const_cast<char *>(packed.bytes().data());
  view.bytes = packed.bytes().size();
  view.dtype = graph::onnxTypeOf(packed.element);
  view.rank = packed.rank();
  llvm::copy(packed.shape, view.dims);
  return view;
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
  if (!session)
    if (llvm::Error error = errorOf(begin(module, &session)))
      return std::move(error);
  std::vector<Tensor> given;
  std::vector<heddle_tensor_t> views, outputs(elements.size());
  for (const Tensor &input : inputs) {
    given.push_back(packed(input));
    views.push_back(viewOf(given.back()));
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

/// The rank, sizes and bytes of each result.
static std::string written(const reference::Tensors &results) {
  std::string text;
  auto append = [&](const void *bytes, size_t size) {
    text.append(static_cast<const char *>(bytes), size);
  };
  for (const Tensor &tensor : results) {
    int64_t rank = tensor.rank();
    append(&rank, sizeof rank);
    append(tensor.shape.data(), rank * sizeof(int64_t));
    append(tensor.bytes().data(), tensor.bytes().size());
  }
  return text;
}

static reference::Tensors read(const std::string &text, ArrayRef<Type> elements) {
  const char *place = text.data();
  auto take = [&](void *bytes, size_t size) {
    std::memcpy(bytes, place, size);
    place += size;
  };
  reference::Tensors results;
  for (Type element : elements) {
    int64_t rank;
    take(&rank, sizeof rank);
    SmallVector<int64_t> shape(rank);
    take(shape.data(), rank * sizeof(int64_t));
    results.push_back(Tensor::zeros(element, shape));
    take(results.back().data(), results.back().bytes().size());
  }
  return results;
}

llvm::Expected<reference::Tensors> Program::runApart(ArrayRef<Tensor> inputs,
                                                     ArrayRef<Type> elements, int64_t seconds) {
  auto work = [&]() -> llvm::Expected<std::string> {
    auto results = run(inputs, elements);
    if (!results)
      return results.takeError();
    return written(*results);
  };
  support::Outcome outcome = support::guarded(work, seconds, [] { return false; });
  if (outcome.isTimeout || outcome.hasDied)
    return makeError(ErrorCode::NumbersDiffer, "the kernel was run alone: " + outcome.failure);
  if (!outcome.failure.empty())
    return makeError(ErrorCode::Usage, outcome.failure);
  return read(outcome.result, elements);
}

} // namespace heddle::trial
