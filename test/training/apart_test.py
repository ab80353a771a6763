"""Compilation in a process of its own: what it returns, tells and refuses is what it would here."""

import os
import sys

import heddle
import numpy as np
import pytest
from heddle import apart
from heddle.onnx_graph import make_model, make_node

from command import needs_heddle
from networks import initializers

pytestmark = needs_heddle


def dense(op="MatMul"):
    return make_model([make_node(op, "x w", "y", "dense")], {"x": ["n", 8]}, {"y": ["n", 4]},
                 initializers(1, w=(8, 4)))


def test_the_module_is_what_compile_returns(tmp_path):
    path, stages = tmp_path / "dense.onnx", []
    path.write_bytes(dense().SerializeToString())
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    here = heddle.compile(path, threads=1, cache=False)
    for source in (path, dense(), dense().SerializeToString()):
        module, report = apart.compile(source, threads=1, cache=False, typical={"n": 3},
                                       progress=lambda stage, fraction: stages.append(stage))
        np.testing.assert_array_equal(module.run(None, {"x": x})[0], here.run(None, {"x": x})[0])
        assert report["memory"]["total"] > 0 and module.threads == 1
    assert stages.count("lower") == 3


def test_an_embedded_interpreter_compiles_itself(monkeypatch):
    monkeypatch.setattr(sys, "executable", None)
    module, report = apart.compile(dense(), threads=1, cache=False)
    assert module.run(None, {"x": np.ones((2, 8), np.float32)})[0].shape == (2, 4)
    assert report["memory"]["total"] > 0


def test_refusals_are_those_of_compile(tmp_path):
    for source, options, kind in (
            (tmp_path / "missing.onnx", {}, heddle.Error),
            (dense("NoSuchOp"), {}, heddle.RefusedError),
            (dense(), {"memory": 16, "typical": {"n": 3}}, heddle.RefusedError),
            (dense(), {"without": "speed"}, heddle.UsageError)):
        with pytest.raises(kind) as there:
            apart.compile(source, cache=False, **options)
        with pytest.raises(kind) as here:
            heddle.compile(source, cache=False, **options)
        assert type(there.value) is type(here.value) and str(there.value) == str(here.value)


def test_a_compiler_that_dies_is_told_of(tmp_path, monkeypatch):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 7\n")
    os.chmod(broken, 0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(heddle.InternalError, match="the process that compiles ended with 7"):
        apart.compile(dense(), cache=False)
