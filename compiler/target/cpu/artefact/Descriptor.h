// Descriptor: heddle_executable_t of runtime/executable/abi.h as an object.
#ifndef HEDDLE_TARGET_CPU_ARTEFACT_DESCRIPTOR_H
#define HEDDLE_TARGET_CPU_ARTEFACT_DESCRIPTOR_H

#include "compiler/target/cpu/Emit.h"

namespace heddle::cpu {

/// Names of symbols: "<identifier>_executable" and "<identifier>_weights".
std::string entrySymbol(const program::Program &program);
std::string weightsSymbol(const program::Program &program);

/// Symbol of the program's form for the target, beside others: "<identifier>_for_x86_64_v3".
std::string variantSymbol(const program::Program &program, const Target &target);

/// Defines `heddle_executable` and `<identifier>_executable`, the first one hidden unless
/// `exportGeneric`; wants heddle_program_sizes, heddle_program_run and `<identifier>_weights`.
/// `variants` are symbols of the same model's forms for other CPUs.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
emitDescriptor(const program::Program &program, const Target &target, bool exportGeneric,
               const std::vector<std::string> &variants = {});

/// As emitDescriptor, of one form beside others: defines its variantSymbol, which can be seen.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
emitVariantDescriptor(const program::Program &program, const Target &target);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_ARTEFACT_DESCRIPTOR_H
