// simulator: see simulator.h. An event-driven list schedule: each device runs its ready kernel of
// the highest priority, each link sends its tensors in the order in which they became ready.
// SPDX-License-Identifier: Apache-2.0
#include "python/simulator/simulator.h"

#include "python/simulator/kernels.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace heddle::simulator {
namespace {

constexpr int kMostColocations = 8; // links of a chain of colocated nodes that are followed

template <typename T> std::vector<T> copied(const T *data, int64_t count) {
  return std::vector<T>(data, data + count);
}

Graph graphOf(const heddle_simulator_graph_t &given) {
  Graph graph;
  int64_t nodes = given.nodes;
  graph.nodes = int32_t(nodes);
  graph.flops = copied(given.flops, nodes);
  graph.bytes = copied(given.bytes, nodes);
  graph.heldBytes = copied(given.held_bytes, nodes);
  graph.traits = copied(given.traits, nodes);
  graph.colocate = copied(given.colocate, nodes);
  graph.firstInput = copied(given.first_input, nodes + 1);
  graph.inputs = copied(given.inputs, given.first_input[nodes]);
  graph.firstReader.assign(nodes + 1, 0);
  for (int32_t input : graph.inputs)
    ++graph.firstReader[input + 1];
  std::partial_sum(graph.firstReader.begin(), graph.firstReader.end(), graph.firstReader.begin());
  graph.readers.resize(graph.inputs.size());
  std::vector<int64_t> next(graph.firstReader.begin(), graph.firstReader.end() - 1);
  for (int32_t node = 0; node < graph.nodes; ++node)
    for (int64_t i = graph.firstInput[node]; i < graph.firstInput[node + 1]; ++i)
      graph.readers[next[graph.inputs[i]]++] = node;
  return graph;
}

struct Machine {
  int32_t devices;
  std::vector<double> flops, bytes, launch, memory, linkBytes, linkSeconds;
};

Machine machineOf(const heddle_simulator_machine_t &given) {
  int64_t count = given.devices;
  return {given.devices,
          copied(given.flops_per_second, count),
          copied(given.bytes_per_second, count),
          copied(given.launch_seconds, count),
          copied(given.memory_bytes, count),
          copied(given.link_bytes_per_second, count * count),
          copied(given.link_seconds, count * count)};
}

/// A kernel that finishes, or a tensor that arrives at a device.
struct Event {
  double time;
  int32_t node, to;                          // `to`: -1 if the kernel finishes
  bool operator<(const Event &other) const { // a heap begins with the next event
    return time != other.time ? time > other.time
                              : (node != other.node ? node > other.node : to > other.to);
  }
};

struct Ready {
  double priority;
  int32_t node;
  bool operator<(const Ready &other) const {
    return priority != other.priority ? priority < other.priority : node > other.node;
  }
};

/// The kernels that read one tensor on one device.
struct Copy {
  int32_t device;
  int32_t uses; // readers that are not done and, at home, transfers that are not
  int64_t firstReader, endReader;
};

class Simulation {
public:
  Simulation(Graph given, Machine machine)
      : graph(std::move(given)), machine(std::move(machine)), kernels(graph), place(graph.nodes),
        missing(graph.nodes), ready(graph.nodes), start(graph.nodes), finish(graph.nodes),
        firstCopy(graph.nodes + 1), firstReader(graph.nodes + 1), queues(this->machine.devices),
        busy(this->machine.devices), held(this->machine.devices),
        linkFree(size_t(this->machine.devices) * this->machine.devices) {}

  Simulation(const Simulation &) = delete; // `kernels` refers to `graph`

  double run(const int32_t *device, const double *priorities, const uint8_t *fuse,
             double *peakBytes);

  Graph graph;
  Machine machine;
  Kernels kernels;
  std::vector<int32_t> place;
  std::vector<int32_t> missing; // inputs that are not there yet
  std::vector<double> ready, start, finish;

private:
  void placeKernels(const int32_t *device);
  void findCopies();
  void begin();
  void enqueue(int32_t node, double now);
  void dispatch(double now);
  void finished(int32_t node, double now);
  void arrived(int32_t node, int32_t to, double now);
  void send(int32_t node, int32_t to, double now);
  void hand(const Copy &copy, double now);
  void take(int32_t device, double bytes);
  void release(int32_t node, int32_t device);
  Copy *copyAt(int32_t node, int32_t device);
  bool isResident(int32_t node) const { return graph.traits[node] & HEDDLE_SIMULATOR_RESIDENT; }
  void push(Event event) {
    events.push_back(event);
    std::push_heap(events.begin(), events.end());
  }

  std::vector<int64_t> firstCopy, firstReader;
  std::vector<Copy> copies;
  std::vector<int32_t> readers;
  std::vector<std::vector<Ready>> queues;
  std::vector<uint8_t> busy;
  std::vector<double> held, linkFree;
  std::vector<Event> events;
  const double *priority = nullptr;
  double *peak = nullptr;
};

void Simulation::placeKernels(const int32_t *device) {
  for (int32_t node = 0; node < graph.nodes; ++node) {
    int32_t at = kernels.ownerOf(node);
    for (int step = 0; step < kMostColocations && graph.colocate[at] >= 0; ++step)
      at = kernels.ownerOf(graph.colocate[at]);
    place[node] = device[at];
  }
}

/// Finds the devices on which each root is read, its own first, with the readers there.
void Simulation::findCopies() {
  std::fill(firstReader.begin(), firstReader.end(), 0);
  for (int32_t input : kernels.reads)
    ++firstReader[input + 1];
  std::partial_sum(firstReader.begin(), firstReader.end(), firstReader.begin());
  readers.resize(kernels.reads.size());
  for (int32_t root = 0; root < graph.nodes; ++root)
    for (int64_t i = kernels.firstRead[root]; i < kernels.firstRead[root + 1]; ++i)
      readers[firstReader[kernels.reads[i]]++] = root;
  for (int32_t root = graph.nodes; root > 0; --root)
    firstReader[root] = firstReader[root - 1];
  firstReader[0] = 0;
  copies.clear();
  for (int32_t root = 0; root < graph.nodes; ++root) {
    firstCopy[root] = int64_t(copies.size());
    int64_t from = firstReader[root], end = firstReader[root + 1];
    if (kernels.isFused(root))
      continue;
    int32_t home = place[root];
    auto order = [&](int32_t reader) {
      return std::pair(place[reader] == home ? -1 : place[reader], reader);
    };
    if (end - from > 1)
      std::sort(readers.begin() + from, readers.begin() + end,
                [&](int32_t a, int32_t b) { return order(a) < order(b); });
    copies.push_back({home, 0, from, from});
    for (int64_t i = from; i < end; ++i) {
      if (place[readers[i]] != copies.back().device) {
        copies.push_back({place[readers[i]], 0, i, i});
        ++copies[firstCopy[root]].uses;
      }
      copies.back().endReader = i + 1;
      ++copies.back().uses;
    }
  }
  firstCopy[graph.nodes] = int64_t(copies.size());
}

void Simulation::take(int32_t device, double bytes) {
  held[device] += bytes;
  peak[device] = std::max(peak[device], held[device]);
}

Copy *Simulation::copyAt(int32_t node, int32_t device) {
  for (int64_t i = firstCopy[node]; i < firstCopy[node + 1]; ++i)
    if (copies[i].device == device)
      return &copies[i];
  return nullptr;
}

void Simulation::release(int32_t node, int32_t device) {
  Copy *copy = copyAt(node, device);
  bool isHeld = isResident(node) && device == place[node]; // counted in heldBytes
  if (--copy->uses == 0 && !isHeld)
    held[device] -= graph.bytes[node];
}

void Simulation::enqueue(int32_t node, double now) {
  ready[node] = now;
  auto &queue = queues[place[node]];
  queue.push_back({priority[node], node});
  std::push_heap(queue.begin(), queue.end());
}

void Simulation::hand(const Copy &copy, double now) {
  for (int64_t i = copy.firstReader; i < copy.endReader; ++i)
    if (--missing[readers[i]] == 0)
      enqueue(readers[i], now);
}

void Simulation::send(int32_t node, int32_t to, double now) {
  size_t link = size_t(place[node]) * machine.devices + to;
  double begin = std::max(now, linkFree[link]);
  linkFree[link] = begin + graph.bytes[node] / machine.linkBytes[link];
  push({linkFree[link] + machine.linkSeconds[link], node, to});
}

void Simulation::arrived(int32_t node, int32_t to, double now) {
  take(to, graph.bytes[node]);
  release(node, place[node]);
  hand(*copyAt(node, to), now);
}

void Simulation::finished(int32_t node, double now) {
  if (!isResident(node)) {
    busy[place[node]] = 0;
    for (int64_t i = kernels.firstRead[node]; i < kernels.firstRead[node + 1]; ++i)
      release(kernels.reads[i], place[node]);
  }
  for (int64_t i = firstCopy[node] + 1; i < firstCopy[node + 1]; ++i)
    send(node, copies[i].device, now);
  hand(copies[firstCopy[node]], now);
}

void Simulation::dispatch(double now) {
  for (int32_t device = 0; device < machine.devices; ++device) {
    auto &queue = queues[device];
    if (busy[device] || queue.empty())
      continue;
    std::pop_heap(queue.begin(), queue.end());
    int32_t node = queue.back().node;
    queue.pop_back();
    busy[device] = 1;
    take(device, graph.bytes[node]);
    start[node] = now;
    finish[node] = now + machine.launch[device] +
                   std::max(kernels.flops[node] / machine.flops[device],
                            kernels.traffic[node] / machine.bytes[device]);
    push({finish[node], node, -1});
  }
}

void Simulation::begin() {
  std::fill(busy.begin(), busy.end(), 0);
  std::fill(held.begin(), held.end(), 0);
  std::fill(linkFree.begin(), linkFree.end(), 0);
  std::fill(ready.begin(), ready.end(), 0);
  std::fill(start.begin(), start.end(), 0);
  std::fill(finish.begin(), finish.end(), 0);
  std::fill(peak, peak + machine.devices, 0);
  events.clear();
  for (int32_t node = 0; node < graph.nodes; ++node) {
    missing[node] = int32_t(kernels.firstRead[node + 1] - kernels.firstRead[node]);
    take(place[node], graph.heldBytes[node]);
  }
  for (int32_t node = 0; node < graph.nodes; ++node) {
    if (isResident(node))
      finished(node, 0);
    else if (missing[node] == 0 && !kernels.isFused(node) &&
             kernels.firstRead[node] == kernels.firstRead[node + 1])
      enqueue(node, 0);
  }
}

double Simulation::run(const int32_t *device, const double *priorities, const uint8_t *fuse,
                       double *peakBytes) {
  priority = priorities;
  peak = peakBytes;
  kernels.build(fuse);
  placeKernels(device);
  findCopies();
  begin();
  double now = 0, makespan = 0;
  dispatch(now);
  while (!events.empty()) {
    now = events.front().time;
    while (!events.empty() && events.front().time == now) {
      std::pop_heap(events.begin(), events.end());
      Event event = events.back();
      events.pop_back();
      if (event.to >= 0) {
        arrived(event.node, event.to, now);
        continue;
      }
      makespan = now;
      finished(event.node, now);
    }
    dispatch(now);
  }
  return makespan;
}

} // namespace
} // namespace heddle::simulator

using heddle::simulator::Simulation;

struct heddle_simulator {
  Simulation simulation;
};

heddle_simulator_t *heddle_simulator_create(const heddle_simulator_graph_t *graph,
                                            const heddle_simulator_machine_t *machine) {
  return new heddle_simulator{
      Simulation(heddle::simulator::graphOf(*graph), heddle::simulator::machineOf(*machine))};
}

void heddle_simulator_destroy(heddle_simulator_t *simulator) { delete simulator; }

void heddle_simulator_run(heddle_simulator_t *simulator, int64_t count, const int32_t *device,
                          const double *priority, const uint8_t *fuse, double *makespan,
                          double *peak_bytes) {
  Simulation &simulation = simulator->simulation;
  int64_t nodes = simulation.graph.nodes;
  for (int64_t i = 0; i < count; ++i)
    makespan[i] = simulation.run(device + i * nodes, priority + i * nodes, fuse + i * nodes,
                                 peak_bytes + i * simulation.machine.devices);
}

void heddle_simulator_trace(const heddle_simulator_t *simulator, int32_t *device, double *ready,
                            double *start, double *finish, uint8_t *fused) {
  const Simulation &simulation = simulator->simulation;
  for (int32_t node = 0; node < simulation.graph.nodes; ++node) {
    int32_t owner = simulation.kernels.ownerOf(node);
    device[node] = simulation.place[owner];
    ready[node] = simulation.ready[owner];
    start[node] = simulation.start[owner];
    finish[node] = simulation.finish[owner];
    fused[node] = simulation.kernels.isFused(node);
  }
}

int64_t heddle_simulator_kernels(heddle_simulator_t *simulator, const uint8_t *fuse, double *flops,
                                 double *traffic_bytes, int32_t *owner, int64_t *first_read,
                                 int32_t *reads, int64_t capacity) {
  Simulation &simulation = simulator->simulation;
  auto &kernels = simulation.kernels;
  kernels.build(fuse);
  size_t nodes = simulation.graph.nodes;
  std::memcpy(flops, kernels.flops.data(), nodes * sizeof(double));
  std::memcpy(traffic_bytes, kernels.traffic.data(), nodes * sizeof(double));
  std::memcpy(first_read, kernels.firstRead.data(), (nodes + 1) * sizeof(int64_t));
  for (size_t node = 0; node < nodes; ++node)
    owner[node] = kernels.ownerOf(int32_t(node));
  int64_t count = int64_t(kernels.reads.size());
  std::copy_n(kernels.reads.begin(), std::min(count, capacity), reads);
  return count;
}
