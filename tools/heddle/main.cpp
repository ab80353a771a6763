// heddle: the command line of Heddle, a user of include/heddle and of nothing else.
//
// Results go to standard output, messages to standard error. Exit codes are heddle_code_t.

#include "tools/heddle/command.h"
#include "tools/heddle/failure.h"
#include "tools/heddle/model.h"
#include "tools/heddle/terminal/terminal.h"

#include <csignal>
#include <iostream>

namespace heddle::cli {

static const std::vector<Command> kCommands = {
    {"compile", "turn a model into an artefact", addCompile},
    {"run", "run a model or an artefact, and print or keep what it gives", addRun},
    {"verify", "whether artefacts are, byte for byte, what was compiled", addVerify},
    {"bench", "time a model or an artefact, also beside ONNX Runtime", addBench},
    {"compare", "hold a model against the reference interpreter and ONNX Runtime", addCompare},
    {"plan", "print, write or check the plan of a model", addPlan},
    {"explain", "say what was decided about each group of a model, and why", addExplain},
    {"tune", "find faster cards and knobs by measuring, and keep them", addTune},
    {"train", "train a model, and keep what it became", nullptr, runTrain},
    {"quantize", "make products or weights of a model small integers", nullptr, runQuantize},
    {"generate", "go on with a text, or answer messages, with a language model", nullptr,
     runGenerate},
    {"serve", "answer requests for text, by OpenAI's interface", nullptr, runServe},
    {"cost", "learn from records what candidates cost", nullptr, runCost},
    {"cards", "list, explain, prove or draft cards, which say how kernels are made", addCards},
    {"cache", "say what the cache of compiled models holds, or empty it", addCache},
    {"config", "say how a program in C or C++ is built with a model", addConfig},
    {"ops", "list the ONNX ops that are supported", addOps},
    {"fuzz", "check random models against the reference and ONNX Runtime", nullptr, runFuzz},
    {"reduce", "write the least part of a model that fails as it does", nullptr, runReduce},
    {"completion", "print a script with which a shell completes commands", addCompletion},
};

const std::vector<Command> &commands() { return kCommands; }

static const char *const kExitCodes = "exit codes: 0 ok, 1 numbers differ, 2 usage, 3 refused, 4 "
                                      "limit, 5 internal error\n";

static std::string overview() {
  std::string text = "usage: heddle COMMAND ...\n\n";
  for (const Command &command : kCommands) {
    std::string name = command.name;
    text += "  " + name + std::string(12 - name.size(), ' ') + command.summary + "\n";
  }
  return text + "\n'heddle COMMAND --help' says more; 'heddle --version' says which this is\n" +
         kExitCodes;
}

static const Command &findCommand(const std::string &name) {
  std::vector<std::string> names;
  std::string known;
  for (const Command &command : kCommands) {
    if (name == command.name)
      return command;
    names.push_back(command.name);
    known += (known.empty() ? "" : ", ") + std::string(command.name);
  }
  names.push_back("help");
  failUsage("unknown command '" + name + "'" + didYouMean(name, names) + "\nnote: known: " + known +
            ", help");
}

static int runCommand(const Command &command, int argc, char **argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  if (command.hand)
    return command.hand(arguments);
  Parser parser(command.name, command.summary);
  Run run = command.add(parser);
  if (std::optional<std::string> help = parser.parse(arguments)) {
    print(*help + kExitCodes);
    return HEDDLE_OK;
  }
  return run();
}

static int dispatch(int argc, char **argv) {
  std::string first = argc > 1 ? argv[1] : "";
  if (first.empty()) {
    std::cerr << overview();
    return HEDDLE_USAGE;
  }
  if (first == "--version" || first == "version") {
    print("heddle " + std::string(heddle_version()) + "\n");
    return HEDDLE_OK;
  }
  if (first == "help" && argc > 2) {
    char help[] = "--help";
    char *arguments[] = {help};
    return runCommand(findCommand(argv[2]), 1, arguments);
  }
  if (first == "help" || first == "--help" || first == "-h") {
    print(overview());
    return HEDDLE_OK;
  }
  return runCommand(findCommand(first), argc - 2, argv + 2);
}

} // namespace heddle::cli

int main(int argc, char **argv) {
  using namespace heddle::cli;
  // A file beyond its limit and a reader that went away are errors of a write, with a message.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return dispatch(argc, argv);
  } catch (const Failure &failure) {
    std::cerr << coloured(failure.what()) << "\n";
    return failure.code;
  } catch (const std::bad_alloc &) {
    std::cerr << "out of memory\n";
    return HEDDLE_LIMIT;
  } catch (const std::exception &error) {
    std::cerr << "internal error: " << error.what() << "\n";
    return HEDDLE_INTERNAL;
  }
}
