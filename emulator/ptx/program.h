// Program: PTX text as a tree of functions, variables and statements, with names still in it.
//
// The form is that of the text; decode/ resolves it to what machine/ runs. Reading never trusts the
// text: sizes are limited, and each complaint says its line.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heddle::emulator {

enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F64
};

/// Bytes of a value; a predicate has none.
unsigned bytesOf(Type type);
bool isFloat(Type type);
bool isSigned(Type type);
/// The type that a word of the language names, or None.
Type typeOf(std::string_view word);

/// Refusal of a text, with its line.
struct PtxError : std::runtime_error {
  PtxError(unsigned line, const std::string &why)
      : std::runtime_error("line " + std::to_string(line) + ": " + why) {}
};

struct Argument {
  enum Kind : uint8_t { Name, Integer, Float, Double, Vector, Address, List } kind = Integer;
  bool isNegated = false;
  std::string name;   // of a name, or the base of an address; may be empty
  std::string second; // q of p|q
  uint64_t bits = 0;  // a number, or what is added to the name
  std::vector<Argument> parts;
};

struct Statement {
  unsigned line = 0;
  std::string label; // a label alone has no opcode
  std::string guard;
  bool isGuardNegated = false;
  std::string text;              // opcode, as written
  std::vector<std::string> word; // its parts
  std::vector<Argument> arguments;
};

struct Relocation {
  uint64_t offset = 0;
  std::string name;
  uint64_t added = 0;
  unsigned bytes = 8;
};

struct Variable {
  std::string name, space;
  Type type = Type::B8;
  uint32_t alignment = 1;
  uint64_t bytes = 0;
  bool isDynamic = false; // .extern .shared x[]
  std::vector<uint8_t> initial;
  std::vector<Relocation> relocations;
  unsigned line = 0;
};

struct Function {
  std::string name;
  bool isKernel = false, isDefined = false;
  unsigned line = 0;
  std::vector<Variable> returns, parameters, variables;
  std::unordered_map<std::string, Type> registers;
  std::unordered_map<std::string, std::pair<uint64_t, Type>> ranges; // %r<n>
  std::unordered_map<std::string, std::vector<std::string>> targets; // of brx.idx
  std::vector<Statement> body;
  std::array<uint32_t, 3> mostThreads{}, neededThreads{}; // zeros: not said
};

struct Program {
  int version = 0; // tenths
  int chip = 0;    // of sm_90: 90
  char suffix = 0; // a of sm_90a
  std::vector<Variable> variables;
  std::map<std::string, Function> functions;
};

Program readProgram(std::string_view text);

} // namespace heddle::emulator
