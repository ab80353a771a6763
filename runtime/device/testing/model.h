// model.h: a model with a device, written by hand as the compiler would write it, and processes in
// which the driver is the emulated one. SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_DEVICE_TESTING_MODEL_H
#define HEDDLE_DEVICE_TESTING_MODEL_H

#include "runtime/device/driver.h"
#include "runtime/executable/module.h"
#include "runtime/session/testing.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace device {

/// The folder of this program, in which the build puts the kernels.
inline std::string beside(const std::string &name) {
  char path[4096] = "";
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  std::string program(path, length > 0 ? length : 0);
  return program.substr(0, program.rfind('/') + 1) + name;
}

/// Kernels of kernels.c as PTX.
inline const std::string &kernelText() {
  static const std::string text = [] {
    std::ifstream file(beside(KERNELS));
    std::stringstream read;
    read << file.rdbuf();
    return read.str();
  }();
  return text;
}

/// Text that `work` returns in a process of its own: a process opens one driver, and it reads its
/// settings once. `driver`: instead of the emulated one.
inline std::string inChild(const std::string &settings, const std::function<std::string()> &work,
                           const std::string &driver = beside(DRIVER)) {
  int ends[2];
  if (pipe(ends))
    return "no pipe";
  fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    setenv(HEDDLE_CUDA_VARIABLE, driver.c_str(), 1);
    setenv("HEDDLE_EMULATED_CUDA", settings.c_str(), 1);
    std::string text = work();
    for (size_t at = 0; at < text.size();) {
      ssize_t written = write(ends[1], text.data() + at, text.size() - at);
      at = written > 0 ? at + written : text.size();
    }
    std::exit(0);
  }
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t got; (got = read(ends[0], piece, sizeof piece)) > 0;)
    text.append(piece, got);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status)
    text += "; the process ended with " + std::to_string(status);
  return text;
}

/// A number of the emulated driver's report, as "launches"; 0 where it has none.
inline int64_t reported(const std::string &name) {
  void *driver = dlopen(getenv(HEDDLE_CUDA_VARIABLE), RTLD_NOW | RTLD_NOLOAD);
  void *symbol = driver ? dlsym(driver, "heddleEmulatedCudaReport") : nullptr;
  char text[1 << 16] = "";
  if (symbol)
    reinterpret_cast<size_t (*)(char *, size_t)>(symbol)(text, sizeof text);
  if (driver)
    dlclose(driver);
  const char *found = std::strstr(text, ("\"" + name + "\"").c_str());
  return found ? std::strtoll(found + name.size() + 3, nullptr, 10) : 0;
}

/// Whether all that was asked of the driver was given back.
inline bool isAllReleased() { return reported("live") + reported("leaked") == 0; }

enum Kernel { SHIFT, CHECK, TWICE, MIRROR };
constexpr int64_t kLimit = 1000;

inline int64_t number(const void *pointer) { return reinterpret_cast<intptr_t>(pointer); }

inline int64_t areaOf(heddle_call_t *call, int64_t device, int64_t which) {
  int64_t frame[] = {-1, device, which};
  call->services[HEDDLE_SERVICE_DEVICE_AREA](call, frame);
  return frame[0];
}
inline int64_t allocate(heddle_call_t *call, int64_t device, int64_t bytes) {
  int64_t frame[] = {-1, device, bytes};
  call->services[HEDDLE_SERVICE_DEVICE_ALLOC](call, frame);
  return frame[0];
}
inline void copy(heddle_call_t *call, int64_t toDevice, int64_t to, int64_t fromDevice,
                 int64_t from, int64_t bytes) {
  int64_t frame[] = {toDevice, to, fromDevice, from, bytes};
  call->services[HEDDLE_SERVICE_DEVICE_COPY](call, frame);
}
inline void launch(heddle_call_t *call, int64_t device, Kernel kernel, std::vector<int64_t> args,
                   int64_t tasks, int64_t scratch = 0) {
  args.insert(args.begin(), number(call));
  int64_t frame[] = {device, kernel, number(args.data()), tasks, scratch};
  call->services[HEDDLE_SERVICE_DEVICE_LAUNCH](call, frame);
}

constexpr int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

template <int devices>
int32_t sizes(const int64_t *symbols, int64_t *arenas, int64_t *dims, int64_t *) {
  dims[0] = symbols[0];
  arenas[0] = 0;
  for (int i = 1; i <= devices; ++i)
    arenas[i] = 2 * aligned(symbols[0] * 4);
  return 0;
}

/// y = mirror(2 (x + weights[0])), which fails where x + weights[0] > kLimit. Device 0 makes the
/// sum, the last device the rest.
template <int devices> int32_t run(heddle_call_t *call) {
  constexpr int64_t last = devices - 1;
  int64_t n = call->symbols[0], bytes = n * 4;
  int64_t x = areaOf(call, 0, HEDDLE_DEVICE_ARENA), sum = x + aligned(bytes);
  auto *copied = static_cast<float *>(call->alloc(call, bytes));
  if (!copied)
    return call->status;
  std::memcpy(copied, call->inputs[0], bytes);
  copy(call, 0, x, -1, number(copied), bytes);
  std::memset(copied, 0xff, bytes); // the host's memory may be used again at once
  launch(call, 0, SHIFT, {x, areaOf(call, 0, HEDDLE_DEVICE_WEIGHTS), sum}, n);
  launch(call, 0, CHECK, {sum, kLimit}, n);
  int64_t there = areaOf(call, last, HEDDLE_DEVICE_ARENA), twice = allocate(call, last, bytes);
  copy(call, last, there, 0, sum, bytes);
  launch(call, last, TWICE, {there, twice}, n, 8);
  launch(call, last, MIRROR, {twice, there, n}, (n + 63) / 64);
  copy(call, -1, number(call->outputs[0]), last, there, bytes);
  return call->status;
}

/// y = x + weights[0]: x goes to the device in pieces of growing size, by way of the same memory.
inline int32_t runInPieces(heddle_call_t *call) {
  int64_t bytes = call->symbols[0] * 4, x = areaOf(call, 0, HEDDLE_DEVICE_ARENA);
  int64_t sum = x + aligned(bytes), done = 0;
  auto *piece = static_cast<char *>(call->alloc(call, bytes));
  for (int64_t size = 1 << 20; piece && done < bytes; size += 1 << 20) {
    size = std::min(size, bytes - done);
    std::memcpy(piece, static_cast<const char *>(call->inputs[0]) + done, size);
    copy(call, 0, x + done, -1, number(piece), size);
    done += size;
  }
  launch(call, 0, SHIFT, {x, areaOf(call, 0, HEDDLE_DEVICE_WEIGHTS), sum}, call->symbols[0]);
  copy(call, -1, number(call->outputs[0]), 0, sum, bytes);
  return call->status;
}

template <typename T> T zeroed() {
  T value;
  std::memset(static_cast<void *>(&value), 0, sizeof value);
  return value;
}

/// The model's tables, which a test may change before it loads them.
struct Model {
  explicit Model(int count = 1) {
    for (heddle_device_t &device : devices)
      device = {"cuda", images, 1, kernels, 4, /*may_fail=*/1};
    executable.magic = HEDDLE_EXECUTABLE_MAGIC;
    executable.abi_version = HEDDLE_ABI_VERSION;
    executable.model = "m";
    executable.target = "x86-64";
    executable.features = "";
    executable.input_count = executable.output_count = executable.symbol_count = 1;
    executable.message_count = 1;
    executable.inputs = executable.outputs = &io;
    executable.symbols = symbols;
    executable.messages = messages;
    executable.weights = reinterpret_cast<const uint8_t *>(&weight);
    executable.weights_bytes = sizeof weight;
    executable.sizes = count == 1 ? sizes<1> : sizes<2>;
    executable.run = count == 1 ? run<1> : run<2>;
    executable.devices = devices;
    executable.device_count = count;
  }
  Model(const Model &) = delete;

  float weight = 3;
  heddle_io_dim_t dim = {HEDDLE_DYNAMIC, 0, "n"};
  heddle_io_t io = {"x", 1, 1, &dim, HEDDLE_ENCODING_DENSE, 0, nullptr, HEDDLE_IO_TENSOR, 0, -1};
  const char *symbols[1] = {"n"};
  const char *messages[1] = {"element %lld is above %lld"};
  heddle_device_image_t images[3] = {
      {"sm_80", kernelText().c_str(), int64_t(kernelText().size()) + 1, 1}, {}, {}};
  heddle_device_kernel_t kernels[4] = {{"shift", "sum", 4, 0, 0},
                                       {"check", "checked", 3, 0, 0},
                                       {"twice", "doubled", 3, 0, 0},
                                       {"mirror", "turned", 4, 64, 256}};
  heddle_device_t devices[2];
  heddle_executable_t executable = zeroed<heddle_executable_t>();
};

/// A session of a model, or the message of why there is none.
struct Opened {
  explicit Opened(const Model &model)
      : message(take(heddle_module_from_executable(&model.executable, nullptr, nullptr, &module))) {
    open();
  }
  /// One more of the same module.
  explicit Opened(const Opened &other) : module(other.module), message(other.message) {
    if (module)
      heddle_module_retain(module);
    open();
  }
  ~Opened() {
    heddle_session_destroy(session);
    heddle_module_destroy(module);
  }

  heddle_module_t *module = nullptr;
  heddle_session_t *session = nullptr;
  std::string message;

private:
  void open() {
    if (message.empty())
      message = take(heddle_session_create(module, nullptr, &session));
  }
};

/// Runs on n numbers, of which number `bad` is too large; the status, or which number is wrong.
inline std::string runOnce(heddle_session_t *session, int64_t n, int64_t bad = -1) {
  std::vector<float> x(n + 1), y(n + 1, -1);
  for (int64_t i = 0; i < n; ++i)
    x[i] = i == bad ? 2000.0F : float(i % 977) - 20;
  heddle_tensor_t input = tensorOver(x, {n}), output = tensorOver(y, {});
  std::string message = take(heddle_session_run(session, &input, 1, &output, 1));
  for (int64_t i = 0; i < n && message.empty(); ++i) {
    int64_t other = i / 64 * 64 + 63 - i % 64;
    if (y[i] != 2 * (x[other < n ? other : i] + 3))
      message = "number " + std::to_string(i) + " of " + std::to_string(n) + " is " +
                std::to_string(y[i]);
  }
  return message;
}

} // namespace device
#endif
