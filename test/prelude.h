// prelude: the precompiled header of the unit tests of compiler/.
#ifndef HEDDLE_TEST_PRELUDE_H
#define HEDDLE_TEST_PRELUDE_H

#include "compiler/graph/Prelude.h"

#include <gtest/gtest.h>

#endif // HEDDLE_TEST_PRELUDE_H
