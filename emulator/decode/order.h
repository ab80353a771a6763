// Order: which lanes of a warp that have parted run first, so that all meet again where their ways
// do: a place comes after all that lead to it, and all of a loop before what follows it.
#pragma once

#include "emulator/machine/instruction.h"

namespace heddle::emulator {

/// Sets the ranks of a kernel's instructions, whose targets are known.
void rank(Kernel &kernel);

} // namespace heddle::emulator
