"""How much of an order of candidates is there to learn, where timing is uncertain?

    ./dev bench repeats [--networks N] [--first N] [--collect N] [--passes N] [--least S]

The same candidates of drawn networks are timed again and again, each time in other processes and
into a file of records of its own, as `./dev bench corpus` does it. Kendall's tau between two such
measurements is what a model could reach at most that knew the true times. `passes` are made one
after the other, so that those of a pair lie as far apart as those of a corpus and its user.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.learning import corpus, sources
from bench.networks import drawn
from bench.models import tool
from heddle import cost_features
from heddle_lab.cost import metrics

SEEDS = (0, 1, 2, 3, 14, 15, 16, 4, 5, 6)  # of all families, those that are trained twice


def _options():
    parser = argparse.ArgumentParser(prog="./dev bench repeats",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("--networks", type=int, default=6, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N",
                        help="of the networks, to begin with (default %(default)s)")
    parser.add_argument("--collect", type=int, default=12, metavar="N",
                        help="candidates of each group (default %(default)s)")
    parser.add_argument("--passes", type=int, default=4, metavar="N",
                        help="an even number; half of them against the others shows what longer "
                        "looks would bring (default %(default)s)")
    parser.add_argument("--least", type=float, default=2e-6, metavar="S",
                        help="groups whose default takes less are left out (default %(default)s)")
    parser.add_argument("-o", "--output", type=Path, default=tool.RESULTS / "learning" / "repeats",
                        metavar="DIR", help="where the records of each pass are")
    return parser


def measure(options):
    """The files of records, one of each pass; what is known is not measured again."""
    options.output.mkdir(parents=True, exist_ok=True)
    files = [options.output / f"pass{number}.db" for number in range(options.passes)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [sources.saved(folder, *drawn.network(seed))
                 for seed in SEEDS[options.first:options.first + options.networks]]
        for file in files:
            for path in paths:
                asked = argparse.Namespace(output=file, threads=1, collect=options.collect)
                found = corpus.collect(path, asked, 600)
                said = found if isinstance(found, str) else f"{found['trials']} trials now"
                print(f"{file.name} {path.name}: {said}", file=sys.stderr, flush=True)
    return files


def read(file, least):
    """group -> candidate -> seconds, beside one default choice."""
    database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    groups = {}
    for key, sizes, base, card, knobs, seconds, speedup in database.execute(
            "SELECT key, sizes, base, card, knobs, seconds, speedup FROM trial "
            "WHERE failure IS NULL OR failure = ''"):
        groups.setdefault((key, sizes, base), {})[card, knobs] = seconds, speedup
    database.close()
    found = {}
    for group, trials in groups.items():
        base = np.median([seconds * speedup for seconds, speedup in trials.values()])
        if base >= least:
            found[group] = {name: base / speedup for name, (_, speedup) in trials.items()}
    return found


def kinds_of(file):
    """Key -> kind of group, of a file of records."""
    return {group["key"]: group["kind"] for group in cost_features(file)["groups"]}


def common(passes, kinds):
    """kind -> [candidates x passes] of each group with at least three candidates that all passes
    timed."""
    groups = {}
    for group in passes[0]:
        if all(group in each for each in passes):
            names = sorted(set.intersection(*(set(each[group]) for each in passes)))
            if len(names) >= 3:
                groups.setdefault(kinds.get(group[0], ""), []).append(
                    np.array([[each[group][name] for each in passes] for name in names]))
    return groups


def between(groups, ones, others):
    """(tau, tau of clear pairs), of the means of some passes against those of others."""
    taus, clear = [], []
    for group in groups:
        a, b = (np.exp(np.log(group[:, some]).mean(axis=1)) for some in (ones, others))
        for values, value in ((taus, metrics.kendall_tau(a, b)), (clear, metrics.clear_tau(a, b))):
            if value is not None:
                values.append(value)
    return tuple(float(np.mean(some)) if some else float("nan") for some in (taus, clear))


def once(groups, count):
    """(tau, tau of clear pairs) of one measurement against another: the mean over all pairs."""
    pairs = [between(groups, [i], [j]) for i in range(count) for j in range(count) if i != j]
    return np.mean(pairs, axis=0).tolist()


def report(kinds, count):
    groups, half = [group for some in kinds.values() for group in some], count // 2
    halves = [between(groups, list(range(start, count, 2)), list(range(1 - start, count, 2)))
              for start in (0, 1)]
    apart = np.concatenate([np.abs(np.log(group[:, 0] / group[:, 1])) for group in groups])
    found = {"groups": len(groups), "candidates": sum(len(group) for group in groups),
             "passes": count, "once": once(groups, count),
             "kinds": {kind: {"groups": len(some), "once": once(some, count)}
                       for kind, some in kinds.items()},
             "averaged": half, "halves": np.mean(halves, axis=0).tolist(),
             "median_difference": float(np.median(apart)),
             "ninth_decile": float(np.quantile(apart, 0.9))}
    print(json.dumps(found))
    print(f"{len(groups)} groups, {found['candidates']} candidates, each timed {count} times: a "
          f"second time differs by {100 * found['median_difference']:.1f} % (median; nine of ten "
          f"by at most {100 * found['ninth_decile']:.1f} %)")
    print(f"tau of one measurement against another {found['once'][0]:.3f}, of pairs that differ "
          f"by 5 % {found['once'][1]:.3f}")
    for kind, of in sorted(found["kinds"].items(), key=lambda each: -each[1]["groups"]):
        print(f"  {kind or '-':16} {of['groups']:3} groups  {of['once'][0]:.3f}  "
              f"{of['once'][1]:.3f}")
    if half > 1:
        print(f"tau of the mean of {half} against that of the other {half} "
              f"{found['halves'][0]:.3f}, of clear pairs {found['halves'][1]:.3f}")


def main():
    options = _options().parse_args()
    files = measure(options)
    groups = common([read(file, options.least) for file in files], kinds_of(files[0]))
    if not groups:
        print("no group has three candidates that were timed each time", file=sys.stderr)
        return 1
    report(groups, len(files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
