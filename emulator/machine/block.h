// Block: runs one block of a launch, warp by warp, and checks each access.
//
// Lanes of a warp that have parted go by the ranks of decode/order.h, so that they meet again.
// Warps run in turn, or with a seed one at a time up to the next barrier, in random order.
// Races are found by vector clocks: each word of memory keeps its last writer and reader.
#pragma once

#include "emulator/machine/fault.h"
#include "emulator/machine/instruction.h"
#include "emulator/machine/memory.h"

#include <atomic>
#include <random>

namespace heddle::emulator {

/// Settings and state of a device that launches share.
struct Machine {
  Memory *memory = nullptr;
  bool hasRaces = true;
  bool isSeeded = false;
  uint64_t seed = 0;
  uint64_t limit = 200'000'000; // instructions of a warp
  unsigned threads = 1;         // of the host
  std::mutex atomics;
  std::atomic<uint64_t> launches = 0;
  std::array<std::atomic<uint64_t>, size_t(Class::Count)> executed{}, lanes{};
};

struct Launch {
  const Kernel *kernel = nullptr;
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1};
  uint32_t dynamicShared = 0;
  std::vector<uint8_t> parameters;
  uint64_t serial = 0;
};

/// Runs all blocks of a launch; throws Fault.
void runLaunch(Machine &machine, Launch launch);

struct Group {
  uint32_t place, mask, rank;
};

/// Copy of cp.async that has not landed.
struct Copy {
  uint8_t lane, bytes;
  uint32_t group, offset;
  uint8_t data[16];
};

struct Parked {
  uint32_t place, mask, barrier, count;
};

struct Warp {
  uint8_t *bases[2] = {};
  uint32_t index = 0, live = 0;
  std::vector<Group> groups; // the last one runs; its rank is the smallest
  std::vector<Parked> parked;
  std::array<uint32_t, kLanes> commits{};
  std::vector<Copy> copies;
  std::array<uint32_t, kLanes> clock{}; // latest time of each warp that this one comes after
  bool isFenced = false;
  uint64_t executed = 0;
  std::vector<uint8_t> local, localShadow; // of each lane, one after the other

  template <class T> T *at(const Operand &o) const {
    return reinterpret_cast<T *>(bases[o.base] + o.offset);
  }
  uint32_t &mask(const Operand &o) const { return *at<uint32_t>(o); }
};

enum class Access : uint8_t { Read, Write, Atomic };

class Block {
public:
  Block(Machine &machine, const Launch &launch, uint64_t number);
  void run();

  /// Place of the bytes of an access of one lane, after all checks of it.
  uint8_t *access(Warp &warp, const Instruction &i, unsigned lane, Space space, uint64_t address,
                  unsigned bytes, Access kind);
  void copyLater(Warp &warp, const Instruction &i, const Copy &copy);
  /// Lands the copies of a lane's groups before the last `kept` ones.
  void land(Warp &warp, const Instruction &i, uint32_t mask, uint32_t kept, bool isAll);
  [[noreturn]] void fail(const Warp &warp, const Instruction &i, unsigned lane, int code,
                         const std::string &why) const;

  const Operand *operands(const Instruction &i) const { return i.operands; }
  Machine &machine;
  const Launch &launch;
  uint32_t smid() const { return static_cast<uint32_t>(number % 132); }

private:
  const Kernel &kernel;
  uint64_t number;
  std::array<uint32_t, 3> place;
  uint32_t sharedBytes;
  std::vector<uint8_t> registers, shared, sharedShadow;
  std::vector<uint64_t> sharedRacers;
  std::vector<Warp> warps;
  std::array<std::array<uint32_t, 2>, 16> arrived{}; // bar.arrive: threads, count
  std::array<uint64_t, size_t(Class::Count)> executed{}, lanes{};
  uint32_t generation = 1; // of barriers that were passed
  std::mt19937_64 random;

  void start(Warp &warp, unsigned index, unsigned threads);
  void preset(Warp &warp, unsigned threads);
  void runWarp(Warp &warp, uint64_t quantum);
  /// Lanes that go from one place to another.
  Group group(uint32_t from, uint32_t to, uint32_t mask) const;
  bool control(Warp &warp, const Instruction &i, Group &now, uint32_t active);
  void branchByTable(Warp &warp, const Instruction &i, const Group &now, uint32_t active);
  void park(Warp &warp, const Instruction &i, Group &now, uint32_t active);
  bool release();
  void join(uint32_t barrier);
  [[noreturn]] void deadlock() const;
  uint8_t *global(Warp &warp, const Instruction &i, unsigned lane, uint64_t address, unsigned bytes,
                  Access kind);
  uint8_t *sharedAt(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                    unsigned bytes, Access kind);
  uint8_t *localAt(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                   unsigned bytes, Access kind);
  uint8_t *parameter(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                     unsigned bytes, Access kind);
  void race(Warp &warp, const Instruction &i, unsigned lane, uint64_t *words, uint64_t address,
            unsigned bytes, Access kind, const char *space);
  std::string nearest(const std::vector<Named> &names, uint64_t offset) const;
  [[noreturn]] void failShared(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                               unsigned bytes, Access kind) const;
  [[noreturn]] void failGlobal(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                               unsigned bytes, Access kind) const;
};

} // namespace heddle::emulator
