// Memory: ld, st, cvta, cp.async.
#include "emulator/decode/memory.h"

#include <bit>
#include <utility>

namespace heddle::emulator {
namespace {

/// Elements of an access are the first operands, its address is the last one.
template <class T> void load(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands, &address = o[i.vector];
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = std::countr_zero(rest);
    const uint8_t *from = b.access(w, i, lane, i.space, addressOf(w, address, i.number, lane),
                                   sizeof(T) * i.vector, Access::Read);
    T values[8];
    memcpy(values, from, sizeof(T) * i.vector);
    for (unsigned k = 0; k < i.vector; ++k)
      putLane(w, o[k], lane, values[k]);
  }
}

template <class T> void store(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands, &address = o[i.vector];
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = std::countr_zero(rest);
    uint8_t *to = b.access(w, i, lane, i.space, addressOf(w, address, i.number, lane),
                           sizeof(T) * i.vector, Access::Write);
    for (unsigned k = 0; k < i.vector; ++k)
      memcpy(to + k * sizeof(T), w.at<uint8_t>(o[k]) + lane * o[k].bytes, sizeof(T));
  }
}

void loadOrStore(Decoder &d, bool isLoad) {
  takeMemoryWords(d);
  d.now.space = takeSpace(d);
  unsigned vector = d.take("v2") ? 2 : d.take("v4") ? 4 : d.take("v8") ? 8 : 1;
  Type type = d.takeType();
  d.expect(2, 2);
  auto elements = Decoder::elements(d.arguments()[isLoad ? 0 : 1]);
  if (elements.size() != vector || bytesOf(type) * vector > 32)
    d.fail(std::to_string(elements.size()) + " values where " + std::to_string(vector) +
           " are expected");
  for (const Argument *each : elements)
    d.use(isLoad ? d.target(*each, type, true) : d.source(*each, type, true));
  d.useAddress(d.arguments()[isLoad ? 1 : 0], d.now.space);
  d.now.vector = static_cast<uint8_t>(vector);
  Handler made = nullptr;
  withType(type, [&](auto zero) { made = isLoad ? load<decltype(zero)> : store<decltype(zero)>; });
  bool isShared = d.now.space == Space::Shared;
  bool isGlobal = d.now.space == Space::Global || d.now.space == Space::Generic;
  d.emit(made, isShared   ? isLoad ? Class::LoadShared : Class::StoreShared
               : isGlobal ? isLoad ? Class::LoadGlobal : Class::StoreGlobal
                          : Class::Other);
}
void ld(Decoder &d) { loadOrStore(d, true); }
void st(Decoder &d) { loadOrStore(d, false); }

uint64_t windowOf(Space space) {
  return space == Space::Shared      ? kSharedBase
         : space == Space::Local     ? kLocalBase
         : space == Space::Parameter ? kParameterBase
                                     : 0;
}

void moveAddress(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const auto *from = w.at<uint64_t>(i.operands[1]);
  uint64_t made[kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    made[lane] = from[lane] + static_cast<uint64_t>(i.number);
  put(w, i.operands[0], made, mask);
}

void cvta(Decoder &d) {
  bool isTo = d.take("to");
  Space space = takeSpace(d);
  if (space == Space::Generic || bytesOf(d.takeType()) != 8)
    d.fail("it needs a state space and 64 bits");
  d.useAll(Type::U64, 2);
  auto window = static_cast<int64_t>(windowOf(space));
  d.now.number = isTo ? -window : window;
  d.emit(moveAddress, Class::Integer);
}

void inSpace(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  const auto *from = w.at<uint64_t>(i.operands[1]);
  uint32_t made = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    bool is = i.space == Space::Global ? from[lane] >= kGlobalBase
                                       : from[lane] - static_cast<uint64_t>(i.number) < kWindow;
    made |= uint32_t(is) << lane;
  }
  putMask(w, i.operands[0], made, mask);
}
void isspacep(Decoder &d) {
  d.now.space = takeSpace(d);
  d.now.number = static_cast<int64_t>(windowOf(d.now.space));
  d.expect(2, 2);
  d.use(d.predicate(d.arguments()[0], true));
  d.use(d.source(d.arguments()[1], Type::U64));
  d.emit(inSpace, Class::Integer);
}

/// Operands: destination, source, how many bytes are read; the rest becomes zeros.
void copyAsync(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = std::countr_zero(rest);
    uint64_t to = addressOf(w, o[0], i.number, lane), from = addressOf(w, o[1], i.target, lane);
    uint32_t bytes = w.at<uint32_t>(o[2])[lane];
    if (bytes > i.width)
      b.fail(w, i, lane, kLaunchFailed,
             "it reads " + std::to_string(bytes) + " bytes of " + std::to_string(i.width));
    if (from % i.width)
      b.fail(w, i, lane, kMisaligned, "misaligned: its source is not aligned to its bytes");
    Copy copy{static_cast<uint8_t>(lane), i.width, w.commits[lane], static_cast<uint32_t>(to), {}};
    for (uint32_t k = 0; k < bytes;) {
      uint32_t step = bytes - k >= 16 ? 16 : 1u << (31 - std::countl_zero(bytes - k));
      memcpy(copy.data + k, b.access(w, i, lane, Space::Global, from + k, step, Access::Read),
             step);
      k += step;
    }
    b.copyLater(w, i, copy);
  }
}
void commit(Block &, Warp &w, const Instruction &, uint32_t mask) {
  for (unsigned lane = 0; lane < kLanes; ++lane)
    w.commits[lane] += mask >> lane & 1;
}
void wait(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  b.land(w, i, mask, static_cast<uint32_t>(i.number), i.option);
}

void waitFor(Decoder &d, bool isAll) {
  d.expect(isAll ? 0 : 1, isAll ? 0 : 1);
  if (!isAll && d.arguments()[0].kind != Argument::Integer)
    d.fail("a number of groups is expected");
  d.now.number = isAll ? 0 : static_cast<int64_t>(d.arguments()[0].bits);
  d.now.option = isAll;
  d.emit(wait, Class::CpAsync);
}

void cp(Decoder &d) {
  if (!d.take("async"))
    d.fail("only cp.async is known");
  if (d.take("commit_group")) {
    d.expect(0, 0);
    d.emit(commit, Class::CpAsync);
    return;
  }
  bool isAll = d.take("wait_all");
  if (isAll || d.take("wait_group"))
    return waitFor(d, isAll);
  bool isL2 = d.take("cg");
  if (!isL2 && !d.take("ca"))
    d.fail("only .ca, .cg, .commit_group, .wait_group and .wait_all are known");
  if ((!d.take("shared") && !d.take("shared::cta")) || !d.take("global"))
    d.fail("it copies from .global to .shared");
  d.take("L2::128B") || d.take("L2::256B") || d.take("L2::64B");
  d.expect(3, 4);
  uint64_t bytes = d.arguments()[2].bits;
  bool isGood = bytes == 16 || (!isL2 && (bytes == 4 || bytes == 8));
  if (d.arguments()[2].kind != Argument::Integer || !isGood)
    d.fail(std::to_string(bytes) + " bytes; .cg copies 16, .ca 4, 8 or 16");
  Space to = Space::Shared, from = Space::Global;
  d.useAddress(d.arguments()[0], to);
  int64_t added = std::exchange(d.now.number, 0);
  d.useAddress(d.arguments()[1], from);
  d.now.target = static_cast<uint32_t>(std::exchange(d.now.number, added));
  d.use(d.arguments().size() == 4 ? d.source(d.arguments()[3], Type::U32) : d.constant(bytes, 4));
  d.now.width = static_cast<uint8_t>(bytes);
  d.emit(copyAsync, Class::CpAsync);
}

} // namespace

void takeMemoryWords(Decoder &d) {
  for (auto word : {"volatile", "relaxed", "acquire", "release"})
    d.now.isAtomic |= d.take(word);
  d.take("acq_rel");
  for (auto word : {"weak",
                    "gpu",
                    "cta",
                    "sys",
                    "cluster",
                    "nc",
                    "ca",
                    "cg",
                    "cs",
                    "lu",
                    "cv",
                    "wb",
                    "wt",
                    "L1::no_allocate",
                    "L1::evict_first",
                    "L1::evict_last",
                    "L1::evict_normal",
                    "L1::evict_unchanged",
                    "L2::64B",
                    "L2::128B",
                    "L2::256B"})
    d.take(word);
}

Space takeSpace(Decoder &d) {
  static constexpr std::pair<const char *, Space> words[] = {
      {"global", Space::Global},          {"shared", Space::Shared},
      {"shared::cta", Space::Shared},     {"local", Space::Local},
      {"const", Space::Constant},         {"param", Space::Parameter},
      {"param::entry", Space::Parameter}, {"param::func", Space::Parameter}};
  for (const auto &[word, space] : words)
    if (d.take(word))
      return space;
  return Space::Generic;
}

void addMemory(Opcodes &all) {
  all["ld"] = ld;
  all["ldu"] = ld;
  all["st"] = st;
  all["cvta"] = cvta;
  all["isspacep"] = isspacep;
  all["cp"] = cp;
}

} // namespace heddle::emulator
