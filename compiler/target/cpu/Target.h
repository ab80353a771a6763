// Target: a CPU that code is made for.
#ifndef HEDDLE_TARGET_CPU_TARGET_H
#define HEDDLE_TARGET_CPU_TARGET_H

#include "compiler/support/Error.h"

#include <string>
#include <vector>

namespace heddle::cpu {

struct Target {
  std::string cpu;      // LLVM's name
  std::string features; // LLVM's list: "+avx2,+fma"
  int64_t vectorBits = 128;
  int64_t registers = 16;
  int64_t l1Bytes = 32 << 10, l2Bytes = 1 << 20;
  std::vector<std::string> required; // what an artefact asks its CPU for
};

/// "host", or any x86 CPU name that LLVM knows ("x86-64-v3", "cascadelake").
llvm::Expected<Target> targetFor(llvm::StringRef name);

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_TARGET_H
