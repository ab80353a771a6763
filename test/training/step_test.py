"""One step of training: losses, optimisers and options held against formulas in NumPy, f64, and
what is compiled against the reference interpreter."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_graph, make_model, make_node, make_value
from heddle.training import Trainer
from onnx import TensorProto, numpy_helper

from networks import batch, convolutional, initializers, mlp

pytestmark = pytest.mark.usefixtures("compiler")

OPTIONS = {"cache": False, "threads": 1}


def single(shape=(3, 4), seed=1):
    """y = w + 0 x: the loss is one of the weight itself."""
    return make_model([make_node("Mul", "x nothing", "z", "mul"),
                       make_node("Add", "z w", "y", "add")],
                      {"x": list(shape)}, {"y": list(shape)},
                      {**initializers(seed, w=shape), "nothing": np.zeros(1, np.float32)})


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def numbers_of(seed, shape):
    return np.random.default_rng(seed).uniform(0.05, 0.95, shape)


CLASSES = np.array([3, 0, 1])
ONE_HOT = np.eye(4)[CLASSES]
TARGET = numbers_of(5, (3, 4)).astype(np.float32)
# name -> labels, f64 loss and derivative of an output y
LOSSES = {
    "cross_entropy": (CLASSES, lambda y: -np.log(softmax(y))[np.arange(3), CLASSES].mean(),
                      lambda y: (softmax(y) - ONE_HOT) / 3),
    "nll": (CLASSES, lambda y: -y[np.arange(3), CLASSES].mean(), lambda y: -ONE_HOT / 3),
    "mse": (TARGET, lambda y: ((y - TARGET) ** 2).mean(), lambda y: 2 * (y - TARGET) / 12),
    "mae": (TARGET, lambda y: abs(y - TARGET).mean(), lambda y: np.sign(y - TARGET) / 12),
    "huber": (TARGET, lambda y: np.where(abs(y - TARGET) <= 1, 0.5 * (y - TARGET) ** 2,
                                         abs(y - TARGET) - 0.5).mean(),
              lambda y: np.clip(y - TARGET, -1, 1) / 12),
    "bce_with_logits": (TARGET, lambda y: (np.log1p(np.exp(y)) - TARGET * y).mean(),
                        lambda y: (1 / (1 + np.exp(-y)) - TARGET) / 12),
    "bce": (TARGET, lambda y: -(TARGET * np.log(y) + (1 - TARGET) * np.log(1 - y)).mean(),
            lambda y: (y - TARGET) / (y * (1 - y)) / 12),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_and_their_derivatives(loss):
    labels, value, slope = LOSSES[loss]
    network = single()
    if loss == "bce":  # of probabilities
        network.graph.initializer[0].CopyFrom(
            numpy_helper.from_array(numbers_of(6, (3, 4)).astype(np.float32), "w"))
    trainer = Trainer(network, loss, optimizer="sgd", learning_rate=0.5, **OPTIONS)
    y = trainer.weights["w"].astype(np.float64)
    feeds = {"x": np.zeros((3, 4), np.float32), "labels": labels}
    assert trainer.step(feeds) == pytest.approx(value(y), rel=1e-5)
    np.testing.assert_allclose(trainer.weights["w"], y - 0.5 * slope(y), rtol=1e-4, atol=1e-6)


def test_an_ignored_class_and_smoothed_labels():
    recipe = {"ignore_index": -7, "label_smoothing": 0.2}
    trainer = Trainer(single(), optimizer="sgd", learning_rate=1.0, recipe=recipe, **OPTIONS)
    y = trainer.weights["w"].astype(np.float64)
    labels, counts = np.array([3, -7, 1]), np.array([True, False, True])
    logs = np.log(softmax(y))
    each = -(0.8 * logs[np.arange(3), np.maximum(labels, 0)] + 0.2 * logs.mean(1))
    loss = trainer.step({"x": np.zeros((3, 4), np.float32), "labels": labels})
    assert loss == pytest.approx(each[counts].mean(), rel=1e-5)
    slope = (softmax(y) - 0.8 * np.eye(4)[np.maximum(labels, 0)] - 0.05) * counts[:, None] / 2
    np.testing.assert_allclose(trainer.weights["w"], y - slope, rtol=1e-4, atol=1e-6)


def test_classes_along_another_axis():
    network = single((2, 3, 5))
    labels = np.random.default_rng(0).integers(0, 3, (2, 5))
    trainer = Trainer(network, optimizer="sgd", recipe={"class_axis": 1}, **OPTIONS)
    y = np.moveaxis(trainer.weights["w"].astype(np.float64), 1, -1)
    picked = np.take_along_axis(np.log(softmax(y)), labels[..., None], -1)
    loss = trainer.step({"x": np.zeros((2, 3, 5), np.float32), "labels": labels})
    assert loss == pytest.approx(-picked.mean(), rel=1e-5)


class Formula:
    """An optimiser of one tensor in f64, as PyTorch's documentation writes it."""

    def __init__(self, name, decay, **settings):
        self.name, self.decay, self.set = name, decay, settings
        self.a = self.b = 0.0
        self.count = 0

    def step(self, w, g, rate):
        self.count += 1
        if self.name in ("adamw", "lion"):
            w = w * (1 - rate * self.decay)
        else:
            g = g + self.decay * w
        return getattr(self, self.name)(w, g, rate)

    def sgd(self, w, g, rate):
        return w - rate * g

    def momentum(self, w, g, rate):
        self.a = 0.9 * self.a + g
        return w - rate * (g + 0.9 * self.a if self.set.get("nesterov") else self.a)

    def adam(self, w, g, rate):
        self.a = 0.9 * self.a + 0.1 * g
        self.b = 0.999 * self.b + 0.001 * g * g
        mean, square = self.a / (1 - 0.9 ** self.count), self.b / (1 - 0.999 ** self.count)
        return w - rate * mean / (np.sqrt(square) + 1e-8)

    adamw = adam

    def adagrad(self, w, g, rate):
        self.a = self.a + g * g
        slowed = rate / (1 + (self.count - 1) * self.set.get("learning_rate_decay", 0))
        return w - slowed * g / (np.sqrt(self.a) + 1e-10)

    def rmsprop(self, w, g, rate):
        self.a = 0.99 * self.a + 0.01 * g * g
        return w - rate * g / (np.sqrt(self.a) + 1e-8)

    def lion(self, w, g, rate):
        change = np.sign(0.9 * self.a + 0.1 * g)
        self.a = 0.99 * self.a + 0.01 * g
        return w - rate * change


@pytest.mark.parametrize("name, settings", [
    ("sgd", {}), ("momentum", {}), ("momentum", {"nesterov": True}), ("adam", {}), ("adamw", {}),
    ("adagrad", {"learning_rate_decay": 0.1}), ("rmsprop", {}), ("lion", {})])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_optimisers(name, settings, decay):
    trainer = Trainer(single(), "mse", learning_rate=lambda step: 0.05 / (1 + step),
                      optimizer={"name": name, "weight_decay": decay, **settings}, **OPTIONS)
    formula, w = Formula(name, decay, **settings), trainer.weights["w"].astype(np.float64)
    for step in range(6):
        target = np.random.default_rng(step).standard_normal((3, 4))
        w = formula.step(w, 2 * (w - target) / 12, 0.05 / (1 + step))
        trainer.step({"x": np.zeros((3, 4), np.float32), "labels": target.astype(np.float32)})
        np.testing.assert_allclose(trainer.weights["w"], w, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adamw", "adagrad", "lion"])
@pytest.mark.parametrize("network, shape, classes", [(mlp, (7, 6), 4),
                                                     (convolutional, (5, 2, 6, 6), 3)])
def test_a_step_is_what_the_interpreter_computes(tmp_path, optimizer, network, shape, classes):
    path = tmp_path / "network.onnx"
    path.write_bytes(network(3).SerializeToString())
    trainer = Trainer(path, optimizer=optimizer, clip_norm=0.5, math="strict", **OPTIONS)
    feeds = batch(4, shape, classes)
    trainer._prepare(feeds)
    phase = trainer._phases["step"]
    given = phase.feeds({**feeds, **trainer._numbers()})
    results = phase.session.run(None, given)
    values = heddle.reference(path, [given[name] for name in trainer.input_names("step")],
                              training={**trainer.recipe, "phase": "step"})
    expected = [array for _, op, _, array in values if op == "output"]
    assert len(expected) == len(results) > 4
    for output, ours, theirs in zip(phase.session.get_outputs(), results, expected):
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5, err_msg=output.name)


def test_running_statistics_follow_those_of_batches():
    trainer = Trainer(convolutional(), optimizer="sgd", learning_rate=0.0, **OPTIONS)
    feeds = batch(1, (6, 2, 6, 6), 3)
    mean, variance = np.zeros(4), np.ones(4)
    wide = np.pad(feeds["x"], ((0, 0), (0, 0), (1, 1), (1, 1)))
    filters = trainer.weights["conv.weight"]
    made = sum(np.einsum("nchw,oc->nohw", wide[:, :, i:i + 6, j:j + 6], filters[:, :, i, j])
               for i in range(3) for j in range(3))
    for _ in range(3):
        trainer.step(feeds)
        mean = 0.8 * mean + 0.2 * made.mean((0, 2, 3))
        variance = 0.8 * variance + 0.2 * made.var((0, 2, 3))
    np.testing.assert_allclose(trainer.weights["norm.mean"], mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(trainer.weights["norm.variance"], variance, rtol=1e-4)


def test_running_variances_are_those_of_pytorch_if_asked_for():
    feeds = batch(1, (2, 2, 6, 6), 3)
    for count, size in ((2 * 36, 2), (36, 1)):
        part = {name: array[:size] for name, array in feeds.items()}
        biased, unbiased = (Trainer(convolutional(), optimizer="sgd", learning_rate=0.0,
                                    recipe={"running_variance": kind}, **OPTIONS)
                            for kind in ("biased", "unbiased"))
        for trainer in (biased, unbiased):
            trainer.step(part)
        found = (unbiased.weights["norm.variance"] - 0.8) / (biased.weights["norm.variance"] - 0.8)
        np.testing.assert_allclose(found, count / (count - 1), rtol=1e-4)


def test_a_rate_is_that_of_the_next_update_and_can_be_set():
    trainer = Trainer(single(), "mse", optimizer="sgd", learning_rate=0.5, **OPTIONS)
    feeds = {"x": np.zeros((3, 4), np.float32), "labels": TARGET}
    for rate in (0.5, 0.25, 0.0):
        trainer.learning_rate = rate
        before = trainer.weights["w"].copy()
        trainer.step(feeds)
        np.testing.assert_allclose(trainer.weights["w"],
                                   before - rate * 2 * (before - TARGET) / 12, rtol=1e-5)
    trainer.learning_rate = lambda step: 0.1 * step if step < 4 else float("nan")
    assert trainer.learning_rate == pytest.approx(0.3)
    for wrong in (-1, float("inf"), float("nan"), 1e39, "0.1", None, lambda _: -1):
        with pytest.raises(heddle.UsageError, match="rate of update 3 is .*, but must be a number"):
            trainer.learning_rate = wrong
        assert trainer.learning_rate == pytest.approx(0.3)
    trainer.step(feeds)
    kept = trainer.state_dict()
    with pytest.raises(heddle.UsageError, match="rate of update 4 is nan"):
        trainer.step(feeds)
    assert all((kept[name] == array).all() for name, array in trainer.state_dict().items())


def test_predictions_need_no_labels():
    trainer = Trainer(convolutional(), **OPTIONS)
    feeds = batch(1, (6, 2, 6, 6), 3)
    for _ in range(2):
        outputs = trainer.predict({"x": feeds["x"]})
        np.testing.assert_array_equal(outputs["y"], trainer.evaluate(feeds)[1]["y"])
        trainer.step(feeds)
    module = heddle.compile(convolutional(), training={"phase": "predict"}, **OPTIONS)
    assert "labels" not in [value.name for value in module.inputs]
    assert [value.name for value in module.outputs] == ["y"]


def test_statistics_may_stay_as_they_are():
    trainer = Trainer(convolutional(), recipe={"batch_norm": "running", "dropout": False},
                      **OPTIONS)
    feeds = batch(1, (6, 2, 6, 6), 3)
    inference = trainer.evaluate(feeds)[0]
    assert trainer.step(feeds) == pytest.approx(inference, rel=1e-5)
    assert "norm.mean" not in trainer.weights


def test_dropout_is_of_the_seed_and_moves_on():
    feeds = batch(2, (5, 2, 6, 6), 3)

    def losses(seed):
        trainer = Trainer(convolutional(), optimizer="sgd", learning_rate=0.0, seed=seed, **OPTIONS)
        return [trainer.step(feeds) for _ in range(4)]

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)
    assert len(set(losses(1))) == 4


def test_accumulated_batches_are_one_large_batch():
    whole, parts = (Trainer(mlp(), accumulate=count, clip_norm=0.3, learning_rate=0.1, **OPTIONS)
                    for count in (1, 3))
    for seed in range(2):
        large = batch(seed, (12, 6), 4)
        whole.step(large)
        for first in range(0, 12, 4):
            parts.step({name: array[first:first + 4] for name, array in large.items()})
    assert whole.updates == parts.updates == 2
    for name, array in whole.weights.items():
        np.testing.assert_allclose(parts.weights[name], array, rtol=1e-4, atol=1e-5)


def test_gradients_are_clipped():
    feeds = batch(0, (9, 6), 4)
    norms = {}
    for clip in ({}, {"clip_norm": 0.01}, {"clip_value": 0.001}):
        trainer = Trainer(mlp(), optimizer="sgd", learning_rate=1.0, **clip, **OPTIONS)
        before = trainer.state_dict()
        trainer.step(feeds)
        changes = [before[name] - array for name, array in trainer.weights.items()]
        norms[str(clip)] = (np.sqrt(sum((change ** 2).sum() for change in changes)),
                            max(abs(change).max() for change in changes))
    plain, norm, value = norms.values()
    assert plain[0] > 0.02 and norm[0] == pytest.approx(0.01, rel=1e-3)
    assert value[1] == pytest.approx(0.001, rel=1e-3)


def test_frozen_weights_groups_and_patterns():
    feeds = batch(0, (9, 6), 4)
    trainer = Trainer(mlp(), optimizer={"name": "sgd", "weight_decay": 0.5}, learning_rate=0.1,
                      trainable=["*.weight", "second.bias"], frozen=["first.*"],
                      groups=[{"match": ["*.bias"], "weight_decay": 0, "learning_rate": 0.0}],
                      **OPTIONS)
    before = trainer.state_dict()
    assert sorted(trainer.weights) == ["second.bias", "second.weight"]
    trainer.step(feeds)
    assert (trainer.weights["second.bias"] == before["second.bias"]).all()
    assert (trainer.weights["second.weight"] != before["second.weight"]).any()


def test_a_loss_of_any_tensor_and_the_output_as_loss():
    network = mlp()
    inner = Trainer(network, "mse", output="t", optimizer="sgd", **OPTIONS)
    feeds = batch(0, (9, 6))
    inner.step({**feeds, "labels": np.zeros((9, 5), np.float32)})
    assert sorted(inner.weights) == ["first.bias", "first.weight"]
    network.graph.node.append(make_node("ReduceMean", "y", "mean", "mean", keepdims=0))
    network.graph.output.append(make_value("mean", []))
    itself = Trainer(network, "output", output="mean", optimizer="sgd", **OPTIONS)
    first = itself.step(feeds)
    assert itself.step(feeds) < first


def test_one_artefact_takes_batches_of_any_size():
    trainer = Trainer(mlp(), learning_rate=0.05, **OPTIONS)
    losses = [trainer.step(batch(0, (size, 6), 4)) for size in (8, 1, 17, 64, 8)]
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


def test_the_derivative_of_a_model():
    compiled = heddle.compile(mlp(), training={
        "phase": "derivative", "variables": ["x", "second.weight"]}, **OPTIONS)
    assert [output.name for output in compiled.outputs] == ["y", "grad.x", "grad.second.weight"]
    x = batch(0, (5, 6))["x"]
    seed = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)
    given = {"x": x, "grad.y": seed}
    y, slope, _ = compiled.run(None, given)
    for place in ((0, 0), (4, 5), (2, 3)):
        moved = [x.copy(), x.copy()]
        moved[0][place] += 1e-2
        moved[1][place] -= 1e-2
        ys = [(compiled.run(None, {**given, "x": each})[0] * seed).sum() for each in moved]
        assert slope[place] == pytest.approx((ys[0] - ys[1]) / 2e-2, rel=1e-2, abs=1e-3)


def test_labels_of_sizes_that_follow_from_those_of_the_image():
    """Half the image's sizes: the labels have names of their own for them, which a run checks."""
    network = make_model([make_node("Conv", "x conv.weight", "y", "conv", strides=[2, 2])],
                    {"x": ["n", 2, "h", "w"]}, {"y": ["n", 4, "p", "q"]},
                    initializers(0, conv__weight=(4, 2, 3, 3)))
    trainer = Trainer(network, "mse", optimizer="sgd", learning_rate=0.1, **OPTIONS)
    x, labels = numbers_of(1, (3, 2, 9, 7)), numbers_of(2, (3, 4, 4, 3)).astype(np.float32)
    feeds = {"x": x.astype(np.float32), "labels": labels}
    first = trainer.step(feeds)
    assert trainer.step(feeds) < first
    with pytest.raises(heddle.UsageError, match="a size of .* cannot be broadcast to"):
        trainer.step({**feeds, "labels": labels.transpose(0, 1, 3, 2).copy()})
    given = {"phase": "derivative", "variables": ["x"]}
    derivative = heddle.compile(network, training=given, **OPTIONS)
    y, slope = derivative.run(None, {"x": feeds["x"], "grad.y": labels})
    assert slope.shape == x.shape and (slope * x).sum() == pytest.approx((y * labels).sum(), 1e-4)


def test_a_derivative_in_branches_of_other_sizes():
    """The sum needs two rows, so the branch with one cannot be taken."""
    first, whole = (make_graph([node], [], {node.output[0]: [None, None]}) for node in
                    (make_node("Slice", "x zero one", "a", "slice"),
                     make_node("Relu", "x", "b", "relu")))
    network = make_model([make_node("If", "c", "r", "if", then_branch=first, else_branch=whole),
                     make_node("Concat", "r x", "y", "concat", axis=1)],
                    {"x": [2, 3], "c": ([], TensorProto.BOOL)}, {"y": [2, 6]},
                    {"zero": [0], "one": [1]})
    compiled = heddle.compile(network, training={"phase": "derivative", "variables": ["x"]},
                              **OPTIONS)
    x = np.array([[1, -1, 2], [-3, 4, -5]], np.float32)
    given = {"x": x, "grad.y": np.ones((2, 6), np.float32)}
    assert (compiled.run(None, {**given, "c": np.array(False)})[1] == 1 + (x > 0)).all()
    with pytest.raises(heddle.Error, match="to be joined differ"):
        compiled.run(None, {**given, "c": np.array(True)})
