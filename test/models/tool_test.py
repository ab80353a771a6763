"""The figures of a run are the command's own: its status, streams, memory, and end at the limit."""

import sys

import numpy as np
import pytest

from bench.models import tool


@pytest.fixture(name="run")
def run_python(monkeypatch):
    """Runs Python in the place of heddle."""
    monkeypatch.setattr(tool, "find_heddle", lambda: sys.executable)
    return lambda code, **options: tool.run_heddle("-S", "-c", code, **options)


def test_status_and_streams(run):
    done = run("import sys; print('out'); print('why', file=sys.stderr); sys.exit(3)")
    assert (done.status, done.output, done.errors) == (3, "out\n", "why\n")


def test_peak_memory_is_not_the_callers(run):
    held = np.ones(1 << 27, np.uint8)  # 128 MiB here
    small, large = run("pass"), run("b'x' * (64 << 20)")
    assert small.peak_bytes < 48 << 20
    assert 64 << 20 < large.peak_bytes < held.nbytes


def test_a_run_over_the_limit_is_ended(run):
    done = run("import signal; signal.pause()", limit_seconds=0.2)
    assert done.status == -9 and done.seconds >= 0.2


def test_without_heddle_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setattr(tool, "find_heddle", lambda: None)
    with pytest.raises(FileNotFoundError, match="./dev build"):
        tool.run_heddle("compile")
