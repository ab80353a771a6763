// Emit: a program's code as objects.
#ifndef HEDDLE_TARGET_CPU_EMIT_H
#define HEDDLE_TARGET_CPU_EMIT_H

#include "compiler/target/Program.h"
#include "compiler/target/cpu/Target.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"

namespace heddle::cpu {

using Objects = std::vector<std::unique_ptr<llvm::MemoryBuffer>>;

/// scf, arith, math, vector, func -> llvm dialect, in place.
llvm::Error lowerToLLVM(mlir::ModuleOp module);
/// Machine code of a program's functions. `threads` objects are made at a time.
llvm::Expected<Objects> emitObjects(target::Program &program, const Target &target, int optLevel,
                                    unsigned threads);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_EMIT_H
