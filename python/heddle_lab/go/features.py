"""features: what the policy sees of a graph and of the plan that it refines, as arrays.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .baselines import LEVELS, upward_rank
from .graph import FUSIBLE, HEAVY, RESIDENT

NEIGHBOURS = 8  # of a node: at most half of them its inputs, those with the most bytes first
STATIC, DYNAMIC = 10, 8
FEATURES = STATIC + DYNAMIC
HOPS = (1, 2, 4, 8)
DEVICE_FEATURES = 5 + len(HOPS)
CLUSTERS = (4, 16, 64, 256, 1024)  # nodes of a cluster, at most
BINS = 32  # of time, in which the load of devices is told


def neighbours_of(graph):
    """[node, NEIGHBOURS]: numbers of neighbours; a node's own fill up what is left."""
    half = NEIGHBOURS // 2
    table = np.repeat(np.arange(len(graph))[:, None], NEIGHBOURS, 1)
    producers, readers = graph.edges
    weight = graph.bytes[producers]
    for ends, others, place in ((readers, producers, 0), (producers, readers, half)):
        order = np.lexsort((others, -weight, ends))
        ends, others = ends[order], others[order]
        first = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=len(graph)))])
        rank = np.arange(len(ends)) - first[ends]
        taken = rank < half
        table[ends[taken], place + rank[taken]] = others[taken]
    return table


def clusters_of(graph, most):
    """Clusters of at most `most` nodes, joined along the edges with the most bytes first."""
    producers, readers = graph.edges
    parent, size = list(range(len(graph))), [1] * len(graph)

    def find(node):
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for edge in np.argsort(-graph.bytes[producers], kind="stable"):
        a, b = find(int(producers[edge])), find(int(readers[edge]))
        if a != b and size[a] + size[b] <= most:
            parent[a] = b
            size[b] += size[a]
    roots = np.array([find(node) for node in range(len(graph))])
    return np.unique(roots, return_inverse=True)[1]


class View:
    """All that is known about a graph before a plan is refined."""

    def __init__(self, space):
        self.space, simulator = space, space.simulator
        self.graph, self.machine = simulator.graph, simulator.machine
        graph, count = self.graph, len(self.graph)
        self.neighbours = neighbours_of(graph)
        producers, readers = graph.edges
        self.edges = np.concatenate([producers, readers]), np.concatenate([readers, producers])
        degree = np.bincount(self.edges[1], minlength=count)
        self.degree = np.maximum(degree, 1)[:, None]
        order = np.argsort(self.edges[1], kind="stable")
        self.sources = self.edges[0][order]
        self.has_edges = degree > 0
        self.starts = np.concatenate([[0], np.cumsum(degree)])[:-1][self.has_edges]
        rank = upward_rank(simulator, space.start.fuse)
        traits, inputs = graph.traits, np.diff(graph.first_input)
        self.static = np.stack([
            np.log10(graph.flops + 1) / 6 - 1, np.log10(graph.bytes + 1) / 4 - 1,
            np.log10(graph.held_bytes + 1) / 9, np.log2(inputs + 1) / 2,
            np.log2(np.bincount(producers, minlength=count) + 1) / 2,
            (traits & FUSIBLE) != 0, (traits & HEAVY) != 0, (traits & RESIDENT) != 0,
            rank / max(rank.max(), 1e-12), np.arange(count) / count], 1).astype(np.float32)
        self.clusters = [np.arange(count), *(clusters_of(graph, most) for most in CLUSTERS
                                             if most < count)]
        # of its cluster that a node is
        self.shares = [1 / np.bincount(of_node)[of_node] for of_node in self.clusters]

    def spread(self, values):
        """The mean of the values of a node's neighbours."""
        result = values.copy()
        result[self.has_edges] = np.add.reduceat(values[self.sources], self.starts) \
            / self.degree[self.has_edges]
        return result

    def dynamic(self, state, trace):
        """Features of a state and its trace, [node, DYNAMIC] and [node, device,
        DEVICE_FEATURES]."""
        _, level, fuse = state
        total = max(float(trace.result.seconds[0]), 1e-12)
        length = trace.finish - trace.start
        mean = max(float(length[length > 0].mean()) if (length > 0).any() else 0.0, 1e-12)
        critical = critical_path(self.space.simulator, trace)
        features = np.stack([
            trace.start / total, trace.finish / total, np.log1p((trace.start - trace.ready) / mean),
            np.log1p(length / mean), trace.fused, critical,
            (level - LEVELS // 2) / 2, fuse], 1).astype(np.float32)
        return features, self._of_devices(trace, total)

    def _of_devices(self, trace, total):
        count, devices = len(self.graph), self.machine.devices
        here = np.eye(devices, dtype=np.float32)[trace.device]
        result = np.zeros((count, devices, DEVICE_FEATURES), np.float32)
        result[:, :, 0] = here
        near, place = here, 1
        for hop in range(1, max(HOPS) + 1):
            near = self.spread(near)
            if hop in HOPS:
                result[:, :, place] = near
                place += 1
        is_kernel = (trace.fused == 0) & (trace.finish > trace.start)
        length = np.where(is_kernel, trace.finish - trace.start, 0)
        busy = np.bincount(trace.device, length, minlength=devices) / total
        bins = np.minimum((trace.start / total * BINS).astype(int), BINS - 1)
        load = np.zeros((BINS, devices), np.float32)
        np.add.at(load, (bins, trace.device), length * BINS / total)
        result[:, :, place] = busy
        result[:, :, place + 1] = np.minimum(load[bins], 2)
        result[:, :, place + 2] = trace.result.peak_bytes[0] / self.machine.memory_bytes
        first = np.full(devices, count)
        np.minimum.at(first, trace.device[is_kernel], np.flatnonzero(is_kernel))
        result[:, :, place + 3] = np.argsort(np.argsort(first)) / devices
        return result


def critical_path(simulator, trace):
    """1 for nodes of the chain of kernels that ends last: each started when its last input arrived,
    or when the kernel before it on its device was done."""
    graph, machine = simulator.graph, simulator.machine
    on_path = np.zeros(len(graph), np.float32)
    runs = np.flatnonzero((trace.fused == 0) & (trace.finish > trace.start))
    if not len(runs):
        return on_path
    order = runs[np.lexsort((trace.start[runs], trace.device[runs]))]
    before = np.full(len(graph), -1)
    same = trace.device[order][1:] == trace.device[order][:-1]
    before[order[1:]] = np.where(same, order[:-1], -1)
    node = int(runs[np.argmax(trace.finish[runs])])
    for _ in range(len(runs)):
        on_path[node] = 1
        if trace.start[node] > trace.ready[node] and before[node] >= 0:
            node = int(before[node])
            continue
        inputs = graph.inputs[graph.first_input[node]:graph.first_input[node + 1]]
        inputs = inputs[trace.start[inputs] < trace.start[node]] if len(inputs) else inputs
        inputs = inputs[trace.finish[inputs] > 0] if len(inputs) else inputs
        if not len(inputs):
            break
        home = trace.device[inputs]
        arrival = trace.finish[inputs] + np.where(
            home == trace.device[node], 0.0,
            machine.link_seconds[home, trace.device[node]]
            + graph.bytes[inputs] / machine.link_bytes_per_second[home, trace.device[node]])
        node = int(inputs[np.argmax(arrival)])
    return on_path
