"""Runs the `heddle` command as a user does, and says what it cost."""

import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    """How a run of the command ended, and what it took."""

    status: int
    output: str
    errors: str
    seconds: float
    peak_bytes: int


def find_heddle():
    """The command of this checkout's build, else the one on PATH, else None."""
    built = ROOT / "build" / "release" / "bin" / "heddle"
    return str(built) if built.exists() else shutil.which("heddle")


def run_heddle(*arguments, limit_seconds=None):
    """Runs `heddle ARGUMENTS...` in a process of its own; its peak memory is then its own too.

    A run over the limit is ended with SIGKILL and reports status -9.
    """
    command = find_heddle()
    if command is None:
        raise FileNotFoundError("there is no heddle command; `./dev build` makes it")
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen([command, *map(str, arguments)], stdout=output, stderr=errors)
        status, usage = _wait(process, start, limit_seconds)
        seconds = time.perf_counter() - start
        texts = []
        for stream in (output, errors):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return Outcome(status, *texts, seconds, usage.ru_maxrss * 1024)


def _wait(process, start, limit_seconds):
    """Waits as os.wait4 does, the only way to learn one child's peak memory, up to the limit."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG if limit_seconds else 0)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.perf_counter() - start > limit_seconds:
            process.kill()
            limit_seconds = None
        else:
            time.sleep(0.01)


def input_options(feeds, folder):
    """`--input NAME=@FILE` for each feed, written as .npy under the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    options = []
    for number, (name, value) in enumerate(feeds.items()):
        path = folder / f"{number}.npy"
        np.save(path, value)
        options += ["--input", f"{name}=@{path}"]
    return options
