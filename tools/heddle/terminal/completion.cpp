// heddle completion: scripts with which a shell completes commands, options and their values, made
// from the options that the commands describe.

#include "tools/heddle/command.h"
#include "tools/heddle/model.h"
#include "tools/heddle/terminal/terminal.h"

namespace heddle::cli {

static std::string joined(const std::vector<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

static std::vector<Described> describeAll() {
  std::vector<Described> nodes;
  for (const Command &command : commands()) {
    Parser parser(command.name, command.summary);
    if (command.add)
      command.add(parser);
    nodes.push_back(parser.describe());
  }
  return nodes;
}

static std::vector<std::string> namesOf(const std::vector<Described> &nodes) {
  std::vector<std::string> names;
  for (const Described &node : nodes)
    names.push_back(node.name);
  return names;
}

static std::string allOptions(const Described &node) {
  std::string words;
  for (const Described::Option &option : node.options)
    words += (words.empty() ? "" : " ") + joined(option.names);
  for (const Described &action : node.actions)
    words += " " + allOptions(action);
  return words;
}

static void addBashValues(const Described &node, const std::string &command, std::string &text) {
  for (const Described::Option &option : node.options)
    if (!option.values.empty())
      for (const std::string &name : option.names)
        text +=
            "    \"" + command + " " + name + "\") words=\"" + joined(option.values) + "\" ;;\n";
  for (const Described &action : node.actions)
    addBashValues(action, command, text);
}

static std::string bash(const std::vector<Described> &nodes) {
  std::string values, options, actions;
  for (const Described &node : nodes) {
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

static void addZshOptions(const Described &node, std::string &text) {
  for (const Described::Option &option : node.options)
    for (const std::string &name : option.names) {
      std::string value =
          option.values.empty() ? ":value:_files" : ":value:(" + joined(option.values) + ")";
      std::string described = quoted(option.description, "[]:\\");
      text +=
          " \\\n        '*" + name + "['" + described + "']" + (option.isFlag ? "" : value) + "'";
    }
  for (const Described &action : node.actions)
    addZshOptions(action, text);
}

static std::string zsh(const std::vector<Described> &nodes) {
  std::string commands, cases;
  for (const Described &node : nodes) {
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

static void addFishOptions(const Described &node, const std::string &command, std::string &text) {
  for (const Described::Option &option : node.options) {
    text += "complete -c heddle -n '__fish_seen_subcommand_from " + command + "'";
    for (const std::string &name : option.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    if (!option.values.empty())
      text += " -x -a " + quoted(joined(option.values));
    else if (!option.isFlag)
      text += " -r";
    text += " -d " + quoted(option.description) + "\n";
  }
  for (const Described &action : node.actions)
    addFishOptions(action, command, text);
}

static std::string fish(const std::vector<Described> &nodes) {
  std::string text = "# heddle completion fish > ~/.config/fish/completions/heddle.fish\n";
  for (const Described &node : nodes) {
    text += "complete -c heddle -n __fish_use_subcommand -f -a " + node.name + " -d " +
            quoted(node.summary) + "\n";
    if (!node.actions.empty())
      text += "complete -c heddle -n '__fish_seen_subcommand_from " + node.name + "' -a " +
              quoted(joined(namesOf(node.actions))) + "\n";
    addFishOptions(node, node.name, text);
  }
  return text;
}

Run addCompletion(Parser app) {
  auto shell = std::make_shared<std::string>();
  app.add("SHELL", shell.get(), "bash, zsh or fish").required().oneOf({"bash", "zsh", "fish"});
  return [shell] {
    std::vector<Described> nodes = describeAll();
    print(*shell == "bash" ? bash(nodes) : *shell == "zsh" ? zsh(nodes) : fish(nodes));
    return HEDDLE_OK;
  };
}

} // namespace heddle::cli
