// Driver: streams, captures, limits, and each failure that HEDDLE_EMULATED_CUDA can ask for.
#include "emulator/testing/device.h"

#include <cstdlib>

namespace heddle::emulator {
namespace {

class Driver : public Device {
protected:
  /// y[i] = 2 x[i] of 64 bytes words at %d0 and %d1.
  static void *doubling() {
    return function(kernel("mul.wide.u32 %d9, %r0, 4;\nadd.s64 %d4, %d0, %d9;\n"
                           "add.s64 %d5, %d1, %d9;\nld.global.u32 %r1, [%d4];\n"
                           "add.s32 %r1, %r1, %r1;\nst.global.u32 [%d5], %r1;"),
                    "k");
  }
  static int enqueue(void *function, void *stream, uint64_t x, uint64_t y) {
    void *places[] = {&x, &y, &x, &y};
    return cuLaunchKernel(function, 1, 1, 1, 16, 1, 1, 0, stream, places, nullptr);
  }
  static const std::vector<uint32_t> &ones() {
    static const std::vector<uint32_t> all(16, 1);
    return all;
  }
};

TEST_F(Driver, work_waits_for_events_only) {
  void *function = doubling(), *a, *b, *event, *pinned;
  ASSERT_EQ(cuStreamCreate(&a, 1), 0);
  ASSERT_EQ(cuStreamCreate(&b, 1), 0);
  ASSERT_EQ(cuEventCreate(&event, 0), 0);
  ASSERT_EQ(cuMemHostAlloc(&pinned, 64, 0), 0);
  for (bool isWaiting : {true, false}) {
    uint64_t x = put(ones()), y = 0;
    ASSERT_EQ(cuMemAlloc_v2(&y, 64), 0);
    memset(pinned, 9, 64);
    EXPECT_EQ(enqueue(function, a, x, y), 0);
    EXPECT_EQ(cuEventRecord(event, a), 0);
    if (isWaiting)
      EXPECT_EQ(cuStreamWaitEvent(b, event, 0), 0);
    EXPECT_EQ(enqueue(function, b, y, y), 0); // reads what `a` writes
    EXPECT_EQ(cuMemcpyDtoHAsync_v2(pinned, y, 64, b), 0);
    EXPECT_EQ(static_cast<uint32_t *>(pinned)[0], 0x09090909u); // nothing has been asked for
    int result = cuStreamSynchronize(b);
    if (isWaiting) {
      EXPECT_EQ(result, 0);
      EXPECT_EQ(static_cast<uint32_t *>(pinned)[0], 4u);
    } else if (!getenv("HEDDLE_EMULATED_CUDA")) {
      EXPECT_EQ(result, 719); // the missing wait: y was not written
      EXPECT_NE(fault().find("uninitialised"), std::string::npos);
    }
  }
}

TEST_F(Driver, asynchronous_memory_is_there_in_the_order_of_its_stream) {
  void *function = doubling(), *a, *b;
  ASSERT_EQ(cuStreamCreate(&a, 1), 0);
  ASSERT_EQ(cuStreamCreate(&b, 1), 0);
  uint64_t x = put(ones()), y;
  ASSERT_EQ(cuMemAllocAsync(&y, 64, a), 0);
  EXPECT_EQ(enqueue(function, a, x, y), 0);
  EXPECT_EQ(cuMemFreeAsync(y, a), 0);
  EXPECT_EQ(cuStreamSynchronize(a), 0);
  EXPECT_EQ(enqueue(function, b, x, y), 0);
  EXPECT_EQ(cuStreamSynchronize(b), 700);
}

TEST_F(Driver, captures_become_graphs) {
  void *function = doubling(), *a, *b, *fork, *join, *graph, *executable;
  ASSERT_EQ(cuStreamCreate(&a, 1), 0);
  ASSERT_EQ(cuStreamCreate(&b, 1), 0);
  ASSERT_EQ(cuEventCreate(&fork, 2), 0);
  ASSERT_EQ(cuEventCreate(&join, 2), 0);
  uint64_t x = put(ones()), y = put(ones()), z = put(ones());
  auto capture = [&](uint64_t to, bool isJoined) {
    EXPECT_EQ(cuStreamBeginCapture_v2(a, 1), 0);
    EXPECT_EQ(enqueue(function, a, x, to), 0);
    EXPECT_EQ(cuEventRecord(fork, a), 0);
    EXPECT_EQ(cuStreamWaitEvent(b, fork, 0), 0);
    EXPECT_EQ(enqueue(function, b, to, z), 0);
    EXPECT_EQ(cuEventRecord(join, b), 0);
    if (isJoined)
      EXPECT_EQ(cuStreamWaitEvent(a, join, 0), 0);
    return cuStreamEndCapture(a, &graph);
  };
  EXPECT_EQ(capture(y, false), 904);
  ASSERT_EQ(capture(y, true), 0);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&executable, graph, 0), 0);
  EXPECT_EQ(get<uint32_t>(z, 1)[0], 1u); // a capture runs nothing
  EXPECT_EQ(cuGraphLaunch(executable, a), 0);
  EXPECT_EQ(cuStreamSynchronize(a), 0);
  EXPECT_EQ(get<uint32_t>(z, 1)[0], 4u);
  EXPECT_EQ(cuGraphDestroy(graph), 0);
  uint64_t w = put(ones());
  ASSERT_EQ(capture(w, true), 0);
  EXPECT_EQ(cuGraphExecUpdate_v2(executable, graph, nullptr), 0);
  EXPECT_EQ(cuGraphLaunch(executable, a), 0);
  EXPECT_EQ(cuStreamSynchronize(a), 0);
  EXPECT_EQ(get<uint32_t>(w, 1)[0], 2u);
  ASSERT_EQ(cuStreamBeginCapture_v2(a, 1), 0);
  ASSERT_EQ(cuStreamEndCapture(a, &graph), 0);
  int reason[4] = {};
  EXPECT_EQ(cuGraphExecUpdate_v2(executable, graph, reason), 910);
  EXPECT_EQ(reason[0], 2);
}

TEST_F(Driver, captures_forbid_what_waits) {
  void *stream, *graph;
  uint64_t made;
  ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
  auto forbids = [&](int result, auto call) {
    ASSERT_EQ(cuStreamBeginCapture_v2(stream, 1), 0);
    EXPECT_EQ(call(), result);
    EXPECT_EQ(cuStreamEndCapture(stream, &graph), 901);
  };
  forbids(900, [&] { return cuMemAlloc_v2(&made, 4); });
  forbids(900, [&] { return cuStreamSynchronize(stream); });
  forbids(900, [&] { return cuCtxSynchronize(); });
  forbids(900, [&] { return cuModuleLoadDataEx(&graph, "x", 0, nullptr, nullptr); });
}

TEST_F(Driver, limits_of_launches) {
  void *function = Device::function(
      changed(kernel("ret;", ".extern .shared .align 16 .b8 s[];\n"), "\n{", "\n.maxntid 64\n{"),
      "k");
  uint64_t x = 0;
  auto start = [&](Dim grid, Dim block, unsigned dynamic) {
    return launch(function, grid, block, dynamic, x, x, x, x);
  };
  EXPECT_EQ(start({1}, {64}, 0), 0);
  EXPECT_EQ(start({1}, {65}, 0), 1);
  EXPECT_EQ(start({1}, {0}, 0), 1);
  EXPECT_EQ(start({1, 65536}, {1}, 0), 1);
  EXPECT_EQ(start({1}, {1, 1, 65}, 0), 1);
  EXPECT_EQ(start({1}, {1}, 48 << 10), 0);
  EXPECT_EQ(start({1}, {1}, (48 << 10) + 1), 1);
  EXPECT_EQ(cuFuncSetAttribute(function, 8, 227 << 10), 0);
  EXPECT_EQ(cuFuncSetAttribute(function, 8, (227 << 10) + 1), 1);
  EXPECT_EQ(start({1}, {1}, 227 << 10), 0);
}

TEST_F(Driver, images_that_do_not_fit) {
  void *module;
  auto load = [&](const std::string &text) {
    return cuModuleLoadDataEx(&module, text.c_str(), 0, nullptr, nullptr);
  };
  std::string good = kernel("ret;");
  EXPECT_EQ(load(good), 0);
  EXPECT_EQ(load(changed(good, "sm_80", "sm_100")), 209);
  EXPECT_EQ(load(changed(good, "sm_80", "sm_80a")), 209);
  EXPECT_EQ(load(changed(good, "8.0", "8.3")), 222);
  EXPECT_EQ(load("\x7f"
                 "ELF"),
            209);
  EXPECT_EQ(load(""), 218);
}

TEST_F(Driver, refusals_of_arguments) {
  uint64_t made = 0;
  EXPECT_EQ(cuMemAlloc_v2(&made, 0), 1);
  EXPECT_EQ(cuMemAlloc_v2(&made, size_t(1) << 40), 2);
  EXPECT_EQ(cuMemFree_v2(5), 1);
  EXPECT_EQ(cuStreamSynchronize(&made), 400);
  EXPECT_EQ(cuEventRecord(&made, nullptr), 400);
  EXPECT_EQ(cuMemcpyHtoD_v2(1, &made, 8), 1);
}

// Settings are read once in a process, so these run in a new one.

[[noreturn]] void leave(bool isGood) { exit(isGood ? 0 : 1); }

void begin() {
  void *context;
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, 0);
  cuCtxPushCurrent_v2(context);
}

/// Runs `body` in a process of its own, which it has to leave well after these words.
void inProcess(const char *settings, void (*body)(), const char *words) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char *found = getenv("HEDDLE_EMULATED_CUDA");
  std::string before = found ? found : "";
  setenv("HEDDLE_EMULATED_CUDA", settings, 1);
  setenv("HEDDLE_EMULATED_CUDA_LOG", "stderr", 1);
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), words);
  found ? setenv("HEDDLE_EMULATED_CUDA", before.c_str(), 1) : unsetenv("HEDDLE_EMULATED_CUDA");
  unsetenv("HEDDLE_EMULATED_CUDA_LOG");
}

TEST(Environment, failures_are_injected) {
  auto body = [] {
    uint64_t made;
    begin();
    bool isGood = cuMemAlloc_v2(&made, 4) == 0 && cuMemAlloc_v2(&made, 4) == 2 &&
                  cuMemAlloc_v2(&made, 4) == 0 && cuCtxSynchronize() == 719;
    leave(isGood && cuMemAlloc_v2(&made, 4) == 719); // the context is lost
  };
  inProcess("fail=cuMemAlloc_v2:2:2+cuCtxSynchronize:1:719", body, "call 2 fails as was asked");
}

TEST(Environment, what_is_to_be_freed_is_counted) {
  auto body = [] {
    uint64_t made, kept;
    void *stream, *host;
    begin();
    cuMemAlloc_v2(&made, 4), cuMemAlloc_v2(&kept, 4);
    cuStreamCreate(&stream, 1), cuMemHostAlloc(&host, 4, 0);
    std::string text(1 << 16, 0);
    auto reports = [&](const char *part) {
      heddleEmulatedCudaReport(text.data(), text.size());
      return text.find(part) != text.npos;
    };
    bool isGood = reports("\"live\": 6,"); // with the context, which is pushed
    isGood &= cuMemFree_v2(made) == 1 && reports("\"live\": 5,");
    cuStreamDestroy_v2(stream), cuCtxPopCurrent_v2(nullptr), cuDevicePrimaryCtxRelease_v2(0);
    leave(isGood && reports("\"leaked\": 2, ") && reports("\"live\": 0,"));
  };
  inProcess("fail=cuMemFree_v2:1:1", body, "not freed.*1 allocations, 1 pinned ranges");
}

TEST(Environment, chip_and_unknown_keys) {
  auto body = [] {
    int major = 0, minor = 0;
    cuInit(0);
    cuDeviceGetAttribute(&major, 75, 0);
    cuDeviceGetAttribute(&minor, 76, 0);
    leave(major == 7 && minor == 5);
  };
  inProcess("chip=75,colour=red", body, "'colour=red' is not understood; known: chip=");
}

TEST(Environment, no_device) {
  inProcess("devices=0", [] { leave(cuInit(0) == 100); }, "");
}

TEST(Environment, leaks_are_told_and_runaways_end) {
  auto body = [] {
    void *module, *function;
    uint64_t made;
    begin();
    cuMemAlloc_v2(&made, 4);
    const char *text = ".version 7.0\n.target sm_80\n.address_size 64\n"
                       ".visible .entry k()\n{\nA:\nbra A;\n}\n";
    cuModuleLoadDataEx(&module, text, 0, nullptr, nullptr);
    cuModuleGetFunction(&function, module, "k");
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    bool isGood = cuCtxSynchronize() == 702;
    cuDevicePrimaryCtxRelease_v2(0);
    leave(isGood);
  };
  inProcess("limit=10000", body, "runs on(.|\n)*not freed.*1 allocations, 1 modules");
}

} // namespace
} // namespace heddle::emulator
