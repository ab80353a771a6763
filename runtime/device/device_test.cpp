// device_test: models with a device, under the emulated driver. Each case is in a process of its
// own. SPDX-License-Identifier: Apache-2.0
#include "runtime/device/device.h"
#include "runtime/device/testing/model.h"

#include <thread>

using namespace device;

namespace {

std::string loadOnce() { return Opened(Model()).message; }

/// Whole life of a module: two sessions, and runs that grow and shrink. The first message.
std::string liveOnce(int devices = 1) {
  Model model(devices);
  Opened first(model), second(first);
  for (const Opened *opened : {&first, &second})
    if (!opened->message.empty())
      return opened->message;
  for (int64_t n : {70, 1, 0, 300, 64, 70})
    for (const Opened *opened : {&first, &second}) {
      std::string message = runOnce(opened->session, n);
      if (!message.empty())
        return message;
    }
  return "";
}

std::string contains(const std::string &text, const std::string &part) {
  return text.find(part) == std::string::npos ? "'" + text + "' has no '" + part + "'" : "";
}

#define EXPECT_FINE(...) EXPECT_EQ(inChild(__VA_ARGS__), "")

} // namespace

TEST(Driver, OneSentenceSaysWhatIsMissing) {
  EXPECT_EQ(inChild("", loadOnce, "/nowhere/libcuda.so.1"),
            "'m' is compiled for 'cuda' and needs an NVIDIA GPU, but there is no driver: "
            "/nowhere/libcuda.so.1: cannot open shared object file: No such file or directory; "
            "compile it with --target host");
  EXPECT_EQ(inChild("", loadOnce, "libm.so.6"),
            "'m' is compiled for 'cuda' and needs an NVIDIA GPU, but 'libm.so.6' has no function "
            "'cuInit': its driver is not of CUDA 12 or later; compile it with --target host");
  EXPECT_EQ(inChild("driver=11080", loadOnce),
            "'m' is compiled for 'cuda' and needs an NVIDIA GPU, but its driver is too old: it is "
            "of CUDA 11.8, and has to be of 12.0; compile it with --target host");
  EXPECT_FINE("devices=0", [] {
    return contains(loadOnce(), "needs an NVIDIA GPU, but there is none: cuInit: CUDA_ERROR_");
  });
  EXPECT_FINE("fail=cuInit:1:999",
              [] { return contains(loadOnce(), "its driver does not work: cuInit: CUDA_ERROR_"); });
}

TEST(Driver, IsOpenedByModelsThatNeedItAlone) {
  EXPECT_FINE("", [] {
    TestSession session(increment_executable);
    return dlopen(getenv(HEDDLE_CUDA_VARIABLE), RTLD_NOW | RTLD_NOLOAD) ? "it is open" : "";
  });
}

TEST(Device, RunsAndLeavesNothing) {
  EXPECT_FINE("", [] {
    std::string message = liveOnce();
    return message.empty() && !isAllReleased() ? "something is left" : message;
  });
}

TEST(Device, ThereMayBeTwo) {
  EXPECT_FINE("devices=2", [] { return liveOnce(2); });
  EXPECT_FINE("", [] {
    return contains(Opened(Model(2)).message, "and needs 2 NVIDIA GPUs, but there are 1;");
  });
}

TEST(Device, RunsOfSizesAsBeforeAllocateNothing) {
  EXPECT_FINE("", []() -> std::string {
    Model model;
    Opened opened(model);
    std::string message = runOnce(opened.session, 3000);
    int64_t before = reported("allocations_made"), launches = reported("launches");
    for (int64_t n : {3000, 2000, 3000})
      message += runOnce(opened.session, n);
    if (before < 1 || reported("allocations_made") != before)
      message += "; a later run allocates";
    // The second run of a size captures its launches, two before a copy and two after it.
    if (reported("launches") != launches + 8 || reported("graph_launches") != 4)
      message += "; other launches than 4 for each of two runs, and 2 graphs for each of two";
    return message;
  });
}

TEST(Device, GraphsOfManySizesComeAndGo) {
  EXPECT_FINE("", []() -> std::string {
    std::string message;
    {
      Model model;
      Opened opened(model);
      for (int round = 0; round < 4; ++round)
        for (int64_t n : {70, 71, 70, 1500, 72, 73, 0, 74, 71, 71, 75, 70, 5})
          message += runOnce(opened.session, n);
    }
    return message.empty() && !isAllReleased() ? "something is left" : message;
  });
}

TEST(Device, MemoryThatNoRunAsksForIsGivenBack) {
  EXPECT_FINE("", []() -> std::string {
    Model model;
    Opened opened(model);
    auto bytes = [&] { return heddle_session_memory(opened.session).device_bytes; };
    std::string message = runOnce(opened.session, 20000);
    int64_t most = bytes();
    for (int i = 0; i < 12; ++i)
      message += runOnce(opened.session, 100);
    if (most < 3 * 80000 || bytes() >= most || bytes() < most - 100000)
      message += "; " + std::to_string(most) + " bytes, then " + std::to_string(bytes());
    return message;
  });
}

TEST(Device, LargeCopiesComeWholeAndInOrder) {
  EXPECT_FINE("", []() -> std::string {
    Model model;
    model.executable.run = runInPieces;
    Opened opened(model);
    std::vector<float> x(3000000), y(x.size()); // in pieces of 5 MB and fewer, and 4 MiB are pinned
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>(i % 9973);
    heddle_tensor_t input = tensorOver(x, {3000000}), output = tensorOver(y, {});
    std::string message = take(heddle_session_run(opened.session, &input, 1, &output, 1));
    for (size_t i = 0; i < x.size() && message.empty(); ++i)
      if (y[i] != x[i] + 3)
        message = "number " + std::to_string(i) + " is " + std::to_string(y[i]);
    return message;
  });
}

TEST(Device, AKernelsFailureIsTheModels) {
  EXPECT_FINE("", []() -> std::string {
    Model model;
    Opened opened(model);
    std::string message = runOnce(opened.session, 500, 130);
    if (message != "model 'm': element 130 is above 1000")
      return "first: " + message;
    return runOnce(opened.session, 500);
  });
}

TEST(Device, AFailedRunLaunchesNothingMore) {
  EXPECT_FINE("devices=2", []() -> std::string {
    Model model(2); // whose host waits after two launches
    Opened opened(model);
    std::string message = runOnce(opened.session, 500, 7);
    return message == "model 'm': element 7 is above 1000" && reported("launches") == 2
               ? ""
               : message + ": " + std::to_string(reported("launches")) + " launches";
  });
}

TEST(Device, ThreadsShareModulesAndSessions) {
  EXPECT_FINE("", []() -> std::string {
    Model model;
    Opened shared(model);
    std::string messages[4];
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        Opened own(model);
        for (int64_t round = 0; round < 5 && messages[i].empty(); ++round)
          messages[i] =
              runOnce(own.session, 100 * i + round) + runOnce(shared.session, 77 * (4 - i) + round);
      });
    for (std::thread &thread : threads)
      thread.join();
    return messages[0] + messages[1] + messages[2] + messages[3];
  });
}

TEST(Device, ALostContextIsToldToEveryRunAfterIt) {
  EXPECT_FINE("fail=cuLaunchKernel:6:719", []() -> std::string {
    Model model;
    Opened first(model), second(first);
    std::string message = runOnce(first.session, 100);
    std::string lost = runOnce(second.session, 100);
    message += contains(lost, "model 'm': group 'checked': cuLaunchKernel: CUDA_ERROR_") +
               contains(lost, "; what this process has on the GPU is lost, so start it again");
    for (const Opened *opened : {&first, &second, &first})
      if (std::string again = runOnce(opened->session, 100); again != lost)
        message += "; then: " + again;
    return message;
  });
}

TEST(Device, TheBestImageThatTheDriverTakesIsLoaded) {
  static const char garbage[] = "no code";
  auto load = [](std::vector<heddle_device_image_t> images) {
    Model model;
    for (heddle_device_t &device : model.devices) {
      device.images = images.data();
      device.image_count = static_cast<int64_t>(images.size());
    }
    Opened opened(model);
    return opened.session ? runOnce(opened.session, 99) : opened.message;
  };
  const heddle_device_image_t text = Model().images[0];
  const heddle_device_image_t code = {"sm_90", garbage, 7, 0}, exact = {"sm_90a", garbage, 8, 1};
  EXPECT_FINE("chip=90", [&] { return load({text, code, exact}); });
  EXPECT_FINE("chip=86", [&] { return load({{"sm_90", garbage, 8, 1}, text}); });
  EXPECT_FINE("chip=90", [&] {
    std::string message = load({exact, code, {"sm_80", garbage, 8, 1}});
    size_t first = message.find("; code of sm_90: cuModuleLoadDataEx: CUDA_ERROR_");
    size_t second = message.find("; text of sm_90a: "), third = message.find("; text of sm_80: ");
    return first < second && second < third && third != std::string::npos ? "" : message;
  });
  EXPECT_FINE("chip=75", [&] {
    return contains(load({text, code}), "'m' is compiled for 'cuda' and has code for sm_80 and "
                                        "later, sm_90, but '");
  });
}

TEST(Device, BlocksThatAskForTooMuchSharedMemoryAreRefused) {
  EXPECT_FINE("", [] {
    Model model;
    model.kernels[MIRROR].shared_bytes = 1 << 20;
    return contains(Opened(model).message,
                    "and needs 1048576 bytes of shared memory for group 'turned', but '");
  });
}

TEST(Device, DamagedTablesAreRefused) {
  auto refusal = [](auto damage) {
    return inChild("", [&]() -> std::string {
      Model model;
      damage(model);
      return contains(Opened(model).message, "'m' is a damaged artefact; ");
    });
  };
  EXPECT_EQ(refusal([](Model &m) { m.executable.device_count = -1; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.executable.device_count = 17; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.executable.devices = nullptr; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.devices[0].space = nullptr; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.devices[0].image_count = 0; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.devices[0].kernels = nullptr; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.images[0].chip = "sm_"; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.images[0].chip = "sm_90ab"; }), "");
  EXPECT_EQ(refusal([](Model &m) { --m.images[0].size; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.images[0].bytes = nullptr; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.kernels[0].name = nullptr; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.kernels[1].words = 0; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.kernels[2].threads = 1025; }), "");
  EXPECT_EQ(refusal([](Model &m) { m.kernels[3].shared_bytes = -1; }), "");
}

TEST(Device, AFormForADeviceIsTakenWhereThereIsOne) {
  auto load = [](const char *wanted) {
    return [wanted]() -> std::string {
      Model model;
      heddle_executable_t onDevice = model.executable, plain = increment_executable;
      onDevice.target = "with";
      plain.target = "without";
      const heddle_executable_t *forms[] = {&onDevice, &plain};
      onDevice.variants = forms;
      onDevice.variant_count = 2;
      if (wanted)
        setenv(HEDDLE_DEVICE_VARIABLE, wanted, 1);
      heddle_module_t *module = nullptr;
      std::string text = take(heddle_module_from_executable(&onDevice, nullptr, nullptr, &module));
      if (module)
        text += heddle_module_info(module).target;
      heddle_module_destroy(module);
      return text;
    };
  };
  EXPECT_EQ(inChild("", load(nullptr)), "with");
  EXPECT_EQ(inChild("", load("cuda")), "with");
  EXPECT_EQ(inChild("", load("cpu")), "without");
  EXPECT_EQ(inChild("", load("abacus")),
            "HEDDLE_DEVICE is 'abacus', but 'm' has code for: cuda, cpu");
  EXPECT_EQ(inChild("", load(nullptr), "/nowhere/libcuda.so.1"), "without");
  EXPECT_EQ(inChild("chip=75", load(nullptr)), "without");
  EXPECT_EQ(
      inChild("", load("cuda"), "/nowhere/libcuda.so.1"),
      "'m' has code for 2 machines, of which this is none: for 'with' it needs an NVIDIA GPU, "
      "but there is no driver: /nowhere/libcuda.so.1: cannot open shared object file: No such file "
      "or "
      "directory; compile the model for this machine");
}

/// Each call of each function of the driver fails once.
TEST(Device, EveryFailureOfTheDriverIsAStatus) {
  auto liveShortly = []() -> std::string {
    Model model;
    Opened opened(model);
    std::string message = opened.message;
    for (int64_t n : {70, 70, 70, 130, 130, 0})
      if (message.empty())
        message = runOnce(opened.session, n);
    return message;
  };
#define X(name, symbol, prototype) symbol,
  for (std::string function : {HEDDLE_DRIVER_FUNCTIONS(X)}) {
#undef X
    if (function.starts_with("cuGetError"))
      continue;           // they say what the others are
    bool isQuiet = false; // whose failure ends no run
    for (const char *part : {"MemFree", "Destroy", "CtxRelease", "Unload", "GetName"})
      isQuiet |= function.find(part) != std::string::npos;
    std::string message = "failed";
    int call = 0;
    while (++call < (isQuiet ? 8 : 300) && (isQuiet || message == "failed")) {
      std::string settings = "fail=" + function + ":" + std::to_string(call) + ":1";
      message = inChild(settings, [&]() -> std::string {
        std::string found = liveShortly();
        if (function != "cuCtxPushCurrent_v2" && !isAllReleased())
          return "something is left after: " + found;
        if (found.empty())
          return "";
        std::string again = liveShortly(); // the driver works again
        if (!again.empty())
          return "and then: " + again;
        return found.find("CUDA_ERROR_") == std::string::npos ? found : "failed";
      });
      EXPECT_TRUE(message.empty() || message == "failed") << settings << ": " << message;
    }
    EXPECT_EQ(message, "") << function;
    EXPECT_GT(call, 2) << function << " is not called";
  }
}
