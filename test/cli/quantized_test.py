"""`heddle explain` and `heddle compile` of quantised models: what stayed in floats, and why."""

import numpy as np
import pytest
from heddle.onnx_graph import Graph, make_value
from onnx import TensorProto

from command import json_of, needs_heddle, ok, save

pytestmark = needs_heddle


class Quantized(Graph):
    """A model that grows node by node, from x of f32."""

    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        self.input("x", sizes)

    def constant(self, name, array):
        return super().constant(array, name)

    def add(self, op, inputs, name, **attributes):
        return self.op(op, *inputs, name=name, **attributes)

    def scale(self, name, scale):
        """A scale of the model, or one that the run is given."""
        if scale is not None:
            return self.constant(name, np.float32(scale))
        return self.input(name, [])

    def quantize(self, x, name, scale=0.1, zero=np.uint8(3), **more):
        zero = self.constant(f"{name}_zero", zero)
        return self.add("QuantizeLinear", [x, self.scale(f"{name}_scale", scale), zero], name,
                        **more)

    def dequantize(self, x, name, scale=0.1, zero=np.uint8(3), **more):
        zero = self.constant(f"{name}_zero", zero)
        return self.add("DequantizeLinear", [x, self.scale(f"{name}_scale", scale), zero], name,
                        **more)

    def activation(self, **more):
        """x as 8 bits and back."""
        return self.dequantize(self.quantize("x", "xq", **more), "xd", **more)

    def weight(self, sizes, scale=0.2, dtype=np.int8, zero=None, **more):
        array = np.arange(np.prod(sizes)).reshape(sizes) % 7 - 3
        stored = self.constant("wq", array.astype(dtype))
        return self.dequantize(stored, "wd", scale, dtype(0) if zero is None else zero, **more)

    def save(self, last, sizes, path, opset=21, dtype=TensorProto.FLOAT):
        self.output(last, sizes, dtype)
        return save(self.model(opset), path)


def blocks(made):
    made.add("MatMul", [made.activation(),
                        made.weight([8, 4], np.full([2, 4], 0.2), zero=np.zeros([2, 4], np.int8),
                                    axis=0, block_size=4)], "product")


def rows(made):
    """The scale of the weights differs along the axis that is summed over."""
    made.add("MatMul", [made.activation(), made.weight([8, 4], np.linspace(0.1, 0.2, 8),
                                                       zero=np.zeros(8, np.int8), axis=0)],
             "product")


def channels(made):
    """The activation has a scale for each channel."""
    more = {"scale": np.linspace(0.1, 0.2, 8), "zero": np.arange(8, dtype=np.uint8), "axis": 1}
    made.add("MatMul", [made.activation(**more), made.weight([8, 4])], "product")


def zeros(made):
    """The activation has a zero point for each channel, and one scale."""
    more = {"scale": np.full(8, 0.1), "zero": np.arange(8, dtype=np.uint8), "axis": 1}
    made.add("MatMul", [made.activation(**more), made.weight([8, 4])], "product")


def words(made):
    made.add("MatMul", [made.activation(), made.weight([8, 4], dtype=np.int16)], "product")


def weights_alone(made):
    made.add("MatMul", ["x", made.weight([8, 4])], "product")


def activation_alone(made):
    made.add("MatMul", [made.activation(), made.constant("w", np.ones([8, 4], np.float32))],
             "product")


def behind_floats(made):
    bounded = made.add("Tanh", [made.activation()], "bounded")
    made.add("MatMul", [bounded, made.weight([8, 4])], "product")


@pytest.mark.parametrize("build, why", [
    (blocks, "the result of 'wd' has a zero point that differs along more than one axis"),
    (rows, "the result of 'wd' has a scale that differs along axis 0; it may do so only along 1"),
    (channels, "the result of 'xd' has a scale that differs along axis 1; the left side of a "
               "product may have only one"),
    (zeros, "the result of 'xd' has a "),
    (words, "the result of 'wd' is of 16 bits, but products of integers take at most 8"),
    (weights_alone, "the input 'x' is not quantised, but the other side is"),
    (activation_alone, "the constant 'w' is not quantised, but the other side is"),
    (behind_floats, "the result of 'bounded' is not quantised, but the other side is"),
])
def test_a_product_in_floats_has_a_reason(tmp_path, build, why):
    made = Quantized([2, 8])
    build(made)
    model = made.save("product", [2, 4], tmp_path / "m.onnx")
    [told] = json_of("explain", model)["unfolded"]
    assert told["node"] == "product" and told["op"] == "matmul"
    assert told["why"].startswith(why), told
    done = ok("explain", model)
    assert f"product (matmul): {why}" in done.output, done.output
    made = json_of("compile", model, "-o", tmp_path / "m.so", "--no-cache")
    assert made["report"]["unfolded"] == [told], made


def test_a_convolution_with_a_scale_along_its_inputs(tmp_path):
    made = Quantized([1, 4, 6, 6])
    weights = made.weight([8, 4, 3, 3], np.linspace(0.1, 0.2, 4), zero=np.zeros(4, np.int8), axis=1)
    made.add("Conv", [made.activation(), weights], "product")
    model = made.save("product", [1, 8, 4, 4], tmp_path / "m.onnx")
    [told] = json_of("explain", model)["unfolded"]
    assert told["op"] == "conv" and "a scale that differs along axis 1" in told["why"], told


def test_a_transposed_convolution_of_groups(tmp_path):
    made = Quantized([1, 4, 6, 6])
    made.add("ConvTranspose", [made.activation(), made.weight([4, 8, 3, 3])], "product", group=2)
    model = made.save("product", [1, 16, 8, 8], tmp_path / "m.onnx")
    [told] = json_of("explain", model)["unfolded"]
    assert told["node"] == "product" and "a transposed convolution" in told["why"], told


def test_a_scale_that_the_run_computes(tmp_path):
    """A product takes it; a pool, and a quantisation after it, do not."""
    made = Quantized([1, 4, 6, 6])
    x = made.activation(scale=None)
    made.inputs = [make_value("x", [1, 4, 6, 6]), make_value("xq_scale", []),
                   make_value("xd_scale", [])]
    pooled = made.add("MaxPool", [x], "pooled", kernel_shape=[2, 2], strides=[2, 2])
    model = made.save(pooled, [1, 4, 3, 3], tmp_path / "m.onnx")
    [told] = json_of("explain", model)["unfolded"]
    assert told["node"] == "pooled" and told["op"] == "pool"
    assert "has a scale that is computed at run time" in told["why"], told


def test_a_pair_of_two_scales(tmp_path):
    made = Quantized([2, 8])
    turned = made.add("Transpose", [made.activation()], "turned")
    last = made.quantize(turned, "again", scale=0.3)
    model = made.save(last, [8, 2], tmp_path / "m.onnx", dtype=TensorProto.UINT8)
    [told] = json_of("explain", model)["unfolded"]
    assert told["node"] == "again", told
    assert told["why"] == "what it reads is quantised again with another scale"


@pytest.mark.parametrize("zero", [np.uint8(3), np.int8(-128), np.int8(5)])
def test_what_was_folded_is_not_named(tmp_path, zero):
    made = Quantized([2, 8])
    made.add("MatMul", [made.activation(zero=zero), made.weight([8, 4])], "product")
    model = made.save("product", [2, 4], tmp_path / "m.onnx")
    assert "unfolded" not in ok("explain", model).output
    assert json_of("explain", model)["unfolded"] == []


def test_a_model_of_floats_has_nothing_to_say(tmp_path):
    made = Quantized([2, 8])
    made.add("MatMul", ["x", made.constant("w", np.ones([8, 4], np.float32))], "product")
    model = made.save("product", [2, 4], tmp_path / "m.onnx")
    assert json_of("explain", model)["unfolded"] == []


def residual(sizes, tmp_path):
    """Two convolutions, each quantised, that meet in an addition with a bound after it."""
    made = Quantized(sizes)
    x = made.activation(zero=np.int8(-5))
    first = {"scale": 0.7, "zero": np.int8(2)}
    second = {"scale": 0.9, "zero": np.int8(-7)}
    weights = made.weight([16, sizes[1], 1, 1])
    skip = made.add("Conv", [x, weights], "skip")
    skip = made.dequantize(made.quantize(skip, "skip_q", **first), "skip_d", **first)
    body = made.add("Conv", [x, made.constant("wide", np.float32(np.eye(16, sizes[1]))
                                              .reshape(16, sizes[1], 1, 1))], "body_float")
    body = made.dequantize(made.quantize(body, "body_q", **second), "body_d", **second)
    weights = made.dequantize(
        made.constant("vq", (np.arange(16 * 16 * 9) % 5 - 2).astype(np.int8).reshape(16, 16, 3, 3)),
        "vd", 0.05, np.int8(0))
    body = made.add("Conv", [body, weights], "body", pads=[1, 1, 1, 1])
    body = made.dequantize(made.quantize(body, "sum_q", **second), "sum_d", **second)
    added = made.add("Add", [body, skip], "added")
    bounded = made.add("Relu", [made.dequantize(made.quantize(added, "added_q", **first),
                                                "added_d", **first)], "bounded")
    more = {"scale": 0.35, "zero": np.int8(-128)}
    last = made.dequantize(made.quantize(bounded, "last_q", **more), "last", **more)
    return made.save(last, [sizes[0], 16, *sizes[2:]], tmp_path / "m.onnx")


def test_a_branch_that_is_quantised_is_stored_so(tmp_path):
    """The kernel of `skip` stores 8 bits, since they are fewer than the sums that it makes."""
    model = residual([1, 8, 6, 6], tmp_path)
    told = json_of("explain", model)
    [skip] = [group for group in told["groups"]
              if "skip" in {op["name"] for op in group["ops"]}]
    assert skip["name"] == "skip_q", skip["name"]
    assert skip["outputs"][0]["bytes"] == 16 * 6 * 6


def upsampled(sizes, tmp_path, **window):
    """A transposed convolution with a scale for each channel, joined with what it was made of."""
    made = Quantized([1, 8, *sizes])
    x = made.activation(zero=np.uint8(131))
    weights = made.weight([8, 20, 3, 2], np.linspace(0.1, 0.2, 20), zero=np.zeros(20, np.int8),
                          axis=1)
    bias = made.constant("bias", np.linspace(-3, 3, 20, dtype=np.float32))
    made.add("ConvTranspose", [x, weights, bias], "up", **window)
    first = {"scale": 0.391, "zero": np.uint8(100)}
    second = {"scale": 0.517, "zero": np.uint8(90)}
    up = made.dequantize(made.quantize("up", "up_q", **first), "up_d", **first)
    bounded = made.add("Relu", [up], "bounded")
    wide = made.add("Concat", [bounded, up], "wide", axis=1)
    last = made.dequantize(made.quantize(wide, "wide_q", **second), "last", **second)
    return made.save(last, [1, 40, "height", "width"], tmp_path / "m.onnx")


@pytest.mark.parametrize("window", [{"strides": [2, 2]}, {"strides": [1, 3], "pads": [1, 0, 0, 1]},
                                    {"strides": [3, 2], "output_padding": [1, 0]}])
@pytest.mark.parametrize("sizes", [[9, 7], [1, 1]])
def test_a_transposed_convolution_of_integers(tmp_path, window, sizes):
    model = upsampled(sizes, tmp_path, **window)
    told = json_of("explain", model)
    assert not [each for each in told["unfolded"] if each["op"] == "conv_transpose"], told
    ok("compare", model, "--against", "reference")


def test_what_is_joined_is_stored_in_8_bits(tmp_path):
    """Whatever comes after the transposed convolution, no kernel stores wider elements but the
    last."""
    told = json_of("explain", upsampled([8, 8], tmp_path, strides=[2, 2]))
    stored = [output["bytes"] for group in told["groups"][:-1] for output in group["outputs"]]
    assert max(stored) <= 40 * 17 * 16, stored


def test_what_is_quantised_in_between_gives_the_same_numbers(tmp_path):
    ok("compare", residual([2, 8, 9, 7], tmp_path), "--against", "reference")
