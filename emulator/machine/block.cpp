// Block: order of instructions: divergence, barriers, schedules.
#include "emulator/machine/block.h"

#include <algorithm>
#include <bit>
#include <thread>

namespace heddle::emulator {
namespace {

constexpr uint64_t kTurn = 64, kLongTurn = 1 << 14;
constexpr uint32_t kNowhere = ~uint32_t(0);

void sortGroups(std::vector<Group> &groups) {
  std::sort(groups.begin(), groups.end(),
            [](const Group &a, const Group &b) { return a.rank > b.rank; });
  size_t kept = 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (kept && groups[kept - 1].rank == groups[i].rank)
      groups[kept - 1].mask |= groups[i].mask;
    else
      groups[kept++] = groups[i];
  }
  groups.resize(kept);
}

} // namespace

const char *const kClassNames[] = {"other",   "integer",   "float",     "convert",   "branch",
                                   "barrier", "ld.global", "st.global", "ld.shared", "st.shared",
                                   "atomic",  "shuffle",   "mma",       "ldmatrix",  "cp.async"};

Block::Block(Machine &machine, const Launch &launch, uint64_t number)
    : machine{machine}, launch{launch}, kernel{*launch.kernel}, number{number} {
  sharedBytes = kernel.sharedSpan + launch.dynamicShared;
  random.seed(machine.seed * 31 + number);
  uint64_t rows = number / launch.grid[0];
  place[0] = static_cast<uint32_t>(number % launch.grid[0]);
  place[1] = static_cast<uint32_t>(rows % launch.grid[1]);
  place[2] = static_cast<uint32_t>(rows / launch.grid[1]);
  unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
  unsigned count = (threads + kLanes - 1) / kLanes;
  registers.resize(size_t(kernel.registerBytes) * count + 64);
  shared.resize(sharedBytes);
  sharedShadow.resize(sharedBytes);
  for (const Named &each : kernel.shared)
    std::fill_n(sharedShadow.begin() + each.offset, each.bytes, Allocated | Writable);
  std::fill(sharedShadow.begin() + kernel.sharedSpan, sharedShadow.end(), Allocated | Writable);
  if (machine.hasRaces)
    sharedRacers.resize((sharedBytes + 3) / 4 * 2);
  warps.resize(count);
  for (unsigned i = 0; i < count; ++i)
    start(warps[i], i, threads);
}

void Block::start(Warp &warp, unsigned index, unsigned threads) {
  auto begin = reinterpret_cast<uintptr_t>(registers.data());
  warp.bases[0] =
      registers.data() + ((64 - begin % 64) % 64) + size_t(kernel.registerBytes) * index;
  warp.bases[1] = const_cast<uint8_t *>(kernel.constants.data());
  warp.index = index;
  unsigned lanes = std::min(kLanes, threads - index * kLanes);
  warp.live = lanes == kLanes ? kAllLanes : (uint32_t(1) << lanes) - 1;
  warp.groups = {{0, warp.live, 0}};
  warp.clock[index] = 1;
  warp.local.resize(size_t(kernel.localBytes) * kLanes);
  warp.localShadow.resize(warp.local.size());
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (const Named &each : kernel.local)
      std::fill_n(warp.localShadow.begin() + size_t(lane) * kernel.localBytes + each.offset,
                  each.bytes, Allocated | Writable);
  preset(warp, threads);
}

void Block::preset(Warp &warp, unsigned threads) {
  for (const Kernel::Preset &each : kernel.presets) {
    auto *value = reinterpret_cast<uint32_t *>(warp.bases[0] + each.offset);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      uint32_t thread = warp.index * kLanes + lane;
      uint32_t axes[3] = {thread % launch.block[0], thread / launch.block[0] % launch.block[1],
                          thread / launch.block[0] / launch.block[1]};
      uint32_t below = (uint32_t(1) << lane) - 1, own = uint32_t(1) << lane;
      uint32_t masks[5] = {own, below | own, below, ~below, ~(below | own)}; // eq le lt ge gt
      uint32_t values[] = {axes[each.axis % 3],
                           launch.block[each.axis % 3],
                           place[each.axis % 3],
                           launch.grid[each.axis % 3],
                           lane,
                           warp.index,
                           (threads + kLanes - 1) / kLanes,
                           smid(),
                           132,
                           masks[each.axis % 5]};
      value[lane] = values[each.what];
    }
  }
}

void Block::run() {
  std::vector<Warp *> ready;
  for (;;) {
    ready.clear();
    for (Warp &warp : warps)
      if (!warp.groups.empty())
        ready.push_back(&warp);
    if (ready.empty()) {
      if (std::all_of(warps.begin(), warps.end(), [](Warp &w) { return w.parked.empty(); }))
        break;
      if (!release())
        deadlock();
      continue;
    }
    if (machine.isSeeded)
      runWarp(*ready[random() % ready.size()], kLongTurn);
    else
      for (Warp *warp : ready)
        runWarp(*warp, kTurn);
    release();
  }
  for (size_t i = 0; i < executed.size(); ++i) {
    machine.executed[i] += executed[i];
    machine.lanes[i] += lanes[i];
  }
}

Group Block::group(uint32_t from, uint32_t to, uint32_t mask) const {
  const Instruction &target = kernel.code[to];
  return {to, mask, target.rank > kernel.code[from].rank ? target.rank : target.again};
}

void Block::runWarp(Warp &warp, uint64_t quantum) {
  const Instruction *code = kernel.code.data();
  while (quantum && !warp.groups.empty()) {
    Group now = warp.groups.back();
    uint32_t next = warp.groups.size() > 1 ? warp.groups[warp.groups.size() - 2].rank : kNowhere;
    bool isStraight = true, isBack = false;
    for (; isStraight && !isBack && quantum && code[now.place].rank < next; --quantum) {
      const Instruction &i = code[now.place];
      uint32_t active = now.mask;
      if (i.guard >= 0) {
        uint32_t guard = *reinterpret_cast<uint32_t *>(warp.bases[0] + i.guard);
        active &= i.isGuardNegated ? ~guard : guard;
      }
      ++executed[size_t(i.kind)];
      lanes[size_t(i.kind)] += std::popcount(active);
      if (++warp.executed > machine.limit)
        fail(warp, i, std::countr_zero(now.mask), kTimeout,
             "the kernel runs on: " + std::to_string(machine.limit) +
                 " instructions of one warp (limit=N of HEDDLE_EMULATED_CUDA)");
      if (i.flow == Flow::None) {
        if (active)
          i.run(*this, warp, i, active);
        ++now.place;
      } else {
        isStraight = control(warp, i, now, active);
      }
      isBack = i.isBeforeLoop && next != kNowhere;
    }
    if (isStraight) {
      now.rank = isBack ? code[now.place].again : code[now.place].rank;
      warp.groups.back() = now;
      sortGroups(warp.groups);
    }
  }
}

/// Carries out a change of the order; false when the groups have changed.
bool Block::control(Warp &warp, const Instruction &i, Group &now, uint32_t active) {
  if (!active) {
    ++now.place;
    return true;
  }
  switch (i.flow) {
  case Flow::Branch:
    if (active == now.mask) {
      uint32_t from = now.place;
      now.place = i.target;
      if (warp.groups.size() == 1)
        return true;
      warp.groups.back() = group(from, i.target, active);
    } else {
      warp.groups.back() = group(now.place, now.place + 1, now.mask & ~active);
      warp.groups.push_back(group(now.place, i.target, active));
    }
    break;
  case Flow::Table:
    branchByTable(warp, i, now, active);
    break;
  case Flow::Exit:
    warp.live &= ~active;
    now.mask &= ~active;
    if (now.mask) {
      ++now.place;
      return true;
    }
    warp.groups.pop_back();
    return false;
  default:
    park(warp, i, now, active);
    return false;
  }
  sortGroups(warp.groups);
  return false;
}

void Block::branchByTable(Warp &warp, const Instruction &i, const Group &now, uint32_t active) {
  const auto *index = warp.at<uint32_t>(i.operands[0]);
  warp.groups.pop_back();
  if (now.mask & ~active)
    warp.groups.push_back(group(now.place, now.place + 1, now.mask & ~active));
  for (uint32_t rest = active; rest; rest &= rest - 1) {
    unsigned lane = std::countr_zero(rest);
    if (index[lane] >= uint64_t(i.number))
      fail(warp, i, lane, kLaunchFailed,
           "branch to target " + std::to_string(index[lane]) + " of " + std::to_string(i.number));
    warp.groups.push_back(
        group(now.place, kernel.tables[i.target + index[lane]], uint32_t(1) << lane));
  }
}

void Block::park(Warp &warp, const Instruction &i, Group &now, uint32_t active) {
  unsigned lane = std::countr_zero(active);
  uint32_t barrier = warp.at<uint32_t>(i.operands[0])[lane];
  uint32_t count = i.count > 1 ? warp.at<uint32_t>(i.operands[1])[lane] : 0;
  if (barrier > 15 || count % kLanes)
    fail(warp, i, lane, kLaunchFailed,
         "barrier " + std::to_string(barrier) + " with " + std::to_string(count) +
             " threads: there are barriers 0 to 15, and counts are multiples of 32");
  if (i.option && active != warp.live)
    fail(warp, i, lane, kLaunchFailed,
         "a part of a warp comes to a barrier: " + std::to_string(std::popcount(active)) + " of " +
             std::to_string(std::popcount(warp.live)) + " threads");
  uint32_t mask = now.mask & ~active, after = now.place + 1;
  warp.groups.pop_back();
  if (mask)
    warp.groups.push_back(group(now.place, after, mask));
  if (i.flow == Flow::Arrive) {
    arrived[barrier][0] += std::popcount(active);
    arrived[barrier][1] = count;
    warp.groups.push_back(group(now.place, after, active));
  } else {
    warp.parked.push_back({after, active, barrier, count});
  }
  sortGroups(warp.groups);
}

bool Block::release() {
  uint32_t waiting[16] = {}, counts[16] = {}, live = 0;
  for (const Warp &warp : warps) {
    live += std::popcount(warp.live);
    for (const Parked &each : warp.parked) {
      waiting[each.barrier] += std::popcount(each.mask);
      counts[each.barrier] = std::max(counts[each.barrier], each.count);
    }
  }
  bool isAny = false;
  for (uint32_t barrier = 0; barrier < 16; ++barrier) {
    // Warps count whole: lanes that a block does not have arrive with the others.
    uint32_t needed = counts[barrier] ? counts[barrier] : live;
    uint32_t come = waiting[barrier] + arrived[barrier][0];
    bool isWhole = counts[barrier] && come + (kLanes - 1) >= needed && come == live;
    if (!waiting[barrier] || (come < needed && !isWhole))
      continue;
    join(barrier);
    arrived[barrier] = {};
    isAny = true;
  }
  return isAny;
}

/// Lets the warps of a barrier go on, each of which then comes after all of them.
void Block::join(uint32_t barrier) {
  std::array<uint32_t, kLanes> joined{};
  auto isHere = [&](const Parked &each) { return each.barrier == barrier; };
  for (const Warp &warp : warps)
    if (std::any_of(warp.parked.begin(), warp.parked.end(), isHere))
      for (size_t k = 0; k < kLanes; ++k)
        joined[k] = std::max(joined[k], warp.clock[k]);
  for (Warp &warp : warps) {
    auto end = std::partition(warp.parked.begin(), warp.parked.end(),
                              [&](const Parked &each) { return !isHere(each); });
    if (end == warp.parked.end())
      continue;
    for (auto each = end; each != warp.parked.end(); ++each)
      warp.groups.push_back(group(each->place - 1, each->place, each->mask));
    warp.parked.erase(end, warp.parked.end());
    sortGroups(warp.groups);
    warp.clock = joined;
    ++warp.clock[warp.index];
  }
  ++generation;
}

void Block::deadlock() const {
  std::string why = "deadlock: no barrier has all of its threads;";
  const Warp *first = nullptr;
  for (const Warp &warp : warps)
    for (const Parked &each : warp.parked) {
      first = first ? first : &warp;
      if (why.size() < 400)
        why += " warp " + std::to_string(warp.index) + " waits at barrier " +
               std::to_string(each.barrier) + " in line " +
               std::to_string(kernel.code[each.place - 1].line) + ";";
    }
  const Parked &each = first->parked[0];
  fail(*first, kernel.code[each.place - 1], std::countr_zero(each.mask), kLaunchFailed, why);
}

void Block::fail(const Warp &warp, const Instruction &i, unsigned lane, int code,
                 const std::string &why) const {
  uint32_t thread = warp.index * kLanes + lane;
  auto triple = [](uint32_t x, uint32_t y, uint32_t z) {
    return "(" + std::to_string(x) + ", " + std::to_string(y) + ", " + std::to_string(z) + ")";
  };
  std::string text = kernel.texts[static_cast<size_t>(&i - kernel.code.data())];
  throw Fault(code, "kernel '" + kernel.name + "', block " + triple(place[0], place[1], place[2]) +
                        ", thread " +
                        triple(thread % launch.block[0], thread / launch.block[0] % launch.block[1],
                               thread / launch.block[0] / launch.block[1]) +
                        ", line " + std::to_string(i.line) + ", " + text + ": " + why);
}

void runLaunch(Machine &machine, Launch launch) {
  uint64_t blocks = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  launch.serial = ++machine.launches;
  std::vector<uint32_t> order;
  if (machine.isSeeded && blocks <= (1u << 24)) {
    order.resize(blocks);
    for (size_t i = 0; i < blocks; ++i)
      order[i] = static_cast<uint32_t>(i);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(machine.seed + launch.serial));
  }
  std::atomic<uint64_t> next = 0;
  std::exception_ptr failed;
  std::mutex mutex;
  auto work = [&] {
    try {
      for (uint64_t at = next++; at < blocks; at = next++)
        Block(machine, launch, order.empty() ? at : order[at]).run();
    } catch (...) {
      std::lock_guard lock(mutex);
      failed = failed ? failed : std::current_exception();
      next = blocks;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < machine.threads && i < blocks; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &each : threads)
    each.join();
  if (failed)
    std::rethrow_exception(failed);
}

} // namespace heddle::emulator
