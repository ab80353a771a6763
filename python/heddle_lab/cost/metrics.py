"""metrics: how well scores order the candidates of groups; lower scores mean faster.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np


def kendall_tau(scores, seconds):
    """Kendall's tau-b: 1 where the two order alike, -1 where in reverse; None where either is one
    value alone."""
    def signs(values):
        values = np.asarray(values, float)
        return np.sign(values[:, None] - values[None, :])

    a, b = signs(scores), signs(seconds)
    scale = np.sqrt(np.sum(a * a) * np.sum(b * b))
    return float(np.sum(a * b) / scale) if scale else None


def clear_tau(scores, seconds, ratio=1.05):
    """Kendall's tau of the pairs whose times differ by at least 5 %, which is more than the error
    of timing; None if there are none."""
    logs, scores = np.log(seconds), np.asarray(scores, float)
    differences = logs[:, None] - logs[None, :]
    clear = np.abs(differences) >= np.log(ratio)
    if not clear.any():
        return None
    agreement = np.sign(scores[:, None] - scores[None, :]) * np.sign(differences)
    return float(agreement[clear].mean())


def best_of(scores, seconds, k):
    """The fastest of the k candidates with the lowest scores; of equal scores the mean, for k = 1,
    would depend on the order, so the slowest of them comes first."""
    order = np.lexsort((-np.asarray(seconds), scores))
    return float(np.min(np.asarray(seconds)[order[:k]]))


def slowdown(scores, seconds, k):
    """How much slower the best of the model's k favourites is than the best of all."""
    return best_of(scores, seconds, k) / float(np.min(seconds)) - 1


# A candidate has to be better than the default by so much, in the logarithm: as
# LearnedChooser::kPromise of compiler/learn has it.
MARGIN = float(np.log(1.2))


def guarded(scores, group):
    """The slow-down of the model's favourite where it promises clearly more than the default, else
    of the default: what is lost by choosing so without any measurement."""
    own = np.flatnonzero(group.is_default)
    best = float(np.min(group.seconds))
    if len(own) and np.min(scores) > scores[own[0]] - MARGIN:
        return float(group.seconds[own[0]]) / best - 1
    return best_of(scores, group.seconds, 1) / best - 1


def summary(results):
    """Summarises [(group, scores)] over groups with at least 3 candidates: the mean of tau, and for
    k = 1 and 5 the mean of the slow-downs and that of whole models: the sum of the picks for their
    groups by the sum of the best (as in TpuGraphs and Kaufman et al.)."""
    results = [(group, scores) for group, scores in results if len(scores) >= 3]
    taus = [tau for tau in (kendall_tau(s, g.seconds) for g, s in results) if tau is not None]
    clear = [tau for tau in (clear_tau(s, g.seconds) for g, s in results) if tau is not None]
    found = {"groups": len(results), "candidates": sum(len(s) for _, s in results),
             "tau": float(np.mean(taus)) if taus else float("nan"),
             "clear_tau": float(np.mean(clear)) if clear else float("nan")}
    for k in (1, 5):
        each = [slowdown(s, g.seconds, k) for g, s in results]
        found[f"top{k}"] = float(np.mean(each)) if each else float("nan")
        sums = {}
        for group, scores in results:
            for model in group.models or ("",):
                sums.setdefault(model, []).append((best_of(scores, group.seconds, k),
                                                   float(np.min(group.seconds))))
        of_models = [sum(picked for picked, _ in some) / sum(best for _, best in some) - 1
                     for some in sums.values()]
        found[f"top{k}_models"] = float(np.mean(of_models)) if of_models else float("nan")
    with_default = [(g, s) for g, s in results if g.is_default.any()]
    lost = [guarded(s, g) for g, s in with_default]
    found["guarded"] = float(np.mean(lost)) if lost else float("nan")
    rules = [float(g.seconds[g.is_default][0]) / float(np.min(g.seconds)) - 1
             for g, _ in with_default]
    found["rules"] = float(np.mean(rules)) if rules else float("nan")
    return found
