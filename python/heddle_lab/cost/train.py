"""train: a network that has seen a whole corpus, and whose promises are as large as they should be.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from heddle import UsageError

from .evaluate import folds_of
from .network import Network

PARTS = "6"  # of the networks, one of which is held out to learn what promises are worth


def scale_of(network, groups):
    """The factor that makes the network's differences within groups those of the measured
    logarithms, by least squares; at most 1. Learning orders makes scores too far apart."""
    predicted, measured = [], []
    for group in groups:
        scores, logs = np.asarray(network.predict(group), float), np.log(group.seconds)
        predicted.append(scores - scores.mean())
        measured.append(logs - logs.mean())
    predicted, measured = np.concatenate(predicted), np.concatenate(measured)
    square = float(predicted @ predicted)
    return float(np.clip(predicted @ measured / square, 0.0, 1.0)) if square else 0.0


def train(groups, corpus, options, say):
    """Trains twice: without a part of the networks, to scale the scores by what these show, and
    with all."""
    def made():
        return Network(options.seed, options.epochs, say=say)

    def fitted(some):
        return made().fit(some, corpus.candidate_names, len(corpus.op_names))

    try:
        training, held = folds_of(groups, PARTS)[0]
        scale = scale_of(fitted(training), held)
        say(f"scores are multiplied with {scale:.2f}, as {len(held)} groups show")
    except (UsageError, IndexError):
        scale = 1.0
        say("note: the corpus is of one network, so that nothing shows what scores are worth")
    network = fitted(groups)
    network.scale = scale
    return network
