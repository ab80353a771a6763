"""Are plans that a search has found faster than those of the rules?

    ./dev bench plans [--variants NAME...] [--time S] [--drawn N] [--published N] [--catalogue N]

For each model, `heddle tune --plans` searches for so long on one thread. Then the model runs by
turns as the rules have it and by the plan that was found, anew: luck of the search counts for
nothing. Variants leave out decisions or have another schedule or strategy. Models are drawn
networks that no corpus has, a third of those that can be trained with their gradients, blocks of
published networks, some with dynamic sizes, and the catalogue; dynamic sizes are 32 or what is
typical. What is measured is kept in a file: the same command goes on.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import heddle
from bench.learning import choosing, sources
from bench.networks import blocks
from bench.models import tool

VARIANTS = {
    "joint": [],
    "sequential": ["--schedule", "sequential"],
    "evolution": ["--strategy", "evolution"],
    "knobs": ["--decide", "knobs"],
    "fusion": ["--decide", "fusion"],
    "split": ["--decide", "split"],
    "layouts": ["--decide", "layouts"],
}
FIRST = 400  # seed of the networks, of which the corpus has others
RESULTS = tool.RESULTS / "plans.jsonl"


def _options():
    parser = argparse.ArgumentParser(prog="./dev bench plans", description=__doc__.split("\n")[0])
    parser.add_argument("--variants", nargs="+", default=["joint"], choices=list(VARIANTS))
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the models, only these")
    parser.add_argument("--time", type=float, default=60, metavar="S", help="of a search")
    parser.add_argument("--drawn", type=int, default=48, metavar="N")
    parser.add_argument("--published", type=int, default=len(blocks.NAMES), metavar="N")
    parser.add_argument("--catalogue", type=int, default=31, metavar="N")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE")
    return parser


def models(options, folder):
    """(name, path) of each."""
    yield from sources.drawn_from(FIRST, options.drawn, folder)
    for name in blocks.NAMES[:options.published]:
        yield name, sources.saved(folder, name, blocks.network(name))
    yield from sources.real(options.catalogue)


def compare(path, plan, rounds):
    """(seconds by the rules, theirs by the plan's: the median of turns)."""
    modules = [heddle.compile(str(path), threads=1, cache=False, plan=each)
               for each in (None, str(plan))]
    return choosing.ratio_of(modules, choosing.feeds_of(modules[0]), rounds)


def measure(name, path, variant, options):
    """The result of one search, as a dict."""
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "found.json"
        command = [tool.find_heddle(), "tune", path, "--plans", *VARIANTS[variant], "-o", plan,
                   "--records", Path(folder) / "records.db", "--threads", "1", "--time",
                   options.time, "--json"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        found = {"model": name, "variant": variant, "time": options.time}
        if done.returncode:
            return found | {"problem": (done.stderr.strip() or "?").split("\n")[0]}
        said = json.loads(done.stdout)
        found |= {"kept": said["kept"], "trials": said["trials"], "plans": said["plans"],
                  "candidates": said.get("candidates", {})}
        if said["kept"] == "default":  # the same program
            return found | {"ratio": 1.0}
        try:
            once, ratio = compare(path, plan, options.turns)
        except Exception as error:  # numbers that the model does not take
            return found | {"problem": str(error).split("\n")[0]}
        return found | {"seconds": once, "ratio": ratio}


def table(rows, options):
    """A line for each variant, over the models that all of them have."""
    by_variant = {variant: {row["model"]: row for row in rows
                            if row["variant"] == variant and "ratio" in row}
                  for variant in options.variants}
    shared = set.intersection(*(set(each) for each in by_variant.values()))
    for variant, found in by_variant.items():
        ratios = {model: found[model]["ratio"] for model in shared}
        if not ratios:
            continue
        best = max(ratios, key=ratios.get)
        print(f"{variant:12} {len(ratios):3} models  geometric mean "
              f"{np.exp(np.mean(np.log(list(ratios.values())))):.3f}  best {ratios[best]:.3f} "
              f"({best})  slower {sum(ratio < 0.99 for ratio in ratios.values())}  kept: " +
              ", ".join(f"{kept} {sum(found[model]['kept'] == kept for model in shared)}"
                        for kept in ("plan", "knobs", "default")))


def main():
    options = _options().parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in options.results.read_text().splitlines()
            ] if options.results.exists() else []
    known = {(row["model"], row["variant"], row["time"]) for row in rows}
    with tempfile.TemporaryDirectory() as folder, options.results.open("a") as file:
        asked = [(name, path, variant) for name, path in models(options, folder)
                 for variant in options.variants if (not options.only or name in options.only)
                 and (name, variant, options.time) not in known]
        for name, path, variant in asked:
            row = measure(name, path, variant, options)
            rows.append(row)
            print(json.dumps(row), file=file, flush=True)
            print(f"{row['model']:40} {row['variant']:11} " +
                  (f"{row['kept']:8} ratio {row['ratio']:.3f}" if "ratio" in row else
                   row["problem"]), flush=True)
    table(rows, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
