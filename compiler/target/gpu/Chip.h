// Chip: the GPUs that code is made for, by the names that NVIDIA's tools give them.
#ifndef HEDDLE_TARGET_GPU_CHIP_H
#define HEDDLE_TARGET_GPU_CHIP_H

#include "compiler/program/Machine.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace heddle::gpu {

/// The memory of all chips, as programs name it.
inline constexpr llvm::StringLiteral kSpace = "cuda";

struct Chip {
  llvm::StringLiteral name;     // "sm_80"
  llvm::StringLiteral features; // of LLVM: the least PTX that has its instructions
  int64_t processors;           // multiprocessors of the largest card
  program::Rates rates;         // of that card, by its data sheet
};

/// All chips, older ones first.
llvm::ArrayRef<Chip> chips();
/// Null if there is none of this name.
const Chip *chipOf(llvm::StringRef name);

/// A machine of threads, as schedules see the chip.
program::Machine machineOf(const Chip &chip);

} // namespace heddle::gpu

#endif // HEDDLE_TARGET_GPU_CHIP_H
