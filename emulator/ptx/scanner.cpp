// Scanner: splits PTX text into tokens. Comments and white space go here.
#include "emulator/ptx/scanner.h"

#include <bit>
#include <charconv>
#include <cstring>

namespace heddle::emulator {
namespace {

bool isWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '%' || c == '.';
}

bool isDigit(char c) { return c >= '0' && c <= '9'; }

/// Skips white space and comments; returns where the next token begins.
size_t skip(std::string_view text, size_t at, unsigned &line) {
  while (at < text.size()) {
    char c = text[at];
    if (c == '\n')
      ++line, ++at;
    else if (c == ' ' || c == '\t' || c == '\r' || c == '\f')
      ++at;
    else if (text.substr(at, 2) == "//")
      at = std::min(text.find('\n', at), text.size());
    else if (text.substr(at, 2) == "/*") {
      size_t end = text.find("*/", at + 2);
      if (end == text.npos)
        throw PtxError(line, "a comment has no end");
      for (; at < end + 2; ++at)
        line += text[at] == '\n';
    } else
      break;
  }
  return at;
}

} // namespace

std::vector<Token> scan(std::string_view text) {
  std::vector<Token> tokens;
  unsigned line = 1;
  for (size_t at = skip(text, 0, line); at < text.size(); at = skip(text, at, line)) {
    Token token{Token::Mark, text.substr(at, 1), line};
    if (text[at] == '"') {
      size_t end = text.find('"', at + 1);
      if (end == text.npos)
        throw PtxError(line, "a string has no end");
      token = {Token::Text, text.substr(at, end + 1 - at), line};
    } else if (isWord(text[at])) {
      size_t end = at;
      bool isNumber = isDigit(text[at]);
      while (end < text.size() &&
             (isWord(text[end]) || (!isNumber && text.substr(end, 2) == "::" && ++end)))
        ++end;
      token = {isNumber ? Token::Number : Token::Word, text.substr(at, end - at), line};
    } else if (static_cast<unsigned char>(text[at]) < 32 ||
               static_cast<unsigned char>(text[at]) > 126) {
      throw PtxError(line, "a byte that is no character of PTX: " +
                               std::to_string(static_cast<unsigned char>(text[at])));
    }
    at += token.text.size();
    tokens.push_back(token);
  }
  tokens.push_back({Token::End, "", line});
  return tokens;
}

uint64_t numberOf(const Token &token, Argument::Kind &kind) {
  std::string_view text = token.text;
  auto complain = [&]() {
    return PtxError(token.line, "'" + std::string(text) + "' is no number");
  };
  auto parse = [&](std::string_view digits, int base) {
    uint64_t value = 0;
    if (!digits.empty() && digits.back() == 'U')
      digits.remove_suffix(1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
      throw complain();
    return value;
  };
  kind = Argument::Integer;
  std::string_view prefix = text.substr(0, 2);
  if (prefix == "0f" || prefix == "0F" || prefix == "0d" || prefix == "0D") {
    bool isDouble = prefix[1] == 'd' || prefix[1] == 'D';
    if (text.size() != (isDouble ? 18 : 10))
      throw complain();
    kind = isDouble ? Argument::Double : Argument::Float;
    return parse(text.substr(2), 16);
  }
  if (prefix == "0x" || prefix == "0X")
    return parse(text.substr(2), 16);
  if (prefix == "0b" || prefix == "0B")
    return parse(text.substr(2), 2);
  if (text.find('.') != text.npos) {
    double value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      throw complain();
    kind = Argument::Double;
    return std::bit_cast<uint64_t>(value);
  }
  return parse(text, text.size() > 1 && text[0] == '0' ? 8 : 10);
}

} // namespace heddle::emulator
