// Memory: allocation with red zones, and words for addresses.
#include "emulator/machine/memory.h"

#include "emulator/machine/fault.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace heddle::emulator {
namespace {

constexpr uint64_t kRedZone = 512, kAlignment = 512, kPage = 4096;

std::string hex(uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

} // namespace

Reserved::Reserved(uint64_t bytes) : size(std::max<uint64_t>(bytes, kPage)) {
  void *made = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED)
    throw Fault(2, "the emulator cannot reserve " + std::to_string(size) + " bytes of addresses");
  begin = static_cast<uint8_t *>(made);
}

Reserved::~Reserved() { munmap(begin, size); }

void Reserved::drop(uint64_t offset, uint64_t bytes) {
  uint64_t first = (offset + kPage - 1) / kPage * kPage, last = (offset + bytes) / kPage * kPage;
  if (first < last)
    madvise(begin + first, last - first, MADV_DONTNEED);
}

Memory::Memory(uint64_t capacity, bool hasRaces, unsigned ordinal)
    : base(kGlobalBase + ordinal * kMostReach), most(capacity),
      reach(std::min(std::max(capacity * 4, capacity + (1 << 20)), kMostReach)), content(reach),
      shadows(reach), races(hasRaces ? reach * 4 : 0) {}

uint64_t Memory::allocate(uint64_t bytes, const std::string &name, bool isOpen) {
  std::lock_guard lock(mutex);
  if (bytes == 0 || bytes > most - alive)
    return 0;
  uint64_t need = (bytes + kRedZone + kAlignment - 1) / kAlignment * kAlignment, offset = top;
  if (need > reach - top) { // takes the first freed range that is long enough
    auto fits = [&](const auto &each) {
      return each.second.isFreed &&
             (each.second.bytes + kRedZone) / kAlignment * kAlignment >= need;
    };
    auto found = std::find_if(allocations.begin(), allocations.end(), fits);
    if (found == allocations.end())
      return 0;
    offset = found->first - base;
    allocations.erase(found);
  } else {
    top += need;
  }
  allocations[base + offset] = {bytes, name, false};
  alive += bytes;
  highest = std::max(highest, alive);
  if (isOpen)
    memset(shadows.data() + offset, Allocated | Writable, bytes);
  return base + offset;
}

void Memory::open(uint64_t address) {
  std::lock_guard lock(mutex);
  if (auto found = allocations.find(address); found != allocations.end() && !found->second.isFreed)
    memset(shadow(address), Allocated | Writable, found->second.bytes);
}

bool Memory::close(uint64_t address) {
  std::lock_guard lock(mutex);
  auto found = allocations.find(address);
  if (found == allocations.end() || found->second.isFreed)
    return false;
  uint64_t bytes = found->second.bytes, offset = address - base;
  memset(shadow(address), 0, bytes);
  content.drop(offset, bytes);
  shadows.drop(offset, bytes);
  found->second.isFreed = true;
  alive -= bytes;
  return true;
}

void Memory::seal(uint64_t address) {
  std::lock_guard lock(mutex);
  memset(shadow(address), Allocated | Written, allocations.at(address).bytes);
}

const Allocation *Memory::find(uint64_t address, uint64_t *begin) const {
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin())
    return nullptr;
  --after;
  if (address - after->first >= after->second.bytes)
    return nullptr;
  if (begin)
    *begin = after->first;
  return &after->second;
}

std::string Memory::describe(uint64_t address) const {
  std::lock_guard lock(mutex);
  auto words = [](uint64_t begin, const Allocation &each) {
    return each.name + " of " + std::to_string(each.bytes) + " bytes at " + hex(begin) +
           (each.isFreed ? ", which was freed" : "");
  };
  uint64_t begin = 0;
  if (const Allocation *inside = find(address, &begin))
    return "byte " + std::to_string(address - begin) + " of " + words(begin, *inside);
  if (allocations.empty())
    return "there is no allocation";
  auto after = allocations.upper_bound(address);
  auto before = after == allocations.begin() ? allocations.end() : std::prev(after);
  bool isAfter = before != allocations.end() &&
                 (after == allocations.end() ||
                  address - (before->first + before->second.bytes) < after->first - address);
  if (isAfter)
    return std::to_string(address - (before->first + before->second.bytes)) + " bytes after " +
           words(before->first, before->second);
  return std::to_string(after->first - address) + " bytes before " +
         words(after->first, after->second);
}

bool Memory::holds(uint64_t address, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  uint64_t begin = 0;
  const Allocation *inside = find(address, &begin);
  return inside && !inside->isFreed && bytes <= inside->bytes - (address - begin) &&
         (*shadow(begin) & Allocated);
}

void Memory::markWritten(uint64_t address, uint64_t bytes) {
  uint8_t *begin = shadow(address);
  for (uint64_t i = 0; i < bytes; ++i)
    begin[i] |= Written;
}

size_t Memory::count() const {
  std::lock_guard lock(mutex);
  size_t alive = 0;
  for (const auto &each : allocations)
    alive += !each.second.isFreed;
  return alive;
}

} // namespace heddle::emulator
