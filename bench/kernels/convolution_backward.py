"""The way back of convolutions and pools beside PyTorch's, which is oneDNN's.

    ./dev bench convolution-backward [--only 3x3] [--batch 16] [--threads 1] [--note]

Layers are those of ResNet-50, MobileNetV2 and VGG16. Images are channels last for both; a call
gives the gradient of the image (dx) or of the filters (dw).
"""

import statistics
import time
from dataclasses import dataclass

import heddle
import numpy as np
from heddle.onnx_graph import make_model, make_node

from bench.kernels import report, turns

TRAINING = "ai.onnx.preview.training"
WANTED = {"dw": ["w"], "dx": ["x"]}
GOAL, LEAST = 1.0, 0.8
REST_S = 0.1  # until threads that an engine left spinning are asleep


@dataclass(frozen=True)
class Layer:
    network: str
    channels: int
    filters: int
    window: int
    size: int
    stride: int = 1
    groups: int = 1

    @property
    def border(self):
        return (self.window - 1) // 2

    @property
    def result(self):
        return (self.size + 2 * self.border - self.window) // self.stride + 1

    def flops(self, batch):
        return (2.0 * batch * self.result ** 2 * self.filters * self.window ** 2
                * self.channels / self.groups)

    def __str__(self):
        stride = f" /{self.stride}" if self.stride > 1 else ""
        depthwise = " depthwise" if self.groups > 1 else ""
        return (f"{self.network} {self.channels}->{self.filters} {self.window}x{self.window}"
                f"{stride} of {self.size}{depthwise}")


def of_resnet():
    """A layer of each kind of ResNet-50."""
    yield 3, 64, 7, 224, 2
    yield from ((64, 64, 1, 56), (64, 64, 3, 56), (64, 256, 1, 56), (256, 64, 1, 56),
                (256, 128, 1, 56), (128, 128, 3, 56, 2), (128, 512, 1, 28), (256, 512, 1, 56, 2),
                (512, 128, 1, 28), (128, 128, 3, 28), (512, 256, 1, 28), (256, 256, 3, 28, 2),
                (256, 1024, 1, 14), (512, 1024, 1, 28, 2), (1024, 256, 1, 14), (256, 256, 3, 14),
                (1024, 512, 1, 14), (512, 512, 3, 14, 2), (512, 2048, 1, 7),
                (1024, 2048, 1, 14, 2), (2048, 512, 1, 7), (512, 512, 3, 7))


def of_mobilenet():
    """The same of MobileNetV2."""
    yield 3, 32, 3, 224, 2
    yield from ((32, 32, 3, 112, 1, 32), (32, 16, 1, 112), (16, 96, 1, 112),
                (96, 96, 3, 112, 2, 96), (96, 24, 1, 56), (24, 144, 1, 56),
                (144, 144, 3, 56, 1, 144), (144, 24, 1, 56), (144, 144, 3, 56, 2, 144),
                (144, 32, 1, 28), (32, 192, 1, 28), (192, 192, 3, 28, 1, 192), (192, 32, 1, 28),
                (192, 64, 1, 14), (64, 384, 1, 14), (384, 384, 3, 14, 1, 384), (384, 96, 1, 14),
                (96, 576, 1, 14), (576, 576, 3, 14, 2, 576), (576, 160, 1, 7), (160, 960, 1, 7),
                (960, 960, 3, 7, 1, 960), (960, 320, 1, 7), (320, 1280, 1, 7))


def of_vgg():
    """The same of VGG16, whose largest images are left out."""
    yield from ((64, 128, 3, 112), (128, 256, 3, 56), (256, 256, 3, 56), (256, 512, 3, 28),
                (512, 512, 3, 28), (512, 512, 3, 14))


LAYERS = [Layer(network, *each) for network, layers in (
    ("ResNet-50", of_resnet), ("MobileNetV2", of_mobilenet), ("VGG16", of_vgg))
    for each in layers()]


def model_of(layer, batch, wanted):
    """A model of the gradient alone: y = sum of conv(x, w) * g is linear, so its own value, which
    nobody reads, goes away."""
    image = [batch, layer.size, layer.size, layer.channels]
    slopes = [batch, layer.result, layer.result, layer.filters]
    filters = [layer.filters, layer.channels // layer.groups, layer.window, layer.window]
    nodes = [make_node("Transpose", "x", "first", perm=[0, 3, 1, 2]),
             make_node("Conv", "first w", "c", pads=[layer.border] * 4, strides=[layer.stride] * 2,
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
    border, stride = [layer.border] * 2, [layer.stride] * 2
    asked = ["x" in wanted, "w" in wanted, False]

    def call():
        with torch.inference_mode():
            dx, dw, _ = torch.ops.aten.convolution_backward(
                g, x, w, None, stride, border, [1, 1], False, [0, 0], layer.groups, asked)
        return [each for each in (dx.permute(0, 2, 3, 1) if dx is not None else None, dw)
                if each is not None]
    return call


def case(layer, wanted, given):
    """The timed calls of both engines, after they have given the same."""
    def drawn(*shape):
        return np.random.default_rng(1).standard_normal(shape, np.float32)
    feeds = {"x": drawn(given.batch, layer.size, layer.size, layer.channels),
             "w": drawn(layer.filters, layer.channels // layer.groups, layer.window, layer.window),
             "g": drawn(given.batch, layer.result, layer.result, layer.filters)}
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
    for layer in LAYERS:
        for name, wanted in WANTED.items():
            if given.only not in f"{layer} {name}" or name not in given.of:
                continue
            times = turns.by_turns(case(layer, wanted, given), given.rounds, given.turn / 1000,
                                   REST_S if given.threads > 1 else 0)
            found = {"layer": str(layer), "of": name, "flops": layer.flops(given.batch),
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
