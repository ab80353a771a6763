// State: queues of streams, captures, the log and the report.
#include "emulator/driver/state.h"

#include <algorithm>
#include <cstdlib>

namespace heddle::emulator {

State &State::get() {
  static State state;
  return state;
}

State::State() {
  const char *text = getenv("HEDDLE_EMULATED_CUDA");
  settings = readSettings(text ? text : "");
  random.seed(settings.seed);
  for (const std::string &each : settings.complaints)
    log(each, true);
}

State::~State() {
  for (const auto &device : devices)
    if (device->retained)
      reportLeaks(*device);
}

void State::log(const std::string &text, bool isAlways) {
  const char *path = getenv("HEDDLE_EMULATED_CUDA_LOG");
  bool isFile = path && *path && std::string(path) != "stderr" && std::string(path) != "1";
  if (isAlways || (path && *path && !isFile))
    fprintf(stderr, "emulated CUDA: %s\n", text.c_str());
  if (!isFile)
    return;
  if (FILE *file = fopen(path, "a")) {
    fprintf(file, "%s\n", text.c_str());
    fclose(file);
  }
}

Stream &State::stream(void *handle, Device &device) {
  if (reinterpret_cast<uintptr_t>(handle) <= 2) {
    for (Stream *each : captures)
      if (each->isBlocking && each->capture->mode != 2) {
        each->capture->isInvalid = true;
        throw Refusal{CaptureImplicit};
      }
    return device.legacy;
  }
  Stream *found = streams.find(handle);
  if (!found)
    throw Refusal{InvalidHandle};
  if (found->device != &device)
    throw Refusal{InvalidContext};
  return *found;
}

uint64_t State::enqueue(Stream &stream, Node node, std::vector<uint64_t> after) {
  if (stream.capture) {
    if (stream.capture->isInvalid)
      throw Refusal{CaptureInvalidated};
    node.after = stream.tails;
    stream.capture->graph.nodes.push_back(std::move(node));
    stream.tails = {stream.capture->graph.nodes.size() - 1};
    return 0;
  }
  Device &device = *stream.device;
  if (&stream == &device.legacy) {
    for (const auto &each : streams.all)
      if (each.first->device == &device && each.first->isBlocking)
        after.push_back(each.first->last);
  } else if (stream.isBlocking) {
    after.push_back(device.legacy.last);
  }
  uint64_t id = ++nextId;
  stream.queue.push_back({id, std::move(after), std::move(node.run)});
  stream.last = id;
  pending[id] = &stream;
  return id;
}

void State::runHead(Stream &stream) {
  Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  try {
    work.run();
    pending.erase(work.id);
  } catch (const Fault &fault) {
    log(fault.what(), true);
    lastFault = fault.what();
    ++counts["errors"];
    stream.device->lost = fault.code;
    auto isOfDevice = [&](const auto &each) { return each.second->device == stream.device; };
    std::erase_if(pending, isOfDevice);
    stream.device->legacy.queue.clear();
    for (const auto &each : streams.all)
      if (each.first->device == stream.device)
        each.first->queue.clear();
    throw Refusal{fault.code};
  }
}

/// Runs something of a random stream until `id` is done.
void State::runAny(uint64_t id) {
  while (isPending(id)) {
    std::vector<Stream *> ready;
    auto look = [&](Stream &stream) {
      auto isDone = [&](uint64_t each) { return !isPending(each); };
      if (!stream.queue.empty() &&
          std::all_of(stream.queue.front().after.begin(), stream.queue.front().after.end(), isDone))
        ready.push_back(&stream);
    };
    for (const auto &device : devices)
      look(device->legacy);
    std::vector<std::pair<uint64_t, Stream *>> ordered; // by age, so that a seed says all
    for (const auto &each : streams.all)
      if (!each.first->queue.empty())
        ordered.emplace_back(each.first->queue.front().id, each.first);
    std::sort(ordered.begin(), ordered.end());
    for (const auto &each : ordered)
      look(*each.second);
    if (ready.empty())
      throw Refusal{InvalidHandle};
    runHead(*ready[random() % ready.size()]);
  }
}

void State::finish(uint64_t id) {
  if (settings.isSeeded)
    return runAny(id);
  std::vector<uint64_t> wanted = {id};
  while (!wanted.empty()) {
    auto found = pending.find(wanted.back());
    if (found == pending.end()) {
      wanted.pop_back();
      continue;
    }
    Stream &stream = *found->second;
    auto first = std::find_if(stream.queue.front().after.begin(), stream.queue.front().after.end(),
                              [&](uint64_t each) { return isPending(each); });
    if (first != stream.queue.front().after.end())
      wanted.push_back(*first);
    else
      runHead(stream);
  }
}

void State::finishStream(Stream &stream) { finish(stream.last); }

void State::finishDevice(Device &device) {
  finishStream(device.legacy);
  std::vector<uint64_t> last;
  for (const auto &each : streams.all)
    if (each.first->device == &device)
      last.push_back(each.first->last);
  std::sort(last.begin(), last.end());
  for (uint64_t id : last)
    finish(id);
}

void State::forbidInCapture() {
  bool isForbidden = false;
  for (Stream *each : captures) {
    Capture &capture = *each->capture;
    bool isOurs = capture.thread == std::this_thread::get_id();
    if (capture.mode == 0 || (capture.mode == 1 && isOurs))
      capture.isInvalid = isForbidden = true;
  }
  if (isForbidden)
    throw Refusal{CaptureUnsupported};
}

/// Joins a stream to the capture of an event, or an event's nodes to the stream.
void State::waitInCapture(Stream &stream, Event &event) {
  if (stream.capture && stream.capture != event.capture) {
    stream.capture->isInvalid = true;
    throw Refusal{event.capture ? CaptureMerge : CaptureUnsupported};
  }
  if (&stream == &stream.device->legacy)
    throw Refusal{CaptureImplicit};
  stream.capture = event.capture;
  captures.insert(&stream);
  for (size_t each : event.nodes)
    if (std::find(stream.tails.begin(), stream.tails.end(), each) == stream.tails.end())
      stream.tails.push_back(each);
}

std::map<std::string, uint64_t> State::heldBy(const Device &device) const {
  std::map<std::string, uint64_t> held;
  for (const auto &each : allocated)
    held["allocations"] += each.second == &device;
  for (const auto &each : modules.all)
    held["modules"] += each.first->device == &device;
  for (const auto &each : streams.all)
    held["streams"] += each.first->device == &device;
  if (devices.size() == 1) { // of several, these are of none
    held["events"] = events.all.size();
    held["graphs"] = graphs.all.size();
    held["executables"] = executables.all.size();
    for (const auto &[host, range] : pinned)
      held["pinned ranges"] += range.second;
  }
  return held;
}

void State::reportLeaks(Device &device) {
  std::string text;
  for (const auto &[what, count] : heldBy(device)) {
    if (count)
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
    if (!device.lost) // where nothing can be freed
      counts["leaked"] += count;
  }
  if (!text.empty())
    log("not freed when the context ends: " + text, false);
}

void State::dropContext(Device &device) {
  std::erase_if(allocated, [&](const auto &each) {
    return each.second == &device && (device.memory->close(each.first), true);
  });
  std::erase_if(modules.all, [&](const auto &each) {
    if (each.first->device != &device)
      return false;
    for (const auto &variable : each.first->variables)
      device.memory->close(variable.second);
    return true;
  });
  std::erase_if(captures, [&](Stream *each) { return each->device == &device; });
  std::erase_if(streams.all, [&](const auto &each) { return each.first->device == &device; });
  if (devices.size() == 1) {
    events.all.clear();
    graphs.all.clear();
    executables.all.clear();
    for (const auto &[host, range] : pinned)
      if (range.second)
        free(reinterpret_cast<void *>(host));
    pinned.clear();
  }
  device.lost = 0;
}

std::string State::report() {
  std::string text = "{";
  auto add = [&](const std::string &name, uint64_t value) {
    text += (text.size() > 1 ? ", \"" : "\"") + name + "\": " + std::to_string(value);
  };
  for (const auto &[name, value] : counts)
    add(name, value);
  uint64_t alive = 0, bytes = 0, peak = 0, live = pushed;
  std::array<uint64_t, size_t(Class::Count)> executed{}, lanes{};
  for (const auto &device : devices) {
    alive += device->memory->count();
    live += static_cast<uint64_t>(device->retained);
    for (const auto &[what, count] : heldBy(*device))
      live += count;
    bytes += device->memory->used();
    peak += device->memory->peak();
    for (size_t i = 0; i < executed.size(); ++i) {
      executed[i] += device->machine.executed[i];
      lanes[i] += device->machine.lanes[i];
    }
  }
  add("live", live);
  add("allocations", alive);
  add("bytes", bytes);
  add("peak_bytes", peak);
  std::string inner;
  uint64_t all = 0;
  for (size_t i = 0; i < executed.size(); ++i) {
    inner +=
        (i ? ", \"" : "\"") + std::string(kClassNames[i]) + "\": " + std::to_string(executed[i]);
    all += lanes[i];
  }
  add("lane_instructions", all);
  text += ", \"instructions\": {" + inner + "}, \"last_fault\": \"";
  for (char c : lastFault)
    text += c == '"' || c == '\\' ? '\'' : c;
  return text + "\"}";
}

std::vector<Device *> &contexts() {
  thread_local std::vector<Device *> stack;
  return stack;
}

Device &current() {
  if (contexts().empty() || !contexts().back()->retained)
    throw Refusal{InvalidContext};
  return *contexts().back();
}

/// Functions that give something back, even where they return what was wrong with earlier work.
static bool isRelease(const std::string &name) {
  for (const char *part : {"Free", "Destroy", "Release", "Unload", "PopCurrent"})
    if (name.find(part) != name.npos)
      return true;
  return false;
}

int guarded(const char *name, Needs needs, const std::function<int()> &body) {
  State &state = State::get();
  std::lock_guard lock(state.mutex);
  uint64_t call = ++state.calls[name];
  int code = 0;
  auto [first, last] = state.settings.failures.equal_range(name);
  for (auto each = first; each != last; ++each)
    if (each->second.call == call) {
      state.log(std::string(name) + ": call " + std::to_string(call) + " fails as was asked",
                false);
      if (each->second.code >= 700 && each->second.code < 800 && !contexts().empty())
        contexts().back()->lost = each->second.code;
      code = each->second.code;
    }
  if (code && !isRelease(name))
    return code;
  try {
    if (needs != Needs::Nothing && !state.isInitialized)
      return NotInitialized;
    if (needs == Needs::Context && current().lost)
      return current().lost;
    int result = body();
    return code ? code : result;
  } catch (const Refusal &refusal) {
    return refusal.result;
  } catch (const Fault &fault) {
    state.log(fault.what(), true);
    return fault.code;
  } catch (const std::bad_alloc &) {
    return OutOfMemory;
  }
}

void runNodes(const std::vector<Node> &nodes, State &state) {
  std::vector<bool> isDone(nodes.size());
  for (size_t done = 0; done < nodes.size(); ++done) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < nodes.size(); ++i)
      if (!isDone[i] && std::all_of(nodes[i].after.begin(), nodes[i].after.end(),
                                    [&](size_t each) { return isDone[each]; })) {
        ready.push_back(i);
        if (!state.settings.isSeeded)
          break;
      }
    size_t next = ready[ready.size() > 1 ? state.random() % ready.size() : 0];
    nodes[next].run();
    isDone[next] = true;
  }
}

} // namespace heddle::emulator
