// Toy: a target of the tests alone, which programs of several devices are proved on: a host and two
// devices, "toy0" of lanes and "toy1" of threads, each with memory of its own. Its code is the
// program itself, interpreted.
#ifndef HEDDLE_TARGET_TESTING_TOY_TOY_H
#define HEDDLE_TARGET_TESTING_TOY_TOY_H

#include "compiler/target/Backend.h"

namespace heddle::toy {

/// Makes `--target toy` known in this process.
void add();

} // namespace heddle::toy

#endif // HEDDLE_TARGET_TESTING_TOY_TOY_H
