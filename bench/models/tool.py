"""Runs the `heddle` command as a user does, and says what it cost."""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
# The folder of figures; a quick run, whose figures say nothing, has one of its own.
RESULTS = Path(os.environ.get("HEDDLE_BENCH_RESULTS", ROOT / "build" / "bench"))
LAUNCHER = Path(__file__).with_name("launch.py")


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
    """Runs `heddle ARGUMENTS...` under launch.py, which measures it and keeps it to the limit."""
    command = find_heddle()
    if command is None:
        raise FileNotFoundError("there is no heddle command; `./dev build` makes it")
    with tempfile.NamedTemporaryFile("r") as report:
        launch = [sys.executable, "-S", "-E", LAUNCHER, report.name, str(limit_seconds or 0)]
        done = subprocess.run([*launch, command, *map(str, arguments)], capture_output=True,
                              check=True)
        status, seconds, peak_bytes = report.read().split()
    return Outcome(int(status), done.stdout.decode(errors="replace"),
                   done.stderr.decode(errors="replace"), float(seconds), int(peak_bytes))


def input_options(feeds, folder):
    """`--input NAME=@FILE` for each feed, written as .npy under the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    options = []
    for number, (name, value) in enumerate(feeds.items()):
        path = folder / f"{number}.npy"
        np.save(path, value)
        options += ["--input", f"{name}=@{path}"]
    return options
