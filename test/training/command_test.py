"""`heddle train`, and steps that are compiled as files."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
import pytest

from command import OK, REFUSED, USAGE, fails, find_heddle, heddle, json_of, needs_heddle, ok
from networks import convolutional, mlp

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
                  "--threads", 1, "-o", files / "trained.onnx", *arguments, **options)


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
    (("--memory", "9" * 400), USAGE, "is no size such as"),
    (("--memory", "9" * 40), USAGE, "but must be an integer from 0 to 9223372036854775807"),
    (("--batch", "0"), USAGE, "--batch: must be an integer of at least 1"),
    (("--resume",), USAGE, "--resume and --every need --checkpoint"),
    (("--accumulate", "7", "--epochs", "2"), OK, ""),
    (("--accumulate", "7"), USAGE, "no update is made of 6 steps, 6 of 16 samples in each of 1"),
    (("--seed", "-1"), USAGE, "--seed: must be an integer of at least 0"),
    (("--threads", "-1"), USAGE, "--threads: must be an integer"),
    (("--lr", "nan"), USAGE, "rate of update 0 is nan"),
    (("--lr", "-1"), USAGE, "rate of update 0 is -1"),
    (("--set", "beta1=1"), USAGE, "'beta1' is 1.0, but must be at least 0.0 and less than 1.0"),
    (("--set", "beta1=nan"), USAGE, "is not of the form beta1=0.9"),
    (("--running-variance", "unbiased"), OK, ""),
    (("--data", "train.npy"), USAGE, "'train.npy': is no .npz file"),
    (("-o", "none/out.onnx"), USAGE, "'none/out.onnx': cannot be written: No such file or dir"),
    (("-o", "folder.onnx"), USAGE, "'folder.onnx': cannot be written: it is a folder"),
    (("--checkpoint", "none/a.safetensors"), USAGE, "'none/a.safetensors': cannot be written"),
    (("--checkpoint", "folder.safetensors", "--resume"), USAGE, "it is a folder"),
    (("--checkpoint", "mlp.safetensors", "--resume"), REFUSED, "is no whole checkpoint"),
    (("-o", "out.pt"), USAGE, "'out.pt' must end in .onnx"),
    (("--set", "beta1"), USAGE, "is not of the form beta1=0.9"),
    (("--set", "beta7=1"), USAGE, "has no setting 'beta7'; did you mean 'beta"),
    (("--loss", "output"), REFUSED, "which must be one number"),
    (("--freeze", "*"), REFUSED, "does not depend on any weight"),
])
def test_what_it_says(files, monkeypatch, arguments, status, message):
    monkeypatch.chdir(files)
    np.save("train.npy", np.zeros(3))
    for ending in ("onnx", "safetensors"):
        os.mkdir(f"folder.{ending}")
    shutil.copy("mlp.onnx", "mlp.safetensors")
    done = train(files, *arguments)
    assert done.status == status and message in done.errors
    assert "Traceback" not in done.errors and (status == OK or "epoch " not in done.output)


def test_what_would_not_be_kept_is_not_trained(files):
    done = fails("train", files / "mlp.onnx", "--data", files / "train.npz",
                 says="nothing would be kept: -o FILE.onnx names the place")
    assert not done.output


INTERRUPTED = """
import os, signal, sys
from heddle.library import UsageError
from heddle.training import __main__ as command

class Course:
    def __init__(self, options, stops):
        pass

    def run(self):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            while True:
                pass
        except KeyboardInterrupt:
            raise UsageError("a.safetensors: cannot be written: Bad file descriptor")

command.Course = Course
sys.exit(command.main(["mlp.onnx", "--data", "mlp.npz", "--checkpoint", "a.safetensors"]))
"""


def test_what_a_signal_interrupts_may_fail():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGTERM and done.stderr == "heddle train: stopped\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_no_folders(files, number):
    temporary = files / "temporary"
    temporary.mkdir()
    command = [find_heddle(), "train", files / "mlp.onnx", "--data", files / "train.npz",
               "--threads", 1, "--epochs", 10**6, "--checkpoint", files / "a.safetensors"]
    environment = {**os.environ, "HEDDLE_PYTHON": sys.executable, "TMPDIR": str(temporary),
                   "HEDDLE_CACHE": ""}
    for begins in (lambda: any(temporary.glob(".heddle*")),  # while it compiles, and trains
                   lambda: (files / "a.safetensors").exists()):
        child = subprocess.Popen(list(map(str, command)), env=environment,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not begins() and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(number)
        errors = child.communicate()[1].decode()
        assert child.returncode == 128 + number and "stopped" in errors, errors
        assert "Traceback" not in errors
        assert not [name for name in os.listdir(files) if name.startswith(".heddle")]
        assert not os.listdir(temporary)
    assert "a.safetensors' is the last checkpoint" in errors


def test_what_a_killed_training_has_left_goes_with_the_next_one(files):
    left, young = files / ".heddle-writing-a1", files / ".heddle-writing-b2"
    for folder in (left, young):
        folder.mkdir()
        (folder / "trained.onnx").write_bytes(b"x")
    os.utime(left, (1, 1))
    assert train(files).status == OK
    assert young.exists() and not left.exists()


def test_samples_that_do_not_fit(files):
    np.savez(files / "train.npz", x=np.zeros((5, 6), np.float32), labels=np.zeros(4, np.int64))
    done = train(files)
    assert done.status == USAGE and "different numbers of samples" in done.errors
    x, labels = np.zeros((5, 6), np.float32), np.zeros(5, np.int64)
    for name, arrays, message in (
            ("train", {"labels": np.array([0, 3, 9, -1, 2])}, "labels[2] is 9, but there are 4"),
            ("train", {"labels": labels - 1}, "labels[0] is -1, but there are 4 classes"),
            ("train", {"x": x[:, :5]}, "'x' is float32[5, 5], but the model takes float32[samples, "
                                       "6]"),
            ("train", {"x": x[..., None]}, "'x' is float32[5, 6, 1], but"),
            ("train", {"x": x.astype(float)}, "'x' is float64[5, 6], but"),
            ("train", {"x": x[:0], "labels": labels[:0]}, "has 0 samples"),
            ("wrong", {"x": x[:, :5]}, "wrong.npz': 'x' is float32[5, 5]")):
        for written in ("train", "wrong"):
            given = arrays if name == written else {}
            np.savez(files / f"{written}.npz", **{"x": x, "labels": labels, **given})
        done = train(files, "--validate", files / "wrong.npz")
        assert done.status == USAGE and message in done.errors, done.errors
        assert "epoch " not in done.output


def test_a_step_is_a_file_as_any_other(files):
    (files / "network.onnx").write_bytes(convolutional().SerializeToString())
    recipe = files / "recipe.json"
    recipe.write_text('{"loss": "cross_entropy", "optimizer": "momentum"}', encoding="utf-8")
    ok("compile", files / "network.onnx", "--training", recipe, "-o", files / "step.so", "--json")
    done = json_of("run", files / "step.so", "--dim", "n=4")
    names = [output["name"] for output in done["outputs"]]
    assert names[0] == "train.loss" and "conv.weight/velocity" in names
    ok("compare", files / "network.onnx", "--training", recipe, "--dim", "n=4")
    recipe.write_text("{", encoding="utf-8")
    fails("compile", files / "network.onnx", "--training", recipe, "-o", files / "x.so",
          says="is no JSON object")


def test_the_derivative_is_a_file(files):
    ok("compile", files / "mlp.onnx", "--gradient", "x,first.weight", "-o", files / "slope.so")
    done = heddle("run", files / "slope.so", "--dim", "n=4", "--json")
    assert [output["name"] for output in done.json["outputs"]] == ["y", "grad.x",
                                                                   "grad.first.weight"]
    fails("compile", files / "mlp.onnx", "--gradient", "z", "-o", files / "slope.so",
          status=REFUSED, says="no input or initializer 'z'")
