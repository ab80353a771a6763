"""Checkpoints go on to the same bits, are of one model, and are whole or not there; trained models
are models. What training refuses, it refuses by name."""

import json
import os
import resource
import warnings

import heddle
import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from heddle.training import DivergedError, Trainer, checkpoint

from networks import batch, convolutional, initializers, mlp

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
    assert len({path.stat().st_mode for path in tmp_path.iterdir()}) == 1
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
    network.graph.node.insert(1, make_node("Log", "h", "l", "logarithm"))
    network.graph.node[2].input[0] = "l"
    trainer = trainer_of(network)
    feeds = batch(0, (8, 6), 4)
    same_state_after(trainer, feeds, DivergedError,
                     r"loss of step 0 is nan.*node 'logarithm' \(graph.log\)")
    x = feeds["x"].copy()
    x[2, 3] = np.nan
    same_state_after(trainer, {**feeds, "x": x}, DivergedError, "the input 'x' has elements")


def rooted(accumulate):
    """A network with a root, whose slope at 0 is infinite while the loss is finite."""
    nodes = [make_node("MatMul", "x first", "h", "first"), make_node("Sqrt", "h", "r", "root"),
             make_node("MatMul", "r second", "y", "second")]
    ones = {"first": np.ones((3, 4), np.float32), "second": np.ones((4, 2), np.float32)}
    return trainer_of(make_model(nodes, {"x": ["n", 3]}, {"y": ["n", 2]}, ones),
                      accumulate=accumulate)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_gradients_that_are_no_numbers_change_nothing_and_are_named(accumulate):
    trainer = rooted(accumulate)
    feeds = {"x": np.abs(batch(0, (4, 3))["x"]), "labels": np.array([0, 1, 0, 1])}
    for _ in range(2 * accumulate):
        trainer.step(feeds)
    kept = trainer.state_dict()
    for _ in range(accumulate - 1):
        trainer.step(feeds)
    zeros = np.zeros_like(feeds["x"])
    with pytest.raises(DivergedError, match="gradient of 'first' in update 2 has elements that are "
                                            "no numbers; the weights are those before it"):
        trainer.step({**feeds, "x": zeros})
    assert all((kept[name] == array).all() for name, array in trainer.state_dict().items())
    for _ in range(accumulate):
        trainer.step(feeds)
    assert trainer.updates == 3 and np.isfinite(trainer.weights["first"]).all()


def test_nothing_is_saved_that_is_no_number(tmp_path):
    trainer = trainer_of(mlp())
    trainer.step(batch(0, (8, 6), 4))
    paths = [tmp_path / "a.onnx", tmp_path / "a.safetensors"]
    for path in paths:
        trainer.save(path)
    before = [path.read_bytes() for path in paths]
    trainer.weights["first.bias"][2] = np.nan
    for save in (*(lambda path=path: trainer.save(path) for path in paths), trainer.trained):
        with pytest.raises(DivergedError, match="is not written: after 1 updates 'first.bias' has"):
            save()
    assert [path.read_bytes() for path in paths] == before


def test_a_mask_may_begin_with_infinities(tmp_path):
    network = mlp()
    bias = np.float32([0, -np.inf, 0, 0])
    network.graph.initializer[3].CopyFrom(onnx.numpy_helper.from_array(bias, "second.bias"))
    trainer = trainer_of(network)
    feeds = batch(0, (8, 6), 4)
    trainer.step({**feeds, "labels": np.zeros(8, np.int64)})
    trainer.save(tmp_path / "a.onnx")


@pytest.mark.parametrize("notes, message", [
    ({"seed": "-1"}, "'seed' is -1"), ({"step": "-3"}, "updates is -3"), ({"step": "x"}, "literal"),
    ({"parts": "1"}, "since the last update is 1, but must be an integer from 0 to 0"),
    ({"sizes": "[1]"}, "is no checkpoint"), ({"sizes": '{"n": -4}'}, "the size 'n' is -4"),
    ({"sizes": "[" * 9999}, "is no checkpoint"), ({"sizes": '{"n": 1e99}'}, "the size 'n'")])
def test_notes_of_a_checkpoint_that_are_none(tmp_path, notes, message):
    from safetensors.numpy import save_file

    trainer = trainer_of(mlp())
    state = {name: array for name, array in trainer.state.items()}
    path = tmp_path / "a.safetensors"
    save_file(state, path, {"step": "0", "parts": "0", "sizes": json.dumps({}), **notes})
    with pytest.raises(heddle.RefusedError, match=f"a.safetensors': .*{message}"):
        trainer.load(path)


def test_a_checkpoint_may_be_no_file_at_all(tmp_path):
    folder, pickled = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    folder.mkdir()
    pickled.write_bytes(b"cos\nsystem\n(S'touch " + bytes(tmp_path / "ran") + b"'\ntR.")
    narrow = tmp_path / "c.safetensors"
    header = json.dumps({"first.bias": {"dtype": "BF16", "shape": [5], "data_offsets": [0, 10]}})
    narrow.write_bytes(len(header).to_bytes(8, "little") + header.encode() + bytes(10))
    for path in (folder, pickled, narrow):
        kind = heddle.UsageError if path == folder else heddle.RefusedError
        with pytest.raises(kind, match="safetensors': "):
            trainer_of(mlp()).load(path)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(heddle.UsageError, match="a.safetensors': cannot be written: it is a f"):
        trainer_of(mlp()).save(folder)


def test_folded_normalisations_are_told_of():
    network = convolutional()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer_of(network)
        trainer_of(mlp())
    network.graph.node[0].output[0] = "norm.BatchNorm2d"
    network.graph.node[2].input[0] = "norm.BatchNorm2d"
    del network.graph.node[1]
    with pytest.warns(UserWarning, match="1 layers, 'conv' first, have a batch normalisation fold"):
        trainer_of(network)
    network.graph.node[0].output[0] = network.graph.node[1].input[0] = "c"
    network.graph.node[0].input[1] = network.graph.initializer[0].name = "onnx::Conv_15"
    with pytest.warns(UserWarning, match="optimize=False"):
        trainer_of(network)


def refused(message, network=None, kind=heddle.Error, **options):
    with pytest.raises(kind, match=message):
        trainer_of(network or mlp(), **options).state  # noqa: B018: what compiles it


def test_recipes_that_cannot_be(tmp_path):
    refused("there is no loss 'msse'; did you mean 'mse'", loss="msse")
    refused("there is no optimizer 'adm'; did you mean 'adam'", optimizer="adm")
    refused("optimizer 'adam' has no setting 'beta'", optimizer={"name": "adam", "beta": 0.5})
    refused("'beta1' is 2, but must be at least 0.0 and less than 1.0",
            optimizer={"name": "adam", "beta1": 2})
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


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("options, message", [
    ({"learning_rate": NAN}, "rate of update 0 is nan, but must be a number from 0"),
    ({"learning_rate": -1}, "rate of update 0 is -1"),
    ({"clip_norm": NAN}, "recipe: 'clip_norm' is nan"),
    ({"clip_norm": -1}, "'clip_norm' is -1, but must be from 0"),
    ({"clip_value": INFINITY}, "recipe: 'clip_value' is inf"),
    ({"optimizer": {"name": "adam", "beta1": 1}}, "'beta1' is 1, but must be at least 0.0 and"),
    ({"optimizer": {"name": "adam", "epsilon": 0}}, "'epsilon' is 0, but must be from 1e-30"),
    ({"optimizer": {"name": "momentum", "momentum": 1.5}}, "'momentum' is 1.5"),
    ({"optimizer": {"name": "sgd", "weight_decay": -1}}, "'weight_decay' is -1"),
    ({"optimizer": {"name": "sgd", "weight_decay": 1e39}}, "'weight_decay' is 1e.39"),
    ({"optimizer": {"name": "rmsprop", "alpha": "x"}}, "'alpha' must be a number"),
    ({"accumulate": 0}, "'accumulate' is 0, but must be at least 1"),
    ({"accumulate": 1.5}, "'accumulate' is 1.5, but must be an integer"),
    ({"accumulate": 2**63}, "'accumulate' is 9223372036854775808, but must be an integer"),
    ({"trainable": "*"}, "'trainable' must be a list"), ({"groups": ["*"]}, "each of 'groups'"),
    ({"seed": -1}, "`seed` is -1, but must be an integer from 0"), ({"seed": 0.5}, "`seed` is 0.5"),
    ({"threads": -1}, "`threads` is -1"), ({"memory": 10**400}, "`memory` is 1000.*from 0 to"),
    ({"memory": "2GiB"}, "`memory` is '2GiB', but must be an integer"),
    ({"math": "exact"}, "there is no math 'exact'; known: fast, strict, bf16, bf16-emulated"),
    ({"target": "avx5"}, "avx5"), ({"shapes": ["x"]}, "'x'"), ({"cache": 3}, "`cache` is of type"),
    ({"recipe": {"class_axis": 0.5}}, "'class_axis' is 0.5, but must be an integer"),
    ({"recipe": {"running_variance": "pytorch"}}, "must be 'biased' or 'unbiased'"),
    ({"recipe": {"delta": {1}}}, "recipe: 'delta' is {1}"),
])
def test_options_are_checked_before_anything_is_compiled(options, message):
    with pytest.raises(heddle.UsageError, match=message):
        trainer_of(mlp(), **options)


@pytest.mark.parametrize("option, message", [
    ("class_axis", r"a field of the recipe: recipe=\{'class_axis'"),
    ("learning_rte", "no option 'learning_rte'; did you mean 'learning_rate'"),
    ("memry", "did you mean 'memory'"), ("load", "which it sets itself")])
def test_unknown_options(option, message):
    with pytest.raises(TypeError, match=message):
        Trainer(mlp(), **{option: 1})


def test_weights_and_ops_that_cannot_be_trained():
    network = make_model([make_node("MatMul", "x w", "m", "product"),
                     make_node("Gather", "m index", "y", "pick", axis=1)],
                    {"x": ["n", 3]}, {"y": ["n", 2]},
                    {**initializers(w=(3, 4)), "index": [1, 0]})
    refused("initializer 'index' cannot be trained: its elements are no floating-point",
            network, trainable=["index"])
    network = make_model([make_node("Mul", "x w", "m", "scale"),
                          make_node("Round", "m", "y", "steps")],
                         {"x": ["n", 3]}, {"y": ["n", 3]}, initializers(w=(3,)))
    refused("does not depend on any weight", network, loss="mse")
    network = make_model([make_node("Mul", "x w", "m", "scale"),
                     make_node("Det", "m", "y", "determinant")],
                    {"x": ["n", 3, 3]}, {"y": ["n"]}, initializers(w=(3, 3)))
    try:
        trainer_of(network, loss="mse").state  # noqa: B018
    except heddle.RefusedError as error:
        assert "'determinant'" in str(error)
