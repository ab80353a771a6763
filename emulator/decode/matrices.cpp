// Matrices: ldmatrix, stmatrix and mma.sync, whose fragments are spread over a warp.
//
// One rule says where the elements of all forms are. With g = lane / 4, t = lane % 4 and e elements
// in a register: register r of A holds row g + 8 (r % (M/8)), columns e t + 4 e (r / (M/8)) and on;
// register r of B holds column g, rows e t + 4 e r and on; value r of C is row g + 8 (r / 2),
// column 2 t + r % 2. wgmma, when it comes, is another row of `addMatrices` with its own file.
#include "emulator/decode/memory.h"

namespace heddle::emulator {
namespace {

void checkWhole(Block &b, const Warp &w, const Instruction &i, uint32_t mask) {
  if (mask != kAllLanes)
    b.fail(w, i, std::countr_zero(mask), kLaunchFailed,
           "a part of a warp: " + std::to_string(std::popcount(mask)) + " of 32 lanes");
}

/// Operands: the registers, then the address; `option`: .trans.
void ldmatrix(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  checkWhole(b, w, i, mask);
  const Operand *o = i.operands;
  for (unsigned k = 0; k < i.vector; ++k) {
    uint16_t tile[8][8];
    for (unsigned row = 0; row < 8; ++row) {
      unsigned lane = 8 * k + row;
      memcpy(tile[row],
             b.access(w, i, lane, Space::Shared,
                      addressOf(w, o[i.vector], i.number, lane) & 0xffffffff, 16, Access::Read),
             16);
    }
    Pair<uint16_t> made[kLanes];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned g = lane / 4, t = 2 * (lane % 4);
      made[lane] = i.option ? Pair<uint16_t>{tile[t][g], tile[t + 1][g]}
                            : Pair<uint16_t>{tile[g][t], tile[g][t + 1]};
    }
    put(w, o[k], made, mask);
  }
}

void stmatrix(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  checkWhole(b, w, i, mask);
  const Operand *o = i.operands;
  for (unsigned k = 0; k < i.vector; ++k) {
    uint16_t tile[8][8];
    const auto *from = w.at<Pair<uint16_t>>(o[k]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      unsigned g = lane / 4, t = 2 * (lane % 4);
      (i.option ? tile[t][g] : tile[g][t]) = from[lane].low;
      (i.option ? tile[t + 1][g] : tile[g][t + 1]) = from[lane].high;
    }
    for (unsigned row = 0; row < 8; ++row) {
      unsigned lane = 8 * k + row;
      memcpy(b.access(w, i, lane, Space::Shared,
                      addressOf(w, o[i.vector], i.number, lane) & 0xffffffff, 16, Access::Write),
             tile[row], 16);
    }
  }
}

void matrixAccess(Decoder &d, bool isLoad) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8"))
    d.fail("its form is .sync.aligned.m8n8");
  unsigned count = d.take("x4") ? 4 : d.take("x2") ? 2 : d.take("x1") ? 1 : 0;
  d.now.option = d.take("trans");
  Space space = takeSpace(d);
  if (!count || space != Space::Shared || d.takeType() != Type::B16)
    d.fail("its form is .x1, .x2 or .x4 of .shared.b16");
  d.expect(2, 2);
  auto registers = Decoder::elements(d.arguments()[isLoad ? 0 : 1]);
  if (registers.size() != count)
    d.fail(std::to_string(registers.size()) + " registers where " + std::to_string(count) +
           " are expected");
  for (const Argument *each : registers)
    d.use(isLoad ? d.target(*each, Type::B32) : d.source(*each, Type::B32));
  d.useAddress(d.arguments()[isLoad ? 1 : 0], space);
  d.now.vector = static_cast<uint8_t>(count);
  d.now.space = Space::Shared;
  d.emit(isLoad ? ldmatrix : stmatrix, Class::Ldmatrix);
}

/// Element `k` of a register's value.
template <class T> T elementOf(const Warp &w, const Operand &o, unsigned lane, unsigned k) {
  T value;
  memcpy(&value, w.at<uint8_t>(o) + lane * o.bytes + k * sizeof(T), sizeof(T));
  return value;
}

struct Tensor { // tf32: the low 13 bits do not count
  uint32_t bits;
  explicit operator float() const { return std::bit_cast<float>(bits & 0xffffe000); }
};

template <class T> struct Exactly { // type in which products and sums are made
  using type = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
};
template <class S, class T> S widened(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return S(x);
  else
    return S(float(x));
}

/// D = A B + C; `i.width`: M, `i.vector`: K. Sums are exact or in double, and rounded once.
template <class A, class B, class C>
void multiply(Block &b, Warp &w, const Instruction &i, uint32_t mask) {
  checkWhole(b, w, i, mask);
  using S = typename Exactly<A>::type;
  constexpr unsigned wide = sizeof(A) == 8 ? 8 : 4, e = wide / sizeof(A);
  constexpr unsigned packed = sizeof(C) == 2 ? 2 : 1;
  unsigned M = i.width, K = i.vector, blocks = M / 8;
  unsigned countA = M * K / kLanes / e, countB = 8 * K / kLanes / e, countC = M * 8 / kLanes;
  const Operand *d = i.operands, *a = d + countC / packed, *x = a + countA, *c = x + countB;
  S left[16][32], right[32][8], sums[16][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    for (unsigned r = 0; r < countA; ++r)
      for (unsigned k = 0; k < e; ++k)
        left[g + 8 * (r % blocks)][e * t + 4 * e * (r / blocks) + k] =
            widened<S>(elementOf<A>(w, a[r], lane, k));
    for (unsigned r = 0; r < countB; ++r)
      for (unsigned k = 0; k < e; ++k)
        right[e * t + 4 * e * r + k][g] = widened<S>(elementOf<B>(w, x[r], lane, k));
    for (unsigned r = 0; r < countC; ++r)
      sums[g + 8 * (r / 2)][2 * t + r % 2] =
          widened<S>(elementOf<C>(w, c[r / packed], lane, r % packed));
  }
  for (unsigned m = 0; m < M; ++m)
    for (unsigned k = 0; k < K; ++k)
      for (unsigned n = 0; n < 8; ++n)
        sums[m][n] += left[m][k] * right[k][n];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned r = 0; r < countC; ++r) {
      S sum = sums[lane / 4 + 8 * (r / 2)][2 * (lane % 4) + r % 2];
      C made;
      if constexpr (std::is_same_v<C, int32_t>) {
        int64_t least = INT32_MIN, most = INT32_MAX;
        made = i.isSaturating ? int32_t(std::clamp<int64_t>(sum, least, most)) : int32_t(sum);
      } else if constexpr (std::is_same_v<C, double>) {
        made = sum;
      } else if constexpr (std::is_same_v<C, Half>) {
        made = sum != sum ? std::bit_cast<Half>(Half::nan)
                          : Half(float(rounded(sum, 11, -14, 16, Rounding::Nearest)));
      } else {
        made = C(float(sum));
      }
      memcpy(w.at<uint8_t>(d[r / packed]) + lane * d[r / packed].bytes + r % packed * sizeof(C),
             &made, sizeof(C));
    }
}

Handler product(Type a, Type b, Type c) {
  if (c == Type::S32 && bytesOf(a) == 1 && bytesOf(b) == 1) {
    bool isA = isSigned(a), isB = isSigned(b);
    return isA   ? isB ? multiply<int8_t, int8_t, int32_t> : multiply<int8_t, uint8_t, int32_t>
             : isB ? multiply<uint8_t, int8_t, int32_t>
                 : multiply<uint8_t, uint8_t, int32_t>;
  }
  if (a != b)
    return nullptr;
  if (a == Type::F16)
    return c == Type::F32   ? multiply<Half, Half, float>
           : c == Type::F16 ? multiply<Half, Half, Half>
                            : nullptr;
  if (c == Type::F32)
    return a == Type::BF16   ? multiply<Brain, Brain, float>
           : a == Type::TF32 ? multiply<Tensor, Tensor, float>
                             : nullptr;
  return a == Type::F64 && c == Type::F64 ? multiply<double, double, double> : nullptr;
}

struct Shape {
  const char *word;
  uint8_t m, k, bits; // bits of an element, for which it is there
};
constexpr Shape kShapes[] = {
    {"m16n8k8", 16, 8, 16}, {"m16n8k16", 16, 16, 16}, {"m16n8k4", 16, 4, 32},
    {"m16n8k8", 16, 8, 32}, {"m16n8k16", 16, 16, 8},  {"m16n8k32", 16, 32, 8},
    {"m8n8k16", 8, 16, 8},  {"m8n8k4", 8, 4, 64},     {"m16n8k4", 16, 4, 64},
    {"m16n8k8", 16, 8, 64}, {"m16n8k16", 16, 16, 64}};

void mma(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned"))
    d.fail("its form is mma.sync.aligned");
  std::string_view word;
  for (const Shape &each : kShapes)
    if (d.take(each.word))
      word = each.word;
  if (word.empty() || !d.take("row") || !d.take("col"))
    d.fail("its shape or layout is not known");
  d.now.isSaturating = d.take("satfinite");
  Type to = d.takeType(), a = d.takeType(), b = d.takeType(), c = d.takeType();
  const Shape *shape = nullptr;
  for (const Shape &each : kShapes)
    if (each.word == word && each.bits == 8 * bytesOf(a))
      shape = &each;
  Handler made = product(a, b, c);
  if (!shape || !made || to != c)
    d.fail("it has no form of this shape for these types");
  unsigned e = a == Type::F64 ? 1 : 4 / bytesOf(a), packed = c == Type::F16 ? 2 : 1;
  size_t counts[] = {shape->m * 8 / kLanes / packed, shape->m * shape->k / kLanes / e,
                     8 * shape->k / kLanes / e, shape->m * 8 / kLanes / packed};
  Type in = a == Type::F64 ? Type::F64 : Type::B32, out = packed == 2 ? Type::B32 : c;
  d.expect(4, 4);
  for (size_t k = 0; k < 4; ++k) {
    auto all = Decoder::elements(d.arguments()[k]);
    if (all.size() != counts[k])
      d.fail(std::to_string(all.size()) + " registers where " + std::to_string(counts[k]) +
             " are expected");
    for (const Argument *each : all)
      d.use(k == 0 ? d.target(*each, out) : d.source(*each, k == 3 ? out : in));
  }
  d.now.width = shape->m;
  d.now.vector = shape->k;
  d.emit(made, Class::Mma);
}

} // namespace

void addMatrices(Opcodes &all) {
  all["ldmatrix"] = [](Decoder &d) { matrixAccess(d, true); };
  all["stmatrix"] = [](Decoder &d) { matrixAccess(d, false); };
  all["mma"] = mma;
}

} // namespace heddle::emulator
