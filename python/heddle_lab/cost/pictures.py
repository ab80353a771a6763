"""pictures: what was learned beside what was measured, and the curve of a training.

SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import os

import numpy as np

from heddle.packages import need

from . import metrics


def load_pyplot():
    """matplotlib's, which draws into files."""
    need("matplotlib", "drawing", "cost").use("Agg")
    return need("matplotlib.pyplot", "drawing", "cost")


@contextlib.contextmanager
def drawn(path, width, height, columns=1):
    """The axes of a picture that is then written to `path`."""
    pyplot = load_pyplot()
    figure, axes = pyplot.subplots(1, columns, figsize=(width, height), squeeze=False)
    yield axes[0]
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def scatter(results, path):
    """Each candidate beside its group's mean, as measured and as predicted by a model that has not
    seen its network."""
    with drawn(path, 4 * len(results), 4, len(results)) as axes:
        for axis, (name, some) in zip(axes, results.items()):
            measured, learned = [], []
            for group, scores in some:
                logs = np.log2(group.seconds)
                measured.append(logs - logs.mean())
                learned.append((scores - scores.mean()) / np.log(2))
            axis.scatter(np.concatenate(measured), np.concatenate(learned), s=3, alpha=0.3,
                         linewidths=0)
            axis.plot([-3, 3], [-3, 3], color="black", linewidth=0.7)
            axis.set(xlim=(-3, 3), ylim=(-3, 3), title=name,
                     xlabel="measured, log2 of time by mean", ylabel="predicted")


def orders(results, path):
    """The share of groups whose pick is at most so much slower than the best."""
    with drawn(path, 5, 4) as (axis,):
        for name, some in results.items():
            for k, style in ((1, "-"), (5, "--")):
                lost = np.sort([metrics.slowdown(scores, group.seconds, k)
                                for group, scores in some])
                axis.plot(100 * lost, np.arange(1, len(lost) + 1) / len(lost), style,
                          label=f"{name}, best of {k}")
        axis.set(xlim=(0, 40), ylim=(0, 1), xlabel="slower than the best, %",
                 ylabel="share of groups")
        axis.legend(fontsize=7)


def losses(values, path):
    with drawn(path, 5, 3) as (axis,):
        axis.plot(range(1, len(values) + 1), values)
        axis.set(xlabel="epoch", ylabel="loss of training")


def write(results, models, folder):
    scatter(results, os.path.join(folder, "scatter.png"))
    orders(results, os.path.join(folder, "slowdown.png"))
    for name, model in models.items():
        if getattr(model, "losses", None):
            losses(model.losses, os.path.join(folder, f"{name}_training.png"))
