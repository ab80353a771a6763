// Memory: the device's global memory as one range of addresses with a shadow of the same length.
//
// A byte's shadow says whether it is allocated, written before, and writable. Allocations have red
// zones between them, and addresses are used again only when all others are spent, so that a use
// after free is told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace heddle::emulator {

enum Shadow : uint8_t { Allocated = 1, Written = 2, Writable = 4, Pending = 8 };

/// Owners of an address range, for messages.
struct Allocation {
  uint64_t bytes = 0;
  std::string name;
  bool isFreed = false;
};

/// Ranges of generic addresses.
constexpr uint64_t kGlobalBase = uint64_t(0x7) << 40; // of the first device
constexpr uint64_t kMostReach = uint64_t(1) << 38;    // addresses of each
constexpr uint64_t kSharedBase = uint64_t(0x1) << 32;
constexpr uint64_t kLocalBase = uint64_t(0x2) << 32;
constexpr uint64_t kParameterBase = uint64_t(0x3) << 32;
constexpr uint64_t kWindow = uint64_t(1) << 32;

/// Pages of zeros that cost nothing until they are written.
class Reserved {
public:
  explicit Reserved(uint64_t bytes);
  Reserved(const Reserved &) = delete;
  Reserved &operator=(const Reserved &) = delete;
  ~Reserved();
  uint8_t *data() const { return begin; }
  /// Makes whole pages of a range zeros again.
  void drop(uint64_t offset, uint64_t bytes);

private:
  uint8_t *begin;
  uint64_t size;
};

class Memory {
public:
  Memory(uint64_t capacity, bool hasRaces, unsigned ordinal);
  const uint64_t base;

  /// Address of a new allocation, 0 when memory is spent. Without `isOpen` it may not be used
  /// before open().
  uint64_t allocate(uint64_t bytes, const std::string &name, bool isOpen = true);
  void open(uint64_t address);
  /// Forbids all access; false when there is no allocation at the address.
  bool close(uint64_t address);
  void seal(uint64_t address); // read-only from now on
  /// The allocation that holds an address, or null.
  const Allocation *find(uint64_t address, uint64_t *begin = nullptr) const;
  /// Words that say where an address lies.
  std::string describe(uint64_t address) const;
  /// Whether all bytes are allocated.
  bool holds(uint64_t address, uint64_t bytes) const;

  uint8_t *bytes(uint64_t address) const { return content.data() + (address - base); }
  uint8_t *shadow(uint64_t address) const { return shadows.data() + (address - base); }
  uint64_t *racers(uint64_t address) const {
    return reinterpret_cast<uint64_t *>(races.data() + (address - base) / 4 * 16);
  }
  void markWritten(uint64_t address, uint64_t bytes);

  uint64_t span() const { return reach; }
  uint64_t capacity() const { return most; }
  uint64_t used() const { return alive; }
  uint64_t peak() const { return highest; }
  size_t count() const;
  mutable std::mutex mutex;

private:
  uint64_t most, reach, alive = 0, highest = 0, top = 4096;
  Reserved content, shadows, races;
  std::map<uint64_t, Allocation> allocations; // by address, freed ones, too
};

} // namespace heddle::emulator
