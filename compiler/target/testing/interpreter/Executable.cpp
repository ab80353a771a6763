// Executable: the tables of abi.h, and the memory that each call of a function begins with.

#include "compiler/target/testing/interpreter/Executable.h"

#include "compiler/target/testing/interpreter/Interpreter.h"

#include <array>
#include <cstring>
#include <list>
#include <mutex>

using namespace mlir;

namespace heddle::interpreter {
namespace {

/// Bytes of an ONNX type in the memory of kernels: strings are numbers, narrow elements bytes.
int64_t bytesOfElement(int32_t dtype) {
  switch (dtype) {
  case 7:  // int64
  case 8:  // string
  case 11: // double
  case 13: // uint64
    return 8;
  case 1:  // float
  case 6:  // int32
  case 12: // uint32
    return 4;
  case 4:  // uint16
  case 5:  // int16
  case 10: // float16
  case 16: // bfloat16
    return 2;
  default:
    return 1;
  }
}

/// The tables of one program, which point into it and into themselves.
struct Tables {
  explicit Tables(const program::Program &program) {
    std::memset(static_cast<void *>(&executable), 0, sizeof executable);
    describe(program.inputs, inputs);
    describe(program.outputs, outputs);
    for (const auto *list : {&program.symbols, &program.messages, &program.kernels})
      textsOf(*list);
    for (const std::string &text : program.strings)
      strings.push_back({text.data(), int64_t(text.size())});
    weights.resize(std::max<int64_t>(program.weights.size, 1) + 64);
    aligned =
        reinterpret_cast<char *>(llvm::alignTo(reinterpret_cast<uintptr_t>(weights.data()), 64));
    for (const program::Weights::Piece &piece : program.weights.pieces)
      std::memcpy(aligned + piece.offset, piece.bytes.data(), piece.bytes.size());
  }

  std::vector<const char *> &textsOf(const std::vector<std::string> &list) {
    std::vector<const char *> &made = texts.emplace_back();
    for (const std::string &text : list)
      made.push_back(text.c_str());
    return made;
  }

  void describe(const std::vector<program::Io> &given, std::vector<heddle_io_t> &made) {
    for (const program::Io &io : given) {
      std::vector<heddle_io_dim_t> &sizes = dims.emplace_back();
      for (const program::IoDim &dim : io.dims)
        sizes.push_back({dim.value, dim.symbol, dim.text.c_str()});
      std::vector<const char *> &labels = textsOf(io.labels);
      made.push_back({io.name.c_str(), io.dtype, int32_t(io.dims.size()), sizes.data(),
                      int32_t(io.encoding), int32_t(labels.size()), labels.data(), int32_t(io.kind),
                      io.tensorRank, io.shares});
    }
  }

  heddle_executable_t executable;
  std::list<std::vector<const char *>> texts;
  std::list<std::vector<heddle_io_dim_t>> dims;
  std::vector<heddle_io_t> inputs, outputs;
  std::vector<heddle_text_constant_t> strings;
  std::vector<char> weights;
  char *aligned;
};

/// Functions of abi.h know nothing but their arguments, so each program has a number.
constexpr size_t kMostPrograms = 64;

class Executable final : public target::LoadedProgram {
public:
  Executable(const program::Program &program, std::unique_ptr<Code> code)
      : program(program), code(std::move(code)), tables(program) {}
  ~Executable() override { running()[number] = nullptr; }

  llvm::Error begin(const target::Target &target);
  const heddle_executable_t *executable() const override { return &tables.executable; }

  int32_t bind(heddle_call_t *call);
  int32_t sizes(const int64_t *symbols, int64_t *arena, int64_t *outputDims, int64_t *values);
  int32_t run(heddle_call_t *call);

  static std::array<Executable *, kMostPrograms> &running() {
    static std::array<Executable *, kMostPrograms> all = {};
    return all;
  }

private:
  int64_t outputDimCount() const;
  void addInputs(Run &run, const int64_t *symbols);
  void addOutputs(Run &run, ArrayRef<int64_t> dims);
  int32_t report(const Run &run);
  int32_t interpretSizes(const int64_t *symbols, int64_t *arenas, int64_t *outputDims,
                         int64_t *values);

  const program::Program &program;
  std::unique_ptr<Code> code;
  Tables tables;
  std::string problem; // of the last message
  std::mutex mutex;
  size_t number = 0;
};

template <size_t number> int32_t bindOf(heddle_call_t *call) {
  return Executable::running()[number]->bind(call);
}
template <size_t number>
int32_t sizesOf(const int64_t *symbols, int64_t *arena, int64_t *dims, int64_t *values) {
  return Executable::running()[number]->sizes(symbols, arena, dims, values);
}
template <size_t number> int32_t runOf(heddle_call_t *call) {
  return Executable::running()[number]->run(call);
}

template <size_t... numbers>
void setFunctions(heddle_executable_t &executable, size_t wanted, bool binds,
                  std::index_sequence<numbers...>) {
  static constexpr decltype(executable.bind) binders[] = {bindOf<numbers>...};
  static constexpr decltype(executable.sizes) sizers[] = {sizesOf<numbers>...};
  static constexpr decltype(executable.run) runners[] = {runOf<numbers>...};
  executable.bind = binds ? binders[wanted] : nullptr;
  executable.sizes = sizers[wanted];
  executable.run = runners[wanted];
}

llvm::Error Executable::begin(const target::Target &target) {
  auto *free = llvm::find(running(), nullptr);
  if (free == running().end())
    return makeError(ErrorCode::Limit, "error: more than " + std::to_string(kMostPrograms) +
                                           " programs are interpreted at once");
  *free = this;
  number = free - running().begin();
  heddle_executable_t &made = tables.executable;
  auto textsAt = [&](size_t i) { return std::next(tables.texts.end(), int(i) - 3); };
  std::vector<const char *> &messages = *textsAt(1);
  messages.push_back("");
  made.magic = HEDDLE_EXECUTABLE_MAGIC;
  made.abi_version = HEDDLE_ABI_VERSION;
  made.model = program.model.c_str();
  made.producer = "heddle";
  made.target = target.name.c_str();
  made.features = "";
  made.input_count = tables.inputs.size();
  made.output_count = tables.outputs.size();
  made.symbol_count = program.symbols.size();
  made.message_count = messages.size();
  made.inputs = tables.inputs.data();
  made.outputs = tables.outputs.data();
  made.symbols = textsAt(0)->data();
  made.messages = messages.data();
  made.weights = reinterpret_cast<const uint8_t *>(tables.aligned);
  made.weights_bytes = program.weights.size;
  made.kernels = textsAt(2)->data();
  made.kernel_count = program.kernels.size();
  made.flops = program.flops;
  made.strings = tables.strings.data();
  made.string_count = tables.strings.size();
  made.row_symbol = program.rowBlocks.symbol;
  made.row_work = program.rowBlocks.work;
  made.row_block = program.rowBlocks.bytes;
  setFunctions(made, number, program.bindsValues, std::make_index_sequence<kMostPrograms>());
  return llvm::Error::success();
}

int64_t Executable::outputDimCount() const {
  int64_t count = 0;
  for (const program::Io &output : program.outputs)
    count += output.dims.size();
  return count;
}

void Executable::addInputs(Run &run, const int64_t *symbols) {
  run.memory.add(run.call->inputs, 8 * program.inputs.size());
  run.memory.add(symbols, 8 * program.symbols.size());
  for (auto [i, input] : llvm::enumerate(program.inputs)) {
    int64_t bytes = input.kind == program::IoKind::Tensor ? bytesOfElement(input.dtype) : 8;
    bool isKnown = true;
    for (const program::IoDim &dim : input.dims) {
      int64_t size = dim.symbol >= 0 ? symbols[dim.symbol] : dim.value;
      isKnown &= size >= 0;
      bytes *= size;
    }
    if (isKnown)
      run.memory.add(run.call->inputs[i], bytes);
    else // its sizes are expressions
      run.memory.addUnbounded(run.call->inputs[i]);
  }
}

void Executable::addOutputs(Run &run, ArrayRef<int64_t> dims) {
  run.memory.add(run.call->outputs, 8 * program.outputs.size());
  run.memory.add(run.call->output_dims, 8 * dims.size());
  for (auto [i, output] : llvm::enumerate(program.outputs)) {
    int64_t bytes = output.kind == program::IoKind::Tensor ? bytesOfElement(output.dtype) : 8;
    for (int64_t size : dims.take_front(output.dims.size()))
      bytes *= std::max<int64_t>(size, 0);
    dims = dims.drop_front(output.dims.size());
    run.memory.add(run.call->outputs[i], bytes);
  }
}

/// Reports a run that was stopped as the runtime does: by the last message.
int32_t Executable::report(const Run &run) {
  if (run.problem.empty())
    return run.call ? run.call->status : 0;
  problem = run.problem;
  auto &messages = *std::next(tables.texts.end(), -2);
  messages.back() = problem.c_str();
  if (run.call && !run.call->status)
    run.call->fail(run.call, messages.size() - 1, 0, 0);
  return messages.size();
}

int32_t Executable::interpretSizes(const int64_t *symbols, int64_t *arenas, int64_t *outputDims,
                                   int64_t *values) {
  Run run(*code, nullptr);
  run.memory.add(symbols, 8 * program.symbols.size());
  run.memory.add(arenas, 8 * (1 + program.spaces.size()));
  run.memory.add(outputDims, 8 * outputDimCount());
  run.memory.add(values, 16);
  auto results = run.enter(*code->find("heddle_program_sizes"),
                           {bitsOf(symbols), bitsOf(arenas), bitsOf(outputDims), bitsOf(values)});
  return run.problem.empty() ? int32_t(results[0][0]) : report(run);
}

int32_t Executable::sizes(const int64_t *symbols, int64_t *arena, int64_t *outputDims,
                          int64_t *values) {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<int64_t> arenas(1 + program.spaces.size());
  int32_t status = interpretSizes(symbols, arenas.data(), outputDims, values);
  *arena = llvm::any_of(arenas, [](int64_t bytes) { return bytes < 0; }) ? -1 : arenas[0];
  return status;
}

int32_t Executable::bind(heddle_call_t *call) {
  std::lock_guard<std::mutex> lock(mutex);
  Run run(*code, call);
  addInputs(run, call->symbols);
  run.enter(*code->find("heddle_program_bind"), {bitsOf(call)});
  return report(run);
}

int32_t Executable::run(heddle_call_t *call) {
  std::lock_guard<std::mutex> lock(mutex);
  Run run(*code, call);
  std::vector<int64_t> arenas(1 + program.spaces.size()), dims(outputDimCount());
  int64_t values[2] = {0, 0};
  if (int32_t status = interpretSizes(call->symbols, arenas.data(), dims.data(), values))
    return status;
  addInputs(run, call->symbols);
  addOutputs(run, dims);
  run.memory.add(call->arena, arenas[0]);
  run.memory.add(call->weights, program.weights.size);
  run.memory.add(&call->seed, sizeof call->seed);
  for (auto [space, bytes] : llvm::zip(program.spaces, ArrayRef(arenas).drop_front())) {
    run.arenas[space] = run.memory.make(bytes, space);
    run.weights[space] = run.memory.make(program.weights.size, space);
    std::memcpy(run.weights[space], call->weights, program.weights.size);
  }
  run.enter(*code->find("heddle_program_run"), {bitsOf(call)});
  return report(run);
}

} // namespace

llvm::Expected<std::shared_ptr<target::LoadedProgram>> load(const program::Program &program,
                                                            const target::Target &target) {
  auto code = Code::make(program.module.get());
  if (!code)
    return code.takeError();
  auto made = std::make_shared<Executable>(program, std::move(*code));
  if (llvm::Error error = made->begin(target))
    return std::move(error);
  return made;
}

} // namespace heddle::interpreter
