// Target: features and cache sizes of CPUs, from LLVM's tables and, for the host, from the machine.
//
// Code for a named CPU depends on its name alone: the machine that compiles is asked for "host"
// only.

#include "compiler/target/cpu/Target.h"

#include "compiler/support/Suggest.h"
#include "compiler/target/Backend.h"
#include "runtime/executable/features.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/AArch64TargetParser.h"
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
    {"amx-tile", "amx-tile"},
    {"amx-bf16", "amx-bf16"},
    {"amx-int8", "amx-int8"},
    {"avxvnni", "avxvnni"},
    {"avxvnniint8", "avxvnniint8"},
    {"avxneconvert", "avxneconvert"},
    {"avxifma", "avxifma"},
    {"gfni", "gfni"},
    {"vpclmulqdq", "vpclmulqdq"},
};

/// Features of AArch64; LLVM's spelling is that of the runtime.
constexpr Spelling armFeatures[] = {
    {"neon", "neon"},
    {"crc", "crc"},
    {"lse", "lse"},
    {"rdm", "rdm"},
    {"rcpc", "rcpc"},
    {"fullfp16", "fullfp16"},
    {"complxnum", "complxnum"},
    {"jsconv", "jsconv"},
    {"dotprod", "dotprod"},
    {"fp16fml", "fp16fml"},
    {"i8mm", "i8mm"},
    {"bf16", "bf16"},
};

/// Features that only new machines have and that kernels never want; never turned on.
constexpr llvm::StringLiteral neverUsed[] = {"avx512vp2intersect"};
constexpr llvm::StringLiteral armNeverUsed[] = {"sve", "sve2", "sme"};

/// Names that LLVM does not have: a CPU of LLVM's, and features that it has besides.
struct Level {
  const char *name, *cpu, *features;
};
constexpr Level levels[] = {
    {"x86-64-vnni", "x86-64-v4", "+avx512vnni"},
    {"x86-64-bf16", "x86-64-v4", "+avx512vnni,+avx512bf16"},
    {"x86-64-amx", "x86-64-v4", "+avx512vnni,+avx512bf16,+amx-tile,+amx-bf16,+amx-int8"},
    {"aarch64", "generic", ""},
    {"aarch64-dotprod", "generic", "+dotprod"},
    {"aarch64-i8mm", "generic", "+dotprod,+i8mm"},
    {"aarch64-bf16", "generic", "+dotprod,+i8mm,+bf16"},
};

constexpr const char *x86Triple = "x86_64-unknown-linux-gnu",
                     *armTriple = "aarch64-unknown-linux-gnu";
#if defined(__aarch64__)
constexpr const char *ownTriple = armTriple;
#else
constexpr const char *ownTriple = x86Triple;
#endif

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
    LLVMInitializeX86AsmParser(); // of what lowerMatrices writes
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
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
  heddle_text_t missing = {};
  heddle_features_missing("amx-tile", &missing); // asks the operating system, too
  if (missing.length)
    on.erase("amx-tile");
  heddle_text_free(&missing);
  return on;
}

llvm::ArrayRef<Spelling> checkedFeaturesOf(const Target &target) {
  return target.isArm() ? llvm::ArrayRef(armFeatures) : llvm::ArrayRef(checkedFeatures);
}

llvm::StringSet<> tableFeatures(const Target &target, llvm::StringRef more) {
  std::string error;
  const llvm::Target *backend = llvm::TargetRegistry::lookupTarget(target.triple, error);
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      backend->createMCSubtargetInfo(target.triple, target.cpu, more));
  llvm::StringSet<> on;
  for (const Spelling &feature : checkedFeaturesOf(target))
    if (info->checkFeatures("+" + std::string(feature.llvm)))
      on.insert(feature.llvm);
  return on;
}

bool isX86Name(llvm::StringRef cpu) {
  return llvm::X86::parseArchX86(cpu, /*Only64Bit=*/true) != llvm::X86::CK_None;
}

llvm::Error unknownTarget(llvm::StringRef name) {
  std::vector<std::string> names = targetNames();
  llvm::SmallVector<llvm::StringRef> known(names.begin(), names.end());
  std::string guess = support::nearest(name, known), hint;
  if (!guess.empty())
    hint = "did you mean '" + guess + "'? ";
  std::string own = "host, x86-64, x86-64-v2, x86-64-v3, x86-64-v4";
  for (const Level &level : levels)
    own += std::string(", ") + level.name;
  for (const target::Backend *other : target::backends().drop_back())
    own += ", " + llvm::join(other->targetNames(), ", ");
  return makeError(ErrorCode::Usage,
                   "error: unknown target '" + name + "'\nnote: " + hint + "known: " + own +
                       ", and LLVM's names of x86-64 and AArch64 CPUs, which '--target help' "
                       "lists; several of one architecture are joined with '+', as in "
                       "'x86-64-v2+v3+v4+vnni'");
}

/// Spells all features out: a virtual machine may hide some that its CPU's name implies.
void setFeatures(Target &target, llvm::StringSet<> on) {
  llvm::ArrayRef<llvm::StringLiteral> never =
      target.isArm() ? llvm::ArrayRef(armNeverUsed) : llvm::ArrayRef(neverUsed);
  for (llvm::StringRef feature : never)
    on.erase(feature);
  for (const Spelling &feature : checkedFeaturesOf(target)) {
    bool has = on.contains(feature.llvm);
    target.features +=
        (target.features.empty() ? "" : ",") + std::string(has ? "+" : "-") + feature.llvm;
    if (has)
      target.required.push_back(feature.builtin);
  }
  for (llvm::StringRef feature : never)
    if (feature != "avx512vp2intersect")
      target.features += ",-" + feature.str();
  if (target.isArm()) {
    target.fma = target.f16c = true;
    target.dotprod = on.contains("dotprod");
    target.i8mm = on.contains("i8mm");
    target.bf16 = on.contains("bf16");
    target.registers = 32;
    return;
  }
  target.fma = on.contains("fma");
  target.f16c = on.contains("f16c");
  target.avx2 = on.contains("avx2");
  target.avx512 = on.contains("avx512f") && on.contains("avx512vl") && on.contains("avx512bw") &&
                  on.contains("avx512dq");
  target.vnni = target.avx512 ? on.contains("avx512vnni") : on.contains("avxvnni");
  target.bf16 = target.avx512 && on.contains("avx512bf16");
  target.amx =
      target.bf16 && on.contains("amx-tile") && on.contains("amx-bf16") && on.contains("amx-int8");
  target.vbmi = target.avx512 && on.contains("avx512vbmi");
  target.vectorBits = target.avx512 ? 512 : target.avx2 ? 256 : 128;
  target.registers = target.avx512 ? 32 : 16;
}

Target hostTarget() {
  Target target;
  target.isHost = true;
  target.triple = ownTriple;
  target.cpu = llvm::sys::getHostCPUName().str();
  bool isKnown =
      target.isArm() ? llvm::AArch64::parseCpu(target.cpu).has_value() : isX86Name(target.cpu);
  if (!isKnown)
    target.cpu = target.isArm() ? "generic" : "x86-64";
  target.name = target.cpu;
  setFeatures(target, hostFeatures());
  setCaches(target);
  return target;
}

} // namespace

std::vector<std::string> targetNames() {
  llvm::SmallVector<llvm::StringRef> cpus;
  llvm::X86::fillValidCPUArchList(cpus, /*Only64Bit=*/true);
  llvm::AArch64::fillValidCPUArchList(cpus);
  std::set<std::string> sorted;
  for (llvm::StringRef cpu : cpus)
    sorted.insert(cpu.str());
  for (const Level &level : levels)
    sorted.insert(level.name);
  sorted.erase("generic");
  std::vector<std::string> names = {"host"};
  names.insert(names.end(), sorted.begin(), sorted.end());
  return names;
}

llvm::Expected<Target> targetFor(llvm::StringRef name) {
  initializeLLVM();
  if (name.empty() || name == "host")
    return hostTarget();
  Target target;
  target.name = target.cpu = name.str();
  std::string more;
  auto level = llvm::find_if(levels, [&](const Level &each) { return name == each.name; });
  if (level != std::end(levels)) {
    target.cpu = level->cpu;
    more = level->features;
  }
  if (!isX86Name(target.cpu)) {
    if (!llvm::AArch64::parseCpu(target.cpu) || name == "generic")
      return unknownTarget(name);
    target.triple = armTriple;
  }
  setFeatures(target, tableFeatures(target, more));
  // L2 caches of the smallest machines that have the features.
  target.l2Bytes = target.avx512 || target.i8mm ? 1 << 20 : 256 << 10;
  return target;
}

bool Target::isOwnArchitecture() const { return triple == ownTriple; }

std::string Target::identity() const {
  std::string text = isArm() ? "aarch64-" + cpu : cpu;
  for (const std::string &feature : required)
    text += "+" + feature;
  return text;
}

/// Whether vectors of 512 bits are multiplied by one unit, or by two of 256 bits together. LLVM's
/// schedules say so of servers as well, which have two.
static bool hasOneWideFma(const Target &target) {
  static constexpr llvm::StringLiteral cpus[] = {"znver4", "icelake-client", "tigerlake",
                                                 "rocketlake", "cannonlake"};
  return target.vectorBits == 512 && !target.amx && llvm::is_contained(cpus, target.cpu);
}

/// Whether a dot product of bf16 takes as long as two multiply-adds of as many lanes, twice what
/// its factors take in f32: so it does on Intel's servers, whose AMX is meant for such products.
static bool hasSlowDots(const Target &target) {
  static constexpr llvm::StringLiteral cpus[] = {"cooperlake", "sapphirerapids", "emeraldrapids",
                                                 "graniterapids", "graniterapids-d"};
  return target.amx || llvm::is_contained(cpus, target.cpu);
}

program::Machine machineOf(const Target &target, int64_t workers) {
  program::Machine machine;
  machine.lanes = target.vectorBits / 32;
  machine.registers = target.registers;
  machine.l1Bytes = target.l1Bytes;
  machine.l2Bytes = target.l2Bytes;
  machine.workers = workers;
  machine.masksFreely = target.vectorBits == 512;
  machine.shortFloats = target.bf16 ? program::ShortFloats::Native : program::ShortFloats::None;
  machine.hasMatrices = target.amx;
  if (hasSlowDots(target))
    machine.rates.shorts = machine.rates.products / 2;
  if (target.isArm()) {
    machine.dot = target.i8mm      ? program::Dot::Bytes
                  : target.dotprod ? program::Dot::SignedBytes
                                   : program::Dot::Words;
  } else {
    machine.dot = target.vnni ? program::Dot::Bytes : program::Dot::Words;
    machine.fmas = hasOneWideFma(target) ? 1 : 2;
    machine.permutesWords = target.avx2;
    machine.permutesBytes = target.vbmi;
  }
  return machine;
}

} // namespace heddle::cpu
