// Profile: see profile.h.

#include "tools/heddle/report/profile.h"

#include "tools/heddle/statistics.h"

#include <algorithm>
#include <chrono>

namespace heddle::cli {

using Clock = std::chrono::steady_clock;

static const size_t kFewestRuns = 10, kMostRuns = 100000;
static const int kWarmup = 3;

static double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The group whose time holds that of each group: itself, or the one of its region that the launch
/// counts as. -1 for one that was never launched.
static std::vector<int64_t> launchersOf(const Json &groups,
                                        const std::vector<std::vector<double>> &samples) {
  std::vector<int64_t> launchers(groups.size(), -1);
  for (size_t i = groups.size(); i-- > 0;) {
    if (!samples[i].empty()) {
      launchers[i] = static_cast<int64_t>(i);
      continue;
    }
    const Json &region = groups[i].at("region");
    for (size_t j = i + 1; j < groups.size() && !region.is_null() && launchers[i] < 0; ++j)
      if (groups[j].at("region") == region && !samples[j].empty())
        launchers[i] = static_cast<int64_t>(j);
  }
  return launchers;
}

void addTimes(Json &explanation, const Module &module, int threads, const Feeds &feeds,
              double seconds) {
  Json &groups = explanation["groups"];
  std::vector<std::vector<double>> samples(groups.size());
  std::vector<double> whole, current(groups.size());
  std::vector<bool> isTimed(groups.size());
  Runner runner(module, threads, feeds, [&](int64_t group, int64_t nanoseconds) {
    size_t index = static_cast<size_t>(group);
    if (index >= current.size())
      return;
    current[index] += 1e-9 * static_cast<double>(nanoseconds); // a loop launches it many times
    isTimed[index] = true;
  });
  for (int i = 0; i < kWarmup; ++i)
    runner.run();
  Clock::time_point begin = Clock::now();
  while (whole.size() < kFewestRuns ||
         (secondsSince(begin) < seconds && whole.size() < kMostRuns)) {
    std::fill(current.begin(), current.end(), 0.0);
    std::fill(isTimed.begin(), isTimed.end(), false);
    Clock::time_point start = Clock::now();
    runner.run();
    whole.push_back(secondsSince(start));
    for (size_t i = 0; i < samples.size(); ++i)
      if (isTimed[i])
        samples[i].push_back(current[i]);
  }
  explanation["run"] = {
      {"seconds", summarize(whole).median}, {"runs", whole.size()}, {"threads", runner.threads()}};
  std::vector<int64_t> launchers = launchersOf(groups, samples);
  for (size_t i = 0; i < samples.size(); ++i)
    if (launchers[i] == static_cast<int64_t>(i))
      groups[i]["seconds"] = summarize(samples[i]).median;
    else if (launchers[i] >= 0)
      groups[i]["launched_with"] = launchers[i];
}

/// Products of bf16 by one of f32 in the same time, as instructions of both have it.
static constexpr double kShortProducts = 2;

void addRoofline(Json &explanation, const Machine &machine, int threads) {
  if (!machine.isKnown())
    return;
  double flopsLimit = machine.flops(threads), bytesLimit = machine.bytes(threads);
  explanation["machine"] = {{"cpu", machine.cpu},
                            {"threads", threads == 1 ? 1 : machine.threads},
                            {"flops_per_second", flopsLimit},
                            {"bytes_per_second", bytesLimit},
                            {"file", machine.file}};
  Json &groups = explanation["groups"];
  std::vector<double> flops(groups.size()), bytes(groups.size()), computing(groups.size());
  bool isEmulated = explanation.at("math") == "bf16-emulated";
  std::vector<bool> isKnown(groups.size(), true);
  for (size_t i = 0; i < groups.size(); ++i) {
    size_t owner = static_cast<size_t>(groups[i].value("launched_with", static_cast<int64_t>(i)));
    const Json &work = groups[i]["flops"], &read = groups[i]["read_bytes"],
               &written = groups[i]["written_bytes"];
    if (!work.is_number() || !read.is_number() || !written.is_number()) {
      isKnown[owner] = false;
      continue;
    }
    double moved = read.get<double>() + written.get<double>();
    bool isShort = groups[i].at("precision").is_string() && !isEmulated;
    double least = work.get<double>() / ((isShort ? kShortProducts : 1) * flopsLimit);
    groups[i]["bound_seconds"] = std::max(least, moved / bytesLimit);
    flops[owner] += work.get<double>();
    computing[owner] += least;
    bytes[owner] += moved;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (!groups[i].contains("seconds") || !isKnown[i])
      continue;
    double seconds = std::max(groups[i]["seconds"].get<double>(), 1e-9);
    groups[i]["flops_per_second"] = flops[i] / seconds;
    groups[i]["bytes_per_second"] = bytes[i] / seconds;
    groups[i]["of_bound"] = std::max(computing[i], bytes[i] / bytesLimit) / seconds;
  }
}

} // namespace heddle::cli
