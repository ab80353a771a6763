// Memory: allocations, pools, host memory, copies and sets.
#include "emulator/driver/state.h"

#include <cstdlib>
#include <cstring>

using namespace heddle::emulator;

namespace {

uint64_t allocate(Device &device, size_t bytes, const char *function, bool isOpen) {
  State &state = State::get();
  if (!bytes)
    throw Refusal{InvalidValue};
  uint64_t count = ++state.counts["allocations_made"];
  uint64_t made = device.memory->allocate(
      bytes, "allocation " + std::to_string(count) + " (" + function + ")", isOpen);
  if (!made)
    throw Refusal{OutOfMemory};
  state.allocated[made] = &device;
  return made;
}

/// Refuses a range that is not inside of one allocation.
void check(const Device &device, uint64_t address, size_t bytes, const char *what) {
  if (device.memory->holds(address, bytes))
    return;
  State::get().log(std::string(what) + " of " + std::to_string(bytes) +
                       " bytes: " + device.memory->describe(address + (bytes ? bytes - 1 : 0)),
                   true);
  throw Refusal{InvalidValue};
}

/// As check(), where a fault is told later: memory may be freed in between.
void checkLate(const Device &device, uint64_t address, size_t bytes, const char *what) {
  if (!device.memory->holds(address, bytes))
    throw Fault(kIllegalAddress, std::string(what) + " of " + std::to_string(bytes) +
                                     " bytes: " + device.memory->describe(address));
}

bool isPinned(const void *host, size_t bytes) {
  auto at = reinterpret_cast<uintptr_t>(host);
  auto after = State::get().pinned.upper_bound(at);
  if (after == State::get().pinned.begin())
    return false;
  --after;
  return at - after->first + bytes <= after->second.first;
}

void count(const char *direction, size_t bytes) {
  State &state = State::get();
  ++state.counts[std::string("copies_") + direction];
  state.counts[std::string("bytes_") + direction] += bytes;
}

/// Copies to the device. Host memory that is not page-locked is read at once, as drivers do.
void toDevice(uint64_t to, const void *from, size_t bytes, Stream &stream, bool isNow) {
  if (!bytes)
    return;
  if (!from)
    throw Refusal{InvalidValue};
  Device &device = *stream.device;
  count("htod", bytes);
  auto held = std::make_shared<std::vector<uint8_t>>();
  if (!isPinned(from, bytes) && !stream.capture) {
    const auto *begin = static_cast<const uint8_t *>(from);
    held->assign(begin, begin + bytes);
  }
  auto run = [=, &device] {
    checkLate(device, to, bytes, "copy to the device");
    memcpy(device.memory->bytes(to), held->empty() ? from : held->data(), bytes);
    device.memory->markWritten(to, bytes);
  };
  uint64_t id = State::get().enqueue(stream, {"copy", nullptr, run, {}});
  if (isNow)
    State::get().finish(id);
}

void toHost(void *to, uint64_t from, size_t bytes, Stream &stream, bool isNow) {
  if (!bytes)
    return;
  if (!to)
    throw Refusal{InvalidValue};
  Device &device = *stream.device;
  count("dtoh", bytes);
  auto run = [=, &device] {
    checkLate(device, from, bytes, "copy to the host");
    memcpy(to, device.memory->bytes(from), bytes);
  };
  uint64_t id = State::get().enqueue(stream, {"copy", nullptr, run, {}});
  if (isNow || (!stream.capture && !isPinned(to, bytes)))
    State::get().finish(id);
}

void onDevice(uint64_t to, uint64_t from, size_t bytes, Stream &stream, bool isNow) {
  if (!bytes)
    return;
  Device &device = *stream.device;
  count("dtod", bytes);
  auto run = [=, &device] {
    checkLate(device, to, bytes, "copy on the device");
    checkLate(device, from, bytes, "copy on the device");
    memmove(device.memory->bytes(to), device.memory->bytes(from), bytes);
    memmove(device.memory->shadow(to), device.memory->shadow(from), bytes);
    for (size_t i = 0; i < bytes; ++i)
      device.memory->shadow(to)[i] |= Writable;
  };
  uint64_t id = State::get().enqueue(stream, {"copy", nullptr, run, {}});
  if (isNow)
    State::get().finish(id);
}

template <class T> void fill(uint64_t to, T value, size_t number, Stream &stream, bool isNow) {
  if (!number)
    return;
  if (to % sizeof(T) || number > SIZE_MAX / sizeof(T))
    throw Refusal{InvalidValue};
  Device &device = *stream.device;
  size_t bytes = number * sizeof(T);
  ++State::get().counts["sets"];
  auto run = [=, &device] {
    checkLate(device, to, bytes, "set");
    for (size_t i = 0; i < number; ++i)
      memcpy(device.memory->bytes(to) + i * sizeof(T), &value, sizeof(T));
    device.memory->markWritten(to, bytes);
  };
  uint64_t id = State::get().enqueue(stream, {"set", nullptr, run, {}});
  if (isNow)
    State::get().finish(id);
}

Stream &streamOf(void *handle) { return State::get().stream(handle, current()); }

} // namespace

EMULATED int cuMemAlloc_v2(uint64_t *made, size_t bytes) {
  return guarded("cuMemAlloc_v2", Needs::Context, [&]() -> int {
    if (!made)
      return InvalidValue;
    State::get().forbidInCapture();
    *made = allocate(current(), bytes, "cuMemAlloc", true);
    return Success;
  });
}

EMULATED int cuMemFree_v2(uint64_t address) {
  return guarded("cuMemFree_v2", Needs::Context, [&]() -> int {
    State &state = State::get();
    if (!address)
      return Success;
    auto found = state.allocated.find(address);
    if (found == state.allocated.end())
      return InvalidValue;
    state.forbidInCapture();
    Device &device = *found->second;
    state.finishDevice(device);
    device.memory->close(address);
    state.allocated.erase(address);
    return Success;
  });
}

EMULATED int cuMemAllocAsync(uint64_t *made, size_t bytes, void *handle) {
  return guarded("cuMemAllocAsync", Needs::Context, [&]() -> int {
    Stream &stream = streamOf(handle);
    if (!made)
      return InvalidValue;
    if (stream.capture) {
      stream.capture->isInvalid = true;
      State::get().log("cuMemAllocAsync in a capture is not emulated", true);
      return CaptureUnsupported;
    }
    uint64_t address = allocate(current(), bytes, "cuMemAllocAsync", false);
    Device &device = current();
    State::get().enqueue(
        stream, {"allocation", nullptr, [&device, address] { device.memory->open(address); }, {}});
    *made = address;
    return Success;
  });
}

EMULATED int cuMemFreeAsync(uint64_t address, void *handle) {
  return guarded("cuMemFreeAsync", Needs::Context, [&]() -> int {
    State &state = State::get();
    Stream &stream = streamOf(handle);
    auto found = state.allocated.find(address);
    if (found == state.allocated.end())
      return InvalidValue;
    if (stream.capture) {
      stream.capture->isInvalid = true;
      return CaptureUnsupported;
    }
    Device &device = *found->second;
    state.allocated.erase(found);
    state.enqueue(stream,
                  {"free", nullptr, [&device, address] { device.memory->close(address); }, {}});
    return Success;
  });
}

EMULATED int cuDeviceGetDefaultMemPool(void **pool, int ordinal) {
  return guarded("cuDeviceGetDefaultMemPool", Needs::Initialized, [&]() -> int {
    State &state = State::get();
    if (!pool || ordinal < 0 || size_t(ordinal) >= state.devices.size())
      return pool ? InvalidDevice : InvalidValue;
    *pool = state.devices[size_t(ordinal)]->memory.get();
    return Success;
  });
}

EMULATED int cuMemPoolSetAttribute(void *pool, int attribute, void *value) {
  return guarded("cuMemPoolSetAttribute", Needs::Initialized, [&]() -> int {
    for (const auto &each : State::get().devices)
      if (each->memory.get() == pool)
        return value && attribute >= 1 && attribute <= 8 ? Success : InvalidValue;
    return InvalidValue;
  });
}

EMULATED int cuMemGetInfo_v2(size_t *free, size_t *total) {
  return guarded("cuMemGetInfo_v2", Needs::Context, [&]() -> int {
    if (!free || !total)
      return InvalidValue;
    *total = current().memory->capacity();
    *free = *total - current().memory->used();
    return Success;
  });
}

EMULATED int cuMemHostAlloc(void **made, size_t bytes, unsigned flags) {
  return guarded("cuMemHostAlloc", Needs::Context, [&]() -> int {
    if (!made || !bytes || flags > 7)
      return InvalidValue;
    *made =
        bytes > PTRDIFF_MAX - 4096 ? nullptr : aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    if (!*made)
      return OutOfMemory;
    State::get().pinned[reinterpret_cast<uintptr_t>(*made)] = {bytes, true};
    return Success;
  });
}

EMULATED int cuMemFreeHost(void *host) {
  return guarded("cuMemFreeHost", Needs::Context, [&]() -> int {
    State &state = State::get();
    auto found = state.pinned.find(reinterpret_cast<uintptr_t>(host));
    if (found == state.pinned.end() || !found->second.second)
      return InvalidValue;
    state.finishDevice(current());
    state.pinned.erase(found);
    free(host);
    return Success;
  });
}

EMULATED int cuMemHostRegister_v2(void *host, size_t bytes, unsigned) {
  return guarded("cuMemHostRegister_v2", Needs::Context, [&]() -> int {
    if (!host || !bytes)
      return InvalidValue;
    if (isPinned(host, 1))
      return HostMemoryAlreadyRegistered;
    State::get().pinned[reinterpret_cast<uintptr_t>(host)] = {bytes, false};
    return Success;
  });
}

EMULATED int cuMemHostUnregister(void *host) {
  return guarded("cuMemHostUnregister", Needs::Context, [&]() -> int {
    State &state = State::get();
    auto found = state.pinned.find(reinterpret_cast<uintptr_t>(host));
    if (found == state.pinned.end() || found->second.second)
      return HostMemoryNotRegistered;
    state.finishDevice(current());
    state.pinned.erase(found);
    return Success;
  });
}

EMULATED int cuPointerGetAttribute(void *value, int attribute, uint64_t address) {
  return guarded("cuPointerGetAttribute", Needs::Context, [&]() -> int {
    uint64_t begin = address;
    const Allocation *found = current().memory->find(address, &begin);
    bool isDevice = found && !found->isFreed;
    if (!value || (!isDevice && !isPinned(reinterpret_cast<void *>(address), 1)))
      return InvalidValue;
    switch (attribute) {
    case 1:
      *static_cast<void **>(value) = &current();
      return Success;
    case 2:
      *static_cast<unsigned *>(value) = isDevice ? 2 : 1;
      return Success;
    case 3:
    case 4:
      *static_cast<uint64_t *>(value) = address;
      return (attribute == 3) == isDevice ? Success : InvalidValue;
    case 8:
      *static_cast<bool *>(value) = false;
      return Success;
    case 9:
      *static_cast<int *>(value) = current().ordinal;
      return Success;
    case 11:
      *static_cast<uint64_t *>(value) = begin;
      return isDevice ? Success : InvalidValue;
    case 12:
      *static_cast<size_t *>(value) = isDevice ? found->bytes : 0;
      return isDevice ? Success : InvalidValue;
    default:
      return InvalidValue;
    }
  });
}

#define COPY(NAME, PARAMETERS, HANDLE, CHECKED, ACTION)                                            \
  EMULATED int NAME PARAMETERS {                                                                   \
    return guarded(#NAME, Needs::Context, [&]() -> int {                                           \
      Stream &stream = streamOf(HANDLE);                                                           \
      CHECKED;                                                                                     \
      ACTION;                                                                                      \
      return Success;                                                                              \
    });                                                                                            \
  }
#define NOW State::get().forbidInCapture()
COPY(cuMemcpyHtoDAsync_v2, (uint64_t to, const void *from, size_t bytes, void *handle), handle, ,
     toDevice(to, from, bytes, stream, false))
COPY(cuMemcpyDtoHAsync_v2, (void *to, uint64_t from, size_t bytes, void *handle), handle, ,
     toHost(to, from, bytes, stream, false))
COPY(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t bytes, void *handle), handle, ,
     onDevice(to, from, bytes, stream, false))
COPY(cuMemsetD8Async, (uint64_t to, unsigned char value, size_t number, void *handle), handle, ,
     fill(to, value, number, stream, false))
COPY(cuMemsetD16Async, (uint64_t to, unsigned short value, size_t number, void *handle), handle, ,
     fill(to, value, number, stream, false))
COPY(cuMemsetD32Async, (uint64_t to, unsigned value, size_t number, void *handle), handle, ,
     fill(to, value, number, stream, false))
COPY(cuMemcpyHtoD_v2, (uint64_t to, const void *from, size_t bytes), nullptr, NOW;
     check(current(), to, bytes, "copy to the device"), toDevice(to, from, bytes, stream, true))
COPY(cuMemcpyDtoH_v2, (void *to, uint64_t from, size_t bytes), nullptr, NOW;
     check(current(), from, bytes, "copy to the host"), toHost(to, from, bytes, stream, true))
COPY(cuMemcpyDtoD_v2, (uint64_t to, uint64_t from, size_t bytes), nullptr, NOW,
     onDevice(to, from, bytes, stream, true))
COPY(cuMemsetD8_v2, (uint64_t to, unsigned char value, size_t number), nullptr, NOW,
     fill(to, value, number, stream, true))
COPY(cuMemsetD32_v2, (uint64_t to, unsigned value, size_t number), nullptr, NOW,
     fill(to, value, number, stream, true))
