// Emit: a program's code as objects or as text.
#ifndef HEDDLE_TARGET_CPU_EMIT_H
#define HEDDLE_TARGET_CPU_EMIT_H

#include "compiler/program/Program.h"
#include "compiler/target/cpu/Target.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"

#include <atomic>

namespace heddle::cache {
class Cache;
}

namespace heddle::cpu {

using Objects = std::vector<std::unique_ptr<llvm::MemoryBuffer>>;

/// Objects of earlier compilations, if any, and how many of them were taken.
struct CodeCache {
  cache::Cache *objects = nullptr;
  std::atomic<int64_t> found{0};
};

/// Machine code of a program's functions, compiled in `threads` threads; lowers `program.module`
/// to the LLVM dialect. The number of objects does not depend on `threads`, nor do their bytes.
llvm::Expected<Objects> emitObjects(program::Program &program, const Target &target, int optLevel,
                                    unsigned threads, CodeCache &cache);
/// As emitObjects, of everything anew.
llvm::Expected<Objects> emitObjects(program::Program &program, const Target &target, int optLevel,
                                    unsigned threads);

enum class TextKind { LLVM, Assembly };
/// The optimised code of a program whose objects were emitted.
llvm::Expected<std::string> emitText(const program::Program &program, const Target &target,
                                     int optLevel, TextKind kind);

/// One object of a module that needs no optimisation.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> emitData(llvm::Module &module,
                                                             const Target &target);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_EMIT_H
