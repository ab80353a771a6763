// variants_test: which form of an artefact runs, and what is said when none does.
// SPDX-License-Identifier: Apache-2.0
#include "heddle/runtime.h"
#include "runtime/executable/testing/executables.h"
#include "runtime/executable/variants.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace {

// The first needs what no CPU has, the others nothing.
const heddle_variant_t kForms[] = {
    {"best", "avx1024f,teleport", nullptr}, {"middle", "", nullptr}, {"least", "", nullptr}};

struct Choice {
  int64_t chosen = -1;
  heddle_code_t code = HEDDLE_OK;
  std::string message;
};

Choice choose(const heddle_variant_t *forms, int64_t count, const char *named = nullptr) {
  if (named)
    setenv(HEDDLE_CPU_VARIABLE, named, 1);
  Choice choice;
  heddle_status_t *status = heddle_variants_choose(forms, count, "m.so", &choice.chosen);
  unsetenv(HEDDLE_CPU_VARIABLE);
  choice.code = heddle_status_code(status);
  choice.message = heddle_status_message(status);
  heddle_status_destroy(status);
  return choice;
}

} // namespace

TEST(Variants, TheFirstThatThisCpuCanRunIsTaken) {
  EXPECT_EQ(choose(kForms, 3).chosen, 1);
  EXPECT_EQ(choose(kForms + 1, 2).chosen, 0);
}

TEST(Variants, TheEnvironmentChoosesAmongThoseThatRun) {
  EXPECT_EQ(choose(kForms, 3, "least").chosen, 2);
  EXPECT_EQ(choose(kForms, 3, "").chosen, 1);
  Choice lacking = choose(kForms, 3, "best");
  EXPECT_EQ(lacking.code, HEDDLE_REFUSED);
  EXPECT_EQ(lacking.message,
            "HEDDLE_CPU is 'best', but this machine cannot run what 'm.so' has for it: it lacks "
            "avx1024f, teleport");
  Choice unknown = choose(kForms, 3, "worst");
  EXPECT_EQ(unknown.code, HEDDLE_USAGE);
  EXPECT_EQ(unknown.message, "HEDDLE_CPU is 'worst', but 'm.so' has code for: best, middle, least");
}

TEST(Variants, WhereNoneRunsTheMessageSaysWhatEachLacks) {
  const heddle_variant_t forms[] = {{"best", "avx1024f,teleport", nullptr},
                                    {"least", "teleport", nullptr}};
  Choice choice = choose(forms, 2);
  EXPECT_EQ(choice.code, HEDDLE_REFUSED);
  EXPECT_EQ(
      choice.message,
      "'m.so' has code for 2 machines, of which this is none: for 'best' it lacks "
      "avx1024f, teleport; for 'least' it lacks teleport; compile the model for this machine");
}

TEST(Variants, AModuleIsTheFormThatRuns) {
  heddle_executable_t needy = increment_executable, plain = increment_executable;
  needy.target = "needy";
  needy.features = "teleport";
  plain.target = "plain";
  const heddle_executable_t *forms[] = {&needy, &plain};
  needy.variants = forms;
  needy.variant_count = 2;
  heddle_module_t *module = nullptr;
  ASSERT_EQ(heddle_module_from_executable(&needy, nullptr, nullptr, &module), nullptr);
  EXPECT_STREQ(heddle_module_info(module).target, "plain");
  heddle_module_destroy(module);
  plain.abi_version = 999;
  heddle_status_t *status = heddle_module_from_executable(&needy, nullptr, nullptr, &module);
  EXPECT_NE(std::string(heddle_status_message(status)).find("artefact version 999"),
            std::string::npos);
  heddle_status_destroy(status);
}
