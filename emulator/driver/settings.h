// Settings: what HEDDLE_EMULATED_CUDA says, as "chip=90,memory=8G,seed=7,fail=cuMemAlloc_v2:3:2".
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace heddle::emulator {

struct Settings {
  int chip = 90;
  uint64_t memory = uint64_t(8) << 30; // bytes
  int driver = 12000;
  bool isSeeded = false;
  uint64_t seed = 0;
  unsigned threads = 1, devices = 1;
  bool hasRaces = true;
  uint64_t limit = 200'000'000; // instructions of a warp
  struct Failure {
    uint64_t call;
    int code;
  };
  std::multimap<std::string, Failure> failures; // by function
  std::vector<std::string> complaints;
};

Settings readSettings(const std::string &text);

} // namespace heddle::emulator
