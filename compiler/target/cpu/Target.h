// Target: the CPU that code is made for, and what code generation asks about it.
#ifndef HEDDLE_TARGET_CPU_TARGET_H
#define HEDDLE_TARGET_CPU_TARGET_H

#include "compiler/Prelude.h"
#include "compiler/support/Error.h"

namespace heddle::cpu {

struct Target {
  std::string cpu;          // LLVM's name: "cascadelake", "x86-64-v3"
  std::string features;     // "+avx2,-avx512f,..." beside those that the name implies
  int64_t vectorBits = 128; // width of vectors worth using
  int64_t registers = 16;   // of vectorBits each
  bool fma = false, f16c = false, avx2 = false, avx512 = false;
  bool vnni = false; // dot products of u8 and s8 in registers of vectorBits
  bool bf16 = false; // dot products of bf16
  int64_t l1Bytes = 32 << 10, l2Bytes = 1 << 20;
  /// What the artefact needs, spelled as __builtin_cpu_supports does.
  std::vector<std::string> required;

  /// Equal for targets whose code may be exchanged: "x86-64-v4+avx512vnni".
  std::string identity() const;
};

/// "host", or an x86 CPU name of LLVM: "x86-64-v3", "cascadelake".
llvm::Expected<Target> targetFor(llvm::StringRef name);

/// All names that targetFor knows, "host" first.
std::vector<std::string> targetNames();

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_TARGET_H
