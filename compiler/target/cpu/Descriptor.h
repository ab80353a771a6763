// Descriptor: heddle_executable_t of runtime/executable/abi.h as an object.
#ifndef HEDDLE_TARGET_CPU_DESCRIPTOR_H
#define HEDDLE_TARGET_CPU_DESCRIPTOR_H

#include "compiler/target/cpu/Emit.h"

namespace heddle::cpu {

/// "models/resnet50-v1.onnx": resnet50_v1. Always a C identifier.
std::string identifierOf(const target::Program &program);

/// Names of symbols: "<identifier>_executable" and "<identifier>_weights".
std::string entrySymbol(const target::Program &program);
std::string weightsSymbol(const target::Program &program);

/// Defines `heddle_executable` and `<identifier>_executable`, the first one hidden unless
/// `exportGeneric`; wants heddle_sizes, heddle_run and `<identifier>_weights`.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
emitDescriptor(const target::Program &program, const Target &target, bool exportGeneric);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_DESCRIPTOR_H
