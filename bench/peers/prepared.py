"""Compiled forms of the engines, kept for later contests in build/bench/peers/prepared.

A folder there is named after the contest, the engine and a digest of all that what is compiled
depends on: the model, the sizes of the inputs, the processor, the engine's version, options and
settings, and the threads where they matter. It holds what `prepare` left in the job's folder and,
in found.json, the seconds that it took, or why it failed. It gets its name when it is whole, and
takes the place of one whose digest is another, so that there is one for each engine and contest.
"""

import hashlib
import importlib
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from bench.models import tool
from bench.peers.member import Failed, Late, Member

FOUND = "found.json"
# Files that a job makes for itself, wherever it is asked for.
PASSING = shutil.ignore_patterns("job.json", "log", "static.onnx", FOUND)


def keeps(engine):
    """Tells whether the engine's compiled form is kept: one that changes daily is not."""
    module = importlib.import_module(engine.module)
    return hasattr(module, "prepare") and getattr(module, "KEPT", True)


def compile_now(job, limit_s):
    """Runs the engine's `prepare` in a process that ends with it; its answer."""
    with Member(job) as compiler:
        return compiler.ask("prepare", limit_s)


def name_of(engine, job, contest, model):
    """(what it is of, twelve digits that another model, engine, machine or way to compile would
    change); `model` is the digest of the file."""
    module = importlib.import_module(engine.module)
    threads = 0 if getattr(module, "any_threads", lambda: False)() else job.threads
    sizes = {name: [list(value.shape), str(value.dtype)] for name, value in job.inputs().items()}
    constants = {name: value.tolist() for name, value in job.inputs().items()
                 if name in job.constants}
    parts = [model, job.network, engine.name, engine.version(), engine.options,
             getattr(module, "SETTINGS", []), sizes, constants, tool.machine(), threads]
    stem = f"{contest}-t{threads}" if threads else contest
    return f"{stem}-{engine.name}", hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Shelf:
    """The folder of all that is kept. With `fresh` nothing that lies there is taken."""

    folder: Path
    fresh: bool = False

    def prepare(self, engine, job, contest, model, limit_s):
        """The answer of `prepare`, now or once; Failed when it failed, now or once. Afterwards the
        job's folder is as `prepare` leaves it. `contest` names the model and the batch."""
        if not keeps(engine):
            return compile_now(job, limit_s)
        stem, digits = name_of(engine, job, contest, model)
        place = self.folder / f"{stem}-{digits}"
        if not self.fresh and (found := self._take(place, job, limit_s)):
            if "error" in found:
                raise Failed(found["error"])
            return found
        try:
            found = compile_now(job, limit_s)
        except Failed as failure:
            late = {"limit_s": limit_s} if isinstance(failure, Late) else {}
            self._put(place, stem, job, {"error": str(failure)} | late)
            raise
        self._put(place, stem, job, found)
        return found

    def _take(self, place, job, limit_s):
        """The answer kept at the place, its files now in the job's folder; None when there is none,
        or what failed for want of time may have more now."""
        if not (place / FOUND).exists():
            return None
        found = json.loads((place / FOUND).read_text(encoding="utf-8"))
        if found.pop("limit_s", limit_s) < limit_s:
            return None
        # Links cost no time; whoever writes into a file of the job's would change what is kept,
        # but engines only read these, and write what is theirs beside them.
        shutil.copytree(place, job.folder, copy_function=os.link, ignore=PASSING,
                        dirs_exist_ok=True)
        return found

    def _put(self, place, stem, job, found):
        """Keeps the job's folder under a name of its own, and drops what it replaces."""
        part = self.folder / f".{place.name}.{os.getpid()}"
        shutil.rmtree(part, ignore_errors=True)
        if "error" in found:
            part.mkdir(parents=True)
        else:
            shutil.copytree(job.folder, part, copy_function=os.link, ignore=PASSING)
        (part / FOUND).write_text(json.dumps(found, indent=1), encoding="utf-8")
        for old in self.folder.glob(f"{stem}-" + "?" * 12):
            shutil.rmtree(old)
        part.rename(place)
