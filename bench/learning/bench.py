"""All that learns from measurements: every claim on cost models, plans and policies, made again.

    ./dev bench learning [--only PART...]
    ./dev bench learning --quick

The parts are benchmarks of their own: `cost-models` (order), `repeats` (the best that an order
can be), `tuning-with-model` (fewer measurements), `choosing` (none), `plans` (searches over whole
plans), `go` (plans for several devices) and `orders` (of kernels, for less memory). One cost model,
which has seen none of the networks that are tuned, serves all parts but `choosing`, whose model has
seen none of the catalogue.
Ended and called again, parts go on with what they have measured; --quick is small and begins anew.
"""

import argparse
import shutil
import subprocess
import sys
import time

from bench.models import tool

FOLDER = tool.RESULTS / "learning"
MODEL = ["--cost-model", FOLDER / "cost.so"]
PLANS = ["--results", FOLDER / "plans.jsonl"]
# part -> module, arguments, those of a quick run, and of the least one, which only runs
PARTS = {
    "cost-models": ("evaluation", [],
                    ["--models", "analytic", "network", "--folds", "2", "--epochs", "12"],
                    ["--models", "analytic", "network", "--folds", "2", "--epochs", "1",
                     "--most", "40"]),
    "repeats": ("repeats", [], ["--networks", "2", "--collect", "4", "--passes", "2"],
                ["--networks", "1", "--first", "2", "--collect", "3", "--passes", "2"]),
    "tuning-with-model": ("tuning", [],
                          ["--first", "425", "--networks", "2", "--catalogue", "--group-time", "10",
                           "--epochs", "15", "--turns", "7"],
                          ["--first", "426", "--networks", "1", "--catalogue", "--group-time", "1",
                           "--candidates", "1", "--epochs", "1", "--most", "40", "--turns", "1"]),
    "choosing": ("choosing", [],
                 [*MODEL, "--networks", "8", "--catalogue", "0", "--turns", "5"],
                 [*MODEL, "--networks", "2", "--catalogue", "0", "--turns", "1"]),
    "plans": ("plans", [],
              [*PLANS, "--drawn", "2", "--published", "2", "--catalogue", "0", "--time", "10"],
              [*PLANS, "--drawn", "1", "--published", "0", "--catalogue", "0", "--time", "4",
               "--turns", "3"]),
    "go": ("go", [], ["--quick"], ["--quick"]),
    "orders": ("orders", [], ["--only", "shufflenet", "--rounds", "1"],
               ["--only", "residual-step-clipped", "--rounds", "1"]),
}


def _options():
    parser = argparse.ArgumentParser(prog="./dev bench learning",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=list(PARTS),
                        metavar="PART")
    parser.add_argument("--quick", action="store_true", help="small, in less than ten minutes")
    parser.add_argument("--least", action="store_true", help="so small that figures say nothing")
    return parser


def main():
    options = _options().parse_args()
    if options.quick or options.least:
        shutil.rmtree(FOLDER, ignore_errors=True)
    failed = []
    for name in options.only:
        module, *ways = PARTS[name]
        arguments = ways[2 if options.least else 1 if options.quick else 0]
        print(f"== {name}", flush=True)
        begin = time.monotonic()
        done = subprocess.run([sys.executable, "-m", f"bench.learning.{module}",
                               *map(str, arguments)], check=False)
        print(f"   {name} took {time.monotonic() - begin:.0f} s", flush=True)
        if done.returncode:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
