// Memory: what instructions that access memory have in common.
#pragma once

#include "emulator/decode/registers.h"

namespace heddle::emulator {

/// Address of a lane; one in 32 bits wraps there.
inline uint64_t addressOf(const Warp &warp, const Operand &o, int64_t added, unsigned lane) {
  if (o.bytes == 4)
    return uint32_t(warp.at<uint32_t>(o)[lane] + static_cast<uint32_t>(added));
  return warp.at<uint64_t>(o)[lane] + static_cast<uint64_t>(added);
}

/// Takes words of ordering, scope and caches.
void takeMemoryWords(Decoder &d);
/// Takes a state space; Generic when there is none.
Space takeSpace(Decoder &d);

} // namespace heddle::emulator
