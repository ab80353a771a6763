// Backend: C files, as a row of the table of backends.
#ifndef HEDDLE_TARGET_C_BACKEND_H
#define HEDDLE_TARGET_C_BACKEND_H

#include "compiler/target/Backend.h"

namespace heddle::c {

const target::Backend &backend();

} // namespace heddle::c

#endif // HEDDLE_TARGET_C_BACKEND_H
