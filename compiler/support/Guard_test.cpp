// Guard_test: what happens in a child stays there.

#include "compiler/support/Guard.h"

#include "compiler/support/Error.h"

#include <csignal>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace heddle;
using namespace heddle::support;

namespace {

Outcome run(llvm::function_ref<llvm::Expected<std::string>()> work, double seconds = 600) {
  return guarded(work, seconds, [] { return false; });
}

TEST(Guard, GivesTheResult) {
  std::string text(1 << 20, 'x'); // more than a pipe holds
  Outcome outcome = run([&]() -> llvm::Expected<std::string> { return text; });
  EXPECT_EQ(outcome.result, text);
  EXPECT_EQ(outcome.failure, "");
}

TEST(Guard, SaysWhyThereIsNone) {
  Outcome outcome = run([]() -> llvm::Expected<std::string> {
    return makeError(ErrorCode::Refused, "it cannot be");
  });
  EXPECT_EQ(outcome.failure, "it cannot be");
  EXPECT_FALSE(outcome.hasDied);
  outcome = run([]() -> llvm::Expected<std::string> { throw std::bad_alloc(); });
  EXPECT_NE(outcome.failure, "");
}

TEST(Guard, SurvivesACrash) {
  Outcome outcome = run([]() -> llvm::Expected<std::string> {
    raise(SIGSEGV);
    return "";
  });
  EXPECT_EQ(outcome.failure, "it crashed: Segmentation fault");
  EXPECT_TRUE(outcome.hasDied);
  outcome = run([]() -> llvm::Expected<std::string> { _exit(3); });
  EXPECT_EQ(outcome.failure, "it ended without a result");
}

TEST(Guard, EndsWhatNeverEnds) {
  auto forever = []() -> llvm::Expected<std::string> {
    while (true)
      pause();
  };
  Outcome outcome = run(forever, 0.2);
  EXPECT_TRUE(outcome.isTimeout);
  EXPECT_FALSE(outcome.hasDied);
  EXPECT_EQ(outcome.failure, "it did not end within 0.2 seconds");
  int asked = 0;
  outcome = guarded(forever, 600, [&] { return ++asked > 2; });
  EXPECT_TRUE(outcome.isStopped);
}

} // namespace
