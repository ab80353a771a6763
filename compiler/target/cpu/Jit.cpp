// Jit: ORC links the objects that an artefact is made of; the weights are a buffer of this process.

#include "compiler/target/cpu/Jit.h"

#include "compiler/support/Mapped.h"
#include "compiler/target/cpu/artefact/Descriptor.h"

#include "runtime/executable/abi.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <cstring>
#include <sys/mman.h>

namespace heddle::cpu {
namespace {

class JitProgram : public LoadedProgram {
public:
  ~JitProgram() override {
    jit.reset();
    if (memory)
      munmap(memory, size);
  }

  llvm::Error link(const program::Program &program, const Target &target, const Objects &objects) {
    if (llvm::Error error = placeWeights(program.weights))
      return error;
    auto machine = llvm::orc::JITTargetMachineBuilder(llvm::Triple(target.triple));
    auto made = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(machine)).create();
    if (!made)
      return made.takeError();
    jit = std::move(*made);
    jit->getExecutionSession().setErrorReporter(
        [this](llvm::Error error) { failures += llvm::toString(std::move(error)); });
    llvm::orc::JITDylib &library = jit->getMainJITDylib();
    auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
        jit->getDataLayout().getGlobalPrefix());
    if (!process)
      return process.takeError();
    library.addGenerator(std::move(*process));
    llvm::orc::ExecutorSymbolDef weights(llvm::orc::ExecutorAddr::fromPtr(memory),
                                         llvm::JITSymbolFlags::Exported);
    if (llvm::Error error = library.define(
            llvm::orc::absoluteSymbols({{jit->mangleAndIntern(weightsSymbol(program)), weights}})))
      return error;
    auto descriptor = emitDescriptor(program, target, /*exportGeneric=*/true);
    if (!descriptor)
      return descriptor.takeError();
    if (llvm::Error error = jit->addObjectFile(std::move(*descriptor)))
      return error;
    for (const auto &object : objects)
      if (llvm::Error error = jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(
              object->getBuffer(), object->getBufferIdentifier())))
        return error;
    auto found = jit->lookup(HEDDLE_ENTRY_SYMBOL);
    if (!found)
      return found.takeError();
    if (!failures.empty())
      return llvm::createStringError(failures);
    entry = found->toPtr<const heddle_executable_t *>();
    return llvm::Error::success();
  }

  const heddle_executable_t *executable() const override { return entry; }

private:
  llvm::Error placeWeights(const program::Weights &weights) {
    size = std::max<int64_t>(weights.size, 64);
    void *mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
      return makeError(ErrorCode::Limit,
                       "error: no memory for " + llvm::Twine(size) + " bytes of weights");
    memory = static_cast<char *>(mapped);
    for (const program::Weights::Piece &piece : weights.pieces) {
      std::memcpy(memory + piece.offset, piece.bytes.data(), piece.bytes.size());
      support::letPagesGo(piece.bytes);
    }
    mprotect(memory, size, PROT_READ);
    return llvm::Error::success();
  }

  char *memory = nullptr;
  size_t size = 0;
  std::string failures; // the lookup succeeds, although an object that it needs did not link
  std::unique_ptr<llvm::orc::LLJIT> jit;
  const heddle_executable_t *entry = nullptr;
};

} // namespace

llvm::Expected<std::shared_ptr<LoadedProgram>> load(const program::Program &program,
                                                    const Target &target, const Objects &objects) {
  auto loaded = std::make_shared<JitProgram>();
  if (llvm::Error error = loaded->link(program, target, objects))
    return makeError(ErrorCode::Internal, "internal error: the code could not be loaded: " +
                                              llvm::toString(std::move(error)));
  return loaded;
}

} // namespace heddle::cpu
