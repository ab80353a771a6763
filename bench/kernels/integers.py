"""Products of 8-bit integers against those of floats, and against ONNX Runtime's.

    ./dev bench integers --rounds 9

Each layer is made twice: of f32, and quantised (u8 activations, i8 weights). Heddle's artefacts of
both and ONNX Runtime's session of the quantised one are timed by turns: one thread, random inputs.
Images are channels last, with a transpose on either side of the convolution, so that neither engine
moves them: what lies between the layers of a network.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from heddle.onnx_graph import make_model
from onnx import TensorProto

from bench.kernels.layers import dense, model, node, normal, random
from bench.kernels.engines import heddle, median_us, onnxruntime_call


def quantised(nodes, inputs, output, constants, result=TensorProto.UINT8):
    return make_model(nodes,
                      {name: ([*shape], TensorProto.UINT8) for name, shape in inputs.items()},
                      {"y": ([*output], result)}, constants)


def integers(*shape):
    return random.integers(-127, 128, shape).astype(np.int8)


def parameters(zero, channels):
    return {"sx": np.float32(0.02), "zx": np.uint8(zero), "sw": np.full(channels, 0.01, np.float32),
            "zw": np.zeros(channels, np.int8), "sy": np.float32(0.3), "zy": np.uint8(128)}


WORDS = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]


def q_matmul(m, k, n):
    return quantised([node("QLinearMatMul", WORDS, "y")], {"x": [m, k]}, [m, n],
                     {"w": integers(k, n), **parameters(128, n)})


def matmul_integer(m, k, n):
    return quantised([node("MatMulInteger", ["x", "w", "zx"], "y")], {"x": [m, k]}, [m, n],
                     {"w": integers(k, n), "zx": np.uint8(128)}, TensorProto.INT32)


def layer(op, inputs, **attributes):
    return [node("Transpose", ["x"], "t", perm=[0, 3, 1, 2]), node(op, ["t", *inputs], "c",
                                                                   **attributes),
            node("Transpose", ["c"], "y", perm=[0, 2, 3, 1])]


def convolved(channels, filters, window, stride, size):
    pad, out = window // 2, (size + 2 * (window // 2) - window) // stride + 1
    places = {"x": [1, size, size, channels]}, [1, out, out, filters]
    window = {"strides": [stride] * 2, "pads": [pad] * 4, "kernel_shape": [window] * 2}
    return places, window


def conv(channels, filters, window, stride, size):
    (inputs, output), attributes = convolved(channels, filters, window, stride, size)
    return model(layer("Conv", ["w", "b"], **attributes), inputs, output,
                 {"w": normal(filters, channels, window, window), "b": normal(filters)})


def q_conv(channels, filters, window, stride, size, zero):
    (inputs, output), attributes = convolved(channels, filters, window, stride, size)
    bias = random.integers(-1000, 1000, filters).astype(np.int32)
    return quantised(layer("QLinearConv", [*WORDS[1:], "b"], **attributes), inputs, output,
                     {"w": integers(filters, channels, window, window), "b": bias,
                      **parameters(zero, filters)})


def products(*sizes):
    return lambda: (dense(*sizes), {"QLinearMatMul": q_matmul(*sizes),
                                    "MatMulInteger": matmul_integer(*sizes)})


def convolutions(*sizes):
    return lambda: (conv(*sizes), {"QLinearConv": q_conv(*sizes, 0),
                                   "QLinearConv, zero point 128": q_conv(*sizes, 128)})


LAYERS = {
    "512x512x512": products(512, 512, 512),
    "BERT 128x768x768": products(128, 768, 768),
    "BERT 128x768x3072": products(128, 768, 3072),
    "BERT 128x3072x768": products(128, 3072, 768),
    "1x768x768": products(1, 768, 768),
    "ResNet 7x7/2 3->64 224": convolutions(3, 64, 7, 2, 224),
    "ResNet 3x3 64->64 56": convolutions(64, 64, 3, 1, 56),
    "ResNet 1x1 64->256 56": convolutions(64, 256, 1, 1, 56),
    "ResNet 1x1 256->64 56": convolutions(256, 64, 1, 1, 56),
    "ResNet 3x3 128->128 28": convolutions(128, 128, 3, 1, 28),
    "ResNet 1x1 1024->256 14": convolutions(1024, 256, 1, 1, 14),
    "ResNet 3x3 512->512 7": convolutions(512, 512, 3, 1, 7),
}


def artefact(model, folder, name):
    source = Path(folder) / f"{name}.onnx"
    onnx.save(model, source)
    heddle("compile", source, "--threads", 1, "-o", source.with_suffix(".so"))
    return source.with_suffix(".so")


def call_us(call, seconds):
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def compare(plain, quantised_model, given):
    with tempfile.TemporaryDirectory() as folder:
        floats = artefact(plain, folder, "float")
        ours = artefact(quantised_model, folder, "integer")
        shape = [dim.dim_value for dim in quantised_model.graph.input[0].type.tensor_type.shape.dim]
        feeds = {"x": random.integers(0, 256, shape).astype(np.uint8)}
        theirs, _ = onnxruntime_call(quantised_model, feeds)
        return [(median_us(floats, given.time), median_us(ours, given.time),
                 call_us(theirs, given.time)) for _ in range(given.rounds)]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--time", type=float, default=0.1, help="seconds of an engine a round")
    options.add_argument("--only", default="", help="layers whose name has this in it")
    given = options.parse_args()
    print("| layer | op | f32, us | int8, us | ONNX Runtime int8, us | f32 / int8 | "
          "ONNX Runtime / int8 |\n|---|---|---|---|---|---|---|")
    for name, make in LAYERS.items():
        if given.only not in name:
            continue
        plain, variants = make()
        for op, model in variants.items():
            rounds = compare(plain, model, given)
            floats, ours, theirs = (statistics.median(times) for times in zip(*rounds))
            gain = statistics.median(f / i for f, i, _ in rounds)
            ratio = statistics.median(t / i for _, i, t in rounds)
            print(f"| {name} | {op} | {floats:.1f} | {ours:.1f} | {theirs:.1f} | {gain:.2f} | "
                  f"{ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
