// Command: what each file of a command gives to main.cpp.
#ifndef HEDDLE_TOOLS_HEDDLE_COMMAND_H
#define HEDDLE_TOOLS_HEDDLE_COMMAND_H

#include "tools/heddle/terminal/parser.h"

#include <functional>
#include <string>
#include <vector>

namespace heddle::cli {

/// Runs a command whose options were parsed, and returns its exit code.
using Run = std::function<int()>;

struct Command {
  const char *name, *summary;
  Run (*add)(Parser app);                                    // describes its options, or else
  int (*hand)(std::vector<std::string> arguments) = nullptr; // takes all arguments as they are
};
/// All, in the order in which they are listed.
const std::vector<Command> &commands();

/// Each adds its options to `app`.
Run addCompile(Parser app);
Run addRun(Parser app);
Run addVerify(Parser app);
Run addBench(Parser app);
Run addCompare(Parser app);
Run addPlan(Parser app);
Run addExplain(Parser app);
Run addTune(Parser app);
Run addCards(Parser app);
Run addCache(Parser app);
Run addConfig(Parser app);
Run addOps(Parser app);
Run addCompletion(Parser app);

/// These take their arguments as they are.
int runFuzz(std::vector<std::string> arguments);
int runReduce(std::vector<std::string> arguments);
int runTrain(std::vector<std::string> arguments);
int runCost(std::vector<std::string> arguments);
int runQuantize(std::vector<std::string> arguments);
int runGenerate(std::vector<std::string> arguments);
int runServe(std::vector<std::string> arguments);

} // namespace heddle::cli

#endif
