// Scanner: words, numbers and marks of PTX text, each with its line.
#pragma once

#include "emulator/ptx/program.h"

namespace heddle::emulator {

struct Token {
  enum Kind : uint8_t { End, Word, Number, Mark, Text } kind = End;
  std::string_view text;
  unsigned line = 1;
};

/// All tokens of a text, the last of which is an End.
std::vector<Token> scan(std::string_view text);

/// Value of a number as PTX writes it; `kind` says which form it has.
uint64_t numberOf(const Token &token, Argument::Kind &kind);

} // namespace heddle::emulator
