// State: devices, streams, graphs: all that handles point at.
//
// Work is queued per stream. It runs when something asks for its end: by default no more than is
// needed, with a seed whatever may run, in random order. Work that was not waited for has then not
// been done, so that a missing wait shows.
#pragma once

#include "emulator/driver/errors.h"
#include "emulator/driver/settings.h"
#include "emulator/machine/block.h"

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <thread>

namespace heddle::emulator {

struct Device;

struct Node {
  std::string kind; // "kernel", "copy", ...
  const void *what = nullptr;
  std::function<void()> run;
  std::vector<size_t> after;
};

struct Graph {
  std::vector<Node> nodes;
};

struct Stream;

struct Capture {
  Graph graph;
  Stream *origin = nullptr;
  int mode = 0;
  std::thread::id thread;
  bool isInvalid = false;
};

struct Work {
  uint64_t id;
  std::vector<uint64_t> after;
  std::function<void()> run;
};

struct Stream {
  Device *device = nullptr;
  bool isBlocking = true; // waits for the legacy stream, and it for this one
  std::deque<Work> queue;
  uint64_t last = 0;
  std::shared_ptr<Capture> capture;
  std::vector<size_t> tails; // of the capture
};

struct Event {
  bool hasTime = true;
  uint64_t id = 0; // of the work that records it
  double seconds = 0;
  std::shared_ptr<Capture> capture;
  std::vector<size_t> nodes;
};

struct Executable {
  std::vector<Node> nodes;
};

struct Entry { // of a module
  Device *device = nullptr;
  std::shared_ptr<Kernel> kernel;
  int mostDynamic = 48 << 10;
  int ptxVersion = 0;
};

struct Module {
  Device *device = nullptr;
  std::map<std::string, std::unique_ptr<Entry>> entries;
  std::map<std::string, uint64_t> variables;
  std::map<std::string, uint64_t> sizes;
};

struct Device {
  int ordinal = 0;
  Machine machine;
  std::unique_ptr<Memory> memory;
  Stream legacy;
  int retained = 0;
  int lost = 0; // result of all calls from now on
};

/// One kind of handles, all of which are checked before use.
template <class T> class Handles {
public:
  T *add(std::unique_ptr<T> made) {
    T *handle = made.get();
    all.emplace(handle, std::move(made));
    return handle;
  }
  T *find(void *handle) const {
    auto found = all.find(static_cast<T *>(handle));
    return found == all.end() ? nullptr : found->first;
  }
  void drop(T *handle) { all.erase(handle); }
  std::map<T *, std::unique_ptr<T>> all;
};

class State {
public:
  State();
  ~State();
  static State &get();

  Settings settings;
  std::recursive_mutex mutex;
  bool isInitialized = false;
  std::vector<std::unique_ptr<Device>> devices;
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Module> modules;
  Handles<Graph> graphs;
  Handles<Executable> executables;
  std::map<uint64_t, Device *> allocated;              // by cuMemAlloc and its like
  std::map<uintptr_t, std::pair<size_t, bool>> pinned; // bytes, whether allocated here
  std::map<std::string, uint64_t> counts, calls;
  std::string lastFault;
  uint64_t pushed = 0; // contexts, by all threads

  void log(const std::string &text, bool isAlways);
  /// Stream of a handle; throws Refusal.
  Stream &stream(void *handle, Device &device);
  /// Queues work, or makes it a node when the stream captures; 0 then.
  uint64_t enqueue(Stream &stream, Node node, std::vector<uint64_t> after = {});
  void finish(uint64_t id);
  void finishStream(Stream &stream);
  void finishDevice(Device &device);
  bool isPending(uint64_t id) const { return pending.count(id); }
  /// Refuses what captures forbid, which invalidates them.
  void forbidInCapture();
  void waitInCapture(Stream &stream, Event &event);
  /// Counts by kind of what has to be freed before the context ends.
  std::map<std::string, uint64_t> heldBy(const Device &device) const;
  void reportLeaks(Device &device);
  /// Frees all that belongs to a context, and forgets what was wrong with it.
  void dropContext(Device &device);
  std::string report();
  std::mt19937_64 random;
  std::set<Stream *> captures; // streams that capture

private:
  uint64_t nextId = 0;
  std::map<uint64_t, Stream *> pending;
  void runHead(Stream &stream);
  void runAny(uint64_t id);
};

/// A result that a function returns at once.
struct Refusal {
  int result;
};

Device &current(); // of the calling thread; throws Refusal
std::vector<Device *> &contexts();

/// Runs the body of an exported function: lock, injected failures, state of the context.
enum class Needs : uint8_t { Nothing, Initialized, Context };
int guarded(const char *name, Needs needs, const std::function<int()> &body);

/// Runs nodes in an order that their dependencies allow.
void runNodes(const std::vector<Node> &nodes, State &state);

} // namespace heddle::emulator

#define EMULATED extern "C" __attribute__((visibility("default")))
