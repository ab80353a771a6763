"""campaign: many models over some workers, and what they found, written to a folder.

SPDX-License-Identifier: Apache-2.0
"""

import collections
import json
import resource
import sys
import time
from multiprocessing import connection
from pathlib import Path

import numpy as np
import onnx

from .check import GAP
from .reduce import reduce_model
from .worker import Worker

# Names of the counts in Outcome.held.
HELD = {"gradients": "derivatives held", "memory": "results computed again",
        "training": "updates held"}
OK, DIFFERS, USAGE = 0, 1, 2  # exit codes of the commands
ALIKE = 3  # findings with one signature that are written and reduced


# Limit of address space: a model that wants more is dropped, or is a finding; the machine stays.
MOST_BYTES = 8 << 30


def limit_memory():
    """Limits this process and workers that it starts later."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, hard))


def say(text):
    print(text, file=sys.stderr, flush=True)


class Campaign:
    """`draw(index)` gives (model, cases). Kinds are "model"; "node", a single one that may be
    illegal: there is nothing to reduce, and findings are told apart by its op; "rows", small
    models of ragged batches; "gradients", models that are differentiated; "memory", compiled for
    limits of memory; and "training", with steps of random recipes."""

    def __init__(self, seed, draw, out=None, limit=60.0, reduce_seconds=40.0, say=print,
                 kind="model"):
        self.seed, self.draw, self.limit, self.kind = seed, draw, limit, kind
        self.out = Path(out) if out else None
        self.reduce_seconds, self.say = reduce_seconds, say
        self.findings = collections.defaultdict(list)  # signature -> indices
        self.kinds = collections.Counter()
        self.gaps = collections.defaultdict(list)  # what the peers take -> indices
        self.models = self.nodes = self.held = 0
        self.start = time.monotonic()

    @property
    def is_node(self):
        return self.kind == "node"

    def run(self, indices, jobs=1, seconds=None):
        """Checks the models of these indices, until the time is over."""
        workers = [Worker(self.kind) for _ in range(jobs)]
        busy, indices = {}, iter(indices)
        try:
            while True:
                for worker in workers:
                    is_late = seconds is not None and time.monotonic() - self.start > seconds
                    index = None if worker in busy or is_late else next(indices, None)
                    if index is not None:
                        model, cases = self.draw(index)
                        worker.begin(model.SerializeToString(), cases, 1 + index % 2)
                        busy[worker] = (index, model, cases, time.monotonic() + self.limit)
                if not busy:
                    return
                self.wait(busy)
        finally:
            for worker in workers:
                worker.stop()

    def wait(self, busy):
        """Takes the answers that are there, and gives up on models that take too long."""
        first = min(deadline for _, _, _, deadline in busy.values())
        connection.wait([worker.pipe for worker in busy], max(0.0, first - time.monotonic()))
        for worker in list(busy):
            index, model, cases, deadline = busy[worker]
            if worker.pipe.poll(0) or time.monotonic() >= deadline:
                outcome = worker.finish(0)
                if outcome.kind == "crash":
                    # An engine that wrote beyond its arrays may have spoilt the process long ago.
                    outcome = worker.check(model, cases, self.limit, 1 + index % 2)
                del busy[worker]
                self.count(index, model, cases, outcome)

    def count(self, index, model, cases, outcome):
        self.models += 1
        self.nodes += len(model.graph.node)
        self.held += outcome.held
        signature = f"{op_of(model)}: {outcome.signature}" if self.is_node else outcome.signature
        if outcome.kind == GAP:
            self.gaps[signature].append(index)
        if not outcome.is_finding:
            return
        self.kinds[outcome.kind] += 1
        alike = self.findings[signature]
        alike.append(index)
        if not self.is_node or len(alike) <= ALIKE:
            self.say(f"{self.seed}-{index}: {signature}: {outcome.message[:300]}")
        is_grave = outcome.kind in ("wrong", "oracle", "crash") and not self.is_node
        if self.out and (len(alike) <= ALIKE or is_grave):
            self.write(index, model, cases, outcome)

    def write(self, index, model, cases, outcome):
        folder = self.out / f"{self.seed}-{index}"
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(model, folder / "model.onnx")
        write_cases(folder, model, cases)
        text = f"{outcome.kind}\n{outcome.message}\n"
        if self.kind in ("node", "rows"):
            text += onnx.printer.to_text(model) + "\n"
        elif self.reduce_seconds:
            small, cases, text_of_small = self.reduced(model, cases, outcome)
            onnx.save(small, folder / "reduced.onnx")
            write_cases(folder, small, cases, "reduced_")
            text += f"\nreduced to {len(small.graph.node)} nodes: {text_of_small}\n"
            text += onnx.printer.to_text(small) + "\n"
        (folder / "message.txt").write_text(text, encoding="utf-8")

    def reduced(self, model, cases, outcome):
        worker = Worker(self.kind)
        try:
            fails = same_failure(worker, outcome, min(self.limit, 20.0))
            small, cases = reduce_model(model, cases, fails, self.reduce_seconds)
            return small, cases, worker.check(small, cases, self.limit).message
        finally:
            worker.stop()

    def summary(self):
        return {"models": self.models, "nodes": self.nodes,
                "seconds": round(time.monotonic() - self.start, 1), "findings": dict(self.kinds),
                "signatures": {name: list(alike) for name, alike in self.findings.items()},
                "gaps": {name: list(alike) for name, alike in self.gaps.items()},
                **({"held": self.held} if self.kind in HELD else {})}

    def summary_line(self):
        about = self.summary()
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        gaps = sum(map(len, self.gaps.values()))
        others = {"gradients": "without a derivative", "training": "without a derivative",
                  "memory": "whose plan is not carried out"}.get(
                      self.kind, "refused that others take")
        held = f"{self.held} {HELD[self.kind]}, " if self.kind in HELD else ""
        return (f"{about['models']} models, {about['nodes']} nodes, {about['seconds']} s, " +
                (f"{gaps} {others}, {held}" if self.kind != "model" else "") +
                f"findings: {kinds or 'none'}")


def op_of(model):
    """The op of the node that the model is about, which is the last one."""
    return model.graph.node[-1].op_type


def same_failure(worker, outcome, limit):
    """A predicate for reduce: the model still fails in this way."""

    def fails(model, cases):
        return worker.check(model, cases, limit).signature == outcome.signature

    return fails


def write_cases(folder, model, cases, prefix=""):
    """Inputs as input_<i>.npy, of a second case as case1_input_<i>.npy, in the model's order."""
    for k, feeds in enumerate(cases):
        for i, value in enumerate(model.graph.input):
            array = feeds[value.name]
            if array.dtype.name == "bfloat16":
                array = array.view(np.uint16)
            case = f"case{k}_" if k else ""
            np.save(folder / f"{prefix}{case}input_{i}.npy", array)


def print_json(campaign):
    print(json.dumps(campaign.summary()))
