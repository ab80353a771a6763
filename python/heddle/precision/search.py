"""search: groups whose factors are rounded, as many as a budget of error has room for.

All groups that are faster so are tried at once, which is mostly enough. Else they are a tree of
parts, neighbours in the order of the model: a part whose error does not fit is halved, so that the
few groups that hurt are found by some compilations for each, not by one for every group. Errors of
parts are added as those of independent roundings are, by their squares; what is chosen so is
measured, and samples that were not searched on confirm it, or make it smaller until they do.
SPDX-License-Identifier: Apache-2.0
"""

import copy
import math as numbers
import statistics
import time
from dataclasses import dataclass
from itertools import islice

from .. import compiler, workplace
from ..library import UsageError
from ..quantize import measure
from ..quantize.data import Samples
from ..quantize.graph import Network
from ..session import Session
from ..training.checkpoint import read_model
from .report import Report

SHORT = "bf16"
SEARCHED = 8  # samples at most that are searched on
ROUNDS = 9  # of runs that are timed
TRIALS = 40  # compilations at most that halve parts
WORTH = 0.02  # of the time that all would save: parts that save less are not halved
FIXED = {"plan", "output", "load", "profile", "training", "progress"}


@dataclass(frozen=True)
class Drawn:
    """Settings of Samples."""

    batch: int
    samples: int | None
    dim: tuple
    finetune: int = 0


@dataclass(frozen=True)
class Part:
    """Groups, and the error of the outputs where they alone are rounded."""

    names: tuple
    error: float


def run(model, feeds, tolerance, math, progress, each, drawn, options):
    """(plan, Report)."""
    if not (isinstance(tolerance, (int, float)) and 0 < tolerance < numbers.inf):
        raise UsageError(f"--tolerance {tolerance}: must be a number above 0, the greatest error "
                         "of an output relative to its largest number")
    if math not in ("bf16", "bf16-emulated"):
        raise UsageError(f"--math {math}: with --tolerance it must be bf16 or bf16-emulated")
    for name in FIXED & set(options):
        raise UsageError(f"`{name}` is no option of choosing precisions")
    with workplace.folder() as folder:
        search = Search(model, feeds, tolerance, Drawn(*drawn), {**options, "math": math}, folder)
        search.progress, search.each = progress, each
        return search.run()


class Search:
    """One search, as far as it has come."""

    def __init__(self, model, feeds, tolerance, drawn, options, folder):
        self.model, self.tolerance, self.options = model, tolerance, options
        network = Network(copy.deepcopy(read_model(model, "choosing precisions", "quantize")),
                          str(model) if isinstance(model, str) else "<model>", opset=None)
        self.name = network.name
        self.samples = Samples(feeds, network, drawn, folder)
        self.progress, self.each = None, False
        self.compiled, self.begin = 0, time.perf_counter()

    def run(self):
        self.plan = compiler.compile(self.model, **self.options, load=False).plan
        self.candidates = [group["name"] for group in self.plan["groups"]
                           if group.get("precision") == SHORT]
        self.exact = self._compile((), profile=True)
        self.searched = [(feed, self.exact.run(None, dict(feed)))
                         for feed in islice(self.samples.calibrating(), SEARCHED)]
        self._refuse_numbers()
        self.seconds = self._time_groups()
        wanted = tuple(name for name in self.candidates if self._saved((name,)) > 0)
        self.parts = [self._part(wanted)] if wanted else []
        if self.each:
            self.parts = [self._part((name,)) for name in wanted]
        chosen, error = self._confirmed()
        return self._with(chosen, told=True), Report(self._facts(chosen, error))

    def _refuse_numbers(self):
        """Refuses outputs that have no numbers to compare."""
        names = [output.name for output in self.exact.outputs]
        outputs = measure.output_errors(names, ((wanted, wanted) for _, wanted in self.searched))
        if not any(each.largest for each in outputs):
            raise UsageError(f"'{self.name}': its outputs ({', '.join(names)}) have no finite "
                             "numbers but 0 for these samples, so that there is nothing that an "
                             "error is relative to; --data gives others")

    def _with(self, short, told=False):
        """The plan with these groups rounded."""
        plan = copy.deepcopy(self.plan)
        for group in plan["groups"]:
            group.pop("precision", None)
            if group["name"] in short:
                group["precision"] = SHORT
            if told and group["name"] in self.candidates:
                group["measured"] = self._measured(group["name"])
        return plan

    def _measured(self, name):
        """Numbers of a group that the plan has for its reader."""
        part = next((part for part in self.parts if name in part.names), None)
        error = {"error": part.error, "groups": len(part.names)} if part else {}
        return {"seconds": self.seconds[name][0], "saved": self._saved((name,)), **error}

    def _compile(self, short, **more):
        self.compiled += 1
        return compiler.compile(self.model, plan=self._with(short), **self.options, **more)

    def _time_groups(self):
        """{group: (seconds in f32, seconds with rounded factors)}; groups that are launched at once
        share their time."""
        modules = [self.exact, self._compile(self.candidates, profile=True)]
        order = sorted(self.plan["groups"], key=lambda group: group.get("order", 0))
        found = [{}, {}]
        sessions = [Session(module, profile=lambda group, nanoseconds, place=place:
                            found[place].setdefault(group, []).append(nanoseconds * 1e-9))
                    for place, module in enumerate(modules)]
        for _ in range(ROUNDS):
            for session in sessions:
                session.run(None, dict(self.searched[0][0]))
        medians = [{number: statistics.median(times) for number, times in each.items()}
                   for each in found]
        return {group["name"]: [self._share(order, number, each) for each in medians]
                for number, group in enumerate(order)}

    @staticmethod
    def _share(order, number, seconds):
        """The seconds of a group; those that are launched at once share theirs."""
        region = order[number].get("region")
        if region is None:
            return seconds.get(number, 0.0)
        together = [other for other, group in enumerate(order) if group.get("region") == region]
        return sum(seconds.get(other, 0.0) for other in together) / len(together)

    def _saved(self, names):
        """Seconds; of products that are emulated, half of those in f32."""
        pairs = [self.seconds[name] for name in names]
        is_real = self.options["math"] == SHORT
        return sum(exact - short if is_real else exact / 2 for exact, short in pairs)

    def _tell(self, names, error):
        if self.progress:
            self.progress(f"{len(names)} of {len(self.candidates)} groups in bf16: error "
                          f"{error:.3g}, allowed is {self.tolerance:.3g}")

    def _part(self, names):
        return Part(names, self._error(names))

    def _error(self, short, held=False):
        """The greatest error of an output."""
        module = self._compile(short)
        pairs = (((feed, self.exact.run(None, dict(feed))) for feed in self.samples.held())
                 if held else self.searched)
        errors = measure.output_errors(
            [output.name for output in self.exact.outputs],
            ((wanted, module.run(None, dict(feed))) for feed, wanted in pairs))
        error = max(each.relative for each in errors)
        self._tell(short, error)
        return error

    def _split(self, limit):
        """(parts that fit together, by what they save for their squared error; the others)"""
        fit, others, room = [], [], limit ** 2
        for part in sorted(self.parts, key=self._price):
            if part.error ** 2 <= room:
                room -= part.error ** 2
                fit.append(part)
            else:
                others.append(part)
        return fit, others

    def _price(self, part):
        return part.error ** 2 / self._saved(part.names)

    def _fitting(self, limit):
        """Parts whose error together, as it is measured, is within the limit."""
        worth = WORTH * self._saved(_names(self.parts))
        while self.compiled < TRIALS:
            parts = [part for part in self._split(limit)[1]
                     if len(part.names) > 1 and self._saved(part.names) > worth]
            if not parts:
                break
            part = max(parts, key=lambda part: self._saved(part.names))
            middle = len(part.names) // 2
            self.parts.remove(part)
            self.parts += [self._part(part.names[:middle]), self._part(part.names[middle:])]
        room = limit
        while fit := self._split(room)[0]:
            error = self._error(_names(fit)) if len(fit) > 1 else fit[0].error
            if error <= limit:
                return fit
            room *= min(0.9, limit / error)  # they are not as independent as that
        return []

    def _confirmed(self):
        """(names of groups whose error on other samples holds, too; that error)"""
        limit = self.tolerance
        parts = self._fitting(limit)
        while parts:
            error = self._error(_names(parts), held=True)
            if error <= self.tolerance:
                return set(_names(parts)), error
            limit *= min(0.9, self.tolerance / error)
            fewer = self._fitting(limit)
            are_fewer = set(_names(fewer)) < set(_names(parts))
            parts = fewer if are_fewer else sorted(parts, key=self._price)[:-1]
        return set(), 0.0

    def _time_runs(self, chosen):
        """Medians of seconds of runs that take turns."""
        kinds = {"f32": (), SHORT: self.candidates, "chosen": chosen}
        modules = {kind: self._compile(short) for kind, short in kinds.items()}
        feed, seconds = self.searched[0][0], {kind: [] for kind in kinds}
        for _ in range(2 + ROUNDS):
            for kind, module in modules.items():
                begin = time.perf_counter()
                module.run(None, dict(feed))
                seconds[kind].append(time.perf_counter() - begin)
        return {kind: statistics.median(each[2:]) for kind, each in seconds.items()}

    def _facts(self, chosen, error):
        runs = self._time_runs(chosen) if self.options["math"] == SHORT else None
        none = {"error": 0.0, "groups": 1}
        groups = [{"name": name, "precision": SHORT if name in chosen else "f32",
                   **none, **self._measured(name)} for name in self.candidates]
        return {
            "model": self.name, "tolerance": self.tolerance, "error": error,
            "math": self.options["math"], "groups": groups,
            "seconds": sum(exact for exact, _ in self.seconds.values()),
            "saved": self._saved(chosen), "run_seconds": runs, "compiled": self.compiled,
            "search_seconds": time.perf_counter() - self.begin,
            "data": {"random": self.samples.is_random, "searched": len(self.searched),
                     "held_out": sum(1 for _ in self.samples.held())
                     if self.samples.has_held else 0}}


def _names(parts):
    return tuple(name for part in parts for name in part.names)
