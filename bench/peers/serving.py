"""Eight callers of one model at once, beside ONNX Runtime: `./dev bench serving`.

Each engine has one session in a process of its own, which eight threads call without a pause; the
two take turns. The ratio is Heddle's runs a second over ONNX Runtime's: above 1, Heddle serves
more. A run has one thread, or all the cores, in both engines alike. Results are kept in
build/bench/serving.json.
"""

import argparse
import json
import os
import statistics
import sys
import time

from bench.models import tool
from bench.models.sources import Missing
from bench.peers import cases
from bench.peers.bench import Contest, Setting
from bench.peers.engines import engines
from bench.peers.member import Failed
from bench.peers.rounds import Pace, quartiles

MODELS = ["mobilenet_v2", "bert_base_128", "silero_vad"]
PAIR = ("heddle", "onnxruntime")
STORE = tool.RESULTS / "serving.json"
PAUSE_S = 0.1


def serve(case, threads, cores, options):
    """The row of a model: medians of both, and of the ratios of their turns."""
    setting = Setting(threads, cores, options.limit, Pace())
    with Contest(case, 1, setting) as run:
        for name in PAIR:
            if run.admit(engines()[name]) is None:
                raise Missing(f"{name}: {run.report[name]['error']}")
        turns = {name: [] for name in PAIR}
        for count in range(options.rounds + 1):
            for name in PAIR if count % 2 else reversed(PAIR):
                time.sleep(PAUSE_S)
                answer = run.members[name].ask("serve", options.limit, callers=options.callers,
                                               seconds=options.seconds)
                if count:  # the first turns are to warm up
                    turns[name].append(answer)
    ratios = [ours["runs_per_s"] / theirs["runs_per_s"] for ours, theirs in zip(*turns.values())]
    low, middle, high = quartiles(ratios)
    row = {"model": case.name, "threads": threads, "cores": len(cores), "callers": options.callers,
           "ratio": middle, "ratio_q1": low, "ratio_q3": high}
    for name, answers in turns.items():
        row[name] = {key: statistics.median(answer[key] for answer in answers)
                     for key in answers[0]}
    return row


def main(arguments=None):
    """Prints and keeps the table; exit status 1 without a row."""
    parser = argparse.ArgumentParser(prog="./dev bench serving",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="NAME")
    parser.add_argument("--callers", type=int, default=8)
    parser.add_argument("--threads", type=int, nargs="+", help="of a run (default: 1, and all)")
    parser.add_argument("--seconds", type=float, default=2, help="of a turn (default 2)")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--limit", type=float, default=180, metavar="SECONDS")
    options = parser.parse_args(arguments)
    cores, rows = sorted(os.sched_getaffinity(0)), []
    print(f"{options.callers} callers, {len(cores)} cores; runs a second\n"
          f"{'model':18}{'threads':>8}{'heddle':>10}{'p99 ms':>9}{'ort':>10}{'p99 ms':>9}"
          f"{'ratio':>8}{'q1..q3':>14}")
    for threads in options.threads or sorted({1, len(cores)}):
        for name in options.models:
            try:
                row = serve(cases.find(name), threads, cores, options)
            except (Missing, Failed, KeyError) as reason:
                print(f"{name:18}{threads:8}  {reason}", flush=True)
                continue
            rows.append(row)
            both = "".join(f"{row[engine]['runs_per_s']:10.1f}{row[engine]['p99_ms']:9.2f}"
                           for engine in PAIR)
            print(f"{name:18}{threads:8}{both}{row['ratio']:8.2f}"
                  f"{row['ratio_q1']:8.2f}..{row['ratio_q3']:.2f}", flush=True)
    STORE.parent.mkdir(parents=True, exist_ok=True)
    found = {"machine": tool.machine(), "rows": rows}
    STORE.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
