"""Layers of bf16 one after the other, against oneDNN's bf16 primitives, one thread.

    ./dev bench short-layers

Each network is a chain of layers of the sizes that BERT-base or ResNet-50 has, each with a ReLU:
numbers are bf16 between layers and f32 at both ends, as in a network. Ours is compiled with `--math
bf16`; oneDNN's are the primitives that PyTorch's compiler calls, weights in their own layouts.
Results are held against each other first. Times are of the thread's clock.
"""

import statistics
from dataclasses import dataclass

import numpy as np

from bench.kernels import engines, report, turns
from bench.kernels.layers import model, node

PEAK = 2.0  # of the peak in f32, that products of bf16 in vectors have


@dataclass(frozen=True)
class Chain:
    """Layers from each number of columns, or channels, to the next; of images with windows."""

    rows: int  # or the side of the image
    widths: tuple
    windows: tuple = ()

    def __str__(self):
        kind = f"{self.rows}x{self.rows}" if self.windows else f"{self.rows} rows"
        windows = f", windows {'/'.join(map(str, sorted({*self.windows})))}"
        return f"{kind}: {'->'.join(map(str, self.widths))}{windows if self.windows else ''}"

    @property
    def flops(self):
        rows = self.rows ** 2 if self.windows else self.rows
        windows = self.windows or (1,) * len(self.widths)
        return sum(2.0 * rows * before * after * window ** 2 for before, after, window in
                   zip(self.widths, self.widths[1:], windows))


BERT = [Chain(rows, widths) for rows in (128, 384, 2048)
        for widths in ((768,) * 4, (768, 3072, 768, 3072, 768))]
RESNET = [Chain(56, (64,) * 4, (3,) * 3), Chain(56, (256, 64, 256, 64, 256), (1,) * 4),
          Chain(56, (256, 64, 64, 256), (1, 3, 1)), Chain(28, (128,) * 4, (3,) * 3),
          Chain(28, (512, 128, 512, 128, 512), (1,) * 4),
          Chain(28, (512, 128, 128, 512), (1, 3, 1)), Chain(14, (256,) * 4, (3,) * 3),
          Chain(14, (1024, 256, 1024, 256, 1024), (1,) * 4),
          Chain(14, (1024, 256, 256, 1024), (1, 3, 1)), Chain(7, (512,) * 4, (3,) * 3),
          Chain(7, (2048, 512, 2048, 512, 2048), (1,) * 4),
          Chain(7, (2048, 512, 512, 2048), (1, 3, 1))]
GOAL = 1.0


def weights_of(chain):
    """Weights [after, before, ...] that keep numbers of the size that they have."""
    random = np.random.default_rng(0)
    windows = chain.windows or (None,) * len(chain.widths)
    for before, after, window in zip(chain.widths, chain.widths[1:], windows):
        shape = (after, before) + (window, window) * bool(window)
        yield (random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)


def ours_of(chain, weights, x, math):
    """The chain by Heddle; images have their channels last at both ends."""
    nodes, constants, last = [], {}, "x"
    if chain.windows:
        nodes.append(node("Transpose", [last], "first", perm=[0, 3, 1, 2]))
        last = "first"
    for number, weight in enumerate(weights):
        constants[f"w{number}"] = weight if chain.windows else weight.T.copy()
        more = {"pads": [weight.shape[-1] // 2] * 4} if chain.windows else {}
        ends = number == len(weights) - 1 and not chain.windows
        nodes += [node("Conv" if chain.windows else "MatMul", [last, f"w{number}"], f"h{number}",
                       **more), node("Relu", [f"h{number}"], "y" if ends else f"r{number}")]
        last = f"r{number}"
    if chain.windows:
        nodes.append(node("Transpose", [last], "y", perm=[0, 2, 3, 1]))
    network = model(nodes, {"x": list(x.shape)}, [*x.shape[:-1], chain.widths[-1]], constants)
    return engines.Heddle(network, {"x": x}, math=math)


def theirs_of(chain, weights, x):
    """A function that computes the chain by oneDNN's primitives."""
    import torch

    torch.set_num_threads(1)
    ops, image = torch.ops.mkldnn, torch.from_numpy(x)
    if chain.windows:
        image = image.permute(0, 3, 1, 2)  # channels last in memory
    layers, shape = [], list(image.shape)
    for weight in map(torch.from_numpy, weights):
        weight = weight.bfloat16()
        if chain.windows:
            given = [weight.shape[-1] // 2] * 2, [1, 1], [1, 1], 1
            packed = ops._reorder_convolution_weight(weight, *given, shape)
            layers.append((ops._convolution_pointwise, packed, given))
        else:
            layers.append((ops._linear_pointwise, ops._reorder_linear_weight(weight, chain.rows),
                           ()))
        shape[1] = weight.shape[0]

    @torch.no_grad()
    def call():
        values = image.bfloat16()
        for run, packed, given in layers:
            values = run(values, packed, None, *given, "relu", [], "")
        values = values.float()
        return values.permute(0, 2, 3, 1) if chain.windows else values
    return call


def compare(chain, given):
    """Times of one chain, after both have given the same."""
    weights = list(weights_of(chain))
    shape = (1, chain.rows, chain.rows) if chain.windows else (chain.rows,)
    x = np.random.default_rng(1).standard_normal((*shape, chain.widths[0])).astype(np.float32)
    exact, ours = (ours_of(chain, weights, x, math) for math in ("fast", "bf16"))
    theirs = theirs_of(chain, weights, x)
    for found in (ours.results[0], theirs().numpy()):
        error = np.abs(found - exact.results[0]).max() / np.abs(exact.results[0]).max()
        assert error < 3e-2, f"{chain}: error {error:.1e}"
    times = turns.by_turns({"f32": turns.timed_calls(exact.call),
                            "bf16": turns.timed_calls(ours.call),
                            "onednn": turns.timed_calls(theirs)}, given.rounds, given.turn / 1000)
    return {"chain": str(chain), "kind": "convolutions" if chain.windows else "products",
            "flops": chain.flops, "turns": times,
            "over_f32": turns.ratio(times, "f32", "bf16")["ratio"],
            **turns.ratio(times, "onednn", "bf16")}


def lines(found):
    """The table and the means."""
    rows, best = [], 0.0
    for each in found:
        rate = {name: each["flops"] / statistics.median(times)
                for name, times in each["turns"].items()}
        if each["kind"] == "products":  # those of Winograd's convolutions are no multiplications
            best = max(best, rate["f32"])
        rows.append((each["chain"], report.spread(each), f"{each['over_f32']:.2f}",
                     *(f"{1e-9 * rate[name]:.0f}" for name in rate)))
    yield from report.table(["layers", "of oneDNN", "over f32", "f32, GFLOP/s", "bf16",
                             "oneDNN, bf16"], rows)
    yield ""
    for name in ("products", "convolutions"):
        alike = [each for each in found if each["kind"] == name]
        yield f"{name}, of oneDNN: {report.summary(alike)}."
    yield f"All, of oneDNN: {report.summary(found)}; goal {GOAL}."
    if not best:
        return
    shares = [{"ratio": each["flops"] / statistics.median(each["turns"]["bf16"]) / (PEAK * best)}
              for each in found]
    yield f"Of {PEAK:g} times the highest rate of products in f32: {report.summary(shares)}."


def measure(given):
    """Compares each chain."""
    return (compare(chain, given) for chain in BERT + RESNET if given.only in str(chain))


def main():
    given = report.arguments(__doc__, rounds=11, turn_ms=30).parse_args()
    report.tell("short-layers", given, measure, lines)


if __name__ == "__main__":
    main()
