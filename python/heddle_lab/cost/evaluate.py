"""evaluate: models of costs on networks that they have not seen.

SPDX-License-Identifier: Apache-2.0
"""

import json
import os
import time
import zlib

import numpy as np

from heddle import UsageError

from . import metrics
from .analytic import Analytic
from .network import Network
from .ranker import Ranker
from .trees import Trees

NAMES = ("analytic", "trees", "network")
LEAST_CANDIDATES = 3  # of a group, else there is no order to speak of


def makers(options, say):
    """name -> function that makes a model of costs which has learned nothing."""
    return {"analytic": Analytic, "trees": lambda: Trees(options.seed),
            "network": lambda: Network(options.seed, options.epochs, say=say)}


def usable(corpus, least):
    """Groups with an order, and whose default takes at least so many seconds."""
    def base(group):
        return group.seconds[group.is_default][0] if group.is_default.any() else \
            np.median(group.seconds)

    return [group for group in corpus.groups
            if len(group.seconds) >= LEAST_CANDIDATES and base(group) >= least]


def folds_of(groups, wanted):
    """[(training groups, held-out groups)]: networks are held out whole, with all groups that they
    have, also those that others have as well. The same for all models of costs."""
    names = sorted({name for group in groups for name in group.models})
    if not names:
        raise UsageError("the corpus does not say which models its groups are of, since an older "
                         "heddle wrote it\nnote: './dev bench corpus' with the same file adds that")
    if wanted == "models":
        parts = [[name] for name in names]
    else:
        try:
            count = int(wanted)
        except ValueError:
            count = 0
        if count < 2:
            raise UsageError(f"--folds is '{wanted}'; allowed: 'models', or a number from 2 on")
        ordered = sorted(names, key=lambda name: zlib.crc32(name.encode()))
        parts = [ordered[i::count] for i in range(min(count, len(ordered)))]
    if len(parts) < 2:
        raise UsageError("the corpus is of one network; there is nothing to learn from without it")
    found = []
    for part in parts:
        held = set(part)
        inside = [group for group in groups if held & set(group.models)]
        outside = [group for group in groups if group.models and not held & set(group.models)]
        if inside and outside:
            found.append((outside, inside))
    return found


def judge(make, folds, corpus, say):
    """(summary, [(group, scores)], the last model): each fold's groups by a model that was trained
    without them. A group that is held out several times counts each time."""
    results, seconds, calls, model = [], 0.0, 0, None
    begin = time.perf_counter()
    for number, (training, held) in enumerate(folds, 1):
        model = make()
        model.fit(training, corpus.candidate_names)
        model.predict(held[0])  # the network is compiled
        first = time.perf_counter()
        results += [(group, np.asarray(model.predict(group))) for group in held]
        seconds += time.perf_counter() - first
        calls += sum(len(group.seconds) for group in held)
        say(f"{model.name}: {number} of {len(folds)} folds")
    found = metrics.summary(results)
    found["training_seconds"] = time.perf_counter() - begin - seconds
    found["microseconds_per_candidate"] = 1e6 * seconds / max(1, calls)
    return found, results, model


COLUMNS = (("tau", "tau", 1, 3), ("tau of clear pairs", "clear_tau", 1, 3),
           ("top-1 %", "top1", 100, 2), ("top-5 %", "top5", 100, 2),
           ("models top-1 %", "top1_models", 100, 2), ("models top-5 %", "top5_models", 100, 2),
           ("guarded %", "guarded", 100, 2), ("us/candidate", "microseconds_per_candidate", 1, 1),
           ("training s", "training_seconds", 1, 1))


def table(found, rules):
    """The figures as text; `rules` is what the default choices lose."""
    rows = [["model", *(title for title, *_ in COLUMNS)]]
    for name, figures in found.items():
        rows.append([name, *(f"{scale * figures[key]:.{digits}f}"
                             for _, key, scale, digits in COLUMNS)])
    rows.append(["rules", *(f"{100 * rules:.2f}" if key in ("top1", "guarded") else "-"
                            for _, key, *_ in COLUMNS)])
    return _aligned(rows)


def _aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) if i else cell.ljust(width)
                               for i, (cell, width) in enumerate(zip(row, widths)))
                     for row in rows)


def table_of_kinds(results):
    """tau, and that of clear pairs, of each kind of group: `results` has what each model says."""
    kinds = {}
    for name, some in results.items():
        for group, scores in some:
            kinds.setdefault(group.kind, {}).setdefault(name, []).append((group, scores))
    found = {kind: {name: metrics.summary(some) for name, some in of.items()}
             for kind, of in kinds.items()}
    rows = [["kind", "groups", "candidates",
             *(title for name in results for title in (f"{name}: tau", "clear pairs"))]]
    for kind, of in sorted(found.items(), key=lambda each: -max(
            figures["groups"] for figures in each[1].values())):
        first = next(iter(of.values()))
        rows.append([kind or "-", str(first["groups"]), str(first["candidates"]),
                     *(f"{of[name][key]:.3f}" if name in of else "-" for name in results
                       for key in ("tau", "clear_tau"))])
    return _aligned(rows)


def _head(corpus, groups, held, parts):
    networks = {name for group in groups for name in group.models}
    return (f"{len(groups)} groups of {len(networks)} networks{parts}, {held} candidates judged; "
            f"{corpus.about['machine']}, {corpus.about['threads']} thread(s)\n")


def evaluate_file(corpus, options, path):
    """A cost model that was trained before, on the groups of the corpus that it has not seen."""
    ranker = Ranker(path)
    ranker.check(corpus)
    seen = set(ranker.about["keys"])
    groups = [group for group in usable(corpus, options.least) if group.key not in seen]
    if not groups:
        raise UsageError(f"'{path}' was trained with all groups of the corpus that could be judged")
    begin = time.perf_counter()
    results = [(group, ranker.predict(group)) for group in groups]
    seconds = time.perf_counter() - begin
    found = metrics.summary(results)
    found["microseconds_per_candidate"] = 1e6 * seconds / max(1, found["candidates"])
    found["training_seconds"] = float("nan")
    return _head(corpus, groups, found["candidates"], "") + table({"file": found}, found["rules"])


def evaluate(corpus, options, say):
    groups = usable(corpus, options.least)
    folds = folds_of(groups, options.folds)
    found, results, models = {}, {}, {}
    for name in options.models:
        found[name], results[name], models[name] = judge(makers(options, say)[name], folds, corpus,
                                                         say)
    held = sum(len(group.seconds) for _, some in folds for group in some)
    head = _head(corpus, groups, held, f" in {len(folds)} folds")
    if options.output:
        os.makedirs(options.output, exist_ok=True)
        with open(os.path.join(options.output, "evaluation.json"), "w", encoding="utf-8") as file:
            json.dump({"corpus": corpus.about, "folds": len(folds), "groups": len(groups),
                       "networks": len({name for group in groups for name in group.models}),
                       "candidates": held, "seed": options.seed,
                       "models": found}, file, indent=2)
            file.write("\n")
        from . import pictures

        pictures.write(results, models, options.output)
    return (head + table(found, next(iter(found.values()))["rules"]) + "\n\n"
            + table_of_kinds(results))
