// Fault: a check of the device that failed, with all that is known of where.
#pragma once

#include <stdexcept>
#include <string>

namespace heddle::emulator {

/// `code` is the CUresult that a driver returns for it.
struct Fault : std::runtime_error {
  Fault(int code, const std::string &why) : std::runtime_error(why), code(code) {}
  int code;
};

constexpr int kIllegalAddress = 700, kMisaligned = 716, kLaunchFailed = 719, kTimeout = 702;

} // namespace heddle::emulator
