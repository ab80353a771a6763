// WeightsObject: constant data as a relocatable object, streamed past the code generator.
#ifndef HEDDLE_TARGET_CPU_WEIGHTSOBJECT_H
#define HEDDLE_TARGET_CPU_WEIGHTSOBJECT_H

#include "compiler/target/Program.h"
#include "compiler/target/cpu/Files.h"

namespace heddle::cpu {

/// Writes an ELF object that defines `symbol` (hidden) in a read-only section whose alignment is a
/// page. Returns errno, or 0.
int writeWeightsObject(const target::Weights &weights, const std::string &symbol, bool isArm,
                       const std::string &path);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_WEIGHTSOBJECT_H
