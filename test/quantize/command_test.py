"""The command, and the file that it writes."""

import json
import os

import small
import numpy as np
import onnx
import pytest
from heddle.quantize import __main__ as command

from command import OK, REFUSED, USAGE, find_heddle, heddle, needs_heddle

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(small.gemm(), "m.onnx")
    x = np.random.default_rng(0).standard_normal((8, 20)).astype(np.float32)
    np.savez("d.npz", x=x)
    np.savez("wrong.npz", x=x[:, :3])
    return tmp_path


def run(*arguments):
    return command.main(["m.onnx", "-o", "q.onnx", "--threads", "1", *arguments])


def test_it_writes_a_model_and_a_report(files, capsys):
    assert run("--data", "d.npz") == OK
    text = capsys.readouterr().out
    assert "m.onnx: 2 layers as 8-bit integers, 0 in f32; " in text
    assert "samples (given): 7 to calibrate with, errors of 1 others" in text and " dB\n" in text
    onnx.checker.check_model("q.onnx")
    assert run("--data", "d.npz", "--json", "--sensitivity", "--keep", "gemm_*") == OK
    facts = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in facts["layers"]] == ["y"] and facts["layers"][0]["alone"] > 0
    assert {"range", "scale", "zero_point"} == facts["tensors"][facts["layers"][0]["input"]].keys()


def test_random_inputs_are_told(files, capsys):
    assert run() == OK
    assert "samples (random inputs: real ones give other ranges): 13 to" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, status, message", [
    (("--data", "none.npz"), USAGE, "heddle quantize: 'none.npz': there is no such file"),
    (("--data", "wrong.npz"), USAGE, "'wrong.npz', sample 0: 'x' is float32[1, 3], but the model"),
    (("--data", "d.npz", "--keep", "z"), USAGE, "--keep z: no layer of 'm.onnx' has that name"),
    (("--data", "d.npz", "--mixed", "--tolerance", "1e-9"), REFUSED, "--tolerance 1e-09: 'm.onnx'"),
    (("-o", "none/q.onnx"), USAGE, "'none/q.onnx': cannot be written"),
])
def test_nothing_is_written_where_it_fails(files, capsys, arguments, status, message):
    (files / "q.onnx").write_text("as it was")
    before = sorted(os.listdir())
    assert run(*arguments) == status
    assert message in capsys.readouterr().err
    assert sorted(os.listdir()) == before and (files / "q.onnx").read_text() == "as it was"


@pytest.mark.parametrize("arguments, message", [
    (("-o", "q.bin"), "'q.bin' must end in .onnx"), (("--calibration", "x"), "invalid choice: 'x'"),
    (("--batch", "x"), "invalid int value: 'x'")])
def test_wrong_usage(files, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == USAGE and message in capsys.readouterr().err


@needs_heddle
def test_it_is_a_command_of_heddle(files):
    done = heddle("quantize", "m.onnx", "--data", "d.npz", "-o", "q.onnx", "--json")
    assert done.status == OK, done.errors
    assert done.json["model"] == "m.onnx" and os.path.exists("q.onnx")
    assert find_heddle() and "--calibration" in heddle("quantize", "--help").output
