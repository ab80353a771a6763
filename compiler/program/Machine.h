// Machine: what schedules need to know of the processor that code is made for.
#ifndef HEDDLE_PROGRAM_MACHINE_H
#define HEDDLE_PROGRAM_MACHINE_H

#include <cstdint>

namespace heddle::program {

/// Instructions that add products of neighbouring elements to 32-bit lanes, exactly.
enum class Dot {
  None,
  Words,       // pairs of i16
  SignedBytes, // pairs of i16, and quads of i8 x i8
  Bytes        // pairs of i16, and quads of u8 x i8
};

struct Machine {
  int64_t lanes = 16;     // 32-bit elements in a vector register
  int64_t registers = 32; // vector registers
  int64_t l1Bytes = 32 << 10;
  int64_t l2Bytes = 1 << 20;
  int64_t workers = 2; // that run a kernel together
  Dot dot = Dot::None;
  bool permutesWords = false; // 32-bit lanes of a register, by another register: AVX2
  bool permutesBytes = false; // of two registers at once: AVX512-VBMI
  int64_t fmas = 2;           // multiply-adds of whole registers that begin in a cycle
  bool masksFreely = true;    // a store of some lanes takes as long as one of all: AVX-512
};

} // namespace heddle::program

#endif // HEDDLE_PROGRAM_MACHINE_H
