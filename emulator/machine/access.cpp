// Access: the checks of one access of one lane: bounds, alignment, written before, races.
#include "emulator/machine/block.h"

#include <cstring>

namespace heddle::emulator {
namespace {

const char *verb(Access kind) {
  return kind == Access::Read ? "read" : kind == Access::Write ? "write" : "atomic access";
}

std::string hex(uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string what(Access kind, unsigned bytes, const char *space, uint64_t address) {
  return std::string(verb(kind)) + " of " + std::to_string(bytes) + " bytes of " + space +
         " memory at " + hex(address);
}

/// Whether the shadow of all bytes allows an access; a write marks them as written.
bool isAllowed(uint8_t *shadow, unsigned bytes, Access kind) {
  constexpr uint64_t every = 0x0101010101010101;
  uint64_t mask = every * (Allocated | Pending), need = every * Allocated;
  if (kind != Access::Write)
    mask |= every * Written, need |= every * Written;
  if (kind != Access::Read)
    mask |= every * Writable, need |= every * Writable;
  for (unsigned done = 0; done < bytes;) {
    unsigned step = bytes - done >= 8 ? 8 : bytes - done;
    uint64_t value = need;
    memcpy(&value, shadow + done, step);
    if ((value & mask) != need)
      return false;
    if (kind == Access::Write) {
      value |= every * Written;
      memcpy(shadow + done, &value, step);
    }
    done += step;
  }
  return true;
}

// A word's last writer or reader:
// launch 16 bits | block 22 | warp 6 | time 15 | atomic 1 | bytes of the word 4.
constexpr uint64_t kManyWarps = 63, kManyBlocks = (1 << 22) - 1, kLatest = (1 << 15) - 1;

struct Racer {
  uint64_t launch, block, warp, time, isAtomic, bytes;
  static Racer of(uint64_t v) {
    return {v >> 48, (v >> 26) & kManyBlocks, (v >> 20) & 63, (v >> 5) & kLatest, (v >> 4) & 1,
            v & 15};
  }
  uint64_t packed() const {
    return launch << 48 | block << 26 | warp << 20 | time << 5 | isAtomic << 4 | bytes;
  }
};

} // namespace

uint8_t *Block::access(Warp &warp, const Instruction &i, unsigned lane, Space space,
                       uint64_t address, unsigned bytes, Access kind) {
  switch (space) {
  case Space::Global:
  case Space::Constant:
    return global(warp, i, lane, address, bytes, kind);
  case Space::Shared:
    return sharedAt(warp, i, lane, address, bytes, kind);
  case Space::Local:
    return localAt(warp, i, lane, address, bytes, kind);
  case Space::Parameter:
    return parameter(warp, i, lane, address, bytes, kind);
  case Space::Generic:
    break;
  }
  if (address - kSharedBase < kWindow)
    return sharedAt(warp, i, lane, address - kSharedBase, bytes, kind);
  if (address - kLocalBase < kWindow)
    return localAt(warp, i, lane, address - kLocalBase, bytes, kind);
  if (address - kParameterBase < kWindow)
    return parameter(warp, i, lane, address - kParameterBase, bytes, kind);
  return global(warp, i, lane, address, bytes, kind);
}

uint8_t *Block::global(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                       unsigned bytes, Access kind) {
  Memory &memory = *machine.memory;
  if (address - memory.base > memory.span() - bytes || address % bytes ||
      !isAllowed(memory.shadow(address), bytes, kind))
    failGlobal(warp, i, lane, address, bytes, kind);
  if (machine.hasRaces)
    race(warp, i, lane, memory.racers(address), address, bytes, kind, "global");
  return memory.bytes(address);
}

void Block::failGlobal(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                       unsigned bytes, Access kind) const {
  std::string access = what(kind, bytes, "global", address), where;
  bool isInside = address - machine.memory->base <= machine.memory->span() - bytes;
  uint64_t bad = address;
  uint8_t all = Allocated | Writable;
  if (isInside) {
    const uint8_t *shadow = machine.memory->shadow(address);
    uint8_t need = kind == Access::Write ? 0 : Written;
    for (unsigned k = bytes; k-- > 0; all &= shadow[k])
      if (!(shadow[k] & Allocated) || (shadow[k] & need) != need)
        bad = address + k;
  }
  where = machine.memory->describe(bad);
  if (!isInside || !(all & Allocated))
    fail(warp, i, lane, kIllegalAddress, "out of bounds: " + access + ": " + where);
  if (address % bytes)
    fail(warp, i, lane, kMisaligned, "misaligned: " + access + ": " + where);
  if (kind != Access::Read && !(all & Writable))
    fail(warp, i, lane, kIllegalAddress, "write to read-only memory: " + access + ": " + where);
  fail(warp, i, lane, kLaunchFailed, "uninitialised memory: " + access + ": " + where);
}

std::string Block::nearest(const std::vector<Named> &names, uint64_t offset) const {
  const Named *best = nullptr;
  for (const Named &each : names)
    if (each.offset <= offset && (!best || each.offset > best->offset))
      best = &each;
  if (!best)
    return "before all variables";
  return "byte " + std::to_string(offset - best->offset) + " of '" + best->name + "' of " +
         std::to_string(best->bytes) + " bytes";
}

uint8_t *Block::sharedAt(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                         unsigned bytes, Access kind) {
  if (address > sharedBytes || sharedBytes - address < bytes || address % bytes ||
      !isAllowed(sharedShadow.data() + address, bytes, kind))
    failShared(warp, i, lane, address, bytes, kind);
  if (machine.hasRaces)
    race(warp, i, lane, sharedRacers.data() + address / 4 * 2, address, bytes, kind, "shared");
  return shared.data() + address;
}

void Block::failShared(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                       unsigned bytes, Access kind) const {
  std::string access = what(kind, bytes, "shared", address);
  std::string where = address >= kernel.sharedSpan && launch.dynamicShared
                          ? "byte " + std::to_string(address - kernel.sharedSpan) +
                                " of dynamic memory of " + std::to_string(launch.dynamicShared) +
                                " bytes"
                          : nearest(kernel.shared, address);
  uint8_t all = Allocated | Written, any = 0;
  for (unsigned k = 0; k < bytes; ++k) {
    uint8_t each = address + k < sharedBytes ? sharedShadow[address + k] : 0;
    all &= each, any |= each;
  }
  if (!(all & Allocated))
    fail(warp, i, lane, kIllegalAddress, "out of bounds: " + access + ": " + where);
  if (address % bytes)
    fail(warp, i, lane, kMisaligned, "misaligned: " + access + ": " + where);
  if (any & Pending)
    fail(warp, i, lane, kLaunchFailed,
         "cp.async writes here and was not waited for: " + access + ": " + where);
  fail(warp, i, lane, kLaunchFailed, "uninitialised memory: " + access + ": " + where);
}

uint8_t *Block::localAt(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                        unsigned bytes, Access kind) {
  std::string why;
  uint64_t begin = uint64_t(kernel.localBytes) * lane;
  if (address > kernel.localBytes || kernel.localBytes - address < bytes)
    why = "out of bounds: ";
  else if (address % bytes)
    why = "misaligned: ";
  else if (isAllowed(warp.localShadow.data() + begin + address, bytes, kind))
    return warp.local.data() + begin + address;
  else
    why = warp.localShadow[begin + address] & Allocated ? "uninitialised memory: "
                                                        : "out of bounds: ";
  int code = why[0] == 'm' ? kMisaligned : why[0] == 'u' ? kLaunchFailed : kIllegalAddress;
  fail(warp, i, lane, code,
       why + what(kind, bytes, "local", address) + ": " + nearest(kernel.local, address));
}

uint8_t *Block::parameter(Warp &warp, const Instruction &i, unsigned lane, uint64_t address,
                          unsigned bytes, Access kind) {
  auto access = [&] { return what(kind, bytes, "parameter", address); };
  if (kind != Access::Read)
    fail(warp, i, lane, kIllegalAddress, "write to read-only memory: " + access());
  for (const Named &each : kernel.parameters)
    if (address >= each.offset && address - each.offset < each.bytes) {
      if (each.bytes - (address - each.offset) < bytes)
        break;
      if (address % bytes)
        fail(warp, i, lane, kMisaligned, "misaligned: " + access());
      return const_cast<uint8_t *>(launch.parameters.data()) + address;
    }
  fail(warp, i, lane, kIllegalAddress,
       "out of bounds: " + access() + ": " + nearest(kernel.parameters, address));
}

void Block::race(Warp &warp, const Instruction &i, unsigned lane, uint64_t *words, uint64_t address,
                 unsigned bytes, Access kind, const char *space) {
  Racer me{(launch.serial & 0xffff) | (launch.serial % 0xffff == 0 ? 1 : 0),
           number % kManyBlocks,
           warp.index,
           std::min<uint64_t>(warp.clock[warp.index], kLatest),
           kind == Access::Atomic || i.isAtomic,
           bytes >= 4 ? 15u : ((1u << bytes) - 1) << (address & 3)};
  auto conflicts = [&](const Racer &other) {
    if (other.launch != me.launch || !(other.bytes & me.bytes) || (other.isAtomic && me.isAtomic))
      return false;
    if (other.block != me.block)
      return !warp.isFenced;
    if (other.warp == me.warp || me.time == kLatest || other.time == kLatest)
      return false;
    if (other.warp == kManyWarps)
      return other.time == (generation & kLatest);
    return other.time > warp.clock[other.warp];
  };
  auto report = [&](const Racer &other, const char *did) {
    std::string who = other.warp == kManyWarps ? "warps" : "warp " + std::to_string(other.warp);
    std::string of = other.block == kManyBlocks ? "other blocks"
                     : other.block == me.block  ? "this block"
                                                : "block " + std::to_string(other.block);
    std::string where =
        space[0] == 'g' ? machine.memory->describe(address) : nearest(kernel.shared, address);
    fail(warp, i, lane, kLaunchFailed,
         "race: " + what(kind, bytes, space, address) + ": " + where + ", which " + who + " of " +
             of + did + " with no barrier between");
  };
  for (unsigned k = 0; k < bytes; k += 4, words += 2) {
    Racer writer = Racer::of(words[0]);
    if (conflicts(writer))
      report(writer, " wrote");
    if (kind != Access::Read) {
      if (Racer reader = Racer::of(words[1]); conflicts(reader))
        report(reader, " read");
      words[0] = me.packed();
      continue;
    }
    Racer reader = Racer::of(words[1]), now = me;
    // Several warps that read before the last barrier count no longer.
    bool isOver = reader.block == me.block && reader.warp == kManyWarps &&
                  reader.time != (generation & kLatest);
    if (reader.launch == me.launch && !isOver) {
      now.bytes |= reader.bytes;
      if (reader.block != me.block)
        now.block = kManyBlocks, now.warp = kManyWarps;
      else if (reader.warp != me.warp &&
               (reader.warp == kManyWarps || reader.time > warp.clock[reader.warp]))
        now.warp = kManyWarps, now.time = generation & kLatest;
    }
    words[1] = now.packed();
  }
}

void Block::copyLater(Warp &warp, const Instruction &i, const Copy &copy) {
  // The destination is checked now, and belongs to the copy until it lands.
  sharedAt(warp, i, copy.lane, copy.offset, copy.bytes, Access::Write);
  for (unsigned k = 0; k < copy.bytes; ++k)
    sharedShadow[copy.offset + k] |= Pending;
  warp.copies.push_back(copy);
}

void Block::land(Warp &warp, const Instruction &i, uint32_t mask, uint32_t kept, bool isAll) {
  size_t left = 0;
  for (Copy &copy : warp.copies) {
    uint32_t commits = warp.commits[copy.lane];
    bool isDone = isAll || (copy.group < commits && commits - copy.group > kept);
    if (!(mask >> copy.lane & 1) || !isDone) {
      warp.copies[left++] = copy;
      continue;
    }
    for (unsigned k = 0; k < copy.bytes; ++k)
      sharedShadow[copy.offset + k] &= static_cast<uint8_t>(~Pending);
    uint8_t *to = sharedAt(warp, i, copy.lane, copy.offset, copy.bytes, Access::Write);
    memcpy(to, copy.data, copy.bytes);
  }
  warp.copies.resize(left);
}

} // namespace heddle::emulator
