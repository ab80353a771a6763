"""Samples: what is taken, and what is refused before anything runs."""

import small
import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from heddle.quantize import __main__ as command
from heddle.quantize import observe
from heddle.quantize.data import Samples
from heddle.quantize.graph import Network
from heddle.quantize.settings import Settings
from heddle.training import checkpoint

import heddle
from bench.models import catalogue

X = np.random.default_rng(0).standard_normal((6, 20)).astype(np.float32)
LSTM = make_model([make_node("MatMul", "x w", "y")], {"x": ["batch", 4], "state": [2, 1, 3]},
                  "y", {"w": np.ones((4, 4), np.float32)})


def opened(feeds, folder, model=None, **options):
    return Samples(feeds, Network(model or small.gemm(), "m.onnx"), Settings.of(options), folder)


def test_forms_of_samples(tmp_path):
    np.savez(tmp_path / "a.npz", x=X[:4])
    np.savez(tmp_path / "b.npz", x=X[4:])
    forms = [tmp_path, str(tmp_path), [tmp_path / "a.npz", tmp_path / "b.npz"], {"x": X},
             [{"x": row[None]} for row in X], ({"x": row[None]} for row in X)]
    for number, form in enumerate(forms):
        (tmp_path / str(number)).mkdir()
        found = opened(form, tmp_path / str(number))
        assert found.count == 6
        for _ in range(2):  # again and again
            np.testing.assert_array_equal(np.concatenate([feed["x"] for _, feed in found]), X)
        parts = [list(found.calibrating()), list(found.held())]
        assert [len(part) for part in parts] == [5, 1]
        np.testing.assert_array_equal(parts[1][0]["x"][0], X[4])
    assert opened({"x": X, "labels": np.arange(6)}, tmp_path).count == 6
    assert opened({"x": X}, tmp_path, batch=4).count == 2
    assert opened({"x": X}, tmp_path, samples=2).count == 2
    alone = opened({"x": X[:1]}, tmp_path)
    assert not alone.has_held and len(list(alone.held())) == len(list(alone.calibrating())) == 1


def test_inputs_of_a_fixed_size_are_cut_by_it(tmp_path):
    found = opened({"x": np.ones((5, 4), np.float32), "state": np.ones((10, 1, 3), np.float32)},
                   tmp_path, LSTM)
    assert [feed["state"].shape for _, feed in found] == [(2, 1, 3)] * 5
    with pytest.raises(heddle.UsageError, match=r"the feeds: its arrays have different numbers of "
                       r"samples: \{'x': 5, 'state': 8\}, of which a run takes"):
        opened({"x": np.ones((5, 4), np.float32), "state": np.ones((8, 1, 3), np.float32)},
               tmp_path, LSTM)


def test_a_size_of_minus_one_is_open(tmp_path):
    model = small.gemm()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert opened([{"x": X}], tmp_path, model).count == 1


def with_nan():
    wrong = X.copy()
    wrong[3, 7] = np.nan
    return wrong


@pytest.mark.parametrize("feeds, message", [
    ([{"z": X}], r"feeds\[0\]: has no 'x'; it has z, and the model takes x"),
    ([{"x": X}, {"x": X, "z": X}], r"feeds\[1\]: 'z' is no input; the model takes x"),
    ([{"x": X[:, :3]}], r"feeds\[0\]: 'x' is float32\[6, 3\], but the model takes float32\[batch"),
    ([{"x": X[0]}], r"'x' is float32\[20\], but the model takes"),
    ([{"x": X.astype(float)}], r"'x' is float64.*float32.*; .astype\('float32'\) converts it"),
    ({"x": with_nan()}, r"the feeds, sample 3: 'x'\[0, 7\] is nan, but finite numbers are needed"),
    ([{"x": X * np.float32(np.inf)}], r"is -?inf, but finite"),
    ([{"x": X[:0]}], r"has no elements; leave such samples out"),
    ({"x": X[:0]}, "the feeds: 'x' has no samples"),
    ([], "there are no samples to calibrate with"), (iter([]), "there are no samples"),
    ([X], r"feeds\[0\]: is a ndarray, but \{name of an input: array\} is needed"),
    (7, "the feeds are a int, but an iterable"), ("none.npz", "'none.npz': there is no such file"),
    ("bad.npz", "'bad.npz': is no .npz file of arrays"), (".", "'.': has no .npz file"),
])
def test_wrong_samples(feeds, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if feeds == "bad.npz":
        (tmp_path / "bad.npz").write_bytes(b"PK\3\4 no archive")
    with pytest.raises(heddle.UsageError, match=message):
        heddle.quantize(small.gemm(), feeds)
    assert sorted(path.name for path in tmp_path.iterdir()) in ([], ["bad.npz"])


def test_random_inputs(tmp_path):
    found = opened(None, tmp_path)
    assert found.is_random and found.count == 16
    model = small.embedded()
    with pytest.raises(heddle.UsageError, match="'ids' is int64.batch, length., whose size "
                       "'length' is open; --dim length=N says it"):
        opened(None, tmp_path, model)
    ids = [feed["ids"] for _, feed in opened(None, tmp_path, model, dim=["length=9", "batch=2"])]
    assert ids[0].shape == (2, 9) and 30 < max(map(np.max, ids)) < 40


@pytest.mark.parametrize("model, message", [
    (make_model([make_node("Relu", "x", "y")], {"x": [2]}, "y"),
     "'<model>': has nothing to quantise: it has no Conv"),
    (make_model([make_node("MatMul", "x x", "y")], {"x": [2, 2]}, "y"),
     "has nothing to quantise: 'y': it has no constant operand; --products"),
    (make_model([make_node("MatMul", "x w", "y")], {"x": ([2, 2], 10)}, {"y": ([2, 2], 10)},
                {"w": np.ones((2, 2), np.float16)}), "'x' is not known to be float32"),
    (make_model([make_node("QuantizeLinear", "x s", "q", "first"),
                 make_node("DequantizeLinear", "q s", "y")], {"x": [2]}, "y",
                {"s": np.float32(1)}),
     "is quantised already: 'first' is a QuantizeLinear; a model in f32 is needed"),
], ids=["nothing", "activations", "f16", "already"])
def test_wrong_models(model, message):
    with pytest.raises(heddle.RefusedError, match=message):
        heddle.quantize(model, {"x": np.ones((2, 2), np.float32)})


@pytest.mark.parametrize("name", ["kws_qdq", "kws_qoperator"])
def test_models_that_are_quantised(name):
    try:
        path = catalogue.find(name).path()
    except catalogue.Missing as reason:
        pytest.skip(str(reason))
    with pytest.raises(heddle.RefusedError, match="is quantised already"):
        heddle.quantize(path)


@pytest.mark.parametrize("options, message", [
    ({"calibration": "max"}, "`calibration` is 'max', but may be minmax, percentile, entropy, mse"),
    ({"percentile": 10}, "`percentile` is 10, but must be at least 50 and at most 100"),
    ({"batch": 1.5}, "`batch` is 1.5, but must be of type int"),
    ({"mixed": 1}, "`mixed` is 1, but must be of type bool"),
    ({"keep": [1]}, r"`keep` is \[1\], but a list of texts is allowed"),
    ({"mixed": True}, "--mixed: there is no limit"),
    ({"tolerance": 0.1}, "--tolerance 0.1: is a limit of mixed precision; --mixed asks for it"),
    ({"even_depthwise": True, "per_channel": False}, "--even-depthwise: the weights of each "),
    ({"dim": "h"}, "--dim h: is not of the form height=224"),
    ({"keep": "conv9"}, "--keep conv9: no layer of '<model>' has that name; there are gemm_0, y"),
    ({"ops": "LSTM"}, "--ops LSTM: is not an op that is quantised; these are Conv, "),
])
def test_wrong_options(options, message):
    with pytest.raises(heddle.UsageError, match=message):
        heddle.quantize(small.gemm(), {"x": X}, **options)
    with pytest.raises(TypeError, match="no option 'calibratio'; did you mean 'calibration"):
        heddle.quantize(small.gemm(), {"x": X}, calibratio="mse")


def test_a_model_that_is_none(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"no model")
    with pytest.raises(heddle.RefusedError, match="m.onnx': is no ONNX model"):
        heddle.quantize(tmp_path / "m.onnx", {"x": X})
    with pytest.raises(heddle.UsageError, match="none.onnx': there is no such model"):
        heddle.quantize(tmp_path / "none.onnx", {"x": X})


def test_models_that_are_too_large_for_one_file(tmp_path, monkeypatch, compiler):
    """Their weights lie in a file of their own, before and after."""
    monkeypatch.chdir(tmp_path)
    for module in (checkpoint, observe):
        monkeypatch.setattr(module, "LARGEST_PROTO", 1000)
    onnx.save_model(small.gemm(), "m.onnx", save_as_external_data=True, location="w.data",
                    size_threshold=0)
    np.savez("d.npz", x=X)
    for more in ([], ["--weights", "int8", "--block", "16"]):
        assert command.main(["m.onnx", "--data", "d.npz", "-o", "q.onnx", *more]) == 0
        assert (tmp_path / "q.onnx.data").exists()
        made = heddle.compile("q.onnx").run(None, {"x": X})[0]
        wanted = heddle.compile(small.gemm()).run(None, {"x": X})[0]
        np.testing.assert_allclose(made, wanted, atol=0.05 * np.abs(wanted).max())


def test_ops_that_onnx_had_for_trial(compiler):
    """onnx cannot convert them, nor tell their results."""
    net = small.Net(0)
    x = net.op("ImageScaler", net.image(), bias=[0.1, 0.2, 0.3], scale=0.5)
    net.classes(net.relu(net.conv(x, 3, 8)), 8)
    model = net.model(7)
    made = heddle.quantize(model, small.samples(model, 4), threads=1)
    assert [each.version for each in made.opset_import] == [13]
    node = next(node for node in made.graph.node if node.op_type == "ImageScaler")
    assert node.domain == "" and len(made.graph.node) > 10
    feed = small.samples(model, 1, 5)[0]
    wanted, found = (heddle.compile(each).run(None, feed)[0] for each in (model, made))
    np.testing.assert_allclose(found, wanted, atol=0.05 * np.abs(wanted).max())


def test_weights_in_files_of_their_own(tmp_path, compiler):
    model = small.gemm()
    onnx.save_model(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.data",
                    size_threshold=0)
    assert (tmp_path / "w.data").exists()
    made = heddle.quantize(tmp_path / "m.onnx", {"x": X})
    wanted = heddle.quantize(small.gemm(), {"x": X})
    assert made.SerializeToString() == wanted.SerializeToString()
