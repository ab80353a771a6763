// Turns: see turns.h. The quieter half of the turns counts: other load of the machine only ever
// adds.

#include "tools/heddle/tune/turns.h"

#include "tools/heddle/statistics.h"

#include <algorithm>
#include <chrono>

namespace heddle::cli {

using Clock = std::chrono::steady_clock;

static const size_t kFewestTurns = 5, kMostTurns = 5000;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Json compareModels(const Module &before, const Module &after, int threads, const Feeds &feeds,
                   double seconds, const std::function<bool()> &shouldStop) {
  Runner slow(before, threads, feeds), fast(after, threads, feeds);
  struct Turn {
    double ofSlow, ofFast;
  };
  std::vector<Turn> turns;
  auto time = [](Runner &runner) {
    Clock::time_point begin = Clock::now();
    runner.run();
    return secondsSince(begin);
  };
  for (Runner *runner : {&slow, &fast, &slow, &fast})
    runner->run();
  Clock::time_point begin = Clock::now();
  while (!shouldStop() && turns.size() < kMostTurns &&
         (turns.size() < kFewestTurns || secondsSince(begin) < seconds)) {
    bool isSlowFirst = turns.size() % 2 == 0;
    double first = time(isSlowFirst ? slow : fast), second = time(isSlowFirst ? fast : slow);
    turns.push_back(isSlowFirst ? Turn{first, second} : Turn{second, first});
  }
  if (turns.empty())
    return Json(nullptr);
  size_t count = turns.size();
  std::sort(turns.begin(), turns.end(),
            [](const Turn &a, const Turn &b) { return a.ofSlow + a.ofFast < b.ofSlow + b.ofFast; });
  turns.resize((count + 1) / 2);
  std::vector<double> ofSlow, ofFast, ratios;
  for (const Turn &turn : turns) {
    ofSlow.push_back(turn.ofSlow);
    ofFast.push_back(turn.ofFast);
    ratios.push_back(turn.ofSlow / std::max(turn.ofFast, 1e-9));
  }
  return {{"default_seconds", summarize(ofSlow).median},
          {"tuned_seconds", summarize(ofFast).median},
          {"ratio", summarize(ratios).median},
          {"turns", count}};
}

} // namespace heddle::cli
