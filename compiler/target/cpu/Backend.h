// Backend: CPUs, as a row of the table of backends.
#ifndef HEDDLE_TARGET_CPU_BACKEND_H
#define HEDDLE_TARGET_CPU_BACKEND_H

#include "compiler/target/Backend.h"

namespace heddle::cpu {

const target::Backend &backend();

} // namespace heddle::cpu

#endif // HEDDLE_TARGET_CPU_BACKEND_H
