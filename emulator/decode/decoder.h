// Decoder: makes a kernel's instructions of the statements of its function and of those it calls.
//
// Calls are written out in place, each with registers of its own: lanes of a warp then need no
// stacks, and meet again after a call as they do after a branch. Each opcode has a function that
// takes the words and arguments of a statement; words that are left over are refused.
#pragma once

#include "emulator/machine/instruction.h"
#include "emulator/machine/number.h"

#include <set>

namespace heddle::emulator {

using Symbols = std::unordered_map<std::string, uint64_t>; // addresses of .global and .const

class Decoder {
public:
  Decoder(const Program &program, const Symbols &symbols) : program(program), symbols(symbols) {}
  /// The kernel of a function; throws PtxError.
  std::unique_ptr<Kernel> decode(const Function &function);

  [[noreturn]] void fail(const std::string &why) const;
  /// Takes a word of the opcode when it has it.
  bool take(std::string_view word);
  bool has(std::string_view word) const;
  /// Whether the opcode begins with a word.
  bool isOld(std::string_view word) const { return statement->word[0] == word; }
  /// Takes the next word that is a type.
  Type takeType();
  /// Takes .rn, .rz, .rm, .rp, and those of integers (.rni ...).
  Rounding takeRounding(bool *isInteger = nullptr, bool *isGiven = nullptr);
  /// Takes .ftz and .sat.
  void takeFlags();

  const std::vector<Argument> &arguments() const { return statement->arguments; }
  void expect(size_t least, size_t most) const;
  Operand source(const Argument &argument, Type type, bool mayBeWider = false);
  Operand target(const Argument &argument, Type type, bool mayBeWider = false);
  Operand predicate(const Argument &argument, bool isTarget = false);
  Operand constant(uint64_t bits, unsigned bytes);
  Operand special(Kernel::Special what, unsigned axis);
  /// Register that no name has.
  Operand scratch(unsigned bytes);
  /// Condition codes of add.cc and its like.
  Operand carry();
  /// Adds operands of all arguments in order: a target, then sources.
  void useAll(Type type, size_t count);
  void use(const Operand &operand) { operands.push_back(operand); }
  /// Adds an address; gives its space when a name says it.
  void useAddress(const Argument &argument, Space &space);
  /// Elements of {a, b}, or the one argument that is no list.
  static std::vector<const Argument *> elements(const Argument &argument);
  /// Finishes the instruction; it must have taken all words.
  Instruction &emit(Handler run, Class kind);
  void control(Flow flow, Class kind);
  void branch(const std::string &label);
  void table(const std::string &name);
  void call();
  void finish();   // ret
  Instruction now; // what modifiers were taken so far
  const Program &program;

private:
  struct Frame {
    const Function *function = nullptr;
    std::unordered_map<std::string, Operand> registers;
    std::unordered_map<std::string, std::pair<Space, uint64_t>> places; // of variables
    std::unordered_map<std::string, uint32_t> labels;
    std::vector<std::pair<uint32_t, std::string>> branches; // to be resolved
    std::vector<std::pair<uint32_t, std::string>> entries;  // of tables
    std::vector<uint32_t> returns;
  };
  const Symbols &symbols;
  Kernel *kernel = nullptr;
  Frame *frame = nullptr;
  const Statement *statement = nullptr;
  std::vector<bool> taken;
  std::vector<Operand> operands;
  std::map<std::pair<uint64_t, unsigned>, Operand> constants;
  std::map<std::pair<int, unsigned>, Operand> specials;
  std::unordered_map<std::string, std::pair<Space, uint64_t>> sharedPlaces;
  std::string dynamicName;
  std::vector<const Function *> calls; // that are open
  Operand carryMask;
  bool hasCarry = false;

  void placeShared(const Function &function, std::set<std::string> &seen);
  void placeSharedVariable(const Variable &variable);
  uint32_t placeLocal(const std::string &name, uint64_t bytes, uint32_t alignment);
  void body(Frame &own);
  void resolve(Frame &own);
  void step(const Statement &each);
  Operand allocate(unsigned bytes);
  Operand registerOf(const std::string &name);
  Type declared(const std::string &name) const;
  bool symbol(const std::string &name, Space &space, uint64_t &value) const;
  void placeVariables(Frame &own);
};

using Decode = void (*)(Decoder &);
using Opcodes = std::unordered_map<std::string, Decode>;
const Opcodes &opcodes();
void addArithmetic(Opcodes &);
void addFloats(Opcodes &);
void addLogic(Opcodes &);
void addConversions(Opcodes &);
void addControl(Opcodes &);
void addMemory(Opcodes &);
void addAtomics(Opcodes &);
void addWarps(Opcodes &);
void addMatrices(Opcodes &);

} // namespace heddle::emulator
