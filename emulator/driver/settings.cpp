// Settings: reads the variable; each thing that it does not know is told once.
#include "emulator/driver/settings.h"

#include <charconv>
#include <sstream>

namespace heddle::emulator {
namespace {

bool number(std::string text, uint64_t &value, bool hasUnit = false) {
  int shift = 0;
  if (hasUnit && !text.empty())
    if (size_t unit = std::string("KMG").find(text.back()); unit != std::string::npos)
      shift = 10 * static_cast<int>(unit + 1), text.pop_back();
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > (UINT64_MAX >> shift))
    return false;
  value <<= shift;
  return true;
}

/// "function:call:code", joined by +.
bool failures(const std::string &text, Settings &made) {
  std::istringstream all(text);
  for (std::string each; std::getline(all, each, '+');) {
    std::istringstream parts(each);
    std::string name, call, code;
    std::getline(parts, name, ':');
    std::getline(parts, call, ':');
    std::getline(parts, code, ':');
    uint64_t which, error;
    if (name.empty() || !number(call, which) || !number(code, error) || error > 999)
      return false;
    made.failures.emplace(name, Settings::Failure{which, static_cast<int>(error)});
  }
  return true;
}

bool set(const std::string &key, const std::string &text, Settings &made) {
  if (key == "fail")
    return failures(text, made);
  uint64_t value;
  if (!number(text, value, key == "memory"))
    return false;
  if (key == "chip" && value >= 70 && value <= 120)
    made.chip = static_cast<int>(value);
  else if (key == "memory" && value >= 4096 && value <= (uint64_t(1) << 36))
    made.memory = value;
  else if (key == "driver" && value >= 11000 && value < 20000)
    made.driver = static_cast<int>(value);
  else if (key == "seed")
    made.isSeeded = true, made.seed = value;
  else if (key == "threads" && value >= 1 && value <= 256)
    made.threads = static_cast<unsigned>(value);
  else if (key == "devices" && value <= 8)
    made.devices = static_cast<unsigned>(value);
  else if (key == "races" && value <= 1)
    made.hasRaces = value;
  else if (key == "limit" && value)
    made.limit = value;
  else
    return false;
  return true;
}

} // namespace

Settings readSettings(const std::string &text) {
  Settings made;
  std::istringstream all(text);
  for (std::string each; std::getline(all, each, ',');) {
    size_t equals = each.find('=');
    std::string key = each.substr(0, equals);
    if (equals == each.npos || !set(key, each.substr(equals + 1), made))
      made.complaints.push_back("HEDDLE_EMULATED_CUDA: '" + each +
                                "' is not understood; known: chip=70..120, memory=BYTES[KMG], "
                                "driver=12000, seed=N, threads=N, devices=0..8, races=0|1, "
                                "limit=N, fail=FUNCTION:CALL:CODE[+...]");
  }
  return made;
}

} // namespace heddle::emulator
