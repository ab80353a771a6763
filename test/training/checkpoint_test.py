"""Checkpoints go on to the same bits, are of one model, and are whole or not there; trained models
are models. What training refuses, it refuses by name."""

import os
import resource
import sys
from pathlib import Path

import heddle
import numpy as np
import onnx
import pytest
from heddle.training import DivergedError, Trainer, checkpoint
from onnx import helper

sys.path.insert(0, str(Path(__file__).parent))

from networks import batch, convolutional, initializers, mlp, model  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")
pytest.importorskip("safetensors")

OPTIONS = {"cache": False, "threads": 1}
SHAPE = (5, 2, 6, 6)


def trainer_of(network=None, **options):
    return Trainer(network or convolutional(), **{"learning_rate": 0.02, **OPTIONS, **options})


def bits(trainer):
    return {name: array.tobytes() for name, array in trainer.state_dict().items()}


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path, accumulate):
    one = trainer_of(seed=5, accumulate=accumulate)
    path = tmp_path / "at.safetensors"
    for number in range(7):
        if number == 3:
            one.save(path)
        one.step(batch(number, SHAPE, 3))
    other = trainer_of(accumulate=accumulate)
    other.load(path)
    assert (other.updates, other.parts) == (3 // accumulate, 3 % accumulate)
    losses = [other.step(batch(number, SHAPE, 3)) for number in range(3, 7)]
    assert bits(one) == bits(other) and np.isfinite(losses).all()


def test_a_state_dict_is_a_copy_that_can_be_loaded():
    trainer = trainer_of()
    trainer.step(batch(0, SHAPE, 3))
    kept = trainer.state_dict()
    then = [trainer.step(batch(1, SHAPE, 3)) for _ in range(2)]
    trainer.load_state_dict(kept)
    assert then == [trainer.step(batch(1, SHAPE, 3)) for _ in range(2)]


def test_a_trained_model_is_a_model(tmp_path):
    trainer = trainer_of()
    feeds = batch(0, SHAPE, 3)
    for _ in range(3):
        trainer.step(feeds)
    path = tmp_path / "trained.onnx"
    trainer.save(path)
    onnx.checker.check_model(onnx.load(path))
    ours, = heddle.compile(path, **OPTIONS).run(None, {"x": feeds["x"]})
    np.testing.assert_allclose(trainer.evaluate(feeds)[1]["y"], ours, rtol=1e-4, atol=1e-5)
    runtime = pytest.importorskip("onnxruntime")
    theirs, = runtime.InferenceSession(str(path)).run(None, {"x": feeds["x"]})
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_model_too_large_for_one_file_has_its_data_beside_it(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "LARGEST_PROTO", 100)
    trainer = trainer_of()
    feeds = batch(0, SHAPE, 3)
    trainer.step(feeds)
    trainer.save(tmp_path / "large.onnx")
    assert sorted(os.listdir(tmp_path)) == ["large.onnx", "large.onnx.data"]
    ours, = heddle.compile(tmp_path / "large.onnx", **OPTIONS).run(None, {"x": feeds["x"]})
    np.testing.assert_allclose(trainer.evaluate(feeds)[1]["y"], ours, rtol=1e-4, atol=1e-5)


def test_a_step_that_failed_leaves_the_random_numbers_too():
    feeds = batch(0, SHAPE, 3)
    one, other = trainer_of(), trainer_of()
    one.step(feeds)
    other.step(feeds)
    with pytest.raises(heddle.UsageError):
        one.step({**feeds, "labels": feeds["labels"] + 7})
    assert one.step(feeds) == other.step(feeds)


def test_checkpoints_of_something_else_are_refused(tmp_path):
    path, damaged = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    trainer_of().save(path)
    with pytest.raises(heddle.RefusedError, match="checkpoint of another model"):
        trainer_of(mlp()).load(path)
    with pytest.raises(heddle.RefusedError, match="model has no 'classes.weight/first_moment'"):
        trainer_of(optimizer="sgd").load(path)
    for content in (b"", path.read_bytes()[:-7], b"nothing of the kind"):
        damaged.write_bytes(content)
        with pytest.raises(heddle.RefusedError, match="b.safetensors': is no whole checkpoint"):
            trainer_of().load(damaged)
    with pytest.raises(heddle.UsageError, match="there is no such checkpoint"):
        trainer_of().load(tmp_path / "none.safetensors")
    with pytest.raises(heddle.UsageError, match="ends in .onnx"):
        trainer_of().save(tmp_path / "weights.pt")


@pytest.mark.parametrize("ending", ["onnx", "safetensors"])
def test_a_full_disk_leaves_what_was_there(tmp_path, ending):
    trainer = trainer_of()
    path = tmp_path / f"kept.{ending}"
    trainer.save(path)
    before = path.read_bytes()
    trainer.step(batch(0, SHAPE, 3))
    child = os.fork()
    if child == 0:  # a limit of a file's size stands for the disk's
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
        try:
            trainer.save(path)
        except heddle.LimitError as error:
            os._exit(0 if f"kept.{ending}': cannot be written" in str(error) else 3)
        except BaseException:
            os._exit(4)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]
    with pytest.raises(heddle.UsageError, match="cannot be written"):
        trainer.save(tmp_path / "nowhere" / f"kept.{ending}")


def same_state_after(trainer, feeds, kind, message):
    before = bits(trainer)
    with pytest.raises(kind, match=message):
        trainer.step(feeds)
    assert bits(trainer) == before


def test_labels_that_are_no_classes_change_nothing():
    trainer = trainer_of(mlp())
    feeds = batch(0, (8, 6), 4)
    trainer.step(feeds)
    for wrong in (4, -1):
        labels = feeds["labels"].copy()
        labels[3] = wrong
        same_state_after(trainer, {**feeds, "labels": labels}, heddle.UsageError,
                         "step 1: .*'train.loss'.*'labels' has classes from")


def test_a_loss_that_is_no_number_changes_nothing_and_names_its_source():
    network = mlp()
    network.graph.node.insert(1, helper.make_node("Log", ["h"], ["l"], "logarithm"))
    network.graph.node[2].input[0] = "l"
    trainer = trainer_of(network)
    feeds = batch(0, (8, 6), 4)
    same_state_after(trainer, feeds, DivergedError,
                     r"loss of step 0 is nan.*node 'logarithm' \(graph.log\)")
    x = feeds["x"].copy()
    x[2, 3] = np.nan
    same_state_after(trainer, {**feeds, "x": x}, DivergedError, "the input 'x' has elements")


def refused(message, network=None, kind=heddle.Error, **options):
    with pytest.raises(kind, match=message):
        trainer_of(network or mlp(), **options).state  # noqa: B018: what compiles it


def test_recipes_that_cannot_be(tmp_path):
    refused("there is no loss 'msse'; did you mean 'mse'", loss="msse")
    refused("there is no optimizer 'adm'; did you mean 'adam'", optimizer="adm")
    refused("optimizer 'adam' has no setting 'beta'", optimizer={"name": "adam", "beta": 0.5})
    refused("'beta1' is 2, but must be at least", optimizer={"name": "adam", "beta1": 2})
    refused("there is no field 'los'; did you mean 'loss'", recipe={"los": "mse"})
    refused("a group has no field 'matches'", groups=[{"match": ["*"], "matches": 1}])
    refused("'trainable' has 'first.weigh', but the model has no such initializer; did you mean "
            "'first.weight'", trainable=["first.weigh"])
    refused("'frozen' has 'third.*', but the model has no such", frozen=["third.*"])
    refused("the loss does not depend on any weight", frozen=["*"])
    refused("the loss 'output' is the output 'y' itself, which must be one number, but has the "
            r"shape \[n, 4\]", loss="output")
    refused("tensor 'nothing'", output="nothing")
    refused("axis 5", recipe={"class_axis": 5})
    refused("there is no such model", kind=heddle.UsageError, network=tmp_path / "none.onnx")


def test_weights_and_ops_that_cannot_be_trained():
    index = onnx.numpy_helper.from_array(np.array([1, 0], np.int64), "index")
    network = model([helper.make_node("MatMul", ["x", "w"], ["m"], "product"),
                     helper.make_node("Gather", ["m", "index"], ["y"], "pick", axis=1)],
                    {"x": ["n", 3]}, {"y": ["n", 2]}, [*initializers(w=(3, 4)), index])
    refused("initializer 'index' cannot be trained: its elements are no floating-point",
            network, trainable=["index"])
    network = model([helper.make_node("Mul", ["x", "w"], ["m"], "scale"),
                     helper.make_node("Round", ["m"], ["y"], "steps")],
                    {"x": ["n", 3]}, {"y": ["n", 3]}, initializers(w=(3,)))
    refused("does not depend on any weight", network, loss="mse")
    network = model([helper.make_node("Mul", ["x", "w"], ["m"], "scale"),
                     helper.make_node("Det", ["m"], ["y"], "determinant")],
                    {"x": ["n", 3, 3]}, {"y": ["n"]}, initializers(w=(3, 3)))
    try:
        trainer_of(network, loss="mse").state  # noqa: B018
    except heddle.RefusedError as error:
        assert "'determinant'" in str(error)
