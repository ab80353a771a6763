// Terminal: see terminal.h.

#include "tools/heddle/terminal/terminal.h"

#include <cstdlib>
#include <sstream>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace heddle::cli {

static const char *const kBold = "\033[1m", *const kRed = "\033[1;31m", *const kCyan = "\033[36m",
                         *const kPlain = "\033[0m";

size_t columnsOfOutput() {
  if (const char *given = std::getenv("COLUMNS"))
    if (long columns = std::strtol(given, nullptr, 10); columns > 0)
      return static_cast<size_t>(columns);
  winsize size = {};
  bool isTerminal = isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0;
  return isTerminal && size.ws_col > 0 ? size.ws_col : 0;
}

bool hasColours(Stream stream) {
  const char *none = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  bool isDumb = terminal && std::string_view(terminal) == "dumb";
  return isatty(static_cast<int>(stream)) && !isDumb && !(none && *none);
}

std::string emphasised(const std::string &line) {
  return hasColours(Stream::Output) ? kBold + line + kPlain : line;
}

std::string coloured(const std::string &message) {
  if (!hasColours(Stream::Error))
    return message;
  std::istringstream lines(message);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    size_t error = line.find("error: ");
    if (line.starts_with("note:"))
      line = kCyan + line.substr(0, 5) + kPlain + line.substr(5);
    else if (error != std::string::npos && (error == 0 || line[error - 1] == ' '))
      line = line.substr(0, error) + kRed + "error:" + kPlain + line.substr(error + 6);
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

std::string quoted(const std::string &text, const char *alsoEscaped) {
  std::string result = "'";
  for (char c : text) {
    if (c == '\'')
      result += "'\\''";
    else if (std::string(alsoEscaped).find(c) != std::string::npos)
      result += std::string("\\") + c;
    else
      result += c;
  }
  return result + "'";
}

std::string shellWord(const std::string &text) {
  bool isPlain = !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                         "0123456789%+,-./:=@_") == text.npos;
  return isPlain ? text : quoted(text);
}

std::string wrapped(const std::string &text, const std::string &indent, size_t columns) {
  std::istringstream words(text);
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (columns && !line.empty() && indent.size() + line.size() + 1 + word.size() > columns) {
      lines += indent + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? lines : lines + indent + line + "\n";
}

} // namespace heddle::cli
