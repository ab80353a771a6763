"""TVM after MetaSchedule on a model at one length: a process of its own, which has turns as well.

It needs TVM where this Python runs, as `./dev bench` installs it (bench/peers/requirements.txt).
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.peers.job import Job
from bench.peers.member import Failed, Member
from bench.peers.prepared import compile_now

LIMIT = 300  # seconds of what is no tuning


class Tuned:
    """`run` is a timed thing, as turns.py has it; None where TVM gave nothing."""

    def __init__(self, path, feeds, expected, seconds):
        self.run, self.seconds, self._member = None, 0, None
        if not seconds:
            return
        folder = Path(tempfile.mkdtemp())
        np.savez(folder / "feeds.npz", **feeds)
        job = Job("bench.peers.engines.tvm", str(path), str(folder / "feeds.npz"), str(folder),
                  options={"tune_seconds": seconds})
        try:
            self.seconds = compile_now(job, seconds + LIMIT)["seconds"]
            self._member = Member(job)
            self._member.ask("load", LIMIT)
            self._member.ask("outputs", LIMIT, path=str(folder / "outputs.npz"))
        except Failed as why:
            print(f"TVM: {why}", file=sys.stderr)
            return
        with np.load(folder / "outputs.npz") as outputs:
            for i, value in enumerate(expected):
                np.testing.assert_allclose(outputs[str(i)], value, rtol=2e-3, atol=2e-3)
        self.run = self._run

    def _run(self, runs):
        found = self._member.ask("run", LIMIT, times=runs, clock="thread_time_ns")
        return [ms / 1000 for ms in found["ms"]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._member:
            self._member.close()
