// Parser: the options and arguments of a command. CLI11 does the work in parser.cpp alone, since it
// takes seconds to compile wherever it is included.
#ifndef HEDDLE_TOOLS_HEDDLE_TERMINAL_PARSER_H
#define HEDDLE_TOOLS_HEDDLE_TERMINAL_PARSER_H

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace heddle::cli {

/// An option or a positional argument; each function returns it again.
class Argument {
public:
  explicit Argument(CLI::Option *option) : option(option) {}

  Argument required();
  /// Names the type of its value in the help.
  Argument type(const std::string &name);
  Argument oneOf(const std::vector<std::string> &words);
  Argument between(int64_t least, int64_t most);
  Argument positive();
  Argument notNegative();
  /// Takes sizes with units: 2MiB.
  Argument bytes();
  /// Takes several values, separated by commas.
  Argument separated();
  Argument each(const std::function<void(const std::string &)> &use);
  /// Another option of the command, which was added before.
  Argument needs(const std::string &name);
  Argument excludes(const std::string &name);

private:
  CLI::Option *option;
};

/// Names and options of a command, for scripts that complete it.
struct Described {
  struct Option {
    std::vector<std::string> names; // "--target", "-O"
    std::string description;
    std::vector<std::string> values; // possible values, if these are few
    bool isFlag;
  };
  std::string name, summary;
  std::vector<Option> options;
  std::vector<Described> actions;
};

/// Parses the arguments of a command; a copy is of the same command.
class Parser {
public:
  /// Destination of a value, which has to live until the command has run.
  using Value =
      std::variant<std::string *, std::vector<std::string> *, std::optional<std::string> *, int *,
                   int64_t *, uint32_t *, uint64_t *, double *, std::optional<int> *,
                   std::optional<int64_t> *, std::optional<double> *>;

  Parser(const std::string &name, const std::string &summary);

  Argument add(const std::string &names, Value value, const std::string &description);
  /// An option that may be given many times, with one value each.
  Argument addMany(const std::string &name, std::vector<std::string> *values,
                   const std::string &description);
  Argument addFlag(const std::string &names, bool *value, const std::string &description);
  /// --json, which all commands with results have
  Argument addJson(bool *value) { return addFlag("--json", value, "print one JSON object"); }
  /// Adds one of several actions of a command; the user names one.
  Parser addAction(const std::string &name, const std::string &summary);
  /// Whether the user has named this action.
  bool isNamed() const;

  /// Takes the arguments, or returns the text of help if they ask for it. Other arguments are
  /// failures of usage.
  std::optional<std::string> parse(std::vector<std::string> arguments);
  Described describe() const;
  /// The options that were given and that another command takes, too, as words for it; without
  /// those of these long names.
  std::vector<std::string> givenFor(const Parser &other,
                                    const std::vector<std::string> &without) const;

private:
  explicit Parser(std::shared_ptr<CLI::App> app) : app(std::move(app)) {}

  std::shared_ptr<CLI::App> app;
};

} // namespace heddle::cli

#endif
