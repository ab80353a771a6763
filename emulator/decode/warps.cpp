// Warps: values that lanes exchange: shuffles, votes, matches, reductions.
#include "emulator/decode/registers.h"

#include <algorithm>

namespace heddle::emulator {
namespace {

/// Lanes that take part; all active ones must be named by each other.
void checkMembers(Block &b, const Warp &w, const Instruction &i, const Operand &o, uint32_t mask) {
  const auto *members = w.at<uint32_t>(o);
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned lane = std::countr_zero(rest);
    uint32_t missing = members[lane] & w.live & ~mask;
    if (!(members[lane] >> lane & 1) || missing)
      b.fail(w, i, lane, kLaunchFailed,
             missing ? "lane " + std::to_string(std::countr_zero(missing)) +
                           " of the members is not there"
                     : "the lane is not one of its own members");
  }
}

enum Mode : uint8_t { Up, Down, Butterfly, Index };

/// Operands: value, whether it is another's, source, lane, segment, members.
void shuffle(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  checkMembers(b, w, i, o[5], mask);
  const auto *from = w.at<uint32_t>(o[2]), *by = w.at<uint32_t>(o[3]), *how = w.at<uint32_t>(o[4]);
  uint32_t made[kLanes] = {}, isOther = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    int lane = std::countr_zero(rest), step = int(by[lane] & 31);
    int segment = int(how[lane] >> 8 & 31), clamp = int(how[lane] & 31);
    int limit = (lane & segment) | (clamp & ~segment), source = lane;
    switch (i.option) {
    case Up:
      source = lane - step;
      break;
    case Down:
      source = lane + step;
      break;
    case Butterfly:
      source = lane ^ step;
      break;
    default:
      source = (lane & segment) | (step & ~segment);
    }
    bool isIn = i.option == Up ? source >= limit : source <= limit;
    source = isIn ? source : lane;
    if (!(mask >> source & 1))
      b.fail(w, i, unsigned(lane), kLaunchFailed,
             "the value of lane " + std::to_string(source) + ", which is not active");
    made[lane] = from[source];
    isOther |= uint32_t(isIn) << lane;
  }
  put(w, o[0], made, mask);
  putMask(w, o[1], isOther, mask);
}

/// Arguments d|p or d alone; adds both as operands.
void useWithPredicate(Decoder &d, Type type) {
  Argument first = d.arguments()[0], second = first;
  second.name = first.second.empty() ? "_" : first.second;
  first.second.clear();
  d.use(d.target(first, type));
  d.use(d.predicate(second, true));
}

void shfl(Decoder &d) {
  static constexpr const char *words[] = {"up", "down", "bfly", "idx"};
  if (!d.take("sync"))
    d.fail("only shfl.sync is known");
  bool isAny = false;
  for (uint8_t k = 0; k < 4 && !isAny; ++k)
    if (d.take(words[k]))
      d.now.option = k, isAny = true;
  if (!isAny || d.takeType() != Type::B32)
    d.fail("its forms are .up, .down, .bfly and .idx of .b32");
  d.expect(5, 5);
  useWithPredicate(d, Type::B32);
  for (size_t k = 1; k < 5; ++k)
    d.use(d.source(d.arguments()[k], Type::B32));
  d.emit(shuffle, Class::Shuffle);
}

enum Vote : uint8_t { All, Any, Uni, Ballot };

/// Operands: result, predicate, members.
void vote(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  checkMembers(b, w, i, o[2], mask);
  uint32_t holds = (w.mask(o[1]) ^ (i.isReturning ? kAllLanes : 0)) & mask;
  bool is = i.option == All   ? holds == mask
            : i.option == Any ? holds != 0
                              : holds == mask || holds == 0;
  if (i.option != Ballot)
    return putMask(w, o[0], is ? kAllLanes : 0, mask);
  uint32_t made[kLanes];
  std::fill_n(made, kLanes, holds);
  put(w, o[0], made, mask);
}

void voteOf(Decoder &d) {
  static constexpr const char *words[] = {"all", "any", "uni", "ballot"};
  if (!d.take("sync"))
    d.fail("only vote.sync is known");
  bool isAny = false;
  for (uint8_t k = 0; k < 4 && !isAny; ++k)
    if (d.take(words[k]))
      d.now.option = k, isAny = true;
  Type type = d.takeType();
  d.expect(3, 3);
  if (!isAny || type != (d.now.option == Ballot ? Type::B32 : Type::Pred))
    d.fail("its forms are .all, .any and .uni of .pred, and .ballot of .b32");
  d.use(type == Type::Pred ? d.predicate(d.arguments()[0], true)
                           : d.target(d.arguments()[0], type));
  d.now.isReturning = d.arguments()[1].isNegated;
  d.use(d.predicate(d.arguments()[1]));
  d.use(d.source(d.arguments()[2], Type::B32));
  d.emit(vote, Class::Shuffle);
}

/// Operands: mask of equals, whether all are, value, members.
template <class T> void match(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  checkMembers(b, w, i, o[3], mask);
  const T *value = w.at<T>(o[2]);
  uint32_t made[kLanes] = {}, all = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned other = 0; other < kLanes; ++other)
      made[lane] |= uint32_t(value[other] == value[lane]) << other;
    made[lane] &= mask;
    all |= uint32_t(made[lane] == mask) << lane;
    if (i.option)
      made[lane] = made[lane] == mask ? mask : 0;
  }
  put(w, o[0], made, mask);
  putMask(w, o[1], all, mask);
}

void matchOf(Decoder &d) {
  d.now.option = d.take("all");
  if ((!d.now.option && !d.take("any")) || !d.take("sync"))
    d.fail("its forms are .any.sync and .all.sync");
  Type type = d.takeType();
  d.expect(3, 3);
  useWithPredicate(d, Type::B32);
  d.use(d.source(d.arguments()[1], type));
  d.use(d.source(d.arguments()[2], Type::B32));
  d.emit(type == Type::B32   ? match<uint32_t>
         : type == Type::B64 ? match<uint64_t>
                             : nullptr,
         Class::Shuffle);
}

void active(Block &, Warp &w, const Instruction &i, uint32_t mask) {
  uint32_t made[kLanes];
  std::fill_n(made, kLanes, mask);
  put(w, i.operands[0], made, mask);
}
void activemask(Decoder &d) {
  d.useAll(d.takeType(), 1);
  d.emit(active, Class::Shuffle);
}

enum Reduce : uint8_t { Add, Min, Max, And, Or, Xor };

template <class T> void redux(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  const Operand *o = i.operands;
  checkMembers(b, w, i, o[2], mask);
  const T *value = w.at<T>(o[1]);
  T sum = value[std::countr_zero(mask)];
  for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1) {
    T x = value[std::countr_zero(rest)];
    T results[] = {T(uint32_t(sum) + uint32_t(x)),
                   std::min(sum, x),
                   std::max(sum, x),
                   T(sum & x),
                   T(sum | x),
                   T(sum ^ x)};
    sum = results[i.option];
  }
  T made[kLanes];
  std::fill_n(made, kLanes, sum);
  put(w, o[0], made, mask);
}

void reduxOf(Decoder &d) {
  static constexpr const char *words[] = {"add", "min", "max", "and", "or", "xor"};
  bool isAny = false;
  for (uint8_t k = 0; k < 6 && !isAny; ++k)
    if (d.take(words[k]))
      d.now.option = k, isAny = true;
  if (!isAny || !d.take("sync"))
    d.fail("its operation is not known");
  Type type = d.takeType();
  d.expect(3, 3);
  d.use(d.target(d.arguments()[0], type));
  d.use(d.source(d.arguments()[1], type));
  d.use(d.source(d.arguments()[2], Type::B32));
  d.emit(type == Type::S32                        ? redux<int32_t>
         : type == Type::U32 || type == Type::B32 ? redux<uint32_t>
                                                  : nullptr,
         Class::Shuffle);
}

} // namespace

void addWarps(Opcodes &all) {
  all["shfl"] = shfl;
  all["vote"] = voteOf;
  all["match"] = matchOf;
  all["activemask"] = activemask;
  all["redux"] = reduxOf;
}

} // namespace heddle::emulator
