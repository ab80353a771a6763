// GroupTest: every mechanism of the table is carried out by one function of lower.

#include "compiler/lower/Schedule.h"

#include <gtest/gtest.h>

using namespace heddle;

TEST(Lowerings, areThoseOfTheTable) {
  std::vector<const mechanism::Mechanism *> lowered;
  for (const lower::Lowering &lowering : lower::lowerings())
    lowered.push_back(lowering.mechanism);
  for (const mechanism::Mechanism *row : mechanism::all())
    EXPECT_EQ(llvm::count(lowered, row), 1) << row->name.str() << " has no lowering, or several";
  EXPECT_EQ(lowered.size(), mechanism::all().size()) << "a lowering is of no row";
}
