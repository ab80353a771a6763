"""orders: the kernels of a compiled model in an order that needs less memory.

The groups of a compiled model become a graph, whose peak of memory on one device is searched as
schedules are, and the order that was found becomes a plan that `heddle.compile(plan=...)` carries
out. SPDX-License-Identifier: Apache-2.0
"""

import re

import numpy as np

from heddle import RefusedError, UsageError, compile

from .baselines import Space, anneal
from .graph import Builder
from .simulator import Machine, Plan, Simulator

GROUP = re.compile(r'^    (%\w+)(?::\d+)? = graph\.group "([^"]*)"(?: \{.*\})? : (.*) \{$')
OUTER = re.compile(r"^    (%\w+)(?::\d+)? = ")
INNER = re.compile(r"^      +(%\w+)(?::\d+)? = ")
VALUE = re.compile(r"(%\w+)(?:#(\d+))?")
TENSOR = re.compile(r"tensor<((?:\d+x)*)([a-z]+\d+)(?:, [^>]*)?>")


def _bytes_of(text, group):
    """Bytes of each result in a list of types."""
    sizes = []
    for dims, element in TENSOR.findall(text):
        bits = max(8, int(re.sub(r"\D", "", element)))
        sizes.append(float(np.prod([int(dim) for dim in dims.split("x") if dim],
                                   dtype=np.float64) * bits / 8))
    if len(sizes) != text.count("tensor<"):
        raise UsageError(f"group '{group}' has results of sizes known only at run time; give all "
                         "sizes to heddle.compile: shapes={\"batch\": 8}")
    return sizes


def _note_view(line, nodes_of, builder):
    """An op outside of groups makes another view of what it reads, or returns it."""
    values = [value for value, _ in VALUE.findall(line)]
    if line.startswith("    return"):
        for node in set().union(*(nodes_of.get(value, set()) for value in values)):
            builder.bytes[node] = 0.0
    elif OUTER.match(line):
        nodes_of[values[0]] = set().union(*(nodes_of.get(value, set()) for value in values[1:]))


def group_graph(compiled):
    """The groups of what heddle.compile(load=False) made, as a graph with a node each. The
    results of the model are in the caller's memory and do not count."""
    lines = compiled.text("graph").splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("  func.func @main")), None)
    if start is None:
        raise RefusedError("the compiled graph has no function 'main'")
    builder, nodes_of, inside, current = Builder("groups"), {}, set(), None
    for line in lines[start + 1:]:
        group = GROUP.match(line)
        if line == "  }":
            break
        if group:
            value, name, types = group.groups()
            current = builder.node("other", (), 1.0, sum(_bytes_of(types, name)), name=name)
            nodes_of[value], inside = {current}, set()
        elif line == "    }":
            current = None
        elif current is not None:
            own = INNER.match(line)
            values = {value for value, _ in VALUE.findall(line)} - inside
            inside.update(own.groups() if own else ())
            reads = set().union(*(nodes_of.get(value, set()) for value in values - inside))
            builder.inputs[current] += sorted(reads - {current} - set(builder.inputs[current]))
        else:
            _note_view(line, nodes_of, builder)
    return builder.graph()


class PeakSpace(Space):
    """A search for a low peak of memory, in bytes, instead of a short time."""

    def run(self, device, level, fuse):
        result = super().run(device, level, fuse)
        result.seconds = result.peak_bytes.max(1)
        return result

    def cost(self, plan):
        return float(self.simulator.run(plan.device, plan.priority, plan.fuse).peak_bytes.max())


def frugal(simulator):
    """Picks, of the nodes that are ready, the one after which the least memory is taken."""
    graph = simulator.graph
    first, readers = graph.readers()
    left = np.diff(first).astype(int)  # readers that have not run
    missing = np.diff(graph.first_input).astype(int)
    ready = [node for node in range(len(graph)) if not missing[node]]
    priority = np.zeros(len(graph))
    for step in range(len(graph)):
        def growth(node):
            inputs = graph.inputs[graph.first_input[node]:graph.first_input[node + 1]]
            freed = sum(graph.bytes[each] for each in inputs if left[each] == 1)
            return graph.bytes[node] - freed, node
        node = min(ready, key=growth)
        ready.remove(node)
        priority[node] = -step
        left[graph.inputs[graph.first_input[node]:graph.first_input[node + 1]]] -= 1
        for reader in readers[first[node]:first[node + 1]]:
            missing[reader] -= 1
            if not missing[reader]:
                ready.append(int(reader))
    return priority


def search_order(graph, evaluations=4000, rounds=4, seed=0):
    """Priorities of the nodes and the peak in bytes: annealing by turns from the best order so far,
    which begins as that of the graph or the frugal one."""
    simulator = Simulator(graph, Machine(1, memory_bytes=2.0**60))
    count = len(graph)
    device, fuse = np.zeros(count, np.int32), np.zeros(count, np.uint8)

    def peak(priority):
        return float(simulator.run(device, priority, fuse).peak_bytes.max())

    best = min((-np.arange(count, dtype=float), frugal(simulator)), key=peak)
    for turn in range(rounds):
        space = PeakSpace(simulator, Plan(device, best, fuse), ("schedule",))
        plan, _ = anneal(space, evaluations // rounds, seed + turn, hottest=0.01, spread=0.02)
        if peak(plan.priority) < peak(best):
            best = plan.priority
    return best, peak(best)


def order_plan(compiled, priority, graph):
    """The plan of a compiled model with its groups in an order that priorities give. Groups are
    launched one by one, since those that are launched together take their memory together."""
    simulator = Simulator(graph, Machine(1, memory_bytes=2.0**60))
    count = len(graph)
    trace = simulator.trace(Plan(np.zeros(count, np.int32), priority, np.zeros(count, np.uint8)))
    place = {graph.names[node]: number
             for number, node in enumerate(np.argsort(trace.start, kind="stable"))}
    plan = compiled.plan
    for line in plan["groups"]:
        if line["name"] not in place:
            raise RefusedError(f"the plan has a group '{line['name']}', which the compiled graph "
                               "lacks")
        line["order"] = int(place[line["name"]])
        line.pop("region", None)
    plan["groups"].sort(key=lambda line: line["order"])
    return plan


def lower_peak(model, evaluations=4000, seed=0, **options):
    """Compiles a model (`options` are those of heddle.compile) and searches an order with a lower
    peak. Returns the plan, and the bytes between kernels without it and with it. What is found is
    compiled, and left if it needs no less, as where an operand's memory is used again in place: the
    plan is then the compiler's own."""
    compiled = compile(model, load=False, **options)
    before = compiled.report["memory"]["between_kernels"]
    if before == 0:
        return compiled.plan, before, before
    graph = group_graph(compiled)
    priority, _ = search_order(graph, evaluations, seed=seed)
    plan = order_plan(compiled, priority, graph)
    after = compile(model, load=False, plan=plan, **options).report["memory"]["between_kernels"]
    return (plan, before, after) if after < before else (compiled.plan, before, before)
