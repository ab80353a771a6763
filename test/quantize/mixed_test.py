"""Sensitivity of layers, and layers that stay in f32 for a limit."""

import small
import numpy as np
import onnx
import pytest
from heddle.quantize import emit, observe
from heddle.quantize.mixed import _least
from heddle.quantize.quantizer import Products
from heddle.quantize.settings import Settings
from small import samples

import heddle

pytestmark = pytest.mark.usefixtures("compiler")


def uneven():
    """A network in which one layer has a weight that 8 bits cannot tell."""
    model = small.residual()
    tensor = next(each for each in model.graph.initializer if list(each.dims) == [5, 16])
    array = onnx.numpy_helper.to_array(tensor).copy()
    array[:, 3] *= 300
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return model


def wide():
    """Three layers whose weights are most of the model."""
    net = small.Net(0)
    x = net.input("x", ["batch", 64])
    for place in range(3):
        x = net.op("Tanh", net.dense(x, 64, 64), name="y" if place == 2 else None)
    net.output(x, ["batch", 64])
    return net.model()


def quantised(model, **options):
    reports = []
    made = heddle.quantize(model, samples(model, 12), report=reports.append, threads=1, **options)
    return made, reports[0].facts


def test_halving_finds_the_least():
    for count in range(6):
        for wanted in range(count + 1):
            assert _least(count, lambda each, wanted=wanted: each >= wanted) == wanted


def test_sensitivity_is_that_of_models_with_one_layer():
    model = small.gemm()
    feeds = samples(model, 12)
    _, facts = quantised(model, sensitivity=True, bias_correction=False)
    module = heddle.compile(model)
    calibrating = [feed for place, feed in enumerate(feeds) if place % 5 != 4][:8]

    def error(**options):
        made = heddle.compile(heddle.quantize(model, feeds, bias_correction=False, **options))
        pairs = [(module.run(None, feed)[0], made.run(None, feed)[0]) for feed in calibrating]
        return max(np.abs(a - b).max() for a, b in pairs) / max(np.abs(a).max() for a, _ in pairs)

    for each in (facts["layers"][0], facts["layers"][-1]):
        assert each["alone"] == pytest.approx(error(only=each["name"]), rel=0.02)


def test_a_tolerance_is_held_on_samples_that_were_not_searched_on():
    model = uneven()
    _, whole = quantised(model)
    tolerance = whole["outputs"][0]["error"] / 3
    made, facts = quantised(model, mixed=True, tolerance=tolerance)
    assert facts["outputs"][0]["error"] <= tolerance
    assert facts["layers"] and facts["left"]
    assert "alone it has an error of" in facts["left"][0]["why"]
    onnx.checker.check_model(made)


def test_a_tolerance_that_cannot_be_held():
    with pytest.raises(heddle.RefusedError, match=r"--tolerance 1e-09: '<model>' has an error of "
                       r"\S+, \S+ times as much, where all but one layer are in f32; most is of "
                       r"the layers '\w+' \(\S+\), "):
        quantised(uneven(), mixed=True, tolerance=1e-9)


def test_a_budget_of_bytes():
    model = wide()
    least = quantised(model)[1]["bytes_after"]
    budget = least + 3 * 64 * 64  # bytes that one of the weights takes more in f32
    made, facts = quantised(model, mixed=True, budget_bytes=budget)
    assert len(facts["left"]) == 1 and least < facts["bytes_after"] <= budget
    with pytest.raises(heddle.RefusedError, match=f"--budget-bytes {least - 10}: '<model>' takes "
                       f"{least} bytes with all layers as 8-bit integers, 10 more than that; "
                       "most take '.*/integers' of '.*' with 41"):
        quantised(model, mixed=True, budget_bytes=least - 10)
    with pytest.raises(heddle.RefusedError, match="the budget leaves 0 of 3 layers in f32"):
        quantised(model, mixed=True, budget_bytes=least, tolerance=1e-9)


def test_biases_of_layers_in_f32_are_their_own():
    """With bias correction, an op that is switched off computes what it did."""
    for model in (small.gemm(), wide()):
        feeds = samples(model, 4)
        work = Products(model, feeds, Settings.of({"mixed": True, "tolerance": 1.0}), None)
        work.run()
        switched, switches = emit.switched(work.network, work.decisions)
        module = observe.compiled(switched, 1)
        off = {name: np.array(False) for name in switches.values()}
        for wanted, found in zip(heddle.compile(model).run(None, feeds[0]),
                                 module.run(None, {**feeds[0], **off})):
            np.testing.assert_allclose(found, wanted, atol=2e-5)
