"""Whole networks of 8-bit integers against the same of f32, and against ONNX Runtime's, one thread.

    ./dev bench quantised [--note]

`bench.kernels.integers` asks the same of single layers. Sizes stay open, batch 1; the engines run
by turns.
"""

import statistics

from bench.kernels import engines, report, turns
from bench.kernels.turns import timed_calls
from bench.peers import cases

PAIRS = [("resnet50", "resnet50_int8"), ("bert_base_128", "bert_base_int8_128")]
GOAL = 2.0


def compare(names, given):
    """What was found of a network in both forms."""
    calls = {}
    for key, name in zip(("f32", "int8"), names):
        case = cases.find(name)
        feeds = case.make_feeds(1)
        calls[key] = engines.Heddle(str(case.path()), feeds).call
    calls["onnxruntime"], _ = engines.onnxruntime_call(str(case.path()), feeds)
    times = turns.by_turns({name: timed_calls(call) for name, call in calls.items()},
                           given.rounds, given.turn / 1000)
    return {"models": names, "turns": times, "peer": turns.ratio(times, "onnxruntime", "int8"),
            **turns.ratio(times, "f32", "int8")}


def rows(found):
    """Lines of the table."""
    for each in found:
        medians = [1e3 * statistics.median(each["turns"][name])
                   for name in ("f32", "int8", "onnxruntime")]
        yield (each["models"][1], *(f"{value:.1f}" for value in medians), report.spread(each),
               report.spread(each["peer"]))


def main():
    given = report.arguments(__doc__, rounds=11, turn_ms=100).parse_args()
    found = report.last("quantised") if given.last else []
    for names in () if given.last else PAIRS:
        if given.only not in names[1]:
            continue
        try:
            found.append(compare(names, given))
        except cases.Missing as reason:
            print(f"{names[1]} left out: {reason}", flush=True)
    lines = report.table(["model", "f32, ms", "int8, ms", "ONNX Runtime int8, ms", "f32 / int8",
                         "ONNX Runtime / int8"], rows(found))
    report.publish("quantised", [*lines, "", f"{report.summary(found)} (goal: {GOAL})."], found,
                  given)


if __name__ == "__main__":
    main()
