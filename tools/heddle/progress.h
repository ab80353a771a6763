// Progress: one line on standard error while something takes longer than two seconds.
//
// Shown only to a terminal, or with --progress. On a terminal the line replaces itself and goes
// away at the end; elsewhere a new line is written when the stage changes.
#ifndef HEDDLE_TOOLS_HEDDLE_PROGRESS_H
#define HEDDLE_TOOLS_HEDDLE_PROGRESS_H

#include <chrono>
#include <string>

namespace heddle::cli {

class Progress {
public:
  explicit Progress(bool isAsked);
  ~Progress();
  Progress(const Progress &) = delete;
  /// `fraction` of the whole, 0..1; negative when nobody knows.
  void report(const std::string &stage, double fraction);

private:
  using Clock = std::chrono::steady_clock;
  bool isShown, isTerminal, isLineOpen = false;
  Clock::time_point begin = Clock::now(), last = begin;
  std::string lastStage;
};

} // namespace heddle::cli

#endif
