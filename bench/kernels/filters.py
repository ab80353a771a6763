"""Convolutions whose filters come with the run, beside the same with constant filters.

    ./dev bench filters [--note]

Every convolution of ResNet-50 and MobileNetV2, batch 1, one thread, channels last. Constant filters
are packed when the network is compiled, the others in each run: that is part of their time.
"""

import statistics
import sys

import numpy as np

from bench.kernels import convolutions, onednn, report, turns
from bench.kernels.layers import normal

MODELS = ("resnet50", "mobilenet_v2")
GOAL = 0.7
HEADS = ["convolution", "constant, us", "given, us", "constant / given [quartiles]",
         "cards of both", "models"]


def compare(of, given):
    """What was found of one convolution."""
    x, w, b = normal(1, of.channels, *of.image), normal(*of.filters), normal(of.filters[0])
    both = {"constant": convolutions.ours(of, x, w, b),
            "given": convolutions.ours(of, x, w, b, takes_filters=True)}
    for each in both.values():
        each.call()
    results = [each.results[0] for each in both.values()]
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-3, err_msg=str(of))
    times = turns.by_turns({name: onednn.session(each) for name, each in both.items()},
                           given.rounds, given.turn / 1000)
    cards = [" + ".join(group["card"] for group in each.plan["groups"]) for each in both.values()]
    return {"name": str(of), "turns": times, "cards": cards,
            **turns.ratio(times, "constant", "given")}


def rows(found):
    """Lines of a table."""
    for each in found:
        constant, given = (statistics.median(each["turns"][name]) for name in ("constant", "given"))
        yield (each["name"], f"{constant * 1e6:.1f}", f"{given * 1e6:.1f}", report.spread(each),
               " / ".join(dict.fromkeys(each["cards"])), ", ".join(each["models"]))


def figures(found):
    """Lines of the note: the mean, and the worst."""
    found = sorted(found, key=lambda each: each["ratio"])
    shown = max(10, sum(each["ratio"] < GOAL for each in found))
    return [f"{report.summary(found)} (goal: none below {GOAL}). The worst:", "",
            *report.table(HEADS, rows(found[:shown]))]


def main():
    given = report.arguments(__doc__, rounds=11, turn_ms=6).parse_args()
    found = report.last("filters") if given.last else []
    for of, models in ({} if given.last else convolutions.all_convolutions(MODELS)).items():
        if given.only in str(of):
            found.append(compare(of, given) | {"models": models})
            print(f"\r{len(found)} {of}".ljust(60), end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    report.publish("filters", figures(found), found, given)


if __name__ == "__main__":
    main()
