"""Every convolution of eight CNNs against oneDNN's, batch 1, one thread.

    ./dev bench convolutions

oneDNN has its filters and images in its own layouts ahead, and is the fastest of its algorithms
direct, Winograd and auto, and of channels last. Ours is the kernel that a network has: channels
last, by a transpose on either side that the compiler cancels with its own, which leaves one group.
Both add a bias, are timed in loops of C (onednn.c; ours is a whole run of a session), and are held
against each other first. `given` is ours with filters that are an input, which each run packs.
"""

import statistics
import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime

from bench.kernels import engines, onednn, report, turns
from bench.kernels.layers import model, node, normal
from bench.peers.cases import Missing, exported

MODELS = ("resnet50", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "squeezenet1_1",
          "densenet121", "shufflenet_v2_x1_0", "vgg19")
SIZE = 224
GOALS = {"dense": "mean 1.15, none below 0.9", "depthwise": "mean 1.3"}
GIVEN_GOAL = 0.7


@dataclass(frozen=True)
class Convolution:
    """A convolution of one image; `filters` are sizes as oihw, `pads` begin with those before."""

    channels: int
    image: tuple
    filters: tuple
    strides: tuple
    dilations: tuple
    pads: tuple
    groups: int

    @property
    def result(self):
        """Sizes of the output as nchw."""
        spatial = [(self.image[i] + self.pads[i] + self.pads[i + 2] -
                    self.dilations[i] * (self.filters[i + 2] - 1) - 1) // self.strides[i] + 1
                   for i in range(2)]
        return 1, self.filters[0], *spatial

    @property
    def is_depthwise(self):
        return self.groups == self.channels > 1

    @property
    def flops(self):
        return 2 * np.prod(self.result, dtype=float) * np.prod(self.filters[1:])

    def __str__(self):
        def sizes(pair):
            return f"{pair[0]}" if pair[0] == pair[1] else "x".join(map(str, pair))
        text = f"{self.channels}->{self.filters[0]} {sizes(self.filters[2:])}^2"
        text += f" of {sizes(self.image)}^2"
        for word, value, usual in (("/", self.strides, (1, 1)), (" dilated ", self.dilations,
                                                                (1, 1))):
            text += f"{word}{sizes(value)}" if value != usual else ""
        return text + (" depthwise" if self.is_depthwise else
                       f" in {self.groups} groups" if self.groups > 1 else "")


def attributes(of):
    """Attributes of a node by name."""
    return {each.name: onnx.helper.get_attribute_value(each) for each in of.attribute}


def inferred_shapes(network):
    """Sizes by name; 0 for those that are not known."""
    network = onnx.shape_inference.infer_shapes(network)
    values = [*network.graph.input, *network.graph.value_info, *network.graph.output]
    return {value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
            for value in values}


def shapes_of_run(network, names):
    """Sizes of values in a run, for a model that computes some of its sizes."""
    run = onnx.ModelProto()
    run.CopyFrom(network)
    del run.graph.output[:]
    run.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(run.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    (image,) = session.get_inputs()
    values = session.run(names, {image.name: np.zeros(image.shape, np.float32)})
    return {name: value.shape for name, value in zip(names, values)}


def convolutions(network):
    """How often each convolution is in a model whose input has known sizes; of images only."""
    weights = {each.name: tuple(each.dims) for each in network.graph.initializer}
    nodes = [each for each in network.graph.node
             if each.op_type == "Conv" and len(weights.get(each.input[1], ())) == 4]
    shapes = inferred_shapes(network)
    images = {each.input[0] for each in nodes}
    unknown = sorted(name for name in images if not all(shapes.get(name) or (0,)))
    if unknown:
        shapes |= shapes_of_run(network, unknown)
    found = Counter()
    for each in nodes:
        image, filters, known = shapes[each.input[0]], weights[each.input[1]], attributes(each)
        if known.get("auto_pad", b"NOTSET") != b"NOTSET":
            raise ValueError(f"node '{each.name}' (Conv): 'auto_pad' is {known['auto_pad']}, but "
                             "only explicit pads are read")
        found[Convolution(image[1], tuple(image[2:]), filters,
                          tuple(known.get("strides", (1, 1))),
                          tuple(known.get("dilations", (1, 1))),
                          tuple(known.get("pads", (0, 0, 0, 0))), known.get("group", 1))] += 1
    return found


def sized(network, size):
    """The model for one image of that size."""
    (image,) = network.graph.input
    for dim, value in zip(image.type.tensor_type.shape.dim, (1, 3, size, size)):
        dim.dim_value = value
    del network.graph.value_info[:]
    for each in network.graph.output:
        each.type.tensor_type.ClearField("shape")
    return network


def all_convolutions(models=MODELS):
    """{convolution: names of the models that have it}."""
    found = {}
    for name in models:
        try:
            network = onnx.load(exported(name))
        except Missing as missing:
            print(f"left out: {missing}")
            continue
        for each in convolutions(sized(network, SIZE)):
            found.setdefault(each, []).append(name)
    return found


def ours(of, x, w, b, takes_filters=False):
    """The network of that convolution alone, channels last outside; one that takes its filters has
    them as an input, as those have that compute them."""
    height, width = of.image
    _, filters, *spatial = of.result
    nodes = [node("Transpose", ["x"], "t", perm=[0, 3, 1, 2]),
             node("Conv", ["t", "w", "b"], "c", strides=of.strides, dilations=of.dilations,
                  pads=of.pads, group=of.groups),
             node("Transpose", ["c"], "y", perm=[0, 2, 3, 1])]
    feeds, constants = {"x": x.transpose(0, 2, 3, 1)}, {"w": w, "b": b}
    if takes_filters:
        feeds["w"] = constants.pop("w")
    sizes = {"x": [1, height, width, of.channels], "w": list(w.shape)}
    network = model(nodes, {name: sizes[name] for name in feeds}, [1, *spatial, filters], constants)
    return engines.Heddle(network, feeds)


def compare(of, given):
    """Times of one convolution, after all forms have given the same."""
    x, w, b = normal(1, of.channels, *of.image), normal(*of.filters), normal(of.filters[0])
    mine, given_filters = ours(of, x, w, b), ours(of, x, w, b, takes_filters=True)
    filters = of.filters if of.groups == 1 else (of.groups, of.filters[0] // of.groups,
                                                 *of.filters[1:])
    theirs = onednn.best(
        onednn.convolutions(x.shape, filters, of.result, of.strides, of.dilations, of.pads),
        [x, w, None, b], turn_s=given.turn / 4000)
    mine.call()
    given_filters.call()
    np.testing.assert_allclose(given_filters.results[0], mine.results[0], rtol=1e-3, atol=1e-3,
                               err_msg=str(of))
    theirs.run(1)
    result = engines.aligned(of.result)
    theirs.copy(2, result)
    np.testing.assert_allclose(mine.results[0].transpose(0, 3, 1, 2), result, rtol=1e-2, atol=1e-2,
                               err_msg=str(of))
    times = turns.by_turns({"heddle": onednn.session(mine), "onednn": theirs.run,
                            "given": onednn.session(given_filters)},
                           given.rounds, given.turn / 1000)
    groups = [(group["card"], group["knobs"]) for group in mine.plan["groups"]]
    return {"name": str(of), "depthwise": of.is_depthwise, "window": of.filters[2:],
            "filters": of.filters[0], "image": of.image, "flops": of.flops, "turns": times,
            "form": theirs.form, "groups": groups, "given": turns.ratio(times, "heddle", "given"),
            **turns.ratio(times, "onednn", "heddle")}


def rows(found):
    """Lines of a table."""
    for each in found:
        mine, theirs = (statistics.median(each["turns"][name]) for name in ("heddle", "onednn"))
        cards = " + ".join(f"{card} {knobs['m']}x{knobs['n']}" if {"m", "n"} <= set(knobs) else card
                           for card, knobs in each["groups"])
        yield (each["name"], f"{mine * 1e6:.1f}", f"{theirs * 1e6:.1f}", report.spread(each),
               report.spread(each["given"]), f"{1e-9 * each['flops'] / mine:.0f}", cards,
               each["form"], ", ".join(each["models"]))


HEADS = ["convolution", "heddle, us", "oneDNN, us", "oneDNN / heddle [quartiles]",
         "heddle / given", "GFLOP/s", "card, tile", "oneDNN's best form", "models"]


def part(each):
    """The class of a dense convolution, by its window and form."""
    card, knobs = each["groups"][0]
    if max(each["window"]) > 1:
        return "larger windows, in tiles" if card == "conv_winograd" else "larger windows, direct"
    if max(each["image"]) == 1:
        return "1x1 of one pixel"
    filters, width = each["filters"], knobs.get("n", 1)
    full = filters >= 0.9 * -(-filters // width) * width
    return "1x1" if full else "1x1 whose filters leave over 10 % of the last panel's columns unused"


def figures(found):
    """Lines of the note: means, and the worst."""
    lines = []
    for kind, goal in GOALS.items():
        these = sorted((each for each in found if each["depthwise"] == (kind == "depthwise")),
                       key=lambda each: each["ratio"])
        shown = max(10, sum(each["ratio"] < 0.95 for each in these))
        lines += [f"{kind}: {report.summary(these)} (goal: {goal}). The worst:", "",
                  *report.table(HEADS, rows(these[:shown])), ""]
    parts = {}
    for each in found:
        if not each["depthwise"]:
            parts.setdefault(part(each), []).append(each)
    lines += [f"- {name}: {report.summary(these)}" for name, these in sorted(parts.items())]
    given = report.summary([each["given"] for each in found])
    return [*lines, f"- filters given by the run: {given} (goal: none below {GIVEN_GOAL})"]


def measure(given):
    """Times of all convolutions that are asked for."""
    for of, models in all_convolutions().items():
        if given.only in str(of):
            print(f"\r{of}".ljust(60), end="", file=sys.stderr, flush=True)
            yield compare(of, given) | {"models": models}


def main():
    given = report.arguments(__doc__, rounds=11, turn_ms=6).parse_args()
    report.tell("convolutions", given, measure, figures)


if __name__ == "__main__":
    main()
