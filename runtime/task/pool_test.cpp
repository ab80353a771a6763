// pool_test: every task runs once, whoever owns the threads. SPDX-License-Identifier: Apache-2.0
#include "runtime/session/testing.h"
#include "runtime/task/pool.h"

#include <pthreadpool.h>

#include <atomic>
#include <chrono>
#include <sched.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

/// Whether it comes true; the limit only ends what would hang.
template <typename Condition> bool comesTrue(Condition condition) {
  auto end = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::yield();
  }
  return true;
}

void countUp(void *context, size_t index) { ++static_cast<std::atomic<int> *>(context)[index]; }

void runEverywhere(heddle_pool_t *pool, int rounds) {
  size_t threads = static_cast<size_t>(heddle_pool_threads(pool));
  std::vector<std::atomic<int>> counts(threads);
  for (int round = 0; round < rounds; ++round) {
    for (int launch = 0; launch < 3; ++launch)
      heddle_pool_run(pool, countUp, counts.data(), threads);
  }
  for (std::atomic<int> &count : counts)
    EXPECT_EQ(count, rounds * 3);
}

TEST(Pool, ChunksCoverAllTasksOnce) {
  for (int64_t tasks : {1, 2, 7, 64, 1001})
    for (int64_t count : {1, 2, 3, 8}) {
      int64_t expected = 0, begin = 0, end = 0;
      for (int64_t i = 0; i < count; ++i, expected = end) {
        heddle_pool_chunk(tasks, count, i, &begin, &end);
        EXPECT_EQ(begin, expected);
        EXPECT_LE(end - begin, tasks / count + 1);
      }
      EXPECT_EQ(end, tasks);
    }
  int64_t begin = 0, end = 0;
  heddle_pool_chunk(INT64_MAX, 7, 6, &begin, &end);
  EXPECT_EQ(end, INT64_MAX);
}

TEST(Pool, HasNeverMoreThreadsThanTheProcessMayUse) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  for (int wanted : {0, 1, 1000}) {
    heddle_pool_t *pool = nullptr;
    ASSERT_EQ(take(heddle_pool_create(wanted, &pool)), "");
    EXPECT_EQ(heddle_pool_threads(pool), wanted == 1 ? 1 : CPU_COUNT(&set));
    runEverywhere(pool, 100);
    heddle_pool_destroy(pool);
  }
  heddle_pool_t *pool = nullptr;
  EXPECT_NE(take(heddle_pool_create(-1, &pool)).find("threads is -1"), std::string::npos);
}

TEST(Pool, IsSharedByRunsOfManyThreads) {
  heddle_pool_t *pool = nullptr;
  ASSERT_EQ(take(heddle_pool_create(0, &pool)), "");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([pool] { runEverywhere(pool, 200); });
  for (std::thread &thread : threads)
    thread.join();
  heddle_pool_destroy(pool);
}

TEST(Pool, WakesWorkersThatSleepAndWaitsForSlowOnes) {
  heddle_pool_t *pool = nullptr;
  ASSERT_EQ(take(heddle_pool_create(0, &pool)), "");
  size_t threads = static_cast<size_t>(heddle_pool_threads(pool));
  auto dawdle = [](void *context, size_t index) {
    std::this_thread::sleep_for(std::chrono::microseconds(200 * index));
    countUp(context, index);
  };
  std::vector<std::atomic<int>> counts(threads);
  for (int round = 1; round <= 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    heddle_pool_run(pool, dawdle, counts.data(), threads);
    for (std::atomic<int> &count : counts)
      ASSERT_EQ(count, round);
  }
  heddle_pool_destroy(pool);
}

// A child by fork has no workers, whether or not those of its parent had begun.
TEST(Pool, ServesAChildThatHasNoWorkers) {
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer lets no child of a process with threads have any";
#endif
  std::vector<heddle_pool_t *> pools(20);
  for (heddle_pool_t *&pool : pools) {
    ASSERT_EQ(take(heddle_pool_create(0, &pool)), "");
    runEverywhere(pool, 10);
  }
  pid_t child = fork();
  if (child == 0) {
    runEverywhere(pools[0], 10);
    for (heddle_pool_t *pool : pools)
      heddle_pool_destroy(pool); // joins nobody
    std::thread([] {}).join();   // takes a stack of those that the threads had
    _exit(testing::Test::HasFailure());
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (heddle_pool_t *pool : pools)
    heddle_pool_destroy(pool);
}

// A worker that has to share the caller's core is sent away, where it may go elsewhere, and has its
// affinity again once it ran there.
TEST(Pool, LeavesAffinityAsItIs) {
  cpu_set_t all, one, found;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2)
    GTEST_SKIP() << "needs two CPUs";
  heddle_pool_t *pool = nullptr;
  ASSERT_EQ(take(heddle_pool_create(2, &pool)), "");
  std::atomic<pid_t> worker = 0;
  // The caller's own task ends after the other one has begun, which so is the worker's.
  auto whoRuns = [](void *context, size_t index) {
    auto &other = *static_cast<std::atomic<pid_t> *>(context);
    if (index == 1)
      other = gettid();
    else
      EXPECT_TRUE(comesTrue([&] { return other != 0; }));
  };
  heddle_pool_run(pool, whoRuns, &worker, 2);
  ASSERT_NE(worker.load(), gettid());
  // An affinity equal to the one of a worker that is away would be taken for that: it is back
  // first.
  auto runsUntilItHas = [&](const cpu_set_t &allowed) {
    return comesTrue([&] {
      runEverywhere(pool, 100);
      return sched_getaffinity(worker, sizeof found, &found) == 0 && CPU_EQUAL(&found, &allowed);
    });
  };
  ASSERT_TRUE(runsUntilItHas(all));
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  for (const cpu_set_t *allowed : {&one, &all}) {
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    ASSERT_EQ(sched_setaffinity(worker, sizeof *allowed, allowed), 0);
    runEverywhere(pool, 20000);
    // One that is away now comes back with a launch in which it ran elsewhere.
    EXPECT_TRUE(runsUntilItHas(*allowed));
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  heddle_pool_destroy(pool);
}

TEST(Pool, TakesTheCallersPthreadpool) {
  pthreadpool_t own = pthreadpool_create(3);
  heddle_pool_t *pool = nullptr;
  ASSERT_EQ(take(heddle_pool_from_pthreadpool(own, &pool)), "");
  EXPECT_EQ(heddle_pool_threads(pool), 3);
  runEverywhere(pool, 20);
  heddle_pool_destroy(pool);
  pthreadpool_destroy(own);
}

void spawn(void *calls, heddle_task_fn task, void *context, size_t count) {
  ++*static_cast<std::atomic<int> *>(calls);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i)
    threads.emplace_back(task, context, i);
  for (std::thread &thread : threads)
    thread.join();
}

TEST(Pool, TakesTheCallersScheduler) {
  std::atomic<int> calls = 0;
  heddle_pool_t *pool = nullptr;
  ASSERT_EQ(take(heddle_pool_from_callback(spawn, &calls, 5, &pool)), "");
  {
    TestSession session(increment_executable, 0, pool);
    EXPECT_EQ(heddle_session_threads(session.handle), 5);
    std::vector<float> x(40, 1.f), z(10, 2.f), y(40);
    std::vector<heddle_tensor_t> outputs = {tensorOver(y, {})};
    ASSERT_EQ(session.run({tensorOver(x, {10, 4}), tensorOver(z, {10})}, outputs), "");
    EXPECT_EQ(y, std::vector<float>(40, 4.f));
    EXPECT_EQ(calls, 2);
    EXPECT_EQ(heddle_session_memory(session.handle).scratch_bytes, 5 * 64);
  }
  heddle_pool_destroy(pool);
}

} // namespace
