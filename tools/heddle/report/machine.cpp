// Machine: see machine.h. Each figure is the best of several rounds: a peak is what the machine can
// do when nothing else disturbs it.

#include "tools/heddle/report/machine.h"

#include "tools/heddle/failure.h"
#include "tools/heddle/file.h"
#include "tools/heddle/model.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sched.h>
#include <thread>
#include <vector>

namespace heddle::cli {

using Clock = std::chrono::steady_clock;

static const double kSeconds =
    0.6; // for each figure: many short rounds, of which one is undisturbed
static const int64_t kFmaSteps = 1000000;
static const int64_t kBufferBytes = int64_t(256) << 20; // far more than any cache

static volatile float sink; // keeps what is measured from being optimised away

template <int bytes> struct VectorOf {
  typedef float Type __attribute__((vector_size(bytes)));
};

/// 12 chains: more than latency times ports of any core so far. Returns the operations.
template <int bytes> [[gnu::always_inline]] static inline double fmaLoop() {
  using Vector = typename VectorOf<bytes>::Type;
  Vector chains[12], factor, term;
  for (int lane = 0; lane < bytes / 4; ++lane) {
    factor[lane] = 0.5f + sink * 0;
    term[lane] = 1.0f + sink * 0;
  }
  for (Vector &chain : chains)
    chain = factor;
  for (int64_t step = 0; step < kFmaSteps; ++step)
    for (Vector &chain : chains)
      chain = chain * factor + term;
  Vector sum = chains[0];
  for (const Vector &chain : chains)
    sum += chain;
  sink = sum[0];
  return 2.0 * 12 * (bytes / 4) * kFmaSteps;
}

template <int bytes>
[[gnu::always_inline]] static inline double readLoop(const float *data, int64_t size) {
  using Vector = typename VectorOf<bytes>::Type;
  Vector sums[8] = {};
  const Vector *vectors = reinterpret_cast<const Vector *>(data);
  for (int64_t i = 0; i + 8 <= size / bytes; i += 8)
    for (int j = 0; j < 8; ++j)
      sums[j] += vectors[i + j];
  Vector sum = sums[0];
  for (const Vector &each : sums)
    sum += each;
  sink = sum[0];
  return static_cast<double>(size);
}

#if defined(__x86_64__)
__attribute__((target("avx512f"))) static double fma512() { return fmaLoop<64>(); }
__attribute__((target("avx2,fma"))) static double fma256() { return fmaLoop<32>(); }
__attribute__((target("avx512f"))) static double read512(const float *data, int64_t size) {
  return readLoop<64>(data, size);
}
__attribute__((target("avx2"))) static double read256(const float *data, int64_t size) {
  return readLoop<32>(data, size);
}
#endif

static double fma() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return fma512();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return fma256();
#endif
  return fmaLoop<16>();
}

static double readAll(const float *data, int64_t size) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f"))
    return read512(data, size);
  if (__builtin_cpu_supports("avx2"))
    return read256(data, size);
#endif
  return readLoop<16>(data, size);
}

/// The best rate of `threads` threads that each do work(thread), which returns how much it did.
static double bestRate(int threads, const std::function<double(int)> &work) {
  double best = 0;
  Clock::time_point first = Clock::now();
  while (std::chrono::duration<double>(Clock::now() - first).count() < kSeconds) {
    std::barrier start(threads);
    std::vector<double> done(threads);
    std::vector<Clock::time_point> begin(threads), end(threads);
    auto body = [&](int thread) {
      start.arrive_and_wait();
      begin[thread] = Clock::now();
      done[thread] = work(thread);
      end[thread] = Clock::now();
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i)
      others.emplace_back(body, i);
    body(0);
    for (std::thread &other : others)
      other.join();
    double total = 0;
    for (double each : done)
      total += each;
    std::chrono::duration<double> passed =
        *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
    best = std::max(best, total / passed.count());
  }
  return best;
}

static int usableThreads() {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) == 0)
    return std::max(1, CPU_COUNT(&usable));
  return std::max(1u, std::thread::hardware_concurrency());
}

/// "amd-epyc-9b45": the processor's name as part of a file's name.
static std::string cpuName() {
  std::ifstream lines("/proc/cpuinfo");
  std::string name = "unknown";
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("model name", 0) == 0 && line.find(':') != std::string::npos) {
      name = line.substr(line.find(':') + 1);
      break;
    }
  std::string plain;
  for (unsigned char letter : name)
    if (std::isalnum(letter))
      plain += static_cast<char>(std::tolower(letter));
    else if (!plain.empty() && plain.back() != '-')
      plain += '-';
  while (!plain.empty() && plain.back() == '-')
    plain.pop_back();
  return plain.empty() ? "unknown" : plain;
}

static Machine thisMachine() {
  Machine machine;
  machine.cpu = cpuName();
  machine.threads = usableThreads();
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  std::filesystem::path folder =
      cache && *cache ? cache : std::string(home ? home : ".") + "/.cache";
  machine.file = folder / "heddle" /
                 ("machine-" + machine.cpu + "-" + std::to_string(machine.threads) + ".json");
  return machine;
}

Machine knownMachine() {
  Machine machine = thisMachine();
  Json json = std::filesystem::exists(machine.file) ? parseJson(readFile(machine.file)) : Json();
  if (!json.is_object() || json.value("threads", 0) != machine.threads)
    return machine;
  machine.oneFlops = json.value("one_thread_flops", 0.0);
  machine.allFlops = json.value("all_threads_flops", 0.0);
  machine.oneBytes = json.value("one_thread_bytes", 0.0);
  machine.allBytes = json.value("all_threads_bytes", 0.0);
  return machine;
}

Machine measureMachine() {
  Machine machine = thisMachine();
  machine.oneFlops = bestRate(1, [](int) { return fma(); });
  machine.allFlops = bestRate(machine.threads, [](int) { return fma(); });
  int64_t part = kBufferBytes / machine.threads / 4096 * 4096;
  size_t floats = static_cast<size_t>(kBufferBytes / 4);
  std::unique_ptr<float[], decltype(&std::free)> buffer(
      static_cast<float *>(std::aligned_alloc(4096, kBufferBytes)), std::free);
  if (!buffer)
    throw Failure(HEDDLE_LIMIT, "out of memory: the machine's bandwidth is measured on 256 MiB");
  std::fill_n(buffer.get(), floats, 1.0f); // pages are there only when written
  machine.oneBytes = bestRate(1, [&](int) { return readAll(buffer.get(), kBufferBytes); });
  machine.allBytes = bestRate(
      machine.threads, [&](int thread) { return readAll(buffer.get() + part / 4 * thread, part); });
  // Threads that share a core add nothing; noise must not make all slower than one.
  machine.allFlops = std::max(machine.allFlops, machine.oneFlops);
  machine.allBytes = std::max(machine.allBytes, machine.oneBytes);
  Json json = {{"cpu", machine.cpu},
               {"threads", machine.threads},
               {"one_thread_flops", machine.oneFlops},
               {"all_threads_flops", machine.allFlops},
               {"one_thread_bytes", machine.oneBytes},
               {"all_threads_bytes", machine.allBytes}};
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(machine.file).parent_path(), error);
  writeFile(machine.file, json.dump(2) + "\n");
  return machine;
}

} // namespace heddle::cli
