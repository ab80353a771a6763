// linker: LLD behind one C function, for the program heddle-ld of the wheel.

#include "lld/Common/Driver.h"

#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

/// Debian's LLVM runs Polly in link-time optimisation, which links no artefact of ours.
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "no Polly", "", [](llvm::PassBuilder &) {}};
}

extern "C" __attribute__((visibility("default"))) int heddle_ld_main(int count,
                                                                     const char **words) {
  return lld::elf::link(llvm::ArrayRef<const char *>(words, count), llvm::outs(), llvm::errs(),
                        /*exitEarly=*/false, /*disableOutput=*/false)
             ? 0
             : 1;
}
