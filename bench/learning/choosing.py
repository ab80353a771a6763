"""Is what a cost model chooses without measuring faster than what the rules choose?

    ./dev bench choosing [--cost-model FILE.so] [--networks N] [--first SEED] [--catalogue N]
                         [--epochs N]

Drawn networks that no corpus has (`./dev bench corpus` draws those of the first seeds) and the
catalogue are compiled with and without the model, and both run by turns on one thread, by its own
clock. Without a file, a model is trained with the corpus that is kept beside this file, but for the
groups of the catalogue. Dynamic sizes are 32 or what is typical; of groups that have some, the
model chooses nothing.
"""

import argparse
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from onnx import helper

import heddle
from bench.kernels import turns
from bench.learning import evaluation, sources
from bench.models import tool
from heddle_lab.cost import Corpus, ranker
from heddle_lab.cost.evaluate import usable
from heddle_lab.cost.train import train


def _options():
    parser = argparse.ArgumentParser(prog="./dev bench choosing",
                                     description=__doc__.split("\n")[0])
    parser.add_argument("--cost-model", type=Path, metavar="FILE.so")
    parser.add_argument("--networks", type=int, default=40, metavar="N")
    parser.add_argument("--first", type=int, default=300, metavar="SEED")
    parser.add_argument("--catalogue", type=int, default=100, metavar="N", help="of it, at most")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--epochs", type=int, default=40, help="of a training (default 40)")
    parser.add_argument("--most", type=int, metavar="N", help="groups to train with at most")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def trained(options, unseen=(), files=()):
    """The artefact of a model that is trained with the kept corpus, but for groups with these
    keys, and for those of models of these names of files."""
    folder = tool.RESULTS / "learning"
    path = evaluation.unpacked(folder)
    corpus = Corpus.read(path, evaluation.target_of(path))
    groups = [group for group in usable(corpus, 2e-6)
              if group.key not in unseen and not {*group.models} & {*files}][:options.most]
    made = train(groups, corpus, options, lambda line: print(line, file=sys.stderr))
    ranker.save(made, groups, corpus, folder / "cost.onnx")
    subprocess.run([tool.find_heddle(), "compile", folder / "cost.onnx", "-o", folder / "cost.so",
                    "--threads", "1"], check=True, stdout=subprocess.DEVNULL)
    return folder / "cost.so"


def by_turns(modules, feeds, rounds):
    """The times of modules on one thread, by its own clock: a list for each, a number per round."""
    sessions = [heddle.Session(module, threads=1) for module in modules]
    times = turns.by_turns({number: turns.timed_calls(partial(session.run, None, feeds))
                            for number, session in enumerate(sessions)}, rounds, 0.03)
    return np.array([times[number] for number in range(len(sessions))])


def ratio_of(modules, feeds, rounds):
    """(seconds of a run of the first module, its time over the second's), medians of rounds."""
    first, second = by_turns(modules, feeds, rounds)
    return float(np.median(first)), float(np.median(first / second))


def feeds_of(module):
    """Random numbers for a model's inputs."""
    random = np.random.default_rng(0)
    feeds = {}
    for value in module.inputs:
        shape = [size if isinstance(size, int) else 32 for size in value.shape]
        dtype = helper.tensor_dtype_to_np_dtype(value.dtype)
        feeds[value.name] = (random.standard_normal(shape).astype(dtype) if dtype.kind == "f" else
                             random.integers(0, 2, shape).astype(dtype))
    return feeds


def compare(path, cost_model, rounds):
    """(seconds by the rules, the rules' time by the cost model's, its report)."""
    modules = [heddle.compile(str(path), threads=1, cache=False, cost_model=each)
               for each in (None, cost_model)]
    return (*ratio_of(modules, feeds_of(modules[0]), rounds),
            modules[1].compiled.report["cost_model"])


def judged(networks, cost_model, rounds):
    """Compares some networks, and says what came of it."""
    ratios, followed, groups = [], 0, 0
    for name, path in networks:
        try:
            once, ratio, said = compare(path, cost_model, rounds)
        except heddle.Error as error:  # of random numbers, for which it was not made
            print(f"{name}: left out: {error}".split("\n")[0], file=sys.stderr)
            continue
        if said["problem"]:
            raise SystemExit(said["problem"])
        own = sum(each["kept"] is None for each in said["groups"].values())
        followed, groups = followed + own, groups + len(said["groups"])
        ratios.append(ratio)
        print(f"{name:40} {1e3 * once:9.3f} ms  {own:3} of {len(said['groups']):3} groups chosen "
              f"otherwise, ratio {ratio:.3f}", flush=True)
    if ratios:
        print(f"{len(ratios)} networks: {followed} of {groups} groups chosen otherwise; ratio "
              f"{np.exp(np.mean(np.log(ratios))):.3f} (geometric mean; above 1 the cost model is "
              f"faster), from {min(ratios):.3f} to {max(ratios):.3f}", flush=True)


def main():
    options = _options().parse_args()
    known = list(sources.real(options.catalogue))
    cost_model = options.cost_model or trained(options, files=[path.name for _, path in known])
    with tempfile.TemporaryDirectory() as folder:
        judged(sources.drawn_from(options.first, options.networks, folder), cost_model,
               options.turns)
    judged(known, cost_model, options.turns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
