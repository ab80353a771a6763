"""3x3 convolutions: in tiles of 4x4 and of 2x2 pixels, direct, as oneDNN has them, and as chosen.

    ./dev bench winograd --rounds 9
    ./dev bench winograd --errors

Each layer is compiled with a plan for each form; `heddle bench` then times the artefacts by turns.
With `--errors`, their largest errors instead, of numbers between -1 and 1.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from bench.kernels.layers import conv
from bench.kernels.engines import heddle, median_us

# Filters, size of the image, images.
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


def artefacts(model, threads, extra, folder):
    """The chosen card and tile, and an artefact a form."""
    source, plan = folder / "layer.onnx", folder / "chosen.plan"
    onnx.save(model, source)
    words = ["--threads", threads]
    heddle("compile", source, *words, "--emit", "plan", "-o", plan)
    chosen = json.loads(plan.read_text(encoding="utf-8"))
    (group,) = [group for group in chosen["groups"] if group["card"] in ("conv", "conv_winograd")]
    knobs = group["knobs"]
    made = {}
    for name, (card, own) in CARDS.items():
        kept = {} if card == "onednn_conv" else {key: knobs[key] for key in ("m", "n")}
        group.update(card=card, card_hash="", knobs=kept | own)
        if card == "conv_winograd":
            group["knobs"].update(extra)
        plan.write_text(json.dumps(chosen), encoding="utf-8")
        made[name] = folder / f"{name}.so"
        heddle("compile", source, "--plan", plan, *words, "-o", made[name])
    return made, knobs.get("tile", 0)


def print_errors():
    random = np.random.default_rng(7)
    print("| channels | largest result | " + " | ".join(CARDS) + " |\n" + "|---" * 6 + "|")
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
        errors = []
        with tempfile.TemporaryDirectory() as folder:
            made, _ = artefacts(model, 1, {}, Path(folder))
            np.save(Path(folder) / "x.npy", x)
            for artefact in made.values():
                y = Path(folder) / "y.npy"
                heddle("run", artefact, "--input", f"x=@{folder}/x.npy", "--output", f"y=@{y}")
                errors.append(abs(np.load(y) - exact).max())
        print(f"| {channels} | {exact.max():.0f} | " +
              " | ".join(f"{error:.1e}" for error in errors) + " |", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--time", type=float, default=0.1, help="seconds of an artefact a round")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--only", default="", help="layers whose name begins so")
    options.add_argument("--knobs", default="{}", help="of conv_winograd, as JSON")
    options.add_argument("--errors", action="store_true", help="print errors instead of times")
    given = options.parse_args()
    if given.errors:
        return print_errors()
    print("| layer | 4x4, us | 2x2 | direct | oneDNN | direct/4x4 | direct/2x2 | oneDNN/best |"
          " chosen |\n|---|---|---|---|---|---|---|---|---|")
    for channels, filters, size, images in LAYERS:
        name = f"{channels}->{filters} {size}^2" + (f" x {images}" if images > 1 else "")
        if not name.startswith(given.only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            made, tile = artefacts(layer(channels, filters, size, images), given.threads,
                                   json.loads(given.knobs), Path(folder))
            rounds = [{form: median_us(artefact, given.time, given.threads)
                       for form, artefact in made.items()} for _ in range(given.rounds)]

        def ratio(over, under):
            return statistics.median(over(times) / under(times) for times in rounds)
        times = [statistics.median(each[form] for each in rounds) for form in CARDS]
        forms = [lambda each, form=form: each[form] for form in CARDS]
        best = ratio(forms[3], lambda each: min(each["4x4"], each["2x2"], each["direct"]))
        print(f"| {name} | " + " | ".join(f"{time:.0f}" for time in times) +
              f" | {ratio(forms[2], forms[0]):.2f} | {ratio(forms[2], forms[1]):.2f} | {best:.2f} |"
              f" {f'{tile}x{tile}' if tile else 'direct'} |", flush=True)


if __name__ == "__main__":
    main()
