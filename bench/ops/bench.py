"""Times every op alone beside ONNX Runtime, and writes docs/generated/ops-speed.md.

    ./dev bench ops [--match TopK] [--sizes small usual large] [--threads 1 2] [--rounds 5]
                    [--turn 5] [--write]

Both run in one process by turns, with inputs and outputs in place; outputs are compared first, and
a case whose outputs differ is listed rather than timed. What was found is kept in
build/bench/ops-tTHREADS.json: a filtered run replaces its own cases there, and `--write` makes the
page of all that are kept.
"""

import argparse
import gc
import json
import statistics
import time

import numpy as np

from bench.kernels import engines, report, turns
from bench.models import tool
from bench.ops import cases, table
from bench.ops.case import SIZES

STORE = tool.RESULTS
REST = 0.05  # seconds: ONNX Runtime's idle threads spin for some 16 ms


def differ(ours, theirs):
    """A difference of outputs in words, or None."""
    for i, (a, b) in enumerate(zip(ours, theirs)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            return f"output {i}: shape {a.shape} against {b.shape}"
        if not np.issubdtype(a.dtype, np.number):
            a, b = a.astype(np.int8), b.astype(np.int8)
        a, b = a.astype(np.float64), b.astype(np.float64)
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=1e-3)
        if not np.allclose(a, b, rtol=2e-3, atol=2e-4 * scale, equal_nan=True):
            return f"output {i}: largest difference {np.nanmax(np.abs(a - b)):.3g}"
    return None


def measure(row, size, threads, given):
    """Times of one case, or why there are none."""
    found = {"name": row.name, "op": row.op, "size": size}
    feeds = row.feeds(row.sizes[SIZES.index(size) if len(row.sizes) > 1 else 0])
    feeds = [None if each is None else np.asarray(each) for each in feeds]
    model, named = row.model(feeds)
    found["elements"] = int(max([each.size for each in feeds if each is not None], default=1))
    try:
        theirs, expected = engines.onnxruntime_call(model, named, threads)
    except Exception as error:  # noqa: BLE001: whatever a peer says
        return found | {"left_out": f"ONNX Runtime: {str(error).splitlines()[0][:120]}"}
    try:
        ours = engines.Heddle(model, named, threads, cache=False)
    except Exception as error:  # noqa: BLE001
        return found | {"left_out": f"Heddle: {str(error).splitlines()[0][:160]}"}
    difference = differ(ours.results, expected)
    if difference:
        return found | {"left_out": f"outputs differ: {difference}"}
    # One thread has its own clock, which other processes do not disturb.
    clock = time.thread_time if threads == 1 else time.perf_counter
    times = turns.by_turns({"heddle": turns.timed_calls(ours.call, clock),
                            "onnxruntime": turns.timed_calls(theirs, clock)},
                           given.rounds, given.turn / 1000, REST if threads > 1 else 0.0)
    return found | {name: 1e6 * statistics.median(each) for name, each in times.items()} | \
        turns.ratio(times, "onnxruntime", "heddle")


def is_asked(name, given):
    return any(part.lower() in name.lower() for part in given.match)


def place_of(threads):
    return STORE / f"ops-t{threads}.json"


def kept(threads):
    """Figures of earlier runs, by name and size."""
    place = place_of(threads)
    found = json.loads(place.read_text(encoding="utf-8")) if place.exists() else []
    return {(each["name"], each["size"]): each for each in found}


def bench(threads, given):
    """Measures the cases that were asked for and keeps what was found."""
    found, rows = kept(threads), list(cases.all_rows())
    for row in rows:
        if not is_asked(row.name, given):
            continue
        for size in SIZES if len(row.sizes) > 1 else SIZES[1:2]:
            if size not in given.sizes:
                continue
            each = found[row.name, size] = measure(row, size, threads, given)
            if "ratio" in each:
                print(f"{row.name:44}{size:7}{each['heddle']:12.1f}{each['onnxruntime']:12.1f}"
                      f"{each['ratio']:8.2f}", flush=True)
            else:
                print(f"{row.name:44}{size:7}  {each['left_out']}", flush=True)
            gc.collect()
    names = {row.name: i for i, row in enumerate(rows)}
    found = [each for each in found.values() if each["name"] in names]
    found.sort(key=lambda each: (names[each["name"]], SIZES.index(each["size"])))
    STORE.mkdir(parents=True, exist_ok=True)
    place_of(threads).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--match", nargs="+", default=[""], metavar="PART",
                         help="those whose name has one of these in it")
    options.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    options.add_argument("--threads", type=int, nargs="+", default=[1])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--turn", type=float, default=5, help="milliseconds of a turn")
    options.add_argument("--write", action="store_true", help="write docs/generated/ops-speed.md")
    given = options.parse_args()
    for threads in given.threads:
        bench(threads, given)
        print("\n" + report.summary([each for each in kept(threads).values()
                                     if "ratio" in each and is_asked(each["name"], given)]) + "\n")
    if given.write:
        table.write({threads: list(kept(threads).values()) for threads in (1, 2)
                     if place_of(threads).exists()})


if __name__ == "__main__":
    main()
