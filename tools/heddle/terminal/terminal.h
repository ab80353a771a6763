// Terminal: how wide it is, and colours, where standard output or error is one.
#ifndef HEDDLE_TOOLS_HEDDLE_TERMINAL_H
#define HEDDLE_TOOLS_HEDDLE_TERMINAL_H

#include <cstddef>
#include <string>

namespace heddle::cli {

/// Columns of standard output: COLUMNS of the environment, or the terminal's; 0 if lines may be
/// as long as they like, in files and pipes.
size_t columnsOfOutput();

/// Standard output and error, as unistd.h numbers them.
enum class Stream { Output = 1, Error = 2 };
/// Whether colours may go there: a terminal, and neither NO_COLOR nor TERM=dumb in the environment.
bool hasColours(Stream stream);

/// A table's head, if colours may go to standard output; else as it is.
std::string emphasised(const std::string &line);
/// A message with its "error:" and "note:" in colours, if these may go to standard error.
std::string coloured(const std::string &message);

/// The text in single quotes, for a shell.
std::string quoted(const std::string &text, const char *alsoEscaped = "");
/// A word of a shell's command line, in quotes where it needs them.
std::string shellWord(const std::string &text);

/// Words in lines of at most so many columns (0: one line), each after the indent.
std::string wrapped(const std::string &text, const std::string &indent, size_t columns);

} // namespace heddle::cli

#endif
