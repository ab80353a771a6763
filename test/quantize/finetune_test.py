"""Weights that are trained through their rounding, by the network in f32."""

import json
import os
import signal
import subprocess
import sys

import heddle
import numpy as np
import onnx
import pytest
import small
from heddle.onnx_graph import FLOAT
from heddle.quantize import __main__ as command
from heddle.quantize.finetune import Trainer
from onnx import numpy_helper
from quantize_test import same_in_onnxruntime

pytestmark = pytest.mark.usefixtures("compiler")
INT32 = onnx.TensorProto.INT32


def uneven(model):
    """Channels of weights that one scale does not serve."""
    random = np.random.default_rng(1)
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.ndim == 4:
            factors = 10 ** random.uniform(-1.2, 0.3, len(array))
            array = (array * factors.reshape(-1, 1, 1, 1)).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return model


def tuned(model, feeds, **options):
    """(the model, facts of fine-tuning, all facts)"""
    reports = []
    made = heddle.quantize(model, feeds, report=reports.append, threads=1, **options)
    return made, reports[0].facts.get("finetune"), reports[0].facts


def integers(model):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer
            if tensor.data_type in (onnx.TensorProto.INT8, onnx.TensorProto.INT32)}


@pytest.mark.parametrize("network, options", [
    (lambda: uneven(small.depthwise()), {"per_channel": False}),
    (small.transformer, {"per_channel": False}),
    (small.gemm, {"distance": "kl", "learning_rate": 0.01}),
])
def test_it_brings_outputs_closer(network, options):
    model, feeds = network(), small.samples(network(), 40)
    plain = {name: value for name, value in options.items() if name == "per_channel"}
    before, nothing, _ = tuned(model, feeds, **plain)
    made, facts, told = tuned(model, feeds, finetune=12, **options)
    assert nothing is None and facts["kept"] and facts["stopped"] is None
    assert facts["after"] < 0.95 * facts["before"]
    assert facts["after"] == min(each["validation"] for each in facts["epochs"])
    if "distance" not in options:
        assert told["outputs"][0]["decibels"] > facts["outputs_before"][0]["decibels"]
    assert {tensor.name for tensor in made.graph.initializer} == {
        tensor.name for tensor in before.graph.initializer}
    old, new = integers(before), integers(made)
    moved = [np.abs(old[name].astype(int) - new[name]).max() for name in old if name in new]
    assert max(moved) > 0
    same_in_onnxruntime(made, small.samples(model, 4, seed=9))


def mean_squares(runs):
    """That of each output."""
    return np.mean([[np.mean(np.square(array)) for array in run] for run in runs], axis=0)


@pytest.mark.parametrize("name, options", [
    ("residual", {"activations": "s8", "equalise": True}), ("shared_weights", {}),
    ("transformer", {"smooth": 0.5, "per_channel": False, "reduce_range": True}),
    ("upsampled", {"mixed": True, "tolerance": 0.05}), ("several_outputs", {}),
    ("gemm", {"bias_correction": False, "per_channel": False})], ids=str)
def test_what_is_trained_is_the_model_that_is_made(name, options):
    """Errors of validation are those of the models, but for sums at the edge of a step."""
    model = small.NETWORKS[name]()
    feeds, made = small.samples(model, 50), []
    last, found, _ = tuned(model, feeds, finetune=2, learning_rate=0.005, **options,
                           progress=lambda facts, each: made.append((facts, each)))
    same_in_onnxruntime(last, feeds[:2])
    assert [facts["epoch"] for facts, _ in made] == [0, 1, 2] and made[0][1] is not None
    assert made[1][1] is not None or made[2][1] is not None
    module = heddle.compile(model, threads=1)
    signals = mean_squares(module.run(None, feed) for place, feed in enumerate(feeds)
                           if place % 5 < 3)
    for facts, each in made:
        if each is not None:
            other = heddle.compile(each, threads=1)
            noises = mean_squares([a - b for a, b in zip(*(
                which.run(None, feed) for which in (module, other)))] for feed in feeds[3::5])
            error = facts["validation"] if facts["epoch"] else found["before"]
            assert np.mean(np.divide(noises, signals)) == pytest.approx(error, rel=0.15)


def test_it_finds_the_same_again():
    model, options = small.embedded(), {"per_channel": False, "distance": "kl", "finetune": 2}
    feeds = small.samples(model, 20)
    made, again = (tuned(model, feeds, **options)[0].SerializeToString() for _ in range(2))
    assert made == again


def test_what_is_not_better_is_not_kept():
    feeds = small.samples(small.gemm(), 20)
    before, _, _ = tuned(small.gemm(), feeds)
    made, facts, told = tuned(small.gemm(), feeds, finetune=2, learning_rate=1000)
    assert not facts["kept"] and facts["after"] == facts["before"]
    assert made.SerializeToString() == before.SerializeToString()
    assert told["outputs"] == facts["outputs_before"]


def test_a_loss_that_diverges_loses_nothing(monkeypatch):
    step, count = Trainer.step, []

    def fails(self, feed):
        count.append(feed)
        if len(count) == 30:
            raise heddle.training.DivergedError("the loss is nan")
        return step(self, feed)

    monkeypatch.setattr(Trainer, "step", fails)
    model = uneven(small.depthwise())
    _, facts, _ = tuned(model, small.samples(model, 20), per_channel=False, finetune=9)
    assert facts["stopped"] == "the loss is nan" and 1 <= len(facts["epochs"]) < 9


@pytest.mark.parametrize("options, says", [
    ({"learning_rate": 0.1}, "--learning-rate 0.1: is an option of fine-tuning; --finetune EPOCHS"),
    ({"distance": "kl"}, "--distance kl: is an option of fine-tuning"),
    ({"finetune": 2, "weights": "int4"}, "--finetune: is an option of products of integers"),
    ({"finetune": -1}, "`finetune` is -1, but must be at least 0"),
    ({"finetune": 1, "learning_rate": float("nan")}, "`learning_rate` is nan, but must be at"),
])
def test_options_that_contradict_each_other(options, says):
    with pytest.raises(heddle.UsageError, match=says):
        heddle.quantize(small.gemm(), small.samples(small.gemm(), 8), **options)


@pytest.mark.parametrize("feeds, says", [
    (None, "--finetune: there are no samples, and random inputs would teach"),
    (small.samples(small.gemm(), 2), "--finetune: 2 samples are too few"),
])
def test_samples_that_are_not_enough(feeds, says):
    with pytest.raises(heddle.UsageError, match=says):
        heddle.quantize(small.gemm(), feeds, finetune=1)


def test_a_network_without_a_derivative_is_refused_at_once():
    net = small.Net(3)
    x = net.op("MatMul", net.input("x", ["batch", 8]), net.weight(8, 8))
    x = net.op("BitCast", net.op("BitCast", x, to=INT32), to=FLOAT, name="bits")
    net.op("Identity", x, name="y")
    net.output("y", ["batch", 8])
    with pytest.raises(heddle.RefusedError, match="--finetune: .*bitcast.* has no derivative"):
        heddle.quantize(net.model(26), [{"x": np.ones((2, 8), np.float32)}] * 4, finetune=1)


def test_an_output_of_integers_alone_is_refused():
    net = small.Net(0)
    net.op("ArgMax", net.dense(net.input("x", ["batch", 8]), 8, 4), axis=1, name="y")
    net.output("y", ["batch", 1], 7)
    with pytest.raises(heddle.RefusedError, match="has no output of f32"):
        heddle.quantize(net.model(), [{"x": np.ones((1, 8), np.float32)}] * 5, finetune=1)


def test_ctrl_c_keeps_the_best(tmp_path):
    onnx.save(small.gemm(), tmp_path / "m.onnx")
    np.savez(tmp_path / "d.npz", x=small.samples(small.gemm(), 1)[0]["x"].repeat(20, axis=0))
    process = subprocess.Popen(
        [sys.executable, "-m", "heddle.quantize", "m.onnx", "-o", "q.onnx", "--data", "d.npz",
         "--finetune", "1000000"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    first = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "epoch 1 of 1000000: loss " in first, first
    assert process.returncode == 128 + signal.SIGINT and "Traceback" not in errors, errors
    assert "stopped; 'q.onnx' has the model of epoch " in errors.splitlines()[-1]
    onnx.checker.check_model(str(tmp_path / "q.onnx"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.npz", "m.onnx", "q.onnx"]


def test_a_stop_keeps_the_best(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    onnx.save(small.gemm(), "m.onnx")
    np.savez("d.npz", x=np.random.default_rng(0).standard_normal((20, 20)).astype(np.float32))
    step, count = Trainer.step, []

    def stops(self, feed):
        count.append(feed)
        if len(count) == 20:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(self, feed)

    monkeypatch.setattr(Trainer, "step", stops)
    given = ["m.onnx", "-o", "q.onnx", "--data", "d.npz", "--finetune", "50", "--threads", "1"]
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert command.main(given) == 128 + signal.SIGTERM
    finally:
        signal.signal(signal.SIGTERM, handler)
    said = capsys.readouterr().err
    assert "epoch 1 of 50: loss " in said
    assert "stopped; 'q.onnx' has the model of epoch " in said
    onnx.checker.check_model("q.onnx")


def test_the_report_tells_of_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    onnx.save(small.gemm(), "m.onnx")
    np.savez("d.npz", x=np.random.default_rng(0).standard_normal((20, 20)).astype(np.float32))
    given = ["m.onnx", "-o", "q.onnx", "--data", "d.npz", "--finetune", "2", "--threads", "1"]
    assert command.main(given) == 0
    assert "fine-tuned with 12 samples, 2 times, in " in capsys.readouterr().out
    assert command.main([*given, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)["finetune"]
    assert facts["trained_with"] == 12 and facts["validated_with"] == 4
    assert [each["epoch"] for each in facts["epochs"]] == [1, 2]
