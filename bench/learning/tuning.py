"""Does a cost model save the tuner measurements, and what does that cost?

    ./dev bench tuning-with-model [--cost-model FILE.so] [--networks N] [--first SEED]
                                  [--catalogue NAME...] [--group-time S] [--candidates N]

Each network is tuned in full, with the model, and without it with as many measurements as that
took. Networks are drawn ones that no corpus has, and some of the catalogue. Without a file a model
is trained with the kept corpus, but for all groups that any of these networks has. What was found
is compiled, and the artefacts run by turns on one thread, by its own clock.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
from pathlib import Path

import numpy as np

import heddle
from bench.kernels import report
from bench.learning import choosing, sources
from bench.models import catalogue, tool

CATALOGUE = ("kws_fp32", "light_squeezenet")
WAYS = ("full", "led", "few")  # tuned in full, with the model, and as little without it


def _options():
    parser = argparse.ArgumentParser(prog="./dev bench tuning-with-model",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("--cost-model", type=Path, metavar="FILE.so")
    parser.add_argument("--networks", type=int, default=7, metavar="N", help="that are drawn")
    parser.add_argument("--first", type=int, default=406, metavar="SEED")
    parser.add_argument("--catalogue", nargs="*", default=list(CATALOGUE), metavar="NAME")
    parser.add_argument("--group-time", type=float, default=60, metavar="S",
                        help="of a tuning in full, for each group (default %(default)s)")
    parser.add_argument("--candidates", type=int, metavar="N", help="as heddle tune has it")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--epochs", type=int, default=40, help="of a training (default 40)")
    parser.add_argument("--most", type=int, metavar="N", help="groups to train with at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, default=tool.RESULTS / "learning" / "tuning",
                        metavar="DIR", help="where records and figures are; what is there is not "
                        "measured again")
    return parser


def networks(options, folder):
    """(name, path) of each."""
    yield from sources.drawn_from(options.first, options.networks, folder)
    known = {model.name: model for model in catalogue.models()}
    for name in options.catalogue:
        try:
            yield name, Path(known[name].path())
        except catalogue.Missing as missing:
            print(f"{name}: left out: {missing}", file=sys.stderr)


def said(*arguments):
    return json.loads(tool.checked(*arguments, "--threads", "1", "--json").output)


def groups_of(name, path, options):
    """The keys of a network's groups, as records have them."""
    file = options.output / f"{name}.keys.db"
    if not file.exists():
        tune(path, file, "--trials", 1, "--time", 600)
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    keys = {key for key, in database.execute("SELECT key FROM subject")}
    database.close()
    return keys


def tune(path, records, *more):
    found = said("tune", path, "--records", records, *more)
    return {"trials": found["trials"], "seconds": found["seconds"], "ended": found["ended"],
            "scored": sum(group["scored"] for group in found["groups"])}


def times(path, records, rounds):
    """Seconds with the rules, and with each file of records, by turns: the median of each one's
    ratio to the first."""
    ways = [{"chooser": "rules"}, *({"records": str(file)} for file in records)]
    modules = [heddle.compile(str(path), threads=1, cache=False, **way) for way in ways]
    found = choosing.by_turns(modules, choosing.feeds_of(modules[0]), rounds)
    return [float(np.median(found[0])), *np.median(found[1:] / found[0], axis=1).tolist()]


def judge(name, path, groups, options, cost_model):
    """Figures of one network; kept in a file, which a second run reads."""
    kept = options.output / f"{name}.json"
    if kept.exists():
        return json.loads(kept.read_text(encoding="utf-8"))
    files = [options.output / f"{name}.{way}.db" for way in WAYS]
    led = ["--cost-model", cost_model]
    if options.candidates:
        led += ["--candidates", options.candidates]
    found = {"groups": groups}
    limit = options.group_time * groups
    found["led"] = tune(path, files[1], *led, "--time", max(limit, 60))
    found["few"] = tune(path, files[2], "--trials", max(1, found["led"]["trials"]), "--time",
                        max(limit, 60))
    found["full"] = tune(path, files[0], "--time", limit)
    found["once"], *ratios = times(path, files, options.turns)
    found["times"] = dict(zip(WAYS, ratios))
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def summary(found):
    mean, lines = report.geometric_mean, []
    for way, text in (("led", "with the model"), ("few", "as little without it")):
        shares = [each["times"]["full"] / each["times"][way] for each in found.values()]
        less = [max(1, each["full"]["trials"]) / max(1, each[way]["trials"])
                for each in found.values()]
        sooner = [each["full"]["seconds"] / each[way]["seconds"] for each in found.values()]
        total = (sum(each["full"]["trials"] for each in found.values())
                 / max(1, sum(each[way]["trials"] for each in found.values())))
        lines.append(f"{text}: {mean(shares):.3f} of full tuning's speed (from {min(shares):.3f} "
                     f"to {max(shares):.3f}) with {total:.1f} times fewer measurements (network by "
                     f"network {mean(less):.1f}), in {mean(sooner):.1f} times less time")
    for way in WAYS:
        gain = mean([1 / each["times"][way] for each in found.values()])
        lines.append(f"{way}: {gain:.3f} times as fast as the rules' choice")
    return "\n".join(lines)


def main():
    options = _options().parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        some = dict(networks(options, folder))
        keys = {name: groups_of(name, path, options) for name, path in some.items()}
        cost_model = options.cost_model or choosing.trained(options, set().union(*keys.values()))
        for name, path in some.items():
            each = found[name] = judge(name, path, len(keys[name]), options, cost_model)
            print(f"{name:36} {1e3 * each['once']:8.3f} ms {each['groups']:3} groups; " + ", ".join(
                f"{way} {each[way]['trials']} in {each[way]['seconds']:.0f} s: "
                f"{1 / each['times'][way]:.3f}" for way in WAYS), flush=True)
    print(f"{len(found)} networks; ratios to the rules' choice, above 1 is faster")
    print(summary(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
