// Target: what LLVM and the machine say about a CPU.

#include "compiler/target/cpu/Target.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <unistd.h>

namespace heddle::cpu {

/// The features that generated code may use and whose lack must be noticed at load time.
static const char *const kChecked[] = {"sse4.2",   "avx",      "avx2",     "fma",      "f16c",
                                       "bmi",      "bmi2",     "popcnt",   "avx512f",  "avx512bw",
                                       "avx512dq", "avx512vl", "avx512vnni"};

static void initializeTargets() {
  static bool once = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    return true;
  }();
  (void)once;
}

static llvm::Error unknown(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef> known;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  llvm::StringRef best;
  unsigned distance = 4;
  for (llvm::StringRef candidate : known)
    if (unsigned d = name.edit_distance(candidate, true, distance); d < distance) {
      distance = d;
      best = candidate;
    }
  std::string hint = best.empty() ? "" : "did you mean '" + best.str() + "'? ";
  return makeError(ErrorCode::Usage, "error: unknown target '" + name + "'\nnote: " + hint +
                                         "known: host, x86-64-v2, x86-64-v3, x86-64-v4, or a CPU "
                                         "name of LLVM such as 'skylake-avx512'");
}

llvm::Expected<Target> targetFor(llvm::StringRef name) {
  initializeTargets();
  Target target;
  bool isHost = name == "host" || name.empty();
  target.cpu = isHost ? llvm::sys::getHostCPUName().str() : name.str();
  if (llvm::X86::parseArchX86(target.cpu, /*Only64Bit=*/true) == llvm::X86::CK_None)
    return unknown(name);
  if (isHost) {
    // The name alone may promise what a virtual machine hides.
    for (auto &feature : llvm::sys::getHostCPUFeatures())
      if (feature.getValue() || feature.getKey().starts_with("avx"))
        target.features += (target.features.empty() ? "" : ",") +
                           std::string(feature.getValue() ? "+" : "-") + feature.getKey().str();
    if (long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0)
      target.l1Bytes = bytes;
    if (long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0)
      target.l2Bytes = bytes;
  }
  std::string triple = llvm::sys::getProcessTriple(), error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    return makeError(ErrorCode::Internal, "internal error: " + error);
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      backend->createMCSubtargetInfo(triple, target.cpu, target.features));
  for (const char *feature : kChecked)
    if (info->checkFeatures(std::string("+") + feature))
      target.required.push_back(feature);
  if (info->checkFeatures("+avx512f"))
    target.vectorBits = 512, target.registers = 32;
  else if (info->checkFeatures("+avx"))
    target.vectorBits = 256;
  return target;
}

} // namespace heddle::cpu
