// Devices: initialisation, attributes, contexts, errors, the report.
#include "emulator/driver/state.h"

#include <algorithm>
#include <cstring>

using namespace heddle::emulator;

namespace heddle::emulator {

/// Shared memory of a block that a kernel may ask for, in bytes.
int mostShared(int chip) {
  switch (chip) {
  case 70:
    return 96 << 10;
  case 75:
    return 64 << 10;
  case 80:
  case 87:
    return 163 << 10;
  case 86:
  case 89:
  case 120:
    return 99 << 10;
  default:
    return 227 << 10;
  }
}

static void initialize(State &state) {
  for (unsigned i = 0; i < state.settings.devices; ++i) {
    auto made = std::make_unique<Device>();
    made->ordinal = static_cast<int>(i);
    made->memory = std::make_unique<Memory>(state.settings.memory, state.settings.hasRaces, i);
    made->machine.memory = made->memory.get();
    made->machine.hasRaces = state.settings.hasRaces;
    made->machine.isSeeded = state.settings.isSeeded;
    made->machine.seed = state.settings.seed;
    made->machine.limit = state.settings.limit;
    made->machine.threads = state.settings.threads;
    made->legacy.device = made.get();
    state.devices.push_back(std::move(made));
  }
  state.isInitialized = true;
}

static Device &device(int ordinal) {
  State &state = State::get();
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= state.devices.size())
    throw Refusal{InvalidDevice};
  return *state.devices[static_cast<size_t>(ordinal)];
}

} // namespace heddle::emulator

EMULATED int cuInit(unsigned flags) {
  return guarded("cuInit", Needs::Nothing, [&]() -> int {
    State &state = State::get();
    if (flags)
      return InvalidValue;
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
      state.log("the emulator needs a CPU with AVX2 and FMA", true);
      return NoDevice;
    }
#endif
    if (!state.isInitialized && state.settings.devices)
      initialize(state);
    return state.settings.devices ? Success : NoDevice;
  });
}

EMULATED int cuDriverGetVersion(int *version) {
  return guarded("cuDriverGetVersion", Needs::Nothing, [&]() -> int {
    if (!version)
      return InvalidValue;
    *version = State::get().settings.driver;
    return Success;
  });
}

EMULATED int cuGetErrorName(int result, const char **name) {
  if (!name)
    return InvalidValue;
  *name = nameOf(result);
  return *name ? Success : InvalidValue;
}

EMULATED int cuGetErrorString(int result, const char **words) {
  if (!words)
    return InvalidValue;
  *words = wordsOf(result);
  return *words ? Success : InvalidValue;
}

EMULATED int cuDeviceGetCount(int *count) {
  return guarded("cuDeviceGetCount", Needs::Initialized, [&]() -> int {
    if (!count)
      return InvalidValue;
    *count = static_cast<int>(State::get().devices.size());
    return Success;
  });
}

EMULATED int cuDeviceGet(int *made, int ordinal) {
  return guarded("cuDeviceGet", Needs::Initialized, [&]() -> int {
    if (!made)
      return InvalidValue;
    *made = device(ordinal).ordinal;
    return Success;
  });
}

EMULATED int cuDeviceGetName(char *name, int length, int ordinal) {
  return guarded("cuDeviceGetName", Needs::Initialized, [&]() -> int {
    device(ordinal);
    if (!name || length <= 0)
      return InvalidValue;
    snprintf(name, static_cast<size_t>(length), "Heddle emulated sm_%d",
             State::get().settings.chip);
    return Success;
  });
}

EMULATED int cuDeviceTotalMem_v2(size_t *bytes, int ordinal) {
  return guarded("cuDeviceTotalMem_v2", Needs::Initialized, [&]() -> int {
    if (!bytes)
      return InvalidValue;
    *bytes = device(ordinal).memory->capacity();
    return Success;
  });
}

EMULATED int cuDeviceGetAttribute(int *value, int attribute, int ordinal) {
  return guarded("cuDeviceGetAttribute", Needs::Initialized, [&]() -> int {
    device(ordinal);
    int chip = State::get().settings.chip, most = mostShared(chip);
    const std::map<int, int> values = {
        {1, 1024},   {2, 1024},         {3, 1024},     {4, 64},         {5, 0x7fffffff},
        {6, 65535},  {7, 65535},        {8, 49152},    {9, 65536},      {10, 32},
        {12, 65536}, {13, 1980000},     {16, 132},     {17, 0},         {18, 0},
        {19, 0},     {31, 1},           {36, 2619000}, {37, 5120},      {38, 50 << 20},
        {39, 2048},  {40, 2},           {41, 1},       {75, chip / 10}, {76, chip % 10},
        {78, 1},     {81, most + 1024}, {82, 65536},   {83, 0},         {89, 0},
        {95, 0},     {96, 0},           {97, most},    {106, 32},       {111, 1024},
        {115, 1},    {116, 0}};
    auto found = values.find(attribute);
    if (!value || found == values.end())
      return InvalidValue;
    *value = found->second;
    return Success;
  });
}

EMULATED int cuDevicePrimaryCtxRetain(void **context, int ordinal) {
  return guarded("cuDevicePrimaryCtxRetain", Needs::Initialized, [&]() -> int {
    if (!context)
      return InvalidValue;
    Device &found = device(ordinal);
    ++found.retained;
    *context = &found;
    return Success;
  });
}

EMULATED int cuDevicePrimaryCtxRelease_v2(int ordinal) {
  return guarded("cuDevicePrimaryCtxRelease_v2", Needs::Initialized, [&]() -> int {
    Device &found = device(ordinal);
    if (!found.retained)
      return InvalidContext;
    if (--found.retained)
      return Success;
    State &state = State::get();
    if (!found.lost)
      state.finishDevice(found);
    state.reportLeaks(found);
    state.dropContext(found);
    return Success;
  });
}

static Device *contextOf(void *context) {
  for (const auto &each : State::get().devices)
    if (each.get() == context)
      return each.get();
  throw Refusal{InvalidContext};
}

EMULATED int cuCtxPushCurrent_v2(void *context) {
  return guarded("cuCtxPushCurrent_v2", Needs::Initialized, [&]() -> int {
    contexts().push_back(contextOf(context));
    ++State::get().pushed;
    return Success;
  });
}

EMULATED int cuCtxPopCurrent_v2(void **context) {
  return guarded("cuCtxPopCurrent_v2", Needs::Initialized, [&]() -> int {
    if (contexts().empty())
      return InvalidContext;
    if (context)
      *context = contexts().back();
    contexts().pop_back();
    --State::get().pushed;
    return Success;
  });
}

EMULATED int cuCtxSetCurrent(void *context) {
  return guarded("cuCtxSetCurrent", Needs::Initialized, [&]() -> int {
    Device *found = context ? contextOf(context) : nullptr;
    State &state = State::get();
    if (!contexts().empty())
      contexts().pop_back(), --state.pushed;
    if (found)
      contexts().push_back(found), ++state.pushed;
    return Success;
  });
}

EMULATED int cuCtxGetCurrent(void **context) {
  return guarded("cuCtxGetCurrent", Needs::Initialized, [&]() -> int {
    if (!context)
      return InvalidValue;
    *context = contexts().empty() ? nullptr : contexts().back();
    return Success;
  });
}

EMULATED int cuCtxGetDevice(int *ordinal) {
  return guarded("cuCtxGetDevice", Needs::Context, [&]() -> int {
    if (!ordinal)
      return InvalidValue;
    *ordinal = current().ordinal;
    return Success;
  });
}

EMULATED int cuCtxSynchronize() {
  return guarded("cuCtxSynchronize", Needs::Context, [&]() -> int {
    State &state = State::get();
    state.forbidInCapture();
    state.finishDevice(current());
    return Success;
  });
}

/// Counters as JSON; returns the length that the whole text has.
EMULATED size_t heddleEmulatedCudaReport(char *text, size_t size) {
  State &state = State::get();
  std::lock_guard lock(state.mutex);
  std::string made = state.report();
  if (text && size) {
    size_t kept = std::min(size - 1, made.size());
    memcpy(text, made.data(), kept);
    text[kept] = 0;
  }
  return made.size();
}
