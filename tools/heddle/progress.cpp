// Progress: see progress.h.

#include "tools/heddle/progress.h"

#include <cstdio>
#include <unistd.h>

namespace heddle::cli {

Progress::Progress(bool isAsked)
    : isShown(isAsked || isatty(STDERR_FILENO)), isTerminal(isatty(STDERR_FILENO)) {}

Progress::~Progress() {
  if (isLineOpen)
    std::fputs("\r\033[K", stderr);
}

void Progress::report(const std::string &stage, double fraction) {
  using namespace std::chrono_literals;
  Clock::time_point now = Clock::now();
  bool isDue = isTerminal ? now - last >= 100ms : stage != lastStage;
  if (!isShown || now - begin < 2s || !isDue)
    return;
  last = now;
  lastStage = stage;
  std::string percent =
      fraction < 0 ? "" : std::to_string(static_cast<int>(100 * fraction)) + " %  ";
  double seconds = std::chrono::duration<double>(now - begin).count();
  std::fprintf(stderr, isTerminal ? "\r\033[K%s%s  %.0f s" : "%s%s  %.0f s\n", percent.c_str(),
               stage.c_str(), seconds);
  isLineOpen = isTerminal;
}

} // namespace heddle::cli
