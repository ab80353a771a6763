// Target: features and cache sizes of CPUs, from LLVM's tables and, for the host, from the machine.

#include "compiler/target/cpu/Target.h"

#include "compiler/support/Suggest.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <unistd.h>

namespace heddle::cpu {
namespace {

/// The features whose absence makes code trap. LLVM and __builtin_cpu_supports spell some in
/// different ways; features that never change code (tuning, kernel mode) are not asked for.
struct Spelling {
  const char *llvm, *builtin;
};
constexpr Spelling checkedFeatures[] = {
    {"sse3", "sse3"},
    {"ssse3", "ssse3"},
    {"sse4.1", "sse4.1"},
    {"sse4.2", "sse4.2"},
    {"popcnt", "popcnt"},
    {"avx", "avx"},
    {"avx2", "avx2"},
    {"fma", "fma"},
    {"f16c", "f16c"},
    {"bmi", "bmi"},
    {"bmi2", "bmi2"},
    {"lzcnt", "lzcnt"},
    {"movbe", "movbe"},
    {"fma4", "fma4"},
    {"xop", "xop"},
    {"avx512f", "avx512f"},
    {"avx512bw", "avx512bw"},
    {"avx512cd", "avx512cd"},
    {"avx512dq", "avx512dq"},
    {"avx512vl", "avx512vl"},
    {"avx512ifma", "avx512ifma"},
    {"avx512vbmi", "avx512vbmi"},
    {"avx512vbmi2", "avx512vbmi2"},
    {"avx512vnni", "avx512vnni"},
    {"avx512bitalg", "avx512bitalg"},
    {"avx512vpopcntdq", "avx512vpopcntdq"},
    {"avx512bf16", "avx512bf16"},
    {"avx512fp16", "avx512fp16"},
    {"avx512vp2intersect", "avx512vp2intersect"},
    {"avxvnni", "avxvnni"},
    {"avxvnniint8", "avxvnniint8"},
    {"avxneconvert", "avxneconvert"},
    {"avxifma", "avxifma"},
    {"gfni", "gfni"},
    {"vpclmulqdq", "vpclmulqdq"},
};

/// Features that only new machines have and that kernels never want; never turned on.
constexpr llvm::StringLiteral neverUsed[] = {"amx-tile", "amx-int8", "amx-bf16",
                                             "avx512vp2intersect"};

void setCaches(Target &target) {
  long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (l1 > 0)
    target.l1Bytes = l1;
  if (l2 > 0)
    target.l2Bytes = l2;
}

void initializeLLVM() {
  static bool once = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)once;
}

llvm::StringSet<> hostFeatures() {
  llvm::StringSet<> on;
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (const auto &feature : features)
    if (feature.second)
      on.insert(feature.first());
  return on;
}

llvm::StringSet<> tableFeatures(llvm::StringRef cpu) {
  std::string error, triple = "x86_64-unknown-linux-gnu";
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(triple, error);
  std::unique_ptr<llvm::MCSubtargetInfo> info(backend->createMCSubtargetInfo(triple, cpu, ""));
  llvm::StringSet<> on;
  for (const Spelling &feature : checkedFeatures)
    if (info->checkFeatures("+" + std::string(feature.llvm)))
      on.insert(feature.llvm);
  return on;
}

} // namespace

std::vector<std::string> targetNames() {
  std::vector<std::string> names = {"host"};
  llvm::SmallVector<llvm::StringRef> cpus;
  llvm::X86::fillValidCPUArchList(cpus, /*Only64Bit=*/true);
  for (llvm::StringRef cpu : cpus)
    names.push_back(cpu.str());
  std::sort(names.begin() + 1, names.end());
  return names;
}

llvm::Expected<Target> targetFor(llvm::StringRef name) {
  initializeLLVM();
  Target target;
  bool host = name.empty() || name == "host";
  target.cpu = host ? llvm::sys::getHostCPUName().str() : name.str();
  if (llvm::X86::parseArchX86(target.cpu, /*Only64Bit=*/true) == llvm::X86::CK_None) {
    if (!host) {
      llvm::SmallVector<llvm::StringRef> known = {"host"};
      llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
      std::string guess = support::nearest(name, known), hint;
      if (!guess.empty())
        hint = "did you mean '" + guess + "'? ";
      return makeError(ErrorCode::Usage, "error: unknown target '" + name + "'\nnote: " + hint +
                                             "known: host, x86-64-v2, x86-64-v3, x86-64-v4 and "
                                             "LLVM's x86 CPU names; '--target help' lists them");
    }
    target.cpu = "x86-64";
  }
  llvm::StringSet<> on = host ? hostFeatures() : tableFeatures(target.cpu);
  for (llvm::StringRef feature : neverUsed)
    on.erase(feature);
  // A virtual machine may hide features that its CPU's name implies, so each is said by name.
  for (const Spelling &feature : checkedFeatures) {
    bool has = on.contains(feature.llvm);
    target.features +=
        (target.features.empty() ? "" : ",") + std::string(has ? "+" : "-") + feature.llvm;
    if (has)
      target.required.push_back(feature.builtin);
  }
  for (llvm::StringRef feature : neverUsed)
    if (feature != "avx512vp2intersect")
      target.features += ",-" + feature.str();
  target.fma = on.contains("fma");
  target.f16c = on.contains("f16c");
  target.avx2 = on.contains("avx2");
  target.avx512 = on.contains("avx512f") && on.contains("avx512vl") && on.contains("avx512bw") &&
                  on.contains("avx512dq");
  target.vnni = target.avx512 ? on.contains("avx512vnni") : on.contains("avxvnni");
  target.bf16 = target.avx512 && on.contains("avx512bf16");
  target.vectorBits = target.avx512 ? 512 : target.avx2 ? 256 : 128;
  target.registers = target.avx512 ? 32 : 16;
  if (host)
    setCaches(target);
  else
    target.l2Bytes = target.avx512 ? 1 << 20 : 256 << 10;
  return target;
}

std::string Target::identity() const {
  std::string text = cpu;
  for (const std::string &feature : required)
    text += "+" + feature;
  return text;
}

} // namespace heddle::cpu
