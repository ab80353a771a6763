// Comparison: one turn times each program once, or as often as it takes for the clock to see it.
//
// In a model the weights of a group have been pushed out of the caches by those of the other groups
// since they were read last, but what the group reads of other groups has just been written. So
// before each run of a group with large weights a buffer larger than the caches is read, and then
// the inputs.
//
// Which pages of memory a program has got changes its speed by several per cent. So each round
// gives both programs others.

#include "compiler/trial/Comparison.h"

#include "compiler/support/Error.h"
#include "compiler/trial/Numbers.h"

#include <chrono>
#include <cmath>
#include <ctime>
#include <unistd.h>

namespace heddle::trial {

using Clock = std::chrono::steady_clock;

static constexpr double kLeastTurn = 200e-6; // seconds: shorter ones the clock does not time well
static constexpr int64_t kMostRuns = 1000;   // in one turn
static constexpr double kHopeless = 0.7;     // share of the base's speed
static constexpr int64_t kMostTurns = 10000;
static constexpr int64_t kSmallWeights = 256 << 10; // bytes that a cache keeps from run to run

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// One thread has a clock of its own, which stands still while other processes have its core.
static double secondsNow(int threads) {
  timespec now = {};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

static double medianOf(std::vector<double> values) {
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

namespace {
struct Turn {
  double own, base; // seconds
};
} // namespace

/// Medians of the quieter half of the turns, those with the least time in all: other load of the
/// machine only ever adds, and hardly to both programs alike.
static Timing timingOf(std::vector<Turn> turns) {
  llvm::sort(turns, [](const Turn &a, const Turn &b) { return a.own + a.base < b.own + b.base; });
  turns.resize((turns.size() + 1) / 2);
  auto median = [&](auto number) {
    std::vector<double> numbers;
    for (const Turn &turn : turns)
      numbers.push_back(number(turn));
    return medianOf(std::move(numbers));
  };
  return {median([](const Turn &turn) { return turn.own; }),
          median([](const Turn &turn) { return turn.base; }),
          median([](const Turn &turn) { return turn.base / std::max(turn.own, 1e-9); })};
}

namespace {
/// Buffer that empties the caches: twice as large as the last one of them, within reason, since a
/// cache does not always replace its oldest lines.
class Caches {
public:
  Caches() {
    int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    buffer.resize(std::clamp<int64_t>(2 * bytes, 16 << 20, 128 << 20));
  }
  void fill() { sum = read({buffer.data(), buffer.size()}); }
  void warm(llvm::ArrayRef<reference::Tensor> tensors) {
    for (const reference::Tensor &tensor : tensors)
      sum = read(tensor.bytes());
  }

private:
  static char read(llvm::ArrayRef<char> bytes) {
    char sum = 0;
    for (size_t i = 0; i < bytes.size(); i += 64)
      sum += bytes[i];
    return sum;
  }
  std::vector<char> buffer;
  volatile char sum = 0; // keeps the reads
};

/// A program with its inputs, ready to run again and again.
class Runner {
public:
  Runner(Program &program, llvm::ArrayRef<reference::Tensor> inputs)
      : results(heddle_module_output_count(program.handle())) {
    for (const reference::Tensor &input : inputs) {
      tensors.push_back(packed(input));
      views.push_back(viewOf(tensors.back()));
    }
  }
  ~Runner() {
    for (heddle_tensor_t &result : results)
      heddle_tensor_release(&result);
    heddle_session_destroy(session);
  }
  Runner(const Runner &) = delete;

  llvm::Error begin(Program &program, int threads) {
    heddle_session_options_t options = {};
    options.size = sizeof options;
    options.threads = threads;
    if (llvm::Error error = errorOf(heddle_session_create(program.handle(), &options, &session)))
      return error;
    if (llvm::Error error = run(results))
      return error;
    reused = results;
    for (heddle_tensor_t &output : reused)
      output.owner = nullptr;
    return again();
  }
  llvm::Error again() { return run(reused); }
  void warm(Caches &caches) { caches.warm(tensors); }

private:
  llvm::Error run(std::vector<heddle_tensor_t> &outputs) {
    return errorOf(
        heddle_session_run(session, views.data(), views.size(), outputs.data(), outputs.size()));
  }
  std::vector<reference::Tensor> tensors;
  std::vector<heddle_tensor_t> views, results, reused;
  heddle_session_t *session = nullptr;
};

/// Turns of one or two programs.
class Match {
public:
  Match(bool isCold, int threads) : threads(threads) {
    if (isCold)
      caches = std::make_unique<Caches>();
  }

  /// Seconds of one run.
  llvm::Expected<double> time(Runner &runner) {
    for (int64_t run = 0; run < (caches ? 1 : runs); ++run) {
      if (caches) {
        caches->fill();
        runner.warm(*caches);
      } else if (run == 0) {
        if (llvm::Error error = runner.again()) // caches that the other program has filled
          return std::move(error);
      }
      if (run == 0)
        start = secondsNow(threads);
      if (llvm::Error error = runner.again())
        return std::move(error);
    }
    return (secondsNow(threads) - start) / (caches ? 1 : static_cast<double>(runs));
  }
  llvm::Error calibrate(Runner &runner) {
    auto once = time(runner);
    if (!once)
      return once.takeError();
    runs = std::clamp<int64_t>(std::ceil(kLeastTurn / std::max(*once, 1e-9)), 1, kMostRuns);
    return llvm::Error::success();
  }

private:
  std::unique_ptr<Caches> caches;
  int64_t runs = 1;
  int threads;
  double start = 0;
};
} // namespace

static llvm::Expected<Timing> playRound(Program *base, Program &program,
                                        llvm::ArrayRef<reference::Tensor> inputs, int threads,
                                        const Effort &effort, Extent extent) {
  Runner own(program, inputs);
  if (llvm::Error error = own.begin(program, threads))
    return std::move(error);
  std::optional<Runner> other;
  if (base) {
    other.emplace(*base, inputs);
    if (llvm::Error error = other->begin(*base, threads))
      return std::move(error);
  }
  Match match(extent == Extent::Group && program.weightsBytes() > kSmallWeights, threads);
  if (llvm::Error error = match.calibrate(other ? *other : own))
    return std::move(error);
  std::vector<Turn> turns;
  Clock::time_point begin = Clock::now();
  auto isOver = [&] {
    int64_t done = turns.size();
    if (done >= kMostTurns)
      return true;
    if (!effort.isFinal && other && done == 3 && timingOf(turns).speedup < kHopeless)
      return true;
    return done >= effort.turns && secondsSince(begin) >= effort.seconds;
  };
  while (!isOver()) {
    // Who is first changes from turn to turn.
    double times[2] = {0, 0};
    for (size_t i = 0; i < 2; ++i) {
      bool isOwn = (turns.size() + i) % 2 == 0;
      if (!isOwn && !other)
        continue;
      auto time = match.time(isOwn ? own : *other);
      if (!time)
        return time.takeError();
      times[isOwn] = *time;
    }
    turns.push_back({times[1], other ? times[0] : times[1]});
  }
  return timingOf(std::move(turns));
}

llvm::Expected<Timing> compareSpeed(Program *base, Program &program,
                                    llvm::ArrayRef<reference::Tensor> inputs, int threads,
                                    const Effort &effort, Extent extent) {
  Timing all{INFINITY, INFINITY, 1};
  std::vector<double> speedups;
  for (int64_t round = 0; round < effort.rounds; ++round) {
    if (base)
      if (llvm::Error error = base->place())
        return std::move(error);
    if (round > 0) // before the first it has just been placed
      if (llvm::Error error = program.place())
        return std::move(error);
    auto timing = playRound(base, program, inputs, threads, effort, extent);
    if (!timing)
      return timing;
    all.seconds = std::min(all.seconds, timing->seconds);
    all.baseSeconds = std::min(all.baseSeconds, timing->baseSeconds);
    speedups.insert(llvm::upper_bound(speedups, timing->speedup), timing->speedup);
    size_t half = speedups.size() / 2; // an unquiet round counts no more than another one
    all.speedup =
        speedups.size() % 2 ? speedups[half] : std::sqrt(speedups[half - 1] * speedups[half]);
    if (!effort.isFinal && all.speedup < kHopeless)
      break;
  }
  return all;
}

llvm::Expected<std::string> differenceOf(llvm::ArrayRef<reference::Tensor> expected,
                                         Program &program, llvm::ArrayRef<reference::Tensor> inputs,
                                         llvm::ArrayRef<mlir::Type> resultElements,
                                         llvm::StringRef whose, double slack) {
  auto found = program.run(inputs, resultElements);
  if (!found)
    return found.takeError();
  for (size_t i = 0; i < found->size(); ++i)
    if (std::string what = difference(expected[i], (*found)[i], slack); !what.empty())
      return ("its numbers are not " + whose + ": result " + llvm::Twine(i) + ": " + what).str();
  return "";
}

llvm::Expected<std::string> differenceOf(Program &base, Program &program,
                                         llvm::ArrayRef<reference::Tensor> inputs,
                                         llvm::ArrayRef<mlir::Type> resultElements) {
  auto expected = base.run(inputs, resultElements);
  if (!expected)
    return expected.takeError();
  return differenceOf(*expected, program, inputs, resultElements, "the default's");
}

Effort decideSizeWithin(double seconds, size_t count) {
  constexpr double kCompile = 0.3, kLeast = 0.04; // seconds
  Effort effort = kDecideSize;
  double each = seconds / static_cast<double>(std::max<size_t>(1, count)) - kCompile;
  double ofRound = each / static_cast<double>(effort.rounds);
  effort.seconds = std::clamp(ofRound, kLeast, kDecideSize.seconds);
  return effort;
}

} // namespace heddle::trial
