// Parser: see parser.h.

#include "tools/heddle/terminal/parser.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/terminal/terminal.h"

#include <CLI/CLI.hpp>

#include <cmath>

namespace heddle::cli {

Argument Argument::required() { return Argument(option->required()); }

Argument Argument::type(const std::string &name) { return Argument(option->type_name(name)); }

Argument Argument::oneOf(const std::vector<std::string> &words) {
  return Argument(option->check(CLI::IsMember(words)));
}

Argument Argument::between(int64_t least, int64_t most) {
  return Argument(option->check(CLI::Range(least, most)));
}

/// A finite number above 0, or 0 if that is included.
static CLI::Validator fromZero(bool isIncluded, const std::string &name) {
  auto complaint = [=](const std::string &text) -> std::string {
    double number = NAN;
    bool isNumber = CLI::detail::lexical_cast(text, number) && std::isfinite(number);
    if (isNumber && (number > 0 || (isIncluded && number == 0)))
      return "";
    return "it is " + text + ", but a number " +
           (isIncluded ? "of 0 and more is allowed" : "above 0 is allowed");
  };
  return CLI::Validator(complaint, name);
}

Argument Argument::positive() { return Argument(option->check(fromZero(false, "POSITIVE"))); }

Argument Argument::notNegative() { return Argument(option->check(fromZero(true, "NONNEGATIVE"))); }

Argument Argument::bytes() { return Argument(option->transform(CLI::AsSizeValue(false))); }

Argument Argument::separated() { return Argument(option->delimiter(',')->allow_extra_args(false)); }

Argument Argument::each(const std::function<void(const std::string &)> &use) {
  return Argument(option->each(use));
}

Argument Argument::needs(const std::string &name) { return Argument(option->needs(name)); }

Argument Argument::excludes(const std::string &name) { return Argument(option->excludes(name)); }

Parser::Parser(const std::string &name, const std::string &summary)
    : app(std::make_shared<CLI::App>(summary, name)) {
  app->allow_extras();
  app->get_formatter()->column_width(32);
}

Argument Parser::add(const std::string &names, Value value, const std::string &description) {
  return std::visit(
      [&](auto *value) { return Argument(app->add_option(names, *value, description)); }, value);
}

Argument Parser::addMany(const std::string &name, std::vector<std::string> *values,
                         const std::string &description) {
  return Argument(app->add_option(name, *values, description)
                      ->allow_extra_args(false)
                      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
}

Argument Parser::addFlag(const std::string &names, bool *value, const std::string &description) {
  return Argument(app->add_flag(names, *value, description));
}

Parser Parser::addAction(const std::string &name, const std::string &summary) {
  app->require_subcommand(1);
  auto action = std::make_shared<CLI::App>(summary, name);
  app->add_subcommand(action)->allow_extras(false);
  return Parser(action);
}

bool Parser::isNamed() const { return app->parsed(); }

/// Refuses arguments that the command does not know.
static void refuseExtras(const CLI::App &app) {
  std::vector<std::string> extras = app.remaining();
  if (extras.empty())
    return;
  std::vector<std::string> names;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  std::string word = extras[0].substr(0, extras[0].find('='));
  failUsage("heddle " + app.get_name() + ": unexpected '" + extras[0] + "'" +
            didYouMean(word, names) + "\nnote: 'heddle " + app.get_name() +
            " --help' lists what it takes");
}

std::optional<std::string> Parser::parse(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end()); // as CLI11 wants them
  try {
    app->parse(arguments);
  } catch (const CLI::CallForHelp &) {
    std::string name = "heddle " + app->get_name();
    const CLI::App *shown = app.get();
    for (const CLI::App *action : app->get_subcommands()) { // those that were named
      shown = action;
      name += " " + action->get_name();
    }
    return app->get_formatter()->make_help(shown, name, CLI::AppFormatMode::Normal);
  } catch (const CLI::ParseError &error) {
    refuseExtras(*app);
    failUsage("heddle " + app->get_name() + ": " + error.what() + "\nnote: 'heddle " +
              app->get_name() + " --help' lists what it takes");
  }
  refuseExtras(*app);
  return std::nullopt;
}

/// The members of CLI11's "TEXT:{a,b}".
static std::vector<std::string> membersOf(const CLI::Option &option) {
  std::string type = option.get_type_name();
  size_t begin = type.find('{'), end = type.rfind('}');
  std::vector<std::string> members;
  if (begin == std::string::npos || end == std::string::npos)
    return members;
  std::istringstream words(type.substr(begin + 1, end - begin - 1));
  for (std::string word; std::getline(words, word, ',');)
    members.push_back(word);
  return members;
}

static Described describeApp(const CLI::App &app) {
  Described described = {app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option *option : app.get_options()) {
    std::vector<std::string> names;
    for (const std::string &word : option->get_snames())
      names.push_back("-" + word);
    for (const std::string &word : option->get_lnames())
      names.push_back("--" + word);
    if (!names.empty()) // else it is a file
      described.options.push_back(
          {names, option->get_description(), membersOf(*option), option->get_expected_max() == 0});
  }
  for (const CLI::App *action : app.get_subcommands([](const CLI::App *) { return true; }))
    described.actions.push_back(describeApp(*action));
  return described;
}

Described Parser::describe() const { return describeApp(*app); }

std::vector<std::string> Parser::givenFor(const Parser &other,
                                          const std::vector<std::string> &without) const {
  std::vector<std::string> words;
  for (const CLI::Option *option : app->get_options()) {
    std::string name = option->get_name(); // "--target", "-O"; of an argument without dashes
    bool isOut = std::find(without.begin(), without.end(), name) != without.end();
    if (isOut || !name.starts_with("-") || !other.app->get_option_no_throw(name))
      continue;
    for (const std::string &value : option->results()) {
      words.push_back(name);
      if (option->get_expected_max() > 0)
        words.push_back(value);
    }
  }
  return words;
}

} // namespace heddle::cli
