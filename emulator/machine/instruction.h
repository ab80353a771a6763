// Instruction: the decoded form that blocks run: a function, places of registers, numbers.
#pragma once

#include "emulator/ptx/program.h"

#include <memory>

namespace heddle::emulator {

class Block;
struct Warp;
struct Instruction;

constexpr unsigned kLanes = 32;
constexpr uint32_t kAllLanes = ~uint32_t(0);

/// Place of 32 values (of a predicate: of one mask) in the registers of a warp or among the
/// constants of the kernel.
struct Operand {
  uint32_t offset = 0;
  uint8_t base = 0;  // 0: registers of the warp, 1: constants of the kernel
  uint8_t bytes = 0; // of one lane's value; 0: a predicate
};

using Handler = void (*)(Block &, Warp &, const Instruction &, uint32_t mask);

/// Effect on the order of instructions; all but None are the scheduler's.
enum class Flow : uint8_t { None, Branch, Table, Exit, Barrier, Arrive };

enum class Space : uint8_t { Generic, Global, Shared, Local, Constant, Parameter };

/// Classes that the report counts.
enum class Class : uint8_t {
  Other,
  Integer,
  Float,
  Convert,
  Branch,
  Barrier,
  LoadGlobal,
  StoreGlobal,
  LoadShared,
  StoreShared,
  Atomic,
  Shuffle,
  Mma,
  Ldmatrix,
  CpAsync,
  Count
};
extern const char *const kClassNames[];

struct Instruction {
  Handler run = nullptr;
  uint32_t first = 0; // of its operands in the kernel's list
  uint16_t count = 0;
  Flow flow = Flow::None;
  Class kind = Class::Other;
  int32_t guard = -1; // place of a predicate's mask
  bool isGuardNegated = false;
  // Modifiers, as far as the opcode has them.
  Space space = Space::Generic;
  uint8_t width = 0, vector = 1; // bytes of an element of an access, and how many
  uint8_t rounding = 0, option = 0;
  bool isFlushing = false, isSaturating = false, isAtomic = false, isReturning = false;
  uint32_t target = 0; // a branch's, or the first of a table in Kernel::tables
  int64_t number = 0;  // added to an address; a count
  uint32_t line = 0;
  // Lanes that have parted run by the smallest rank; `again` is that of those that have come back
  // to the first instruction of a loop: after all others that are in it.
  uint32_t rank = 0, again = 0;
  bool isBeforeLoop = false;         // what follows it is such an instruction, and before it
  const Operand *operands = nullptr; // into the kernel's list, when that is complete
};

struct Named {
  std::string name;
  uint32_t offset = 0, bytes = 0;
};

struct Kernel {
  std::string name;
  std::vector<Instruction> code;
  std::vector<std::string> texts; // of the lines of code, for messages
  std::vector<Operand> operands;
  std::vector<uint8_t> constants;
  std::vector<uint32_t> tables;
  std::vector<Named> parameters, shared, local;
  uint32_t registerBytes = 0, parameterBytes = 0, localBytes = 0;
  uint32_t sharedBytes = 0; // as the language counts; with gaps: sharedSpan
  uint32_t sharedSpan = 0;
  uint32_t registerCount = 0; // 32-bit ones that are named at all
  std::array<uint32_t, 3> mostThreads{}, neededThreads{};
  /// Registers with values from the start: which one, and where.
  enum Special : uint8_t { Tid, Ntid, Ctaid, Nctaid, Laneid, Warpid, Nwarpid, Smid, Nsmid, Masks };
  struct Preset {
    Special what;
    uint8_t axis;
    uint32_t offset;
  };
  std::vector<Preset> presets;
};

} // namespace heddle::emulator
