// Jit: ORC links the same objects that an artefact is made of; the descriptor is built in memory.

#include "compiler/target/cpu/Jit.h"

#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <sys/mman.h>

namespace heddle::cpu {

namespace {

/// The descriptor with everything that it points to.
struct Descriptor {
  heddle_executable_t executable{};
  std::vector<heddle_io_t> ios;
  std::vector<std::vector<heddle_io_dim_t>> dims;
  std::vector<std::vector<const char *>> labels;
  std::vector<const char *> symbols, messages, kernels;
  std::string features;

  Descriptor(const target::Program &program, const Target &target) {
    auto addIo = [&](const target::Io &io) {
      dims.emplace_back();
      for (const target::IoDim &dim : io.dims)
        dims.back().push_back({dim.value, dim.symbol, dim.text.c_str()});
      labels.emplace_back();
      for (const std::string &label : io.labels)
        labels.back().push_back(label.c_str());
      ios.push_back({io.name.c_str(), io.dtype, static_cast<int32_t>(io.dims.size()),
                     dims.back().data(), io.encoding,
                     static_cast<int32_t>(io.labels.size()), labels.back().data()});
    };
    auto addTexts = [](const std::vector<std::string> &from, std::vector<const char *> &to) {
      for (const std::string &text : from)
        to.push_back(text.c_str());
    };
    for (const target::Io &io : program.inputs)
      addIo(io);
    for (const target::Io &io : program.outputs)
      addIo(io);
    addTexts(program.symbols, symbols);
    addTexts(program.messages, messages);
    addTexts(program.kernels, kernels);
    for (const std::string &feature : target.required)
      features += (features.empty() ? "" : ",") + feature;
    executable.magic = HEDDLE_EXECUTABLE_MAGIC;
    executable.abi_version = HEDDLE_ABI_VERSION;
    executable.model = program.model.c_str();
    executable.producer = "heddle 0.1.0";
    executable.target = target.cpu.c_str();
    executable.features = features.c_str();
    executable.input_count = program.inputs.size();
    executable.output_count = program.outputs.size();
    executable.symbol_count = symbols.size();
    executable.message_count = messages.size();
    executable.inputs = ios.data();
    executable.outputs = ios.data() + program.inputs.size();
    executable.symbols = symbols.data();
    executable.messages = messages.data();
    executable.kernels = kernels.data();
    executable.kernel_count = kernels.size();
    executable.weights_bytes = program.weights.size;
    executable.flops = program.flops;
  }
};

class JitProgram : public LoadedProgram {
public:
  JitProgram(const target::Program &program, const Target &target)
      : names(copyOf(program)), target(target), descriptor(names, this->target) {}
  ~JitProgram() override {
    if (memory)
      munmap(memory, size);
  }

  llvm::Error link(const target::Program &program, const Objects &objects) {
    if (llvm::Error error = placeWeights(program.weights))
      return error;
    auto made = llvm::orc::LLJITBuilder().create();
    if (!made)
      return made.takeError();
    jit = std::move(*made);
    auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
        jit->getDataLayout().getGlobalPrefix());
    if (!process)
      return process.takeError();
    jit->getMainJITDylib().addGenerator(std::move(*process));
    for (auto &object : objects)
      if (llvm::Error error = jit->addObjectFile(llvm::MemoryBuffer::getMemBuffer(
              object->getMemBufferRef(), /*RequiresNullTerminator=*/false)))
        return error;
    auto sizes = jit->lookup("heddle_sizes"), run = jit->lookup("heddle_run");
    if (!sizes)
      return sizes.takeError();
    if (!run)
      return run.takeError();
    descriptor.executable.sizes = sizes->toPtr<decltype(descriptor.executable.sizes)>();
    descriptor.executable.run = run->toPtr<decltype(descriptor.executable.run)>();
    return llvm::Error::success();
  }

  const heddle_executable_t *executable() const override { return &descriptor.executable; }

private:
  /// The texts and shapes of a program; its code and weights are elsewhere by now.
  static target::Program copyOf(const target::Program &program) {
    target::Program copy;
    copy.model = program.model;
    copy.inputs = program.inputs;
    copy.outputs = program.outputs;
    copy.symbols = program.symbols;
    copy.messages = program.messages;
    copy.kernels = program.kernels;
    copy.weights.size = program.weights.size;
    copy.flops = program.flops;
    return copy;
  }

  llvm::Error placeWeights(const target::Weights &weights) {
    size = std::max<int64_t>(weights.size, 64);
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      memory = nullptr;
      return makeError(ErrorCode::Limit, "error: no memory for " + llvm::Twine(size) +
                                             " bytes of weights");
    }
    for (const auto &piece : weights.pieces)
      std::memcpy(static_cast<char *>(memory) + piece.offset, piece.bytes.data(),
                  piece.bytes.size());
    descriptor.executable.weights = static_cast<const uint8_t *>(memory);
    return llvm::Error::success();
  }

  target::Program names;
  Target target;
  Descriptor descriptor;
  void *memory = nullptr;
  size_t size = 0;
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace

llvm::Expected<std::shared_ptr<LoadedProgram>> load(const target::Program &program,
                                                    const Target &target, const Objects &objects) {
  auto loaded = std::make_shared<JitProgram>(program, target);
  if (llvm::Error error = loaded->link(program, objects))
    return std::move(error);
  return loaded;
}

} // namespace heddle::cpu
