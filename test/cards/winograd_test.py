"""3x3 convolutions in transformed tiles, as a user meets them: chosen, forced, and ruled out."""

import json

import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node

import heddle

pytestmark = pytest.mark.usefixtures("compiler")
random = np.random.default_rng(5)


def convolution(channels, filters, **attributes):
    """A convolution of images of 30x27 pixels, and its filters."""
    w = random.uniform(-1, 1, (filters, channels, 3, 3)).astype(np.float32)
    node = make_node("Conv", "x w", "y", name="conv", **attributes)
    return make_model([node], {"x": [2, channels, 30, 27]}, {"y": None}, {"w": w}), w


def card_of(compiled):
    (group,) = [each for each in compiled.plan["groups"] if "conv" in each["card"]]
    return group["card"]


def in_double(x, w, dilation=1):
    """The result with borders as wide as the dilation."""
    border, span = (dilation, dilation), 2 * dilation + 1
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), border, border))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (span, span), axis=(2, 3))
    windows = windows[..., ::dilation, ::dilation]
    return np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64), optimize=True)


@pytest.mark.parametrize("math", ["fast", "strict"])
def test_both_ways_agree_with_double_precision(math):
    model, w = convolution(64, 48, pads=[1, 1, 1, 1])
    module = heddle.compile(model, math=math)
    assert card_of(module.compiled) == ("conv" if math == "strict" else "conv_winograd")
    x = random.uniform(-1, 1, (2, 64, 30, 27)).astype(np.float32)
    np.testing.assert_allclose(module.run(None, {"x": x})[0], in_double(x, w), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("attributes", [
    {"strides": [2, 2]}, {"dilations": [20, 20], "pads": [20] * 4},
    {"dilations": [1025, 1025], "pads": [1025] * 4}])
def test_other_convolutions_stay_direct(attributes):
    model, _ = convolution(64, 48, **attributes)
    assert card_of(heddle.compile(model).compiled) == "conv"


@pytest.mark.parametrize("dilation", [2, 3, 4])
def test_dilations_agree_with_double_precision(dilation):
    model, w = convolution(64, 48, dilations=[dilation] * 2, pads=[dilation] * 4)
    module = heddle.compile(model)
    assert card_of(module.compiled) == "conv_winograd"
    x = random.uniform(-1, 1, (2, 64, 30, 27)).astype(np.float32)
    np.testing.assert_allclose(module.run(None, {"x": x})[0], in_double(x, w, dilation), rtol=1e-4,
                               atol=1e-4)


def test_few_channels_stay_direct():
    model, _ = convolution(3, 48, pads=[1, 1, 1, 1])
    assert card_of(heddle.compile(model).compiled) == "conv"


def test_a_plan_may_not_take_what_strict_rules_out():
    model, _ = convolution(64, 48, pads=[1, 1, 1, 1])
    plan = heddle.compile(model).compiled.plan
    assert "conv_winograd" in json.dumps(plan)
    with pytest.raises(heddle.UsageError, match="its math is fast, which --math strict rules out"):
        heddle.compile(model, plan=plan, math="strict")


def test_an_unknown_math_is_refused():
    model, _ = convolution(3, 3)
    with pytest.raises(heddle.UsageError, match="there is no math 'loose'; known: fast, strict"):
        heddle.compile(model, math="loose")


def test_an_infinity_stays_among_the_pixels_of_its_tiles():
    model, w = convolution(64, 48, pads=[1, 1, 1, 1])
    x = random.uniform(-1, 1, (2, 64, 30, 27)).astype(np.float32)
    expected = in_double(x, w)
    x[0, 3, 13, 14] = np.inf
    found = heddle.compile(model).run(None, {"x": x})[0]
    assert not np.isfinite(found[0, :, 12:15, 13:16]).any()
    assert np.isfinite(found[0, :, :8]).all() and np.isfinite(found[0, :, 20:]).all()
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-4, atol=1e-4)
