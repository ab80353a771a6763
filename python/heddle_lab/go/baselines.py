"""baselines: what the learned policy is compared with: the default placement, HEFT, METIS, and
simulated annealing. Each returns a Plan. SPDX-License-Identifier: Apache-2.0
"""

from bisect import bisect_right, insort

import numpy as np

from heddle import UsageError
from heddle.packages import need

from .graph import KIND_OF, RESIDENT
from .simulator import INVALID_REWARD, Plan

LEVELS = 5  # of the schedule: -2 .. 2, where 0 leaves the order to the upward rank
CHEAP = [KIND_OF[kind] for kind in ("elementwise", "activation", "move", "normalize", "softmax")]


def no_fusion(graph):
    return np.zeros(len(graph), np.uint8)


def default_fusion(graph):
    """Fuses what is computed per element or per row into its reader, if it has only one."""
    first, _ = graph.readers()
    return (np.isin(graph.kind, CHEAP) & (np.diff(first) == 1)).astype(np.uint8)


class _Work:
    """The kernels of a choice of fusion: how long each takes, what it reads, and which nodes share
    a device with it."""

    def __init__(self, simulator, fuse=None):
        self.graph, self.machine = simulator.graph, simulator.machine
        fuse = default_fusion(self.graph) if fuse is None else fuse
        self.fuse = np.asarray(fuse, np.uint8)
        self.kernels = simulator.kernels(fuse)
        self.seconds = simulator.kernel_seconds(self.kernels)
        self.resident = (self.graph.traits & RESIDENT) != 0
        self.roots = np.flatnonzero(self.kernels.is_root & ~self.resident)
        machine = self.machine
        apart = ~np.eye(machine.devices, dtype=bool)
        self.byte_seconds = (1 / machine.link_bytes_per_second[apart]).mean() \
            if apart.any() else 0.0
        self.latency = machine.link_seconds[apart].mean() if apart.any() else 0.0

    def home_of(self, root):
        """The kernel whose device a root has; the same chain as the simulator follows."""
        for _ in range(8):
            if self.graph.colocate[root] < 0:
                break
            root = self.kernels.owner[self.graph.colocate[root]]
        return root

    def upward_rank(self):
        """Seconds from the start of a kernel to the end of the graph, with mean transfers."""
        mean = self.seconds.mean(0)
        below = np.zeros(len(self.graph))
        for root in self.roots[::-1]:
            rank = below[root] = below[root] + mean[root]
            reads = self.kernels.reads_of(root)
            reach = rank + self.latency + self.graph.bytes[reads] * self.byte_seconds
            np.maximum.at(below, reads, reach)
        return below

    def plan(self, device, priority):
        """A plan of kernels as one of nodes."""
        owner = self.kernels.owner
        return Plan(np.asarray(device, np.int32)[owner],
                    np.asarray(priority, np.float64)[owner], self.fuse)


def upward_rank(simulator, fuse):
    """The rank of each node's kernel."""
    work = _Work(simulator, fuse)
    return work.upward_rank()[work.kernels.owner]


class _Timeline:
    """When a device is busy; finds the first gap that is long enough."""

    def __init__(self):
        self.spans = []  # (start, finish), sorted

    def fit(self, ready, seconds):
        at = bisect_right(self.spans, (ready, float("inf")))
        begin = max(ready, self.spans[at - 1][1]) if at else ready
        for start, finish in self.spans[at:]:
            if begin + seconds <= start:
                break
            begin = max(begin, finish)
        return begin

    def add(self, start, finish):
        insort(self.spans, (start, finish))


class _ListScheduler:
    """Places kernels one by one where they finish, or start, first."""

    def __init__(self, work, with_links):
        self.work, self.with_links = work, with_links
        count, devices = len(work.graph), work.machine.devices
        self.device = np.full(count, -1, np.int32)
        self.start, self.finish = np.zeros(count), np.zeros(count)
        self.lines = [_Timeline() for _ in range(devices)]
        self.link_free = np.zeros((devices, devices))
        self.arrived = {}  # (tensor, device) -> seconds
        self.held = np.zeros(devices)
        self.held_with = np.zeros(count)  # of resident nodes that are placed with a kernel
        for node in np.flatnonzero(work.resident):
            self.held_with[work.home_of(node)] += work.graph.held_bytes[node]

    def arrival(self, value, device):
        """When a tensor can be on a device."""
        home, machine = self.device[value], self.work.machine
        if home < 0 or home == device:
            return self.finish[value]
        if (value, device) in self.arrived:
            return self.arrived[value, device]
        begin = max(self.finish[value], self.link_free[home, device])
        return begin + machine.link_seconds[home, device] + \
            self.work.graph.bytes[value] / machine.link_bytes_per_second[home, device]

    def place(self, root, by_start=False):
        work, machine = self.work, self.work.machine
        reads = work.kernels.reads_of(root)
        for value in reads:  # a weight is where its first reader is
            if work.resident[value] and self.device[value] < 0:
                home = work.home_of(value)
                if home != root:
                    self.device[value] = self.device[home]
        home = work.home_of(root)
        need = self.held_with[root] + work.graph.bytes[root]
        if home != root and self.device[home] >= 0:
            options = [self.device[home]]
        else:
            options = [each for each in range(machine.devices)
                       if self.held[each] + need <= machine.memory_bytes[each]]
            options = options or [int(np.argmax(machine.memory_bytes - self.held))]
        best = None
        for device in options:
            ready = max((self.arrival(value, device) for value in reads), default=0.0)
            seconds = work.seconds[device, root]
            start = self.lines[device].fit(ready, seconds)
            key = (start if by_start else start + seconds, device)
            if best is None or key < best[0]:
                best = key, device, start, start + seconds
        _, device, start, finish = best
        self._commit(root, reads, device, start, finish)
        self.held[device] += need

    def _commit(self, root, reads, device, start, finish):
        self.device[root], self.start[root], self.finish[root] = device, start, finish
        self.lines[device].add(start, finish)
        for value in reads:
            if self.work.resident[value] and self.device[value] < 0:
                self.device[value] = device
            home = self.device[value]
            if home != device and (value, device) not in self.arrived:
                self.arrived[value, device] = arrival = self.arrival(value, device)
                if self.with_links:
                    latency = self.work.machine.link_seconds[home, device]
                    self.link_free[home, device] = arrival - latency


def asap(simulator, fuse=None):
    """The default: kernels in the order of the graph, each where it can start first, and run in
    that order."""
    work = _Work(simulator, fuse)
    scheduler = _ListScheduler(work, with_links=False)
    for root in work.roots:
        scheduler.place(root, by_start=True)
    return work.plan(np.maximum(scheduler.device, 0), -np.arange(len(work.graph)))


def heft(simulator, fuse=None, with_links=False):
    """HEFT (Topcuoglu et al., 2002): kernels by upward rank, each where it finishes first, in gaps
    too. `with_links` also counts the time that a transfer waits for its link, which HEFT does not.
    """
    work = _Work(simulator, fuse)
    scheduler = _ListScheduler(work, with_links)
    rank = work.upward_rank()
    for root in work.roots[np.argsort(-rank[work.roots], kind="stable")]:
        scheduler.place(root)
    return work.plan(np.maximum(scheduler.device, 0), -scheduler.start)


def metis(simulator, fuse=None, seed=0):
    """Parts of equal work with few bytes between them (Karypis and Kumar, 1998), by METIS; kernels
    run by upward rank."""
    pymetis = need("pymetis", "METIS", "go")
    work = _Work(simulator, fuse)
    graph, kernels = work.graph, work.kernels
    roots = np.flatnonzero(kernels.is_root)
    home = np.array([work.home_of(root) for root in roots])
    vertices, vertex = np.unique(home, return_inverse=True)
    of_root = np.full(len(graph), -1)
    of_root[roots] = vertex
    readers = np.repeat(np.arange(len(graph)), np.diff(kernels.first_read))
    ends = np.stack([of_root[kernels.reads], of_root[readers]])
    weights = graph.bytes[kernels.reads]
    ends, weights = ends[:, ends[0] != ends[1]], weights[ends[0] != ends[1]]
    ends, weights = np.concatenate([ends, ends[::-1]], 1), np.concatenate([weights, weights])
    pairs, inverse = np.unique(ends[0] * len(vertices) + ends[1], return_inverse=True)
    joined = np.bincount(inverse, weights, minlength=len(pairs))
    first = np.zeros(len(vertices) + 1, np.int64)
    np.cumsum(np.bincount(pairs // len(vertices), minlength=len(vertices)), out=first[1:])
    busy = np.bincount(vertex, work.seconds.mean(0)[roots], minlength=len(vertices))
    if simulator.machine.devices == 1:
        parts = np.zeros(len(vertices), np.int32)
    else:
        options = pymetis.Options(seed=seed)
        _, parts = pymetis.part_graph(
            simulator.machine.devices, options=options,
            adjacency=pymetis.CSRAdjacency(first.tolist(), (pairs % len(vertices)).tolist()),
            vweights=np.maximum(1, busy / busy.max() * 1e5).astype(int).tolist(),
            eweights=np.maximum(1, joined / max(joined.max(), 1) * 1e5).astype(int).tolist())
    device = np.zeros(len(graph), np.int32)
    device[roots] = np.asarray(parts)[vertex]
    return work.plan(device, work.upward_rank())


TASKS = ("placement", "schedule", "fusion")


def ordered(tasks):
    """Some of TASKS, in their order."""
    unknown = [task for task in tasks if task not in TASKS]
    if unknown or not tasks:
        raise UsageError(f"unknown task '{''.join(unknown[:1])}'; known: {', '.join(TASKS)}")
    return tuple(task for task in TASKS if task in tasks)


class Space:
    """The decisions of a search: per node a device, a level of its priority, and whether it is
    fused. Tasks that are not searched stay as in `start`."""

    TASKS = TASKS

    def __init__(self, simulator, start, tasks=TASKS):
        self.simulator, self.tasks = simulator, ordered(tasks)
        self.start = start
        graph = simulator.graph
        # A level moves a node before all nodes of lower levels; within one the start's order holds.
        count = len(graph)
        self.base = np.empty(count)
        self.base[np.lexsort((-np.arange(count), start.priority))] = np.arange(count) / count
        self.may_place = (graph.traits & RESIDENT == 0) & (graph.colocate < 0)
        self.may_fuse = (graph.traits & 1 != 0) & (np.diff(graph.readers()[0]) > 0)

    def state(self, plan=None):
        """(device, level, fuse) of the start, or of a plan of this space's order."""
        plan = plan or self.start
        return (plan.device.astype(np.int32), np.full(len(plan.device), LEVELS // 2, np.int32),
                plan.fuse.astype(np.uint8))

    def plan(self, state):
        device, level, fuse = state
        return Plan(device, level + self.base, fuse)

    def cost(self, plan):
        """The cost that the search minimises."""
        return self.simulator.seconds(plan)

    def run(self, device, level, fuse):
        return self.simulator.run(device, level + self.base, fuse)


def anneal(space, evaluations, seed=0, hottest=1e-4, coldest=1e-5, spread=0.05, curve=None):
    """Simulated annealing from the start of the space. A move draws new decisions for some nodes;
    how many, at most `spread` of all at first, falls with the temperature, as in XTAT
    (Phothilimthana et al., 2021, section 5). Costs are GO's: roots of times relative to the
    start's. Returns the best plan and its seconds; `curve` collects (evaluations, seconds)."""
    random = np.random.default_rng(seed)
    simulator, state = space.simulator, [array.copy() for array in space.state()]
    nodes = {"placement": np.flatnonzero(space.may_place), "schedule":
             np.flatnonzero(space.may_place), "fusion": np.flatnonzero(space.may_fuse)}
    tasks = [task for task in space.tasks if len(nodes[task])]
    values = {"placement": simulator.machine.devices, "schedule": LEVELS, "fusion": 2}
    base = max(float(space.run(*state).seconds[0]), 1e-30)  # 0 if nothing takes any
    cost, best_cost, best = None, float("inf"), None
    for step in range(evaluations):
        temperature = hottest * (coldest / hottest) ** (step / max(evaluations - 1, 1))
        candidate = list(state)
        if step:
            task = tasks[random.integers(len(tasks))]
            most = max(1, int(spread * len(nodes[task]) * temperature / hottest))
            chosen = nodes[task][random.integers(len(nodes[task]), size=random.integers(most) + 1)]
            place = Space.TASKS.index(task)
            candidate[place] = candidate[place].copy()
            candidate[place][chosen] = (1 - candidate[place][chosen] if task == "fusion" else
                                        random.integers(values[task], size=len(chosen)))
        result = space.run(*candidate)
        seconds = float(result.seconds[0])
        new = np.sqrt(seconds / base) if result.is_valid[0] else -INVALID_REWARD
        if cost is None or new <= cost or random.random() < np.exp((cost - new) / temperature):
            state, cost = candidate, new
        if best is None or new < best_cost:
            best, best_cost = [array.copy() for array in candidate], new
            if curve is not None and result.is_valid[0]:
                curve.append((step + 1, seconds))
    plan = space.plan(best)
    return plan, space.cost(plan)
