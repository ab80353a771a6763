// TableTest: the table has one row of each name.

#include "compiler/mechanism/Mechanism.h"

#include <gtest/gtest.h>

using namespace heddle;

TEST(Mechanisms, haveNamesOfTheirOwn) {
  for (const mechanism::Mechanism *row : mechanism::all())
    EXPECT_EQ(mechanism::find(row->name), row) << row->name.str();
  EXPECT_EQ(mechanism::find("no such mechanism"), nullptr);
}
