"""Times kernels by turns.

A timed thing is a function `run(runs)` that gives the seconds of each of so many runs. In each
round every one has a turn, in an order drawn anew, of runs that are not counted and runs that are:
all meet the same machine and find their caches alike. The figure is the ratio of the medians of the
turns, its spread the quartiles of the ratios within rounds.
"""

import random
import statistics
import time

from bench.peers.rounds import quartiles

WARM = 2  # runs before a turn: the first fetches what the turn before pushed out of the caches


def timed_calls(call, clock=time.thread_time):
    """A timed thing of a Python function, for what takes far longer than a call. The clock is that
    of one thread, without processes which share the core; what may have several needs another."""
    def run(runs):
        found = []
        for _ in range(runs):
            begin = clock()
            call()
            found.append(clock() - begin)
        return found
    return run


def count_of(run, turn_s):
    """Runs of a turn: one where it takes the turn alone, else some for a median."""
    first = run(1)[0]
    if first > turn_s:
        return 1
    return max(3, min(2000, round(turn_s / max(min(run(3)), 1e-7))))


def by_turns(timed, rounds, turn_s, rest_s=0.0):
    """{name: median seconds of each turn} of {name: timed thing}. Before each turn all rest for
    `rest_s`: an engine's idle threads may spin for a while, on a core that the next one needs."""
    counts = {name: count_of(run, turn_s) for name, run in timed.items()}
    turns, shuffle = {name: [] for name in timed}, random.Random(rounds)
    for _ in range(rounds):
        order = list(timed)
        shuffle.shuffle(order)
        for name in order:
            time.sleep(rest_s)
            if counts[name] > 1:  # caches matter little to a long run
                timed[name](WARM)
            turns[name].append(statistics.median(timed[name](counts[name])))
    return turns


def ratio(turns, over, under):
    """How many times longer `over` takes than `under`, with the quartiles within rounds."""
    low, _, high = quartiles([a / b for a, b in zip(turns[over], turns[under])])
    return {"ratio": statistics.median(turns[over]) / statistics.median(turns[under]),
            "q1": low, "q3": high}
