// TargetTest: names of CPUs, their features, and code that keeps to these.

#include "compiler/target/cpu/Emit.h"
#include "compiler/target/testing/Programs.h"

#include <gtest/gtest.h>

using namespace heddle;
using namespace heddle::testing;

static cpu::Target named(llvm::StringRef name) { return llvm::cantFail(cpu::targetFor(name)); }

static bool needs(const cpu::Target &target, llvm::StringRef feature) {
  return llvm::is_contained(target.required, feature);
}

TEST(Target, LevelsHaveTheirFeatures) {
  cpu::Target v2 = named("x86-64-v2"), v3 = named("x86-64-v3"), v4 = named("x86-64-v4");
  EXPECT_EQ(v2.vectorBits, 128);
  EXPECT_FALSE(v2.fma);
  EXPECT_TRUE(needs(v2, "sse4.2"));
  EXPECT_EQ(v3.vectorBits, 256);
  EXPECT_TRUE(v3.fma && v3.f16c && needs(v3, "avx2"));
  EXPECT_FALSE(needs(v3, "avx512f"));
  EXPECT_EQ(v4.vectorBits, 512);
  EXPECT_FALSE(v4.vnni);
  EXPECT_TRUE(named("cascadelake").vnni && named("x86-64-vnni").vnni);
  EXPECT_TRUE(needs(named("x86-64-vnni"), "avx512vnni"));
}

TEST(Target, HostRequiresOnlyWhatThisMachineHas) {
  __builtin_cpu_init();
  cpu::Target target = host();
  EXPECT_EQ(needs(target, "avx2"), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(needs(target, "avx512vnni"), bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_GE(target.l1Bytes, 8 << 10);
}

TEST(Target, LibrariesOfOthersAreNotThoseOfThisMachine) {
  cpu::Target here = host();
  here.oneDnn = "/nowhere";
  EXPECT_EQ(cpu::whyNoLibrary(here, "libdnnl.so.2").substr(0, 45),
            "oneDNN is not on this machine: /nowhere: cann");
  EXPECT_EQ(cpu::whyNoLibrary(named("x86-64-v3"), "libdnnl.so.2"), "");
  EXPECT_EQ(cpu::whyNoLibrary(named("aarch64"), "libdnnl.so.2"), "");
}

TEST(Target, UnknownNameSuggestsANearOne) {
  auto target = cpu::targetFor("x86-64-v33");
  ASSERT_FALSE(target);
  std::string message = llvm::toString(target.takeError());
  EXPECT_NE(message.find("error: unknown target 'x86-64-v33'"), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean 'x86-64-v3'?"), std::string::npos) << message;
}

TEST(Target, ArmLevelsHaveTheirFeatures) {
  cpu::Target base = named("aarch64"), dot = named("aarch64-dotprod"), i8mm = named("aarch64-i8mm");
  EXPECT_TRUE(base.isArm() && base.fma && base.registers == 32 && base.vectorBits == 128);
  EXPECT_EQ(base.required, std::vector<std::string>{"neon"});
  EXPECT_TRUE(dot.dotprod && !dot.i8mm && needs(dot, "dotprod"));
  EXPECT_TRUE(i8mm.dotprod && i8mm.i8mm);
  EXPECT_TRUE(named("neoverse-n1").dotprod);
  EXPECT_FALSE(named("cortex-a72").dotprod);
}

/// The names of a list's targets, or its first line of complaint.
static std::string listed(llvm::StringRef list) {
  auto targets = cpu::targetsFor(list);
  if (!targets)
    return llvm::StringRef(llvm::toString(targets.takeError())).split('\n').first.str();
  std::string names;
  for (const cpu::Target &target : *targets)
    names += (names.empty() ? "" : " ") + target.name;
  return names;
}

TEST(Target, ListsGoFromTheLeastToTheMost) {
  EXPECT_EQ(listed("x86-64-v3"), "x86-64-v3");
  EXPECT_EQ(listed("x86-64-v2+v3+v4+vnni"), "x86-64-v2 x86-64-v3 x86-64-v4 x86-64-vnni");
  EXPECT_EQ(listed("x86-64-vnni+x86-64-v2+cascadelake+v3"),
            "error: target 'x86-64-vnni+x86-64-v2+cascadelake+v3': 'x86-64-vnni' and 'cascadelake' "
            "need the same of a CPU, so only one of them would run; leave one out");
  EXPECT_EQ(listed("x86-64+skylake+v2"), "x86-64 x86-64-v2 skylake");
  EXPECT_EQ(listed("aarch64+i8mm+dotprod"), "aarch64 aarch64-dotprod aarch64-i8mm");
}

TEST(Target, WrongListsAreRefused) {
  EXPECT_EQ(listed("x86-64-v2+v9"), "error: unknown target 'v9'");
  EXPECT_EQ(listed("+"), "error: target '+': there is no name on one side of a '+'");
  EXPECT_EQ(listed("skylake+v3"), "error: unknown target 'v3'");
  EXPECT_EQ(listed("x86-64-v3+aarch64"), "error: target 'x86-64-v3+aarch64': 'x86-64-v3' and "
                                         "'aarch64' are of different architectures, which need a "
                                         "file each");
}

TEST(Target, CodeForArmHasItsInstructions) {
  mlir::MLIRContext context;
  program::Program program = scaleProgram(context, {1.0f});
  cpu::Target target = named("aarch64");
  ASSERT_TRUE(bool(cpu::emitObjects(program, target, 3, 1)));
  auto text = cpu::emitText(program, target, 3, cpu::TextKind::Assembly);
  ASSERT_TRUE(bool(text));
  EXPECT_NE(text->find(".4s"), std::string::npos);
  EXPECT_EQ(text->find("%xmm"), std::string::npos);
}

TEST(Weights, EqualBytesAreStoredOnce) {
  program::Weights weights;
  std::vector<char> first(100, 'a'), second(100, 'b');
  EXPECT_EQ(weights.borrow(first), 0);
  EXPECT_EQ(weights.borrow(second), 128);
  EXPECT_EQ(weights.own(first), 0);
  EXPECT_EQ(weights.size, 228);
  EXPECT_EQ(weights.usedBytes, 300);
  program::Weights next = weights.shared();
  EXPECT_EQ(next.usedBytes, 0);
  EXPECT_EQ(next.own(second), 128);
  EXPECT_EQ(next.own({'c'}), 256);
  EXPECT_EQ(weights.size, 228);
  EXPECT_EQ(next.size, 257);
}

TEST(Target, CodeForAvx2HasNoWideRegisters) {
  mlir::MLIRContext context;
  program::Program program = scaleProgram(context, {1.0f});
  cpu::Target target = named("x86-64-v3");
  ASSERT_TRUE(bool(cpu::emitObjects(program, target, 3, 1)));
  auto text = cpu::emitText(program, target, 3, cpu::TextKind::Assembly);
  ASSERT_TRUE(bool(text));
  EXPECT_NE(text->find("%ymm"), std::string::npos);
  EXPECT_EQ(text->find("%zmm"), std::string::npos);
  EXPECT_EQ(text->find("{%k"), std::string::npos);
}

TEST(Target, AnInstructionThatItLacksIsAnErrorAndNotTheEnd) {
  mlir::MLIRContext context;
  program::Program program = parseProgram(context, R"mlir(
    func.func @dot(%x: !llvm.ptr) {
      %a = llvm.load %x : !llvm.ptr -> vector<16xi32>
      %r = llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%a, %a, %a)
        : (vector<16xi32>, vector<16xi32>, vector<16xi32>) -> vector<16xi32>
      llvm.store %r, %x : vector<16xi32>, !llvm.ptr
      return
    })mlir");
  auto objects = cpu::emitObjects(program, named("x86-64-v3"), 3, 2);
  ASSERT_FALSE(objects);
  std::string message = llvm::toString(objects.takeError());
  EXPECT_EQ(message.find("internal error: LLVM's code generator: "), 0u) << message;
}
