// Machine: what schedules need to know of the processor that code is made for.
#ifndef HEDDLE_PROGRAM_MACHINE_H
#define HEDDLE_PROGRAM_MACHINE_H

#include <cstdint>
#include <map>
#include <optional>
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

/// How pairs of bf16 are multiplied and added to f32 lanes.
enum class ShortFloats {
  None,
  Emulated, // by instructions of f32, in more time than f32 takes
  Native
};

/// How a machine carries out the tasks of a kernel: each with the lanes of vectors, or as a thread
/// of its own that has none.
enum class Form { Lanes, Threads };

/// Work of all workers in a second, of large kernels: a roofline says where time goes, roughly, and
/// only how such times compare decides anything (compiler/estimate/Seconds.h).
struct Rates {
  double products = 1e11; // operations of products
  double others = 2e10;   // any other operations
  double bytes = 1e10;    // of memory
  double launch = 2e-6;   // seconds that a kernel takes to begin
  double shorts = 2e11;   // operations of products of bf16, where they are instructions
  double matrices = 8e11; // the same in registers that hold matrices
};

/// Rows of a register that holds matrices, and its columns, which are words of 32 bits.
inline constexpr int64_t kMatrixSize = 16;
/// Rows, or columns, of a tile of such registers: two are enough, and one for few or no more.
inline int64_t matrixTile(std::optional<int64_t> size) {
  return size && *size <= kMatrixSize ? kMatrixSize : 2 * kMatrixSize;
}

struct Machine {
  /// Whether the sums of a register tile, a row of its right operand and one element of the left
  /// one fit the registers.
  bool holdsTile(int64_t rows, int64_t columns) const {
    int64_t vectors = columns / lanes;
    return vectors > 0 && columns % lanes == 0 && rows * vectors + vectors + 1 <= registers;
  }

  Form form = Form::Lanes;
  int64_t lanes = 16;     // 32-bit elements in a vector register
  int64_t registers = 32; // vector registers
  int64_t l1Bytes = 32 << 10;
  int64_t l2Bytes = 1 << 20;
  int64_t workers = 2; // that run a kernel together
  Dot dot = Dot::None;
  ShortFloats shortFloats = ShortFloats::None;
  bool hasMatrices = false;     // registers of 16 x 16 words, and products in them: AMX
  bool permutesWords = false;   // 32-bit lanes of a register, by another register: AVX2
  bool permutesBytes = false;   // of two registers at once: AVX512-VBMI
  int64_t fmas = 2;             // multiply-adds of whole registers that begin in a cycle
  bool masksFreely = true;      // a store of some lanes takes as long as one of all: AVX-512
  int64_t nearBytes = 12 << 20; // of weights that stay in a cache from one run to the next
  Rates rates = {};
  /// Measured numbers of this machine, in place of the defaults of compiler/estimate/Thresholds.h.
  std::map<std::string, int64_t> thresholds = {};
  int64_t threadsInStep = 1;  // threads that exchange values without memory
  int64_t mostThreads = 1;    // of a team, which share memory
  std::string device = "cpu"; // its name, for messages
  std::string space = "";     // of the memory of its kernels; "" is the host's
  bool isPreferred = false;   // by default, to the host: for groups that it has code for
  /// The devices beside this one, which a plan numbers from 1.
  std::vector<Machine> others = {};

  /// The device that a plan numbers so, which there is.
  const Machine &on(int64_t number) const { return number ? others[number - 1] : *this; }
};

} // namespace heddle::program

#endif // HEDDLE_PROGRAM_MACHINE_H
