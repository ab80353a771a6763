"""command_test: `heddle fuzz` and `heddle reduce` as commands: arguments, exit codes, files."""

import sys

import onnx
import pytest
from heddle.onnx_graph import make_model, make_node

from command import DIFFERS, fails, needs_heddle, ok

pytestmark = needs_heddle


def test_models_are_checked():
    summary = ok("fuzz", "--count", 3, "--ops", "2..4", "--seed", 20, "--json").json
    assert (summary["models"], summary["findings"]) == (3, {})


@pytest.mark.parametrize("arguments, message", [
    (["fuzz", "--ops", "9..2"], "'9..2' is no range"),
    (["fuzz", "--only", "Nothing"], "unknown op 'Nothing'; known: Abs"),
    (["fuzz", "--jobs", "0"], "--jobs"),
    (["fuzz", "--nonsense"], "--nonsense"),
    (["fuzz", "--gradients", "--ragged"], "exclude each other"),
    (["fuzz", "--memory", "--training"], "exclude each other"),
    (["reduce"], "MODEL"),
    (["reduce", "/none.onnx"], "'/none.onnx'"),
])
def test_mistakes(arguments, message):
    assert fails(*arguments, says=message).output == ""


def test_help():
    assert "--count" in ok("fuzz", "--help").output
    assert "--output" in ok("reduce", "--help").output


def test_a_python_that_cannot_run(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/none/python")
    fails("fuzz", says="cannot run '/none/python'")


def test_a_python_without_onnx(tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    fails("fuzz", says="needs the Python packages numpy and onnx")


def test_reduce_with_a_command(tmp_path):
    model = make_model([make_node("Relu", "x", "a"), make_node("Cos", "a", "b"),
                        make_node("Neg", "b", "y")],
                       {"x": ["n", 4]}, {"y": None}, opset=21)
    path, small = tmp_path / "model.onnx", tmp_path / "small.onnx"
    onnx.save(model, path)
    judge = tmp_path / "judge.py"
    judge.write_text("import sys, onnx\nnodes = onnx.load(sys.argv[1]).graph.node\n"
                     "sys.exit(any(node.op_type == 'Cos' for node in nodes))\n")
    done = fails("reduce", path, "-o", small, "--test", f"{sys.executable} {judge}",
                 status=DIFFERS)
    assert "1 of 3 nodes" in done.output
    assert [node.op_type for node in onnx.load(small).graph.node] == ["Cos"]
    assert "nothing to reduce" in ok("reduce", path).errors
