// Machine: what schedules need to know of the processor that code is made for.
#ifndef HEDDLE_PROGRAM_MACHINE_H
#define HEDDLE_PROGRAM_MACHINE_H

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::program {

/// Instructions that add products of neighbouring elements to 32-bit lanes, exactly.
enum class Dot {
  None,
  Words,       // pairs of i16
  SignedBytes, // pairs of i16, and quads of i8 x i8
  Bytes        // pairs of i16, and quads of u8 x i8
};

/// How a machine carries out the tasks of a kernel: each with the lanes of vectors, or as a thread
/// of its own that has none.
enum class Form { Lanes, Threads };

struct Machine {
  Form form = Form::Lanes;
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
  std::string device = "cpu"; // its name, for messages
  std::string space = "";     // of the memory of its kernels; "" is the host's
  /// The devices beside this one, which a plan numbers from 1.
  std::vector<Machine> others = {};

  /// The device that a plan numbers so, which there is.
  const Machine &on(int64_t number) const { return number ? others[number - 1] : *this; }
};

} // namespace heddle::program

#endif // HEDDLE_PROGRAM_MACHINE_H
