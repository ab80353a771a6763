"""An engine for tests of the harness: options say what its outputs are and how it fails.

Its prepared form is a file; `diary` is one that has a line more for each time. The clock of its
process goes on only while it runs: each run takes what `ms` says.
"""

import os
import signal
import time
from pathlib import Path

import numpy as np

from bench.peers.engines import Loaded


def version():
    return "fake 1"


def prepare(job):
    if job.options.get("diary"):
        with open(job.options["diary"], "a", encoding="utf-8") as diary:
            diary.write(f"{Path(job.model).name}\n")
    while not Path(job.options.get("ponders_until", "/")).exists():
        time.sleep(0.01)
    if job.options.get("refuses"):
        raise RuntimeError("no such op\nand a long story")
    job.path("artefact").write_text("made", encoding="utf-8")
    return {"seconds": 0.5}


def load(job):
    """Adds one to the input, or whatever the options say."""
    feeds = job.inputs()
    options = job.options
    print("chatter that is no answer")
    if options.get("hangs"):
        signal.pause()
    runs, ran_ms = [], [0]
    time.perf_counter_ns = lambda: 1000000 * ran_ms[0]

    def run():
        runs.append(1)
        if len(runs) > options.get("dies_after", 1000000):
            os.kill(os.getpid(), signal.SIGKILL)
        ran_ms[0] += options.get("ms", 1)
        return [feeds["x"] + options.get("adds", 1)]

    return Loaded(run, lambda values: [np.asarray(value) for value in values], lambda: run)
