// Versioned: tools of LLVM by their names in Debian, which end with the version.
#ifndef HEDDLE_TARGET_CPU_VERSIONED_H
#define HEDDLE_TARGET_CPU_VERSIONED_H

#include "llvm/Config/llvm-config.h"

#include <string>

namespace heddle::cpu {

/// The name of the tool that belongs to the LLVM which this library is linked with.
inline std::string versioned(const std::string &tool) {
  return tool + "-" + std::to_string(LLVM_VERSION_MAJOR);
}

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_VERSIONED_H
