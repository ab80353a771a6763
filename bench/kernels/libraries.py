"""Generated kernels against those of oneDNN: the products of BERT-base, convolutions of ResNet-50.

    ./dev bench libraries --rounds 15

Each network of one layer is compiled twice, as the default chooser has it and with a plan that
takes the call cards; `heddle bench` then times the artefacts by turns: one thread, random inputs.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import onnx

from bench.kernels.layers import batched, conv, dense, norm
from bench.kernels.engines import heddle, median_us

CALLS = {"matmul": "onednn_matmul", "conv": "onednn_conv", "conv_narrow": "onednn_conv",
         "conv_depthwise": "onednn_conv",
         "reduce_rows": "onednn_layer_norm"}


LAYERS = {
    "BERT 128x768x768 + bias": lambda: dense(128, 768, 768),
    "BERT 128x768x3072 + bias": lambda: dense(128, 768, 3072),
    "BERT 128x3072x768 + bias": lambda: dense(128, 3072, 768),
    "BERT scores 12 x 128x64x128": lambda: batched(12, 128, 64, 128),
    "BERT context 12 x 128x128x64": lambda: batched(12, 128, 128, 64),
    "BERT normalisation 128x768": lambda: norm(128, 768),
    "ResNet 7x7/2 3->64 224 + relu": lambda: conv(3, 64, 7, 2, 224),
    "ResNet 3x3 64->64 56 + relu": lambda: conv(64, 64, 3, 1, 56),
    "ResNet 1x1 64->256 56 + relu": lambda: conv(64, 256, 1, 1, 56),
    "ResNet 3x3 128->128 28 + relu": lambda: conv(128, 128, 3, 1, 28),
    "ResNet 1x1 1024->256 14 + relu": lambda: conv(1024, 256, 1, 1, 14),
    "ResNet 3x3 512->512 7 + relu": lambda: conv(512, 512, 3, 1, 7),
}


def with_calls(plan):
    taken = json.loads(plan)
    for group in taken["groups"]:
        if group["card"] in CALLS:
            group.update(card=CALLS[group["card"]], knobs={}, versions=[], card_hash="")
    return json.dumps(taken)


def artefacts(layer, folder):
    source = folder / "layer.onnx"
    onnx.save(layer, source)
    plans = [folder / "generated.plan", folder / "library.plan"]
    heddle("compile", source, "--emit", "plan", "-o", plans[0])
    plans[1].write_text(with_calls(plans[0].read_text(encoding="utf-8")), encoding="utf-8")
    for plan in plans:
        heddle("compile", source, "--plan", plan, "--threads", 1, "-o", plan.with_suffix(".so"))
    return [plan.with_suffix(".so") for plan in plans]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--time", type=float, default=0.2, help="seconds of an artefact a round")
    options.add_argument("--only", default="", help="layers whose name has this in it")
    given = options.parse_args()
    print("| layer | generated, us | oneDNN, us | generated / oneDNN |\n|---|---|---|---|")
    for name, make in LAYERS.items():
        if given.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            pair = artefacts(make(), Path(folder))
            rounds = [[median_us(each, given.time) for each in pair] for _ in range(given.rounds)]
        ours, theirs = (statistics.median(times) for times in zip(*rounds))
        ratio = statistics.median(a / b for a, b in rounds)
        print(f"| {name} | {ours:.1f} | {theirs:.1f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
