"""command_test: `heddle fuzz` and `heddle reduce` as commands: arguments, exit codes, files."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from heddle.onnx_graph import make_model, make_node

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "release" / "bin" / "heddle"
HEDDLE = str(BUILT) if BUILT.exists() else shutil.which("heddle")

pytestmark = pytest.mark.skipif(HEDDLE is None, reason="there is no heddle command; "
                                "`./dev build` makes it")


def heddle(*arguments, python=sys.executable):
    done = subprocess.run([HEDDLE, *map(str, arguments)], capture_output=True, text=True,
                          timeout=900, env={**os.environ, "HEDDLE_PYTHON": python})
    return done.returncode, done.stdout, done.stderr


def test_models_are_checked():
    code, output, errors = heddle("fuzz", "--count", 3, "--ops", "2..4", "--seed", 20, "--json")
    summary = json.loads(output)
    assert (code, summary["models"], summary["findings"]) == (0, 3, {}), errors


@pytest.mark.parametrize("arguments, message", [
    (["fuzz", "--ops", "9..2"], "'9..2' is no range"),
    (["fuzz", "--nonsense"], "--nonsense"),
    (["fuzz", "--gradients", "--ragged"], "exclude each other"),
    (["fuzz", "--memory", "--training"], "exclude each other"),
    (["reduce"], "MODEL"),
    (["reduce", "/none.onnx"], "'/none.onnx'"),
])
def test_mistakes(arguments, message):
    code, output, errors = heddle(*arguments)
    assert code == 2 and message in errors and output == ""


def test_help():
    assert "--count" in heddle("fuzz", "--help")[1]
    assert "--output" in heddle("reduce", "--help")[1]


def test_a_python_that_cannot_run():
    code, _, errors = heddle("fuzz", python="/none/python")
    assert code == 2 and "cannot run '/none/python'" in errors


def test_a_python_without_onnx(tmp_path):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    code, _, errors = heddle("fuzz", python=str(python))
    assert code == 2 and "needs the Python packages numpy and onnx" in errors


def test_reduce_with_a_command(tmp_path):
    model = make_model([make_node("Relu", "x", "a"), make_node("Cos", "a", "b"),
                        make_node("Neg", "b", "y")],
                       {"x": ["n", 4]}, {"y": None}, opset=21)
    path, small = tmp_path / "model.onnx", tmp_path / "small.onnx"
    onnx.save(model, path)
    judge = tmp_path / "judge.py"
    judge.write_text("import sys, onnx\nnodes = onnx.load(sys.argv[1]).graph.node\n"
                     "sys.exit(any(node.op_type == 'Cos' for node in nodes))\n")
    code, output, errors = heddle("reduce", path, "-o", small,
                                  "--test", f"{sys.executable} {judge}")
    assert code == 1 and "1 of 3 nodes" in output, errors
    assert [node.op_type for node in onnx.load(small).graph.node] == ["Cos"]
    code, _, errors = heddle("reduce", path)
    assert code == 0 and "nothing to reduce" in errors
