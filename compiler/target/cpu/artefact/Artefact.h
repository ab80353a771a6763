// Artefact: a compiled program as files.
#ifndef HEDDLE_TARGET_CPU_ARTEFACT_ARTEFACT_H
#define HEDDLE_TARGET_CPU_ARTEFACT_ARTEFACT_H

#include "compiler/target/cpu/Emit.h"

namespace heddle::cpu {

/// A program of the same model for another CPU.
struct Variant {
  const program::Program *program;
  const Target *target;
  const Objects *objects;
};

struct ArtefactOptions {
  std::string kind; // "so", "o", "h", "ll" or "asm"
  int optLevel = 3; // of "ll" and "asm"
  /// Static libraries that go into "so" as a whole: the runtime.
  std::vector<std::string> archives;
  /// Variants for other CPUs, the one that asks most first; all of their weights are in the
  /// program's.
  std::vector<Variant> variants;
};

/// Writes `path` whole or not at all. The bytes depend on the program and the options alone.
llvm::Error writeArtefact(const program::Program &program, const Target &target,
                          const Objects &objects, const ArtefactOptions &options,
                          llvm::StringRef path);

/// The C header of an artefact: what goes in and out, and the declaration of the entry.
std::string headerOf(const program::Program &program);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_ARTEFACT_ARTEFACT_H
