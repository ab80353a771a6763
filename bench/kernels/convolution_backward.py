"""The way back of convolutions and pools beside PyTorch's, which is oneDNN's.

    ./dev bench convolution-backward [--only 3x3] [--batch 16] [--threads 1]

Layers are those of ResNet-50, MobileNetV2 and VGG19, whose largest images are left out. Images are
channels last for both; a call gives the gradient of the image (dx) or of the filters (dw).
"""

import statistics
import time

import heddle
import numpy as np
from heddle.onnx_graph import make_model, make_node

from bench.kernels import convolutions, report, turns

TRAINING = "ai.onnx.preview.training"
WANTED = {"dw": ["w"], "dx": ["x"]}
MODELS = ("resnet50", "mobilenet_v2", "vgg19")
LARGEST = 2 << 20  # elements of an image
GOAL, LEAST = 1.0, 0.8
REST_S = 0.1  # until threads that an engine left spinning are asleep


def shapes_of(layer, batch):
    """Sizes of images and of gradients of results, channels last, and of filters."""
    _, filters, *spatial = layer.result
    return [batch, *layer.image, layer.channels], [batch, *spatial, filters], [*layer.filters]


def model_of(layer, batch, wanted):
    """A model of the gradient alone: y = sum of conv(x, w) * g is linear, so its own value, which
    nobody reads, goes away."""
    image, slopes, filters = shapes_of(layer, batch)
    nodes = [make_node("Transpose", "x", "first", perm=[0, 3, 1, 2]),
             make_node("Conv", "first w", "c", pads=layer.pads, strides=layer.strides,
                       group=layer.groups),
             make_node("Transpose", "c", "last", perm=[0, 2, 3, 1]),
             make_node("Mul", "last g", "y")]
    others = [name for name in ("x", "w", "g") if name not in wanted]
    backward = make_node("Gradient", [*wanted, *others], [f"d{name}" for name in wanted],
                         domain=TRAINING, xs=wanted, y="y", **({"zs": others} if others else {}))
    shapes = {"x": image, "w": filters, "g": slopes}
    return make_model([*nodes, backward], shapes, {f"d{name}": shapes[name] for name in wanted},
                      opset=20, domains={TRAINING: 1})


def ours(layer, batch, wanted, feeds, threads):
    """A call of the compiled model, and what it gives."""
    session = heddle.Session(
        heddle.compile(model_of(layer, batch, wanted), threads=threads), threads=threads)
    return lambda: session.run(None, feeds)


def torch_call(layer, wanted, feeds):
    """The same of PyTorch, on tensors that are channels last."""
    import torch
    x, g = (torch.from_numpy(feeds[name]).permute(0, 3, 1, 2) for name in "xg")
    w = torch.from_numpy(feeds["w"]).contiguous(memory_format=torch.channels_last)
    asked = ["x" in wanted, "w" in wanted, False]

    def call():
        with torch.inference_mode():
            dx, dw, _ = torch.ops.aten.convolution_backward(
                g, x, w, None, layer.strides, layer.pads[:2], [1, 1], False, [0, 0], layer.groups,
                asked)
        return [each for each in (dx.permute(0, 2, 3, 1) if dx is not None else None, dw)
                if each is not None]
    return call


def case(layer, wanted, given):
    """The timed calls of both engines, after they have given the same."""
    def drawn(*shape):
        return np.random.default_rng(1).standard_normal(shape, np.float32)
    feeds = {name: drawn(*shape) for name, shape in zip("xgw", shapes_of(layer, given.batch))}
    calls = {"heddle": ours(layer, given.batch, wanted, feeds, given.threads),
             "PyTorch": torch_call(layer, wanted, feeds)}
    for found, expected in zip(calls["heddle"](), calls["PyTorch"]()):
        expected = expected.numpy()
        assert found.shape == expected.shape
        error = np.abs(found - expected).max() / np.abs(expected).max()
        assert error < 1e-3, f"{layer}: results differ by {error}"
    clock = time.thread_time if given.threads == 1 else time.perf_counter
    return {name: turns.timed_calls(call, clock) for name, call in calls.items()}


def compare(given):
    """Times of each layer and gradient."""
    import torch
    torch.set_num_threads(given.threads)
    for layer in convolutions.all_convolutions(MODELS):
        if layer.channels * layer.image[0] * layer.image[1] > LARGEST:
            continue
        for name, wanted in WANTED.items():
            if given.only not in f"{layer} {name}" or name not in given.of:
                continue
            times = turns.by_turns(case(layer, wanted, given), given.rounds, given.turn / 1000,
                                   REST_S if given.threads > 1 else 0)
            found = {"layer": str(layer), "of": name, "flops": given.batch * layer.flops,
                     "turns": times, **turns.ratio(times, "PyTorch", "heddle")}
            print(f"{layer} {name}: {report.spread(found)}", flush=True)
            yield found


def rows(found):
    """Lines of the table."""
    for each in found:
        seconds = statistics.median(each["turns"]["heddle"])
        yield (each["layer"], each["of"], f"{1e3 * seconds:.2f}",
               f"{1e-9 * each['flops'] / seconds:.0f}", report.spread(each))


def lines(found):
    """The table and the means."""
    yield from report.table(["layer", "gradient", "heddle, ms", "GFLOP/s", "PyTorch / heddle"],
                            rows(found))
    for name in WANTED:
        of = [each for each in found if each["of"] == name]
        yield f"- {name}: {report.summary(of)} (goal: mean {GOAL}, least {LEAST})."


def main():
    options = report.arguments(__doc__, rounds=5, turn_ms=50)
    options.add_argument("--batch", type=int, default=16)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--of", nargs="+", default=list(WANTED), choices=list(WANTED))
    report.tell("convolution-backward", options.parse_args(), compare, lines)


if __name__ == "__main__":
    main()
