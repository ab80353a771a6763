"""`heddle train`, and steps that are compiled as files."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

from command import OK, REFUSED, USAGE, find_heddle, heddle, needs_heddle  # noqa: E402
from networks import convolutional, mlp  # noqa: E402

pytestmark = needs_heddle
pytest.importorskip("safetensors")


@pytest.fixture
def files(tmp_path):
    """A model, and 96 samples whose class is the largest of four of their numbers."""
    (tmp_path / "mlp.onnx").write_bytes(mlp().SerializeToString())
    x = np.random.default_rng(0).standard_normal((96, 6)).astype(np.float32)
    np.savez(tmp_path / "train.npz", x=x, labels=x[:, :4].argmax(1))
    np.savez(tmp_path / "other.npz", x=x[:40] + 0.01, labels=x[:40, :4].argmax(1))
    return tmp_path


def train(files, *arguments, **options):
    return heddle("train", files / "mlp.onnx", "--data", files / "train.npz", "--batch", 16,
                  "--threads", 1, *arguments, **options)


def test_it_trains_and_validates(files):
    done = train(files, "--epochs", 30, "--lr", "0.05", "--validate", files / "other.npz",
                 "--schedule", "cosine", "--warmup", 5, "--json", "-o", files / "out.onnx")
    assert done.status == OK, done.errors
    epochs = [json.loads(line) for line in done.output.splitlines()]
    assert len(epochs) == 30 and epochs[-1]["updates"] == 180
    assert epochs[-1]["loss"] < 0.3 * epochs[0]["loss"]
    assert epochs[-1]["accuracy"] > 0.9 > epochs[0]["accuracy"]
    before, after = (onnx.load(files / name) for name in ("mlp.onnx", "out.onnx"))
    assert [node.name for node in before.graph.node] == [node.name for node in after.graph.node]
    done = train(files, "--epochs", 2)
    assert "5 weights" not in done.output and "4 weights of 59 elements" in done.output
    assert "epoch 2/2  loss" in done.output
    assert re.search(r"of which each takes \d+\.\d MiB, \d+\.\d MiB of them between kernels",
                     done.output)


def test_a_killed_run_goes_on_to_the_same_weights(files):
    arguments = ("--epochs", 40, "--seed", 3, "--every", 7)
    whole = train(files, *arguments, "--checkpoint", files / "whole.safetensors",
                  "-o", files / "whole.onnx")
    assert whole.status == OK, whole.errors
    command = [find_heddle(), "train", files / "mlp.onnx", "--data", files / "train.npz", "--batch",
               "16", "--threads", "1", *map(str, arguments), "--resume", "--checkpoint",
               files / "killed.safetensors", "-o", files / "killed.onnx"]
    environment = {**os.environ, "HEDDLE_PYTHON": sys.executable}
    child = subprocess.Popen(list(map(str, command)), env=environment, stdout=subprocess.DEVNULL)
    while not (files / "killed.safetensors").exists() and child.poll() is None:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert subprocess.run(list(map(str, command)), env=environment, check=False,
                          stdout=subprocess.DEVNULL).returncode == OK
    assert (files / "whole.onnx").read_bytes() == (files / "killed.onnx").read_bytes()


@pytest.mark.parametrize("arguments, status, message", [
    (("--data", "none.npz"), USAGE, "'none.npz': there is no such file"),
    (("--data", "mlp.onnx"), USAGE, "'mlp.onnx': is no .npz file"),
    (("--labels", "targets"), USAGE, "has no array 'targets'; it has x, labels"),
    (("--batch", "200"), OK, ""),
    (("--memory", "1GiB"), OK, ""),
    (("--memory", "1KiB"), REFUSED, "error: a run may take 1.0 KiB, but the least that was found"),
    (("--memory", "plenty"), USAGE, "'plenty' is no size such as 800MiB or 2GiB"),
    (("--batch", "0"), USAGE, "--batch must be at least 1"),
    (("--resume",), USAGE, "--resume and --every need --checkpoint"),
    (("-o", "out.pt"), USAGE, "'out.pt' must end in .onnx"),
    (("--set", "beta1"), USAGE, "is not of the form beta1=0.9"),
    (("--set", "beta7=1"), USAGE, "has no setting 'beta7'; did you mean 'beta"),
    (("--loss", "output"), REFUSED, "which must be one number"),
    (("--freeze", "*"), REFUSED, "does not depend on any weight"),
])
def test_what_it_says(files, monkeypatch, arguments, status, message):
    monkeypatch.chdir(files)
    done = train(files, *arguments)
    assert done.status == status and message in done.errors
    assert "Traceback" not in done.errors


def test_samples_that_do_not_fit(files):
    np.savez(files / "train.npz", x=np.zeros((5, 6), np.float32), labels=np.zeros(4, np.int64))
    done = train(files)
    assert done.status == USAGE and "different numbers of samples" in done.errors
    np.savez(files / "train.npz", x=np.zeros((5, 6), np.float32), labels=np.full(5, 9))
    done = train(files)
    assert done.status == USAGE and "classes from 9 to 9" in done.errors


def test_a_step_is_a_file_as_any_other(files):
    (files / "network.onnx").write_bytes(convolutional().SerializeToString())
    recipe = files / "recipe.json"
    recipe.write_text('{"loss": "cross_entropy", "optimizer": "momentum"}', encoding="utf-8")
    done = heddle("compile", files / "network.onnx", "--training", recipe, "-o", files / "step.so",
                  "--json")
    assert done.status == OK, done.errors
    done = heddle("run", files / "step.so", "--dim", "n=4", "--json")
    assert done.status == OK, done.errors
    names = [output["name"] for output in done.json["outputs"]]
    assert names[0] == "train.loss" and "conv.weight/velocity" in names
    done = heddle("compare", files / "network.onnx", "--training", recipe, "--dim", "n=4")
    assert done.status == OK, done.output + done.errors
    recipe.write_text("{", encoding="utf-8")
    done = heddle("compile", files / "network.onnx", "--training", recipe, "-o", files / "x.so")
    assert done.status == USAGE and "is no JSON object" in done.errors


def test_the_derivative_is_a_file(files):
    done = heddle("compile", files / "mlp.onnx", "--gradient", "x,first.weight", "-o",
                  files / "slope.so")
    assert done.status == OK, done.errors
    done = heddle("run", files / "slope.so", "--dim", "n=4", "--json")
    assert [output["name"] for output in done.json["outputs"]] == ["y", "grad.x",
                                                                   "grad.first.weight"]
    done = heddle("compile", files / "mlp.onnx", "--gradient", "z", "-o", files / "slope.so")
    assert done.status == REFUSED and "no input or initializer 'z'" in done.errors
