"""graph: a computation graph as the optimizers of heddle_lab.go see it: what each node computes,
how many bytes it writes, and which nodes it reads. SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass

import numpy as np

from heddle import UsageError

FUSIBLE, HEAVY, RESIDENT = 1, 2, 4  # as in python/simulator/simulator.h

# kind -> traits. The order is that of the policy's embedding of kinds.
KINDS = {
    "variable": RESIDENT,  # a weight: on its device before the graph runs
    "input": RESIDENT,
    "matmul": FUSIBLE | HEAVY,
    "conv": FUSIBLE | HEAVY,
    "pool": FUSIBLE,
    "elementwise": FUSIBLE,
    "activation": FUSIBLE,
    "reduce": FUSIBLE,
    "softmax": FUSIBLE,
    "normalize": FUSIBLE,
    "move": FUSIBLE,  # concat, split, reshape, transpose
    "gather": 0,
    "update": 0,  # of a weight, by its gradient
    "other": 0,
}
KIND_NAMES = tuple(KINDS)
KIND_OF = {name: number for number, name in enumerate(KIND_NAMES)}
TRAITS = np.array([KINDS[name] for name in KIND_NAMES], np.uint8)


@dataclass
class Graph:
    """Nodes in topological order.

    kind          number of KIND_NAMES
    flops         floating-point operations
    bytes         of the result
    held_bytes    taken on the node's device during the whole run: a weight with its optimizer state
    colocate      the node whose device this one shares, or -1
    first_input, inputs   node i reads inputs[first_input[i]:first_input[i + 1]]
    names         optional
    """

    name: str
    kind: np.ndarray
    flops: np.ndarray
    bytes: np.ndarray
    held_bytes: np.ndarray
    colocate: np.ndarray
    first_input: np.ndarray
    inputs: np.ndarray
    names: list = None

    def __post_init__(self):
        self.kind = np.ascontiguousarray(self.kind, np.int32)
        for field in ("flops", "bytes", "held_bytes"):
            setattr(self, field, np.ascontiguousarray(getattr(self, field), np.float64))
        self.colocate = np.ascontiguousarray(self.colocate, np.int32)
        self.first_input = np.ascontiguousarray(self.first_input, np.int64)
        self.inputs = np.ascontiguousarray(self.inputs, np.int32)
        if not len(self.kind):
            raise UsageError(f"graph '{self.name}' has no nodes")

    def __len__(self):
        return len(self.kind)

    @property
    def traits(self):
        return TRAITS[self.kind]

    @property
    def edges(self):
        """(producer, reader) of every edge: two arrays."""
        return self.inputs, np.repeat(np.arange(len(self), dtype=np.int32),
                                      np.diff(self.first_input))

    def readers(self):
        """(first, readers): as first_input and inputs, in the other direction."""
        producers, readers = self.edges
        first = np.zeros(len(self) + 1, np.int64)
        np.cumsum(np.bincount(producers, minlength=len(self)), out=first[1:])
        return first, readers[np.argsort(producers, kind="stable")]

    def name_of(self, node):
        return self.names[node] if self.names else f"{KIND_NAMES[self.kind[node]]}_{node}"


class Builder:
    """Collects nodes in any order; `graph()` sorts them topologically."""

    def __init__(self, name):
        self.name = name
        self.kinds, self.flops, self.bytes, self.held, self.inputs = [], [], [], [], []
        self.colocate, self.names = [], []

    def __len__(self):
        return len(self.kinds)

    def node(self, kind, inputs=(), flops=0.0, bytes=0.0, held=0.0, colocate=-1, name=None):
        """Adds a node, returns its number."""
        if kind not in KIND_OF:
            raise UsageError(f"unknown kind of node '{kind}'; known: {', '.join(KIND_NAMES)}")
        for field, value in (("flops", flops), ("bytes", bytes), ("held", held)):
            if not 0 <= value < float("inf"):
                raise UsageError(f"node '{name or kind}': '{field}' is {value}, but must be a "
                                 "finite number that is not negative")
        if inputs and KINDS[kind] & RESIDENT:
            raise UsageError(f"node '{name or kind}' is of kind '{kind}', which reads nothing, but "
                             f"has {len(inputs)} inputs")
        self.kinds.append(KIND_OF[kind])
        self.flops.append(flops)
        self.bytes.append(bytes)
        self.held.append(held)
        self.inputs.append(list(inputs))
        self.colocate.append(colocate)
        self.names.append(name or f"{kind}_{len(self.kinds) - 1}")
        return len(self.kinds) - 1

    def colocate_resident(self):
        """Places weights and inputs with their first reader."""
        for node, inputs in enumerate(self.inputs):
            for each in inputs:
                if TRAITS[self.kinds[each]] & RESIDENT and self.colocate[each] < 0:
                    self.colocate[each] = node

    def _order(self):
        """A topological order that keeps the order of addition where it can."""
        count = len(self.kinds)
        missing = [len(each) for each in self.inputs]
        readers = [[] for _ in range(count)]
        for node, each in enumerate(self.inputs):
            for value in each:
                if not 0 <= value < count:
                    raise UsageError(f"node '{self.names[node]}' reads node {value}, but there are "
                                     f"only {count}")
                readers[value].append(node)
        if all(value < node for node, each in enumerate(self.inputs) for value in each):
            return list(range(count))
        order, stack = [], [node for node in reversed(range(count)) if not missing[node]]
        while stack:
            node = stack.pop()
            order.append(node)
            for reader in reversed(readers[node]):
                missing[reader] -= 1
                if not missing[reader]:
                    stack.append(reader)
        if len(order) < count:
            raise UsageError(f"graph '{self.name}' has a cycle: {self._cycle(missing)}")
        return order

    def _cycle(self, missing):
        """Names of the nodes of a cycle. Each node that is left reads another one that is left."""
        node = next(node for node, count in enumerate(missing) if count)
        path = []
        while node not in path:
            path.append(node)
            node = next(value for value in self.inputs[node] if missing[value])
        names = [f"'{self.names[each]}'" for each in reversed(path[path.index(node):])]
        shown = names if len(names) <= 6 else [*names[:5], "..."]
        return " -> ".join([*shown, names[0]])

    def graph(self):
        order = self._order()
        place = np.empty(max(len(order), 1), np.int64)
        place[order] = np.arange(len(order))
        inputs = [[int(place[value]) for value in self.inputs[node]] for node in order]
        first = np.zeros(len(order) + 1, np.int64)
        np.cumsum([len(each) for each in inputs], out=first[1:])
        colocate = np.array(self.colocate, np.int64)[order]
        if len(order) and colocate.max() >= len(order):
            raise UsageError(f"graph '{self.name}': a node is placed with node {colocate.max()}, "
                             f"but there are only {len(order)}")
        return Graph(self.name, np.array(self.kinds)[order], np.array(self.flops)[order],
                     np.array(self.bytes)[order], np.array(self.held)[order],
                     np.where(colocate >= 0, place[colocate], -1), first,
                     np.array([value for each in inputs for value in each], np.int32),
                     [self.names[node] for node in order])
