"""3x3 convolutions: in tiles of 4x4 and of 2x2 pixels, direct, as oneDNN has them, and as chosen.

    ./dev bench winograd [--threads 1] [--knobs JSON]
    ./dev bench winograd --errors

Each layer is compiled with a plan for each form, and the forms run by turns. With `--errors`, their
largest errors instead, of numbers between -1 and 1.
"""

import json
import statistics
import time

import heddle
import numpy as np
from onnx import numpy_helper

from bench.kernels import report, turns
from bench.kernels.engines import Heddle
from bench.kernels.layers import conv, normal

# Channels, filters, size of the image, images.
LAYERS = [(64, 64, 56, 1), (128, 128, 28, 1), (256, 256, 14, 1), (512, 512, 7, 1), (64, 64, 112, 1),
          (64, 64, 224, 1), (512, 512, 28, 1), (512, 512, 14, 1), (256, 256, 56, 1),
          (32, 32, 56, 1), (16, 16, 56, 1), (16, 64, 55, 1), (64, 256, 13, 1), (3, 64, 224, 1),
          (64, 32, 224, 1), (512, 512, 7, 8)]
CARDS = {"4x4": ("conv_winograd", {"tile": 4}), "2x2": ("conv_winograd", {"tile": 2}),
         "direct": ("conv", {}), "oneDNN": ("onednn_conv", {})}


def layer(channels, filters, size, images):
    model = conv(channels, filters, 3, 1, size)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = images
    return model


def forms_of(model, x, threads, extra):
    """({form: the layer compiled so}, the chosen tile); `extra` are knobs of conv_winograd."""
    plan = heddle.compile(model, threads=threads, load=False).plan
    (group,) = [group for group in plan["groups"] if group["card"] in ("conv", "conv_winograd")]
    knobs, made = group["knobs"], {}
    for form, (card, own) in CARDS.items():
        kept = {} if card == "onednn_conv" else {key: knobs[key] for key in ("m", "n")}
        more = extra if card == "conv_winograd" else {}
        group.update(card=card, card_hash="", knobs=kept | own | more)
        made[form] = Heddle(model, {"x": x}, threads, plan=plan)
    return made, knobs.get("tile", 0)


def errors():
    """Lines of the table of errors."""
    random, rows = np.random.default_rng(7), []
    for channels in (64, 128, 256, 512):
        model = layer(channels, 32, 28, 1)
        w = random.uniform(-1, 1, (32, channels, 3, 3)).astype(np.float32)
        x = random.uniform(-1, 1, (1, channels, 28, 28)).astype(np.float32)
        for constant in model.graph.initializer:
            value = w if constant.name == "w" else np.zeros(32, np.float32)
            constant.CopyFrom(numpy_helper.from_array(value, constant.name))
        padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        exact = np.einsum("nchwij,ocij->nohw", windows, w.astype(np.float64), optimize=True)
        exact = np.maximum(exact, 0)
        made, _ = forms_of(model, x, 1, {})
        rows.append((channels, f"{exact.max():.0f}",
                     *(f"{abs(each.results[0] - exact).max():.1e}" for each in made.values())))
    return report.table(["channels", "largest result", *CARDS], rows)


def compare(given):
    """Times of each layer in all forms."""
    clock = time.thread_time if given.threads == 1 else time.perf_counter
    for channels, filters, size, images in LAYERS:
        name = f"{channels}->{filters} {size}^2" + (f" x {images}" if images > 1 else "")
        if given.only in name:
            model, x = layer(channels, filters, size, images), normal(images, channels, size, size)
            made, tile = forms_of(model, x, given.threads, json.loads(given.knobs))
            times = turns.by_turns({form: turns.timed_calls(each.call, clock)
                                    for form, each in made.items()},
                                   given.rounds, given.turn / 1000)
            yield {"layer": name, "turns": times, "chosen": f"{tile}x{tile}" if tile else "direct"}


def rows(found):
    """Lines of the table."""
    for each in found:
        times = each["turns"]
        best = min((form for form in CARDS if form != "oneDNN"),
                   key=lambda form: statistics.median(times[form]))
        ratios = (("direct", "4x4"), ("direct", "2x2"), ("oneDNN", best))
        yield (each["layer"], *(f"{1e6 * statistics.median(times[form]):.0f}" for form in CARDS),
               *(report.spread(turns.ratio(times, *pair)) for pair in ratios), each["chosen"])


def main():
    options = report.arguments(__doc__, rounds=9, turn_ms=100)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--knobs", default="{}", help="of conv_winograd, as JSON")
    options.add_argument("--errors", action="store_true", help="print errors instead of times")
    given = options.parse_args()
    if given.errors:
        print("\n".join(errors()))
    else:
        report.tell("winograd", given, compare, lambda found: report.table(
            ["layer", *(f"{form}, us" for form in CARDS), "direct / 4x4", "direct / 2x2",
             "oneDNN / best", "chosen"], rows(found)))


if __name__ == "__main__":
    main()
