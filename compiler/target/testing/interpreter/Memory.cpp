// Memory: allocations by their first byte.

#include "compiler/target/testing/interpreter/Memory.h"

#include <cstring>

namespace heddle::interpreter {

static uint64_t addressOf(const void *data) { return reinterpret_cast<uintptr_t>(data); }

std::string nameOfSpace(llvm::StringRef space) {
  return space.empty() ? "the host's memory" : ("memory '" + space + "'").str();
}

void Memory::add(const void *data, int64_t bytes, llvm::StringRef space) {
  if (!data || bytes <= 0)
    return;
  Allocation &known = allocations[addressOf(data)];
  known = {std::max<uint64_t>(known.bytes, bytes), space.str()};
}

void Memory::addUnbounded(const void *data) {
  if (data)
    unbounded.insert(addressOf(data));
}

void Memory::remove(const void *data) { allocations.erase(addressOf(data)); }

char *Memory::make(int64_t bytes, llvm::StringRef space) {
  constexpr int64_t kAlignment = 64;
  made.push_back(std::make_unique<char[]>(bytes + kAlignment));
  std::memset(made.back().get(), 0x7f, bytes + kAlignment);
  char *data = reinterpret_cast<char *>(llvm::alignTo(addressOf(made.back().get()), kAlignment));
  add(data, bytes, space);
  return data;
}

std::string Memory::whyNot(uint64_t address, int64_t bytes, llvm::StringRef space) const {
  if (bytes == 0)
    return "";
  auto after = allocations.upper_bound(address);
  if (after != allocations.begin()) {
    auto &[first, allocation] = *std::prev(after);
    if (address - first < allocation.bytes) {
      if (allocation.space != space)
        return "an address in " + nameOfSpace(allocation.space) + " as one in " +
               nameOfSpace(space);
      int64_t rest = allocation.bytes - (address - first);
      return bytes <= rest
                 ? ""
                 : std::to_string(bytes) + " bytes where an allocation of " +
                       std::to_string(allocation.bytes) + " has " + std::to_string(rest) + " left";
    }
  }
  auto next = unbounded.upper_bound(address);
  if (space.empty() && next != unbounded.begin() && address - *std::prev(next) < (1 << 20))
    return "";
  return address == 0 ? "the null pointer" : "memory that nothing has allocated";
}

} // namespace heddle::interpreter
