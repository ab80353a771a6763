// Guard: fork, a pipe for the result, and a clock.

#include "compiler/support/Guard.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle::support {

using Clock = std::chrono::steady_clock;

int64_t countThreads() {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::directory_iterator tasks("/proc/self/task", error);
  return error ? 1 : std::distance(fs::begin(tasks), fs::end(tasks));
}

/// It dies with its parent, says nothing, and leaves no core; signals mean what they mean by
/// default.
static void becomeChild(pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    _exit(1);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
    std::signal(number, SIG_DFL);
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  int null = open("/dev/null", O_RDWR);
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    dup2(null, descriptor);
}

/// "+result" or "-failure".
static std::string answerOf(llvm::function_ref<llvm::Expected<std::string>()> work) {
  try {
    auto result = work();
    return result ? "+" + *result : "-" + llvm::toString(result.takeError());
  } catch (const std::exception &error) {
    return std::string("-") + error.what();
  }
}

[[noreturn]] static void runChild(int output,
                                  llvm::function_ref<llvm::Expected<std::string>()> work) {
  std::string answer = answerOf(work);
  for (size_t done = 0; done < answer.size();) {
    ssize_t count = write(output, answer.data() + done, answer.size() - done);
    if (count < 0 && errno != EINTR)
      break;
    done += std::max<ssize_t>(0, count);
  }
  _exit(0); // nothing of the parent's is torn down twice
}

/// Reads until the child closes its end. False when it must be killed before.
static bool readAll(int input, double seconds, llvm::function_ref<bool()> shouldStop,
                    std::string &answer, Outcome &outcome) {
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  char buffer[4096];
  while (true) {
    std::chrono::duration<double> left = end - Clock::now();
    outcome.isTimeout = left.count() <= 0;
    outcome.isStopped = !outcome.isTimeout && shouldStop();
    if (outcome.isTimeout || outcome.isStopped)
      return false;
    pollfd waiting = {input, POLLIN, 0};
    if (poll(&waiting, 1, static_cast<int>(std::min(100.0, 1e3 * left.count()) + 1)) <= 0)
      continue;
    ssize_t count = read(input, buffer, sizeof buffer);
    if (count == 0)
      return true;
    if (count > 0)
      answer.append(buffer, count);
  }
}

Outcome guarded(llvm::function_ref<llvm::Expected<std::string>()> work, double seconds,
                llvm::function_ref<bool()> shouldStop) {
  Outcome outcome;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    outcome.failure = std::string("no pipe: ") + std::strerror(errno);
    return outcome;
  }
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    close(ends[0]);
    becomeChild(parent);
    runChild(ends[1], work);
  }
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    outcome.failure = std::string("no process: ") + std::strerror(errno);
    return outcome;
  }
  setpgid(child, child); // whichever of the two comes first
  std::string answer;
  bool isWhole = readAll(ends[0], seconds, shouldStop, answer, outcome);
  close(ends[0]);
  if (!isWhole)
    kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
  outcome.hasDied = isWhole && (WIFSIGNALED(status) || answer.empty());
  if (outcome.isTimeout)
    llvm::raw_string_ostream(outcome.failure)
        << "it did not end within " << llvm::format("%g", seconds) << " seconds";
  else if (outcome.isStopped)
    outcome.failure = "it was stopped";
  else if (WIFSIGNALED(status))
    outcome.failure = std::string("it crashed: ") + strsignal(WTERMSIG(status));
  else if (answer.empty())
    outcome.failure = "it ended without a result";
  else if (answer[0] == '-')
    outcome.failure = answer.substr(1);
  else
    outcome.result = answer.substr(1);
  return outcome;
}

} // namespace heddle::support
