// Chip: the table of GPUs.

#include "compiler/target/gpu/Chip.h"

#include "llvm/ADT/STLExtras.h"

namespace heddle::gpu {

/// f32 operations outside of tensor cores, other operations, bytes of memory and seconds of a
/// launch, from the data sheets of A100 80 GB, A40, L40S and H100 SXM; `shorts` and `matrices` are
/// dense f16 in tensor cores.
static constexpr int64_t kThreadsOfProcessor = 2048;
static const Chip kChips[] = {
    {"sm_80", "+ptx70", 108, {19.5e12, 9.7e12, 1.94e12, 2e-6, 312e12, 312e12}},
    {"sm_86", "+ptx71", 84, {37.4e12, 18.7e12, 0.70e12, 2e-6, 150e12, 150e12}},
    {"sm_89", "+ptx78", 142, {91.6e12, 45.8e12, 0.86e12, 2e-6, 362e12, 362e12}},
    {"sm_90", "+ptx78", 132, {66.9e12, 33.5e12, 3.35e12, 2e-6, 989e12, 989e12}},
};

llvm::ArrayRef<Chip> chips() { return kChips; }

const Chip *chipOf(llvm::StringRef name) {
  auto found = llvm::find_if(kChips, [&](const Chip &chip) { return chip.name == name; });
  return found == std::end(kChips) ? nullptr : found;
}

program::Machine machineOf(const Chip &chip) {
  program::Machine machine;
  machine.form = program::Form::Threads;
  machine.lanes = 1;
  machine.registers = 255;
  machine.threadsInStep = 32;
  machine.mostThreads = 1024;
  machine.l1Bytes = 128 << 10;
  machine.l2Bytes = 40 << 20;
  machine.workers = chip.processors * kThreadsOfProcessor;
  machine.dot = program::Dot::Words;
  machine.shortFloats = program::ShortFloats::Native;
  machine.device = machine.space = kSpace.str();
  machine.isPreferred = true;
  machine.rates = chip.rates;
  return machine;
}

} // namespace heddle::gpu
