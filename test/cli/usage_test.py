"""Help, versions and mistakes in a command: what is said, and the exit code 2."""

import os
import re

import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto, helper

from command import USAGE, fails, heddle, needs_heddle, ok, save

pytestmark = needs_heddle
COMMANDS = ["compile", "run", "bench", "compare", "plan", "explain"]


def test_version():
    assert re.fullmatch(r"heddle \d+\.\d+\.\d+\n", ok("--version").output)


@pytest.mark.parametrize("arguments", [["help"], ["--help"], ["-h"]])
def test_help_lists_the_commands(arguments):
    done = ok(*arguments)
    assert done.errors == ""
    assert all(f"\n  {command} " in done.output for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command):
    done = ok(command, "--help")
    assert done.errors == ""
    assert f"heddle {command}" in done.output
    assert "--json" in done.output and "exit codes: 0 ok" in done.output
    assert heddle("help", command).output == done.output


@pytest.mark.parametrize("arguments, message", [
    ([], "usage: heddle COMMAND"),
    (["comple"], "unknown command 'comple'; did you mean 'compile'?"),
    (["xyzzy"],
     "unknown command 'xyzzy'\nnote: known: compile, run, verify, bench, compare, plan, "
     "explain, tune, train, quantize, generate, serve, cost, cards, cache, config, ops, fuzz, "
     "reduce, completion, help"),
    (["help", "rum"], "unknown command 'rum'; did you mean 'run'?"),
    (["run"], "heddle run: MODEL is required"),
    (['run', 'm.onnx', '--inptu', 'x'],
     "heddle run: unexpected '--inptu'; did you mean '--input'?"),
    (["bench", "m.onnx", "--vs", "nobody"], "heddle bench: --vs: nobody not in {onnxruntime}"),
    (["bench", "m.onnx", "--iters", "0"], "--iters"),
    (["compile", "m.onnx"], "--output is required"),
    (["compile", "m.onnx", "-o", "m.so", "--emit", "exe"], "--emit: exe not in"),
    (["compile", "m.onnx", "-o", "m.so", "-O9"], "-O"),
    (["compile", "m.onnx", "-o", "m.exe"], "'m.exe': its ending says no kind of file (known: .so"),
])
def test_mistakes(arguments, message):
    assert fails(*arguments, says=message).output == ""


def test_a_missing_model(tmp_path):
    for command in ["run", "bench", "compare", "plan", "explain"]:
        fails(command, tmp_path / "none.onnx", says="none.onnx")


@pytest.mark.parametrize("options, message", [
    (["--input", "x"], "--input 'x': expected NAME=VALUE"),
    (["--input", "z=random:0"], "the model has no input 'z' (inputs: x)"),
    (["--input", "x=@/none.npy"], "cannot read '/none.npy'"),
    (["--input", "x=2x3xf33=1"], "'f33' is not a dtype; did you mean 'f32'?"),
    (["--input", "x=2x3xf32=1,2"], "2x3 needs 6 values (or one for all), but has 2"),
    (["--input", "x=1xf32=one"], "'one' is not an element of float32"),
    (["--input", "x=random:a"], "expected random:SEED"),
    (["--shape", "x=1"], "it has 1 sizes, but input 'x' has rank 2"),
    (["--shape", "x=axb"], "'a' is not a size"),
    (["--dim", "bach=2"], "no input has a size named 'bach'; did you mean 'batch'?"),
    (["--output", "y=file"], "expected NAME=@FILE.npy"),
    (["--output", "q=@file"], "the model has no output 'q'"),
    (["--data", "/none"], "neither it nor its test_data_set_0 holds an input_0.pb"),
])
def test_wrong_feeds(model, options, message):
    fails("run", model, *options, says=message)


@pytest.mark.parametrize("content, message", [
    (b"", "is not an .npy file"),
    (b"\x93NUMPY\x01\x00\xff\xff{}", "is truncated"),
    (b"\x93NUMPY\x01\x00\x02\x00{}", "its header has no 'descr'"),
])
def test_wrong_npy(model, tmp_path, content, message):
    (tmp_path / "x.npy").write_bytes(content)
    fails("run", model, "--input", f"x=@{tmp_path}/x.npy", says=message)


def test_a_reader_that_went_away(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        done = heddle("--version", stdout=gone)
    assert done.status == USAGE and "cannot write to standard output" in done.errors


def test_sizes_of_what_has_none(tmp_path):
    """A list has no sizes that an option could name, whatever the rank of its tensors."""
    tensors = helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, ["n", 2])
    path = save(make_model([make_node("ConcatFromSequence", "x", "y", axis=0)], [tensors],
                           {"y": ["m", 2]}, opset=13),
                tmp_path / "m.onnx")
    for options in (["--dim", "n=2"], ["--dim", "x.0=2"], ["--shape", "x=2x2"]):
        done = heddle("run", path, *options)
        assert done.status in (2, 3), done.errors
