// Command: what each file of a command gives to main.cpp.
#ifndef HEDDLE_TOOLS_HEDDLE_COMMAND_H
#define HEDDLE_TOOLS_HEDDLE_COMMAND_H

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace heddle::cli {

/// Runs a command whose options were parsed, and returns its exit code.
using Run = std::function<int()>;

struct Command {
  const char *name, *summary;
  Run (*add)(CLI::App &app);                                 // describes its options, or else
  int (*hand)(std::vector<std::string> arguments) = nullptr; // takes all arguments as they are
};
/// All, in the order in which they are listed.
const std::vector<Command> &commands();

/// Each adds its options to `app`.
Run addCompile(CLI::App &app);
Run addRun(CLI::App &app);
Run addVerify(CLI::App &app);
Run addBench(CLI::App &app);
Run addCompare(CLI::App &app);
Run addPlan(CLI::App &app);
Run addExplain(CLI::App &app);
Run addTune(CLI::App &app);
Run addCards(CLI::App &app);
Run addCache(CLI::App &app);
Run addOps(CLI::App &app);
Run addCompletion(CLI::App &app);

/// These take their arguments as they are.
int runFuzz(std::vector<std::string> arguments);
int runReduce(std::vector<std::string> arguments);
int runTrain(std::vector<std::string> arguments);
int runCost(std::vector<std::string> arguments);

} // namespace heddle::cli

#endif
