// Register: backends beside those of the product, for tests.
#ifndef HEDDLE_TARGET_REGISTER_H
#define HEDDLE_TARGET_REGISTER_H

#include "compiler/target/Backend.h"

namespace heddle::target {

/// Asked before all others whether it is meant. For the start of a process: nothing may ask for
/// targets meanwhile.
void addBackend(const Backend &backend);

} // namespace heddle::target

#endif // HEDDLE_TARGET_REGISTER_H
