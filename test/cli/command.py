"""Runs the `heddle` command for the tests of this folder, and makes their models."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node

ROOT = Path(__file__).resolve().parents[2]
LLVM = (ROOT / "cmake/llvm-version").read_text().strip()
OK, DIFFERS, USAGE, REFUSED, LIMIT, INTERNAL = range(6)
DENSE = np.float32([[1, -1, 0, 1], [0, 1, -1, 1], [1, 0, 1, -1]])
HANGS = 900  # seconds, after which a command will not end


@dataclass(frozen=True)
class Outcome:
    status: int
    output: str
    errors: str

    @property
    def json(self):
        return json.loads(self.output)


def find_heddle():
    """The command of this checkout's build, else the one on PATH, else None."""
    built = ROOT / "build" / "release" / "bin" / "heddle"
    return str(built) if built.exists() else shutil.which("heddle")


needs_heddle = pytest.mark.skipif(find_heddle() is None,
                                  reason="there is no heddle command; `./dev build` makes it")


def heddle(*arguments, before=None, stdout=None):
    """Runs `heddle ARGUMENTS...`; `before` is called in the child before it starts."""
    environment = {**os.environ, "HEDDLE_PYTHON": sys.executable}
    done = subprocess.run([find_heddle(), *map(str, arguments)], stdin=subprocess.DEVNULL,
                          stdout=stdout or subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment, preexec_fn=before, timeout=HANGS)
    return Outcome(done.returncode, (done.stdout or b"").decode(errors="replace"),
                   done.stderr.decode(errors="replace"))


def ok(*arguments, **options):
    """Runs `heddle ARGUMENTS...`, which must end well."""
    done = heddle(*arguments, **options)
    assert done.status == OK, done.output + done.errors
    return done


def json_of(*arguments):
    """Runs `heddle ARGUMENTS... --json`, and reads its output."""
    return ok(*arguments, "--json").json


def fails(*arguments, status=USAGE, says=()):
    """Runs `heddle ARGUMENTS...`, which must end with this status; `says` is a text of its message,
    or several."""
    done = heddle(*arguments)
    assert done.status == status, done.output + done.errors
    for text in [says] if isinstance(says, str) else says:
        assert text in done.errors
    return done


def save(model, path):
    """Writes a model, checked or not, and returns its path."""
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path


def dense_model():
    """y = relu(x w), x [batch, 3], w [3, 4] of -1, 0, 1."""
    return make_model([make_node("MatMul", "x w", "m", "product"),
                       make_node("Relu", "m", "y", "positive")],
                      {"x": ["batch", 3]}, {"y": ["batch", 4]}, {"w": DENSE})


def dense(x):
    return np.maximum(x @ DENSE, 0)


def one_node(op, inputs="x", **attributes):
    """y = op(x), x and y [2, 3]."""
    return make_model([make_node(op, inputs, "y", "n", **attributes)], {"x": [2, 3]},
                      {"y": [2, 3]})
