"""search: products of smaller numbers, as many as a budget of error has room for.

All that are faster so are tried at once, which is mostly enough. Else they are a tree of parts,
neighbours in the order of the model: a part whose error does not fit is halved, so that the few
products that hurt are found by some compilations for each, not by one for every product. Errors of
parts are added as those of independent roundings are, by their squares; what is chosen so is
measured, and samples that were not searched on confirm it, or make it smaller until they do.
choices.py says what a choice is in the plan, and what time it saves.
SPDX-License-Identifier: Apache-2.0
"""

import copy
import os
import statistics
import time
from dataclasses import dataclass
from itertools import chain, islice
from math import inf, sqrt
from numbers import Real

from .. import compiler, workplace
from ..compiler import shape_texts
from ..library import UsageError
from ..quantize import measure
from ..quantize.data import Samples
from ..quantize.graph import Network
from ..training.checkpoint import read_model
from .choices import ROUNDS, choices_of
from .report import Report

SEARCHED = 8  # samples at most that are searched on
TRIALS = 40  # compilations at most that halve parts
MEASURED = 8  # choices of parts that are measured
CLEARLY = 0.98  # of the time of another model
WORTH = 0.02  # of the time that all would save: parts that save less are not halved
FIXED = {"plan", "output", "load", "profile", "training", "progress", "ragged"}


@dataclass(frozen=True)
class Drawn:
    """Settings of Samples."""

    batch: int
    samples: int | None
    dim: tuple
    finetune: int = 0


@dataclass(frozen=True)
class Part:
    """Products, and the error of the outputs where they alone are of smaller numbers."""

    names: tuple
    error: float


def run(model, feeds, tolerance, progress, drawn, options, *, each, untimed):
    """(plan, Report)."""
    math = options["math"]
    is_number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if not (is_number and 0 < tolerance < inf):
        raise UsageError(f"--tolerance {tolerance}: must be a number above 0, the greatest error "
                         "of an output relative to its largest number")
    if math not in ("bf16", "bf16-emulated", "int8"):
        raise UsageError(f"--math {math}: with --tolerance it must be bf16, bf16-emulated or int8")
    for name in FIXED & set(options):
        raise UsageError(f"`{name}` is no option of choosing precisions")
    if options.get("target") == "c":
        raise UsageError("--target c: choosing precisions runs the model on this machine; choose "
                         "without it, and compile the plan for 'c'")
    with workplace.folder() as folder:
        search = Search(model, feeds, tolerance, Drawn(*drawn), options, folder, progress)
        search.is_untimed = untimed
        return search.run(each)


class Search:
    """One search, as far as it has come."""

    def __init__(self, model, feeds, tolerance, drawn, options, folder, progress):
        self.tolerance, self.options, self.is_untimed = tolerance, options, False
        proto = read_model(model, "choosing precisions", "quantize")
        self.tried = tried(model, proto, options, folder)
        self.latest = None, None  # names, and their module
        self.network = Network(copy.deepcopy(proto),
                               str(model) if isinstance(model, str) else "<model>", opset=None)
        self.name = self.network.name
        _fix_sizes(self.network, shape_texts(options.get("shapes")))
        self.samples = Samples(feeds, self.network, drawn, folder)
        self.progress, self.compiled, self.begin = progress, 0, time.perf_counter()

    def run(self, each):
        """(plan, Report); `each`: of every product alone, too."""
        self.choices = choices_of(self.options["math"], self._plan_of, self.network)
        self.exact = self.compile((), profile=True)
        self.searched = [(feed, self.exact.run(None, dict(feed)))
                         for feed in islice(self.samples.calibrating(), SEARCHED)]
        self._refuse_numbers()
        if self.is_untimed:
            self.choices.estimate(self.exact.compiled.explanation["groups"])
        else:
            self.choices.time(self, dict(self.searched[0][0]))
        wanted = tuple(name for name in self.choices.names if self.choices.saved((name,)) > 0)
        self.parts = [self._part(wanted)] if wanted else []
        if each:
            self.parts = [self._part((name,)) for name in wanted]
        chosen, error = self._confirmed()
        seconds = None
        if not self.is_untimed and self.options["math"] != "bf16-emulated":
            seconds = self._time_runs(chosen)
            chosen, error = self._fastest(chosen, error, seconds)
        plan = self.choices.told(self.compile(chosen).compiled.plan, self._measured)
        return plan, Report(self._facts(chosen, error, seconds))

    def _plan_of(self, math):
        return compiler.compile(**{**self.tried, "math": math}, load=False).plan

    def _refuse_numbers(self):
        """Refuses outputs that have no numbers to compare."""
        names = [output.name for output in self.exact.outputs]
        outputs = measure.output_errors(names, ((wanted, wanted) for _, wanted in self.searched))
        if not any(each.largest for each in outputs):
            raise UsageError(f"'{self.name}': its outputs ({', '.join(names)}) have no finite "
                             "numbers but 0 for these samples, so that there is nothing that an "
                             "error is relative to; --data gives others")

    def _measured(self, name):
        """Numbers of a product that the plan has for its reader."""
        part = next((part for part in self.parts if name in part.names), None)
        error = {"error": part.error, "groups": len(part.names)} if part else {}
        return {"seconds": self.choices.seconds(name), "saved": self.choices.saved((name,)),
                **error}

    def compile(self, names, profile=False):
        """A module in which these products are of smaller numbers."""
        key = frozenset(names), profile
        if self.latest[0] != key:
            self.latest = None, None  # lets go of its weights
            self.compiled += 1
            self.latest = key, compiler.compile(plan=self.choices.plan(names), profile=profile,
                                                **self.tried)
        return self.latest[1]

    def _tell(self, names, error):
        if self.progress:
            self.progress(f"{len(names)} of {len(self.choices.names)} products in "
                          f"{self.choices.kind}: error {error:.3g}, allowed is "
                          f"{self.tolerance:.3g}")

    def _part(self, names):
        return Part(names, self._error(names))

    def _error(self, names, held=False):
        """The greatest error of an output that is to be expected; `held`: of all samples, also of
        those that are not searched on."""
        module = self.compile(names)
        others = ((feed, self.exact.run(None, dict(feed))) for feed in self.samples.held())
        pairs = chain(self.searched, others if held else ())
        errors = measure.output_errors(
            [output.name for output in self.exact.outputs],
            ((wanted, module.run(None, dict(feed))) for feed, wanted in pairs))
        error = max(each.expected for each in errors)
        self._tell(names, error)
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
        return part.error ** 2 / self.choices.saved(part.names)

    def _fitting(self, limit):
        """Parts whose error together, as it is measured, is within the limit."""
        worth = WORTH * self.choices.saved(_names(self.parts))
        while self.compiled < TRIALS:
            parts = [part for part in self._split(limit)[1]
                     if len(part.names) > 1 and self.choices.saved(part.names) > worth]
            if not parts:
                break
            part = max(parts, key=lambda part: self.choices.saved(part.names))
            middle = len(part.names) // 2
            self.parts.remove(part)
            self.parts += [self._part(part.names[:middle]), self._part(part.names[middle:])]
        return self._together(limit)

    def _together(self, limit):
        """The most parts that are within the limit together: they are not as independent as the sum
        of their squares has it, so that it is found by halving how large that may be."""
        best, low, high, room = [], 0.0, None, limit
        for _ in range(MEASURED):
            fit = self._split(room)[0]
            if not fit or len(fit) == len(best):
                break
            error = self._error(_names(fit)) if len(fit) > 1 else fit[0].error
            if error <= limit:
                best, low = fit, room
                if high is None:
                    break
            else:
                high = room
            room = sqrt(low * high) if low else room * min(0.9, limit / error)
        return best

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
        """Medians of seconds of runs that take turns; equal models have the same ones. Those of one
        thread are by its own clock, which other processes do not move."""
        kinds = {"chosen": frozenset(chosen), "f32": frozenset(),
                 self.choices.kind: frozenset(self.choices.names)}
        modules = {names: self.compile(names) for names in dict.fromkeys(kinds.values())}
        feed, seconds = self.searched[0][0], {names: [] for names in modules}
        clock = time.thread_time if self.options.get("threads") == 1 else time.perf_counter
        for _ in range(2 + ROUNDS):
            for names, module in modules.items():
                begin = clock()
                module.run(None, dict(feed))
                seconds[names].append(clock() - begin)
        return {kind: statistics.median(seconds[names][2:]) for kind, names in kinds.items()}

    def _fastest(self, chosen, error, seconds):
        """The choice and its error where it is clearly faster as a whole than f32 and than all in
        smaller numbers, or else what is as fast within the same bound; `seconds` become its own."""
        whole, names = seconds[self.choices.kind], tuple(self.choices.names)
        if seconds["chosen"] >= CLEARLY * seconds["f32"]:
            chosen, error, seconds["chosen"] = set(), 0.0, seconds["f32"]
        if (chosen != set(names) and whole < CLEARLY * seconds["f32"]
                and seconds["chosen"] >= CLEARLY * whole):
            error_of_all = self._error(names, held=True)
            if error_of_all <= self.tolerance:
                chosen, error, seconds["chosen"] = set(names), error_of_all, whole
        return chosen, error

    def _facts(self, chosen, error, seconds):
        choices = self.choices
        groups = [{"name": name, "precision": choices.kind if name in chosen else "f32",
                   "error": 0.0, "groups": 1, **self._measured(name)} for name in choices.names]
        return {
            "model": self.name, "tolerance": self.tolerance, "error": error, "kind": choices.kind,
            "math": self.options["math"], "groups": groups,
            "seconds": choices.whole, "saved": choices.saved(chosen),
            "is_untimed": self.is_untimed, "run_seconds": seconds, "compiled": self.compiled,
            "search_seconds": time.perf_counter() - self.begin,
            "data": {"random": self.samples.is_random, "searched": len(self.searched),
                     "held_out": sum(1 for _ in self.samples.held())
                     if self.samples.has_held else 0}}


def tried(model, proto, options, folder):
    """Arguments of compilations that are tried. Most of their kernels are in many of them, so that
    a cache of the search has these. It is to have no artefacts, each with all weights, and of bytes
    there are none; a model that is larger than bytes can be has no cache."""
    from google.protobuf.message import EncodeError  # of onnx

    try:
        return {**options, "model": proto.SerializeToString(),
                "cache": os.path.join(folder, "kernels")}
    except (ValueError, EncodeError):  # above 2 GiB
        return {**options, "model": model, "cache": False}


def _fix_sizes(network, texts):
    """Gives inputs the sizes that options fix: 'x=1x3x?x?', 'batch=4' and 'x.0=4'."""
    inputs = {value.name: value.type.tensor_type.shape.dim for value in network.graph.input}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        place, _, number = name.rpartition(".")
        if name in inputs:
            fixed = zip(inputs[name], sizes.split("x"))
        elif place in inputs and number.isdigit():
            fixed = zip(inputs[place][int(number):int(number) + 1], [sizes])
        else:
            fixed = ((dim, sizes) for dims in inputs.values() for dim in dims
                     if dim.dim_param == name)
        for dim, size in fixed:
            if size.isdigit():
                dim.dim_value = int(size)


def _names(parts):
    return tuple(name for part in parts for name in part.names)
