"""Runs the `heddle` command as a user does, and says what it cost."""

import os
import platform
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


def checked(*arguments, **options):
    """The outcome of a run that succeeds; else RuntimeError with the command's first line."""
    done = run_heddle(*arguments, **options)
    if done.status:
        lines = done.errors.strip().splitlines() or [f"ended with status {done.status}"]
        raise RuntimeError(lines[0])
    return done


def machine():
    """The processor's name and how many cores of it there are."""
    names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8")
             if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def input_options(feeds, folder):
    """`--input NAME=@FILE` for each feed, written as .npy under the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    options = []
    for number, (name, value) in enumerate(feeds.items()):
        path = folder / f"{number}.npy"
        np.save(path, value)
        options += ["--input", f"{name}=@{path}"]
    return options
