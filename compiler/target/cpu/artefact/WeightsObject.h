// WeightsObject: constant data as a relocatable object, streamed past the code generator.
#ifndef HEDDLE_TARGET_CPU_ARTEFACT_WEIGHTSOBJECT_H
#define HEDDLE_TARGET_CPU_ARTEFACT_WEIGHTSOBJECT_H

#include "compiler/program/Program.h"

namespace heddle::cpu {

/// Whether an object has its data, or only says how long it is: the data comes into the linked
/// file.
enum class Data { Inside, Later };

/// Writes an ELF object that defines `symbol` (hidden) in a read-only section whose alignment is a
/// page. Returns errno, or 0.
int writeWeightsObject(const program::Weights &weights, const std::string &symbol, bool isArm,
                       const std::string &path, Data data = Data::Inside);

/// Sections in an order in which the place of data that comes later is a hole in the file: a script
/// for ld.lld.
llvm::StringRef layoutWithHole();

/// Writes the weights into the hole that a linker has left for them in the shared library `path`.
/// Returns errno, or 0; without a hole `isDone` is false, and nothing is written.
int fillHole(const program::Weights &weights, const std::string &path, bool &isDone);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_ARTEFACT_WEIGHTSOBJECT_H
