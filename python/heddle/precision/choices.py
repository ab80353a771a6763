"""choices: what may be of smaller numbers, how the plan says it, and what time it saves.

SPDX-License-Identifier: Apache-2.0
"""

import copy
import statistics
import time

import numpy as np

from ..quantize.graph import label
from ..session import Session

ROUNDS = 9  # of runs that are timed


def choices_of(math, compile_plan, network):
    """The Groups, or Nodes, that this kind of arithmetic has; `compile_plan(math)` gives plans."""
    plan = compile_plan(math)
    return Nodes(plan, network) if math == "int8" else Groups(plan, compile_plan("fast"), math)


class Groups:
    """Groups of a plan whose factors may be bf16."""

    kind = "bf16"

    def __init__(self, plan, exact, math):
        """`exact`: the plan in f32, whose schedules groups have that are not rounded."""
        self._plan, self._is_halved = plan, math == "bf16-emulated"
        self._exact = {(group["name"], *group["ops"]): group for group in exact["groups"]}
        self.names = [group["name"] for group in plan["groups"]
                      if group.get("precision") == self.kind]
        self._seconds = {}

    def plan(self, names):
        """The plan in which these alone are rounded."""
        plan = copy.deepcopy(self._plan)
        for group in plan["groups"]:
            if group.pop("precision", None) is None:
                continue
            if group["name"] in names:
                group["precision"] = self.kind
            elif exact := self._exact.get((group["name"], *group["ops"])):
                for field in ("card", "card_hash", "knobs", "versions"):
                    group.pop(field, None)
                    if field in exact:
                        group[field] = exact[field]
        return plan

    def told(self, plan, measured):
        """The plan with what was measured of each."""
        for group in plan["groups"]:
            if group["name"] in self.names:
                group["measured"] = measured(group["name"])
        return plan

    def estimate(self, groups):
        """Takes a roofline's word for the time of each group in f32."""
        self._is_halved = True
        self._seconds = {group["name"]: (group["estimated_seconds"], 0.0) for group in groups}

    def time(self, search, feed):
        """Takes the time of each group in f32 and rounded, in runs that take turns."""
        modules = [search.exact, search.compile(self.names, profile=True)]
        found = [{}, {}]
        sessions = [Session(module, profile=lambda group, nanoseconds, place=place:
                            found[place].setdefault(group, []).append(nanoseconds * 1e-9))
                    for place, module in enumerate(modules)]
        for _ in range(ROUNDS):
            for session in sessions:
                session.run(None, dict(feed))
        medians = [{number: statistics.median(times) for number, times in each.items()}
                   for each in found]
        order = sorted(self._plan["groups"], key=lambda group: group.get("order", 0))
        self._seconds = {group["name"]: [self._share(order, number, each) for each in medians]
                         for number, group in enumerate(order)}

    @staticmethod
    def _share(order, number, seconds):
        """The seconds of a group; those that are launched at once share theirs."""
        region = order[number].get("region")
        if region is None:
            return seconds.get(number, 0.0)
        together = [other for other, group in enumerate(order) if group.get("region") == region]
        return sum(seconds.get(other, 0.0) for other in together) / len(together)

    @property
    def whole(self):
        """Seconds of all groups in f32."""
        return sum(exact for exact, _ in self._seconds.values())

    def seconds(self, name):
        return self._seconds[name][0]

    def saved(self, names):
        """Seconds; of products that are emulated or not timed, half of those in f32."""
        pairs = [self._seconds[name] for name in names]
        return sum(exact / 2 if self._is_halved else exact - short for exact, short in pairs)


class Nodes:
    """Nodes whose products may be those of 8-bit integers.

    Groups of a model with integers are others, so that times are those of whole runs: each node
    has the share of them that its weights have of all.
    """

    kind = "int8"

    def __init__(self, plan, network):
        self.names = plan.get("integers", [])
        sizes = {label(node): max((int(np.prod(network.tensors[name].dims)) for name in node.input
                                   if name in network.tensors), default=1)
                 for node in network.nodes}
        sizes = {name: sizes.get(name, 1) for name in self.names}
        whole = sum(sizes.values())
        self._shares = {name: size / whole for name, size in sizes.items()}
        self.whole = self._saved = 0.0

    @staticmethod
    def plan(names):
        """A plan that says no more than which."""
        return {"plan": 1, "integers": sorted(names), "groups": []}

    @staticmethod
    def told(plan, _measured):
        return plan

    def estimate(self, groups):
        """Takes a roofline's word for the time of a run in f32, and half of it for integers."""
        self.whole = sum(group["estimated_seconds"] for group in groups)
        self._saved = self.whole / 2

    def time(self, search, feed):
        """Takes the time of runs in f32 and in integers, which take turns."""
        modules, found = (search.exact, search.compile(self.names)), ([], [])
        for _ in range(ROUNDS):
            for module, times in zip(modules, found):
                begin = time.perf_counter()
                module.run(None, dict(feed))
                times.append(time.perf_counter() - begin)
        self.whole, integers = (statistics.median(times[1:]) for times in found)
        self._saved = self.whole - integers

    def seconds(self, name):
        return self.whole * self._shares[name]

    def saved(self, names):
        return self._saved * sum(self._shares[name] for name in names)
