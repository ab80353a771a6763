// TargetTest: names of CPUs, what they have, and code that keeps to it.

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
  EXPECT_TRUE(named("cascadelake").vnni);
}

TEST(Target, HostRequiresOnlyWhatThisMachineHas) {
  __builtin_cpu_init();
  cpu::Target target = host();
  EXPECT_EQ(needs(target, "avx2"), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(needs(target, "avx512vnni"), bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_GE(target.l1Bytes, 8 << 10);
}

TEST(Target, UnknownNameSuggestsANearOne) {
  auto target = cpu::targetFor("x86-64-v33");
  ASSERT_FALSE(target);
  std::string message = llvm::toString(target.takeError());
  EXPECT_NE(message.find("error: unknown target 'x86-64-v33'"), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean 'x86-64-v3'?"), std::string::npos) << message;
}

TEST(Target, CodeForAvx2HasNoWideRegisters) {
  mlir::MLIRContext context;
  target::Program program = scaleProgram(context, {1.0f});
  cpu::Target target = named("x86-64-v3");
  ASSERT_TRUE(bool(cpu::emitObjects(program, target, 3, 1)));
  auto text = cpu::emitText(program, target, 3, cpu::TextKind::Assembly);
  ASSERT_TRUE(bool(text));
  EXPECT_NE(text->find("%ymm"), std::string::npos);
  EXPECT_EQ(text->find("%zmm"), std::string::npos);
  EXPECT_EQ(text->find("{%k"), std::string::npos);
}
