"""Runs engines turn by turn, and what the times of the turns say.

Each round every engine has one turn, in an order that is drawn anew, with a pause before it in
which waiting workers of the one before fall asleep: ONNX Runtime's look for work for 30 ms
(bench/notes/2026-11-22-results.md). Engines of one round meet the same machine: ratios are taken
within rounds, and their median is the figure.
"""

import random
import statistics
import time
from dataclasses import dataclass

from bench.peers.member import Failed


@dataclass(frozen=True)
class Pace:
    """How long to go on."""

    seconds: float = 20.0  # for all engines of a model together
    least: int = 7  # rounds
    most: int = 60
    turn_ms: float = 25.0  # of timed runs in a turn, at least one run
    pause_s: float = 0.1
    slow: float = 10.0  # times the fastest: an engine beyond has turns in few rounds only
    slow_rounds: int = 3
    limit_s: float = 180.0  # for an answer


def measure(members, pace):
    """({name: median milliseconds of each turn}, {name: why it dropped out}).

    A dropped engine's turns are not told; the others go on without it.
    """
    dropped, expected = {}, {}

    def turn(name, **details):
        time.sleep(pace.pause_s)
        try:
            return statistics.median(members[name].ask("run", pace.limit_s, **details)["ms"])
        except Failed as failure:
            dropped[name] = str(failure)
            return None

    for name in members:
        expected[name] = turn(name, times=1)
    turns = {name: [] for name in members if name not in dropped}
    if not turns:
        return {}, dropped
    fastest = min(expected[name] for name in turns)
    shuffle, start = random.Random(len(members)), time.monotonic()
    for count in range(pace.most):
        if count >= pace.least and time.monotonic() - start > pace.seconds:
            break
        order = [name for name in turns
                 if count < pace.slow_rounds or expected[name] < pace.slow * fastest]
        shuffle.shuffle(order)
        for name in order:
            times = max(1, min(200, int(pace.turn_ms / max(expected[name], 1e-3))))
            # A run before fills the caches again; where runs are long, it only costs time.
            found = turn(name, times=times, warm=int(expected[name] < 200))
            if found is None:
                turns.pop(name)
            else:
                turns[name].append(found)
    return turns, dropped


def quartiles(values):
    """(first quartile, median, third quartile)."""
    if len(values) == 1:
        return (values[0],) * 3
    return tuple(statistics.quantiles(values, n=4, method="inclusive"))


def figures(turns, base):
    """For each engine its quartiles in milliseconds and those of its ratios to `base`."""
    found = {}
    for name, values in turns.items():
        low, middle, high = quartiles(values)
        found[name] = {"q1_ms": low, "median_ms": middle, "q3_ms": high, "rounds": len(values)}
        if base in turns:
            low, middle, high = quartiles([v / b for v, b in zip(values, turns[base])])
            found[name] |= {"ratio_q1": low, "ratio": middle, "ratio_q3": high}
    return found
