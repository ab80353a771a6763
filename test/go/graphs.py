"""graphs: small graphs and machines with round numbers, and a simulator that is slow and plain."""

import numpy as np
from heddle_lab.go import Builder, Machine, Plan, Simulator


def machine(devices=2, launch=0.0, memory=1e12, flops=1.0, bytes=1e18, link=2.0, latency=0.5):
    """A FLOP per second; links of 2 bytes per second."""
    return Machine(devices, flops, bytes, launch, memory, link, latency)


def graph_of(*nodes, name="toy"):
    """A graph of nodes (kind, inputs, flops, bytes)."""
    builder = Builder(name)
    for kind, inputs, flops, size in nodes:
        held = size if kind in ("variable", "input") else 0
        builder.node(kind, inputs, flops, size, held)
    return builder.graph()


def plan_of(graph, device=0, priority=0, fuse=0):
    count = len(graph)
    return Plan(np.broadcast_to(np.int32(device), count).copy(),
                np.broadcast_to(np.float64(priority), count).copy(),
                np.broadcast_to(np.uint8(fuse), count).copy())


def seconds(graph, on, **plan):
    return Simulator(graph, on).seconds(plan_of(graph, **plan))


def random_graph(seed, count=60):
    random = np.random.default_rng(seed)
    nodes = [("input", (), 0, 4.0)]
    kinds = ["matmul", "elementwise", "reduce", "gather", "move"]
    for node in range(1, count):
        inputs = random.integers(0, node, size=random.integers(1, 4)).tolist()
        nodes.append((kinds[random.integers(len(kinds))], inputs,
                      float(random.integers(1, 9)), float(random.integers(1, 9))))
    return graph_of(*nodes)


def slow_makespan(graph, on, plan):
    """Without fusion: at each instant, hand over what has arrived, then start the best ready node
    of each idle device."""
    count = len(graph)
    inputs = [set(graph.inputs[graph.first_input[i]:graph.first_input[i + 1]].tolist())
              for i in range(count)]
    resident = (graph.traits & 4) != 0
    there = {}  # (tensor, device) -> when
    link_free = {}
    running, finished, started = [-1] * on.devices, {}, set()

    def done(node, now):
        home = int(plan.device[node])
        finished[node] = there[node, home] = now
        for to in range(on.devices):
            if to != home and any(node in inputs[r] and plan.device[r] == to
                                  for r in range(count)):
                begin = max(now, link_free.get((home, to), 0.0))
                link_free[home, to] = begin + graph.bytes[node] / on.link_bytes_per_second[home, to]
                there[node, to] = link_free[home, to] + on.link_seconds[home, to]

    for node in np.flatnonzero(resident):
        done(int(node), 0.0)
    now, ends = 0.0, {}
    while True:
        for node in sorted(node for node, end in ends.items() if end <= now):
            del ends[node]
            running[plan.device[node]] = -1
            done(node, now)
        for device in range(on.devices):
            ready = [n for n in range(count) if not resident[n] and n not in started
                     and plan.device[n] == device
                     and all(there.get((i, device), np.inf) <= now for i in inputs[n])]
            if running[device] < 0 and ready:
                node = max(ready, key=lambda n: (plan.priority[n], -n))
                started.add(node)
                running[device] = node
                traffic = graph.bytes[node] + sum(graph.bytes[i] for i in inputs[node])
                ends[node] = now + on.launch_seconds[device] + max(
                    graph.flops[node] / on.flops_per_second[device],
                    traffic / on.bytes_per_second[device])
        later = [time for time in [*ends.values(), *there.values()] if time > now]
        if not later:
            return max((time for node, time in finished.items() if not resident[node]))
        now = min(later)
