// Modules: PTX text to kernels, and what may be asked of kernels.
#include "emulator/decode/decoder.h"
#include "emulator/driver/state.h"

#include <algorithm>
#include <cstring>

using namespace heddle::emulator;

namespace heddle::emulator {

int mostShared(int chip);

namespace {

/// PTX ISA that a driver reads, in tenths: 12.0 reads 8.0, 11.0 reads 7.0.
int mostVersion(int driver) { return driver / 1000 * 10 - 40 + driver % 1000 / 10; }

void placeVariables(const Program &program, Device &device, Module &module, Symbols &symbols) {
  for (const Variable &each : program.variables) {
    if (each.space == "shared")
      continue;
    if (each.isDynamic && each.initial.empty())
      throw PtxError(each.line, "'" + each.name + "' has no size");
    if (symbols.count(each.name))
      throw PtxError(each.line, "'" + each.name + "' is defined twice");
    uint64_t made = device.memory->allocate(each.bytes, "variable '" + each.name + "'");
    if (!made)
      throw Refusal{OutOfMemory};
    symbols[each.name] = module.variables[each.name] = made;
    module.sizes[each.name] = each.bytes;
  }
  for (const Variable &each : program.variables) {
    if (each.space == "shared")
      continue;
    uint64_t address = symbols.at(each.name);
    uint8_t *bytes = device.memory->bytes(address);
    std::fill_n(bytes, each.bytes, 0); // variables without values begin with zeros
    std::copy(each.initial.begin(), each.initial.end(), bytes);
    for (const Relocation &place : each.relocations) {
      auto found = symbols.find(place.name);
      if (found == symbols.end() || place.bytes != 8)
        throw PtxError(each.line, "'" + place.name + "' is no address of 64 bits");
      uint64_t value = found->second + place.added;
      memcpy(bytes + place.offset, &value, 8);
    }
    device.memory->markWritten(address, each.bytes);
    if (each.space == "const")
      device.memory->seal(address);
  }
}

void dropVariables(Module &module) {
  for (const auto &each : module.variables)
    module.device->memory->close(each.second);
}

std::unique_ptr<Module> load(std::string_view text, Device &device, const Settings &settings) {
  Program program = readProgram(text);
  if (program.version > mostVersion(settings.driver))
    throw Refusal{UnsupportedPtxVersion};
  bool isOfOne = program.suffix && program.chip != settings.chip;
  if (program.chip > settings.chip || isOfOne)
    throw Refusal{NoBinaryForGpu};
  auto made = std::make_unique<Module>();
  made->device = &device;
  try {
    Symbols symbols;
    placeVariables(program, device, *made, symbols);
    for (const auto &[name, function] : program.functions) {
      if (!function.isKernel || !function.isDefined)
        continue;
      auto entry = std::make_unique<Entry>();
      entry->device = &device;
      entry->ptxVersion = program.version;
      entry->kernel = Decoder(program, symbols).decode(function);
      made->entries.emplace(name, std::move(entry));
    }
  } catch (...) {
    dropVariables(*made);
    throw;
  }
  return made;
}

/// Buffer of an option, with its size in another option.
void writeLog(const std::string &text, unsigned count, const int *options, void **values) {
  char *buffer = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 5)
      buffer = static_cast<char *>(values[i]);
    if (options[i] == 6)
      size = reinterpret_cast<uintptr_t>(values[i]);
  }
  if (buffer && size)
    snprintf(buffer, size, "%s", text.c_str());
}

Entry *entryOf(void *handle) {
  for (const auto &module : State::get().modules.all)
    for (const auto &each : module.second->entries)
      if (each.second.get() == handle)
        return each.second.get();
  throw Refusal{InvalidHandle};
}

int loadImage(void **made, const void *image, unsigned count, const int *options, void **values) {
  State &state = State::get();
  if (!made || !image || (count && (!options || !values)))
    return InvalidValue;
  state.forbidInCapture();
  const auto *bytes = static_cast<const unsigned char *>(image);
  if (bytes[0] == 0x7f && !memcmp(bytes,
                                  "\x7f"
                                  "ELF",
                                  4))
    return NoBinaryForGpu; // code for a real chip
  const unsigned char fat[] = {0x50, 0xed, 0x55, 0xba};
  if (bytes[0] == fat[0] && !memcmp(bytes, fat, 4))
    return NoBinaryForGpu;
  try {
    *made = state.modules.add(load(static_cast<const char *>(image), current(), state.settings));
    ++state.counts["modules_loaded"];
    return Success;
  } catch (const PtxError &error) {
    std::string text = std::string("ptx, ") + error.what();
    writeLog(text, count, options, values);
    state.log(text, false);
    return InvalidPtx;
  } catch (const Refusal &refusal) {
    writeLog(std::string("ptx: ") + nameOf(refusal.result), count, options, values);
    throw;
  }
}

void launch(Entry &entry, Launch made, void **parameters, void **extra, Stream &stream) {
  const Kernel &kernel = *entry.kernel;
  made.kernel = &kernel;
  made.parameters.resize(kernel.parameterBytes);
  if (extra) {
    const void *buffer = nullptr;
    size_t size = 0;
    for (; *extra; extra += 2) {
      auto key = reinterpret_cast<uintptr_t>(extra[0]);
      if (key == 1)
        buffer = extra[1];
      else if (key == 2)
        size = *static_cast<size_t *>(extra[1]);
    }
    if (!buffer || size < kernel.parameterBytes)
      throw Refusal{InvalidValue};
    memcpy(made.parameters.data(), buffer, kernel.parameterBytes);
  } else {
    if (!kernel.parameters.empty() && !parameters)
      throw Refusal{InvalidValue};
    for (size_t i = 0; i < kernel.parameters.size(); ++i) {
      const Named &each = kernel.parameters[i];
      memcpy(made.parameters.data() + each.offset, parameters[i], each.bytes);
    }
  }
  State &state = State::get();
  ++state.counts["launches"];
  Node node{"kernel", &kernel, nullptr, {}};
  node.run = [made, kept = entry.kernel, device = entry.device] {
    runLaunch(device->machine, made);
  };
  state.enqueue(stream, std::move(node));
}

/// Limits of a launch; the text of a refusal goes to the log.
void check(const Entry &entry, const Launch &made) {
  const Kernel &kernel = *entry.kernel;
  uint64_t threads = uint64_t(made.block[0]) * made.block[1] * made.block[2];
  auto product = [](const std::array<uint32_t, 3> &n) { return uint64_t(n[0]) * n[1] * n[2]; };
  std::string why;
  for (size_t k = 0; k < 3; ++k) {
    uint32_t most = k ? 65535 : 0x7fffffff;
    if (!made.grid[k] || made.grid[k] > most)
      why = "its grid has 1 to 2147483647 x 65535 x 65535 blocks";
    if (!made.block[k] || made.block[k] > (k == 2 ? 64u : 1024u))
      why = "its block has 1 to 1024 x 1024 x 64 threads";
  }
  if (threads > 1024)
    why = "its block has " + std::to_string(threads) + " threads, 1024 are allowed";
  else if (kernel.mostThreads[0] && threads > product(kernel.mostThreads))
    why = "its block has " + std::to_string(threads) + " threads, .maxntid says " +
          std::to_string(product(kernel.mostThreads));
  else if (kernel.neededThreads[0] && kernel.neededThreads != made.block)
    why = ".reqntid says another block";
  uint64_t shared = uint64_t(kernel.sharedBytes) + made.dynamicShared;
  if (made.dynamicShared > uint32_t(entry.mostDynamic) ||
      (shared > (48u << 10) && entry.mostDynamic <= (48 << 10)) ||
      shared > uint64_t(mostShared(State::get().settings.chip)))
    why = std::to_string(kernel.sharedBytes) + " + " + std::to_string(made.dynamicShared) +
          " bytes of shared memory; the attribute MAX_DYNAMIC_SHARED_SIZE_BYTES is " +
          std::to_string(entry.mostDynamic);
  if (why.empty())
    return;
  State::get().log("launch of '" + kernel.name + "': " + why, true);
  throw Refusal{InvalidValue};
}

} // namespace
} // namespace heddle::emulator

EMULATED int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options,
                                void **values) {
  return guarded("cuModuleLoadDataEx", Needs::Context,
                 [&] { return loadImage(module, image, count, options, values); });
}

EMULATED int cuModuleLoadData(void **module, const void *image) {
  return guarded("cuModuleLoadData", Needs::Context,
                 [&] { return loadImage(module, image, 0, nullptr, nullptr); });
}

EMULATED int cuModuleUnload(void *handle) {
  return guarded("cuModuleUnload", Needs::Context, [&]() -> int {
    State &state = State::get();
    Module *module = state.modules.find(handle);
    if (!module)
      return InvalidHandle;
    state.forbidInCapture();
    state.finishDevice(*module->device);
    dropVariables(*module);
    state.modules.drop(module);
    return Success;
  });
}

EMULATED int cuModuleGetFunction(void **function, void *handle, const char *name) {
  return guarded("cuModuleGetFunction", Needs::Context, [&]() -> int {
    Module *module = State::get().modules.find(handle);
    if (!module)
      return InvalidHandle;
    if (!function || !name)
      return InvalidValue;
    auto found = module->entries.find(name);
    if (found == module->entries.end())
      return NotFound;
    *function = found->second.get();
    return Success;
  });
}

EMULATED int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes, void *handle,
                                  const char *name) {
  return guarded("cuModuleGetGlobal_v2", Needs::Context, [&]() -> int {
    Module *module = State::get().modules.find(handle);
    if (!module || !name)
      return module ? InvalidValue : InvalidHandle;
    auto found = module->variables.find(name);
    if (found == module->variables.end())
      return NotFound;
    if (address)
      *address = found->second;
    if (bytes)
      *bytes = module->sizes[name];
    return Success;
  });
}

EMULATED int cuFuncSetAttribute(void *function, int attribute, int value) {
  return guarded("cuFuncSetAttribute", Needs::Context, [&]() -> int {
    Entry &entry = *entryOf(function);
    if (attribute == 9)
      return Success; // a wish about the cache
    int most = mostShared(State::get().settings.chip) - int(entry.kernel->sharedBytes);
    if (attribute != 8 || value < 0 || value > most)
      return InvalidValue;
    entry.mostDynamic = value;
    return Success;
  });
}

EMULATED int cuFuncGetAttribute(int *value, int attribute, void *function) {
  return guarded("cuFuncGetAttribute", Needs::Context, [&]() -> int {
    Entry &entry = *entryOf(function);
    const Kernel &kernel = *entry.kernel;
    auto product = [](const std::array<uint32_t, 3> &n) { return int(n[0] * n[1] * n[2]); };
    int most = kernel.neededThreads[0] ? product(kernel.neededThreads)
               : kernel.mostThreads[0] ? product(kernel.mostThreads)
                                       : 1024;
    const std::map<int, int> values = {{0, most},
                                       {1, int(kernel.sharedBytes)},
                                       {2, 0},
                                       {3, int(kernel.localBytes)},
                                       {4, int(std::min(kernel.registerCount, 255u))},
                                       {5, entry.ptxVersion},
                                       {6, State::get().settings.chip},
                                       {7, 0},
                                       {8, entry.mostDynamic},
                                       {9, -1}};
    auto found = values.find(attribute);
    if (!value || found == values.end())
      return InvalidValue;
    *value = found->second;
    return Success;
  });
}

EMULATED int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads,
                                                         size_t dynamic) {
  return guarded("cuOccupancyMaxActiveBlocksPerMultiprocessor", Needs::Context, [&]() -> int {
    Entry &entry = *entryOf(function);
    if (!blocks || threads < 1 || threads > 1024)
      return InvalidValue;
    size_t shared = entry.kernel->sharedBytes + dynamic + 1024;
    size_t all = size_t(mostShared(State::get().settings.chip)) + 1024;
    size_t byThreads = 2048 / (size_t(threads + 31) / 32 * 32);
    *blocks = static_cast<int>(std::min({all / shared, byThreads, size_t(32)}));
    return Success;
  });
}

EMULATED int cuLaunchKernel(void *function, unsigned gridX, unsigned gridY, unsigned gridZ,
                            unsigned blockX, unsigned blockY, unsigned blockZ, unsigned dynamic,
                            void *stream, void **parameters, void **extra) {
  return guarded("cuLaunchKernel", Needs::Context, [&]() -> int {
    Entry &entry = *entryOf(function);
    Launch made;
    made.grid = {gridX, gridY, gridZ};
    made.block = {blockX, blockY, blockZ};
    made.dynamicShared = dynamic;
    check(entry, made);
    launch(entry, made, parameters, extra, State::get().stream(stream, current()));
    return Success;
  });
}
