// heddle completion: scripts with which a shell completes commands, options and their values, made
// from the options that the commands describe.

#include "tools/heddle/command.h"
#include "tools/heddle/model.h"

#include <CLI/CLI.hpp>

namespace heddle::cli {

namespace {
struct Described {
  std::vector<std::string> names; // "--target", "-O"
  std::string description;
  std::vector<std::string> values; // that it takes, if these are few
  bool isFlag;
};

/// A command, or an action of one.
struct Node {
  std::string name, summary;
  std::vector<Described> options;
  std::vector<Node> actions;
};
} // namespace

static std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
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

static Node describe(const CLI::App &app, const std::string &name, const std::string &summary) {
  Node node = {name, summary, {}, {}};
  for (const CLI::Option *option : app.get_options()) {
    Described described = {
        {}, option->get_description(), membersOf(*option), option->get_expected_max() == 0};
    for (const std::string &word : option->get_snames())
      described.names.push_back("-" + word);
    for (const std::string &word : option->get_lnames())
      described.names.push_back("--" + word);
    if (!described.names.empty()) // else it is a file
      node.options.push_back(described);
  }
  for (const CLI::App *action : app.get_subcommands([](const CLI::App *) { return true; }))
    node.actions.push_back(describe(*action, action->get_name(), action->get_description()));
  return node;
}

static std::vector<Node> describeAll() {
  std::vector<Node> nodes;
  for (const Command &command : commands()) {
    CLI::App app(command.summary);
    if (command.add)
      command.add(app);
    nodes.push_back(describe(app, command.name, command.summary));
  }
  return nodes;
}

static std::vector<std::string> namesOf(const std::vector<Node> &nodes) {
  std::vector<std::string> names;
  for (const Node &node : nodes)
    names.push_back(node.name);
  return names;
}

/// In single quotes for any of the three shells.
static std::string quoted(const std::string &text, const char *alsoEscaped = "") {
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

static std::string allOptions(const Node &node) {
  std::string words;
  for (const Described &option : node.options)
    words += (words.empty() ? "" : " ") + joined(option.names);
  for (const Node &action : node.actions)
    words += " " + allOptions(action);
  return words;
}

static void addBashValues(const Node &node, const std::string &command, std::string &text) {
  for (const Described &option : node.options)
    if (!option.values.empty())
      for (const std::string &name : option.names)
        text +=
            "    \"" + command + " " + name + "\") words=\"" + joined(option.values) + "\" ;;\n";
  for (const Node &action : node.actions)
    addBashValues(action, command, text);
}

static std::string bash(const std::vector<Node> &nodes) {
  std::string values, options, actions;
  for (const Node &node : nodes) {
    addBashValues(node, node.name, values);
    options += "      " + node.name + ") words=\"" + allOptions(node) + "\" ;;\n";
    if (!node.actions.empty())
      actions += "      " + node.name + ") words=\"" + joined(namesOf(node.actions)) + "\" ;;\n";
  }
  return "# eval \"$(heddle completion bash)\", in ~/.bashrc\n"
         "_heddle() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} words=\n"
         "  case \"${COMP_WORDS[1]} ${COMP_WORDS[COMP_CWORD-1]}\" in\n" +
         values +
         "  esac\n"
         "  if ((COMP_CWORD == 1)); then\n    words=\"" +
         joined(namesOf(nodes)) +
         " help\"\n"
         "  elif [[ -z $words && $current == -* ]]; then\n"
         "    case ${COMP_WORDS[1]} in\n" +
         options +
         "    esac\n"
         "  elif [[ -z $words ]] && ((COMP_CWORD == 2)); then\n"
         "    case ${COMP_WORDS[1]} in\n" +
         actions +
         "    esac\n"
         "  fi\n"
         "  if [[ -n $words ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o filenames -F _heddle heddle\n";
}

static void addZshOptions(const Node &node, std::string &text) {
  for (const Described &option : node.options)
    for (const std::string &name : option.names) {
      std::string value =
          option.values.empty() ? ":value:_files" : ":value:(" + joined(option.values) + ")";
      std::string described = quoted(option.description, "[]:\\");
      text +=
          " \\\n        '*" + name + "['" + described + "']" + (option.isFlag ? "" : value) + "'";
    }
  for (const Node &action : node.actions)
    addZshOptions(action, text);
}

static std::string zsh(const std::vector<Node> &nodes) {
  std::string commands, cases;
  for (const Node &node : nodes) {
    commands += "    " + quoted(node.name + ":" + node.summary) + "\n";
    cases += "    " + node.name + ")\n      _arguments";
    addZshOptions(node, cases);
    if (!node.actions.empty())
      cases += " \\\n        '2:action:(" + joined(namesOf(node.actions)) + ")'";
    cases += " \\\n        '*:file:_files' ;;\n";
  }
  return "#compdef heddle\n"
         "# In a file _heddle of a folder of $fpath, or: eval \"$(heddle completion zsh)\"\n"
         "_heddle() {\n"
         "  local -a commands=(\n" +
         commands +
         "  )\n"
         "  if ((CURRENT == 2)); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  case $words[2] in\n" +
         cases +
         "  esac\n"
         "}\n"
         "compdef _heddle heddle\n";
}

static void addFishOptions(const Node &node, const std::string &command, std::string &text) {
  for (const Described &option : node.options) {
    text += "complete -c heddle -n '__fish_seen_subcommand_from " + command + "'";
    for (const std::string &name : option.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.values.empty())
      text += " -x -a " + quoted(joined(option.values));
    else if (!option.isFlag)
      text += " -r";
    text += " -d " + quoted(option.description) + "\n";
  }
  for (const Node &action : node.actions)
    addFishOptions(action, command, text);
}

static std::string fish(const std::vector<Node> &nodes) {
  std::string text = "# heddle completion fish > ~/.config/fish/completions/heddle.fish\n";
  for (const Node &node : nodes) {
    text += "complete -c heddle -n __fish_use_subcommand -f -a " + node.name + " -d " +
            quoted(node.summary) + "\n";
    if (!node.actions.empty())
      text += "complete -c heddle -n '__fish_seen_subcommand_from " + node.name + "' -a " +
              quoted(joined(namesOf(node.actions))) + "\n";
    addFishOptions(node, node.name, text);
  }
  return text;
}

Run addCompletion(CLI::App &app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  return [shell] {
    std::vector<Node> nodes = describeAll();
    print(*shell == "bash" ? bash(nodes) : *shell == "zsh" ? zsh(nodes) : fish(nodes));
    return HEDDLE_OK;
  };
}

} // namespace heddle::cli
