// Target: a CPU that code is made for, and what code generation asks about it; and lists of them.
#ifndef HEDDLE_TARGET_CPU_TARGET_H
#define HEDDLE_TARGET_CPU_TARGET_H

#include "compiler/Prelude.h"
#include "compiler/program/Machine.h"
#include "compiler/support/Error.h"

namespace heddle::cpu {

struct Target {
  std::string name;    // "x86-64-vnni"; of "host" LLVM's name of this machine's CPU
  bool isHost = false; // this machine, asked for as "host"
  std::string triple = "x86_64-unknown-linux-gnu";
  std::string cpu;          // LLVM's name: "cascadelake", "x86-64-v3"
  std::string features;     // "+avx2,-avx512f,..." beside those that the name implies
  int64_t vectorBits = 128; // width of vectors worth using
  int64_t registers = 16;   // each of vectorBits
  bool fma = false, f16c = false, avx2 = false, avx512 = false;
  bool vnni = false; // dot products of u8 and s8 in registers of vectorBits
  bool bf16 = false; // dot products of bf16
  bool amx = false;  // matrix registers, and products of bf16 and of 8 bits in them
  bool vbmi = false; // permutations of the bytes of two registers
  bool dotprod = false, i8mm = false; // AArch64: dot products of s8 and s8, of u8 and s8
  bool keepsSubnormals = false;       // asked for by who compiles
  int64_t l1Bytes = 32 << 10, l2Bytes = 1 << 20;
  std::string oneDnn; // the library's file where it is not in the system's folders
  /// Features that the artefact needs: on x86 as __builtin_cpu_supports, on AArch64 as LLVM spells
  /// it.
  std::vector<std::string> required;

  /// Equal for targets whose code may be exchanged: "x86-64-v4+avx512vnni".
  std::string identity() const;
  bool isArm() const { return llvm::StringRef(triple).starts_with("aarch64"); }
  bool isX86() const { return llvm::StringRef(triple).starts_with("x86_64"); }
  /// Whether this process could run the code if its CPU has what is `required`.
  bool isOwnArchitecture() const;
};

/// "" if the target has the library "libdnnl.so.2" or nobody knows yet, else why not. This machine
/// is asked, once for a library in a process; others are when they load the artefact.
std::string whyNoLibrary(const Target &target, llvm::StringRef file);

/// The machine that schedules see on the target, for runs with so many workers.
program::Machine machineOf(const Target &target, int64_t workers);

/// "host", a level such as "x86-64-v3", "x86-64-vnni" or "aarch64-dotprod", or a CPU name of LLVM:
/// "cascadelake", "neoverse-n1".
llvm::Expected<Target> targetFor(llvm::StringRef name);

/// The targets of one artefact, from the one that asks least of a CPU to the one that asks most:
/// "x86-64-v2+v3+v4+vnni", where a part after the first may leave out its family's name.
llvm::Expected<std::vector<Target>> targetsFor(llvm::StringRef list);

/// All names that targetFor knows, "host" first.
std::vector<std::string> targetNames();

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_TARGET_H
