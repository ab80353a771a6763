"""trees: gradient-boosted trees (LightGBM) over the features of candidates.

One forest orders the candidates of a group: it learns by how much each is above the group's mean,
in the logarithm. Another one learns that mean. SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from heddle.packages import need


class Trees:
    name = "trees"

    def __init__(self, seed=0, rounds=500):
        self.seed, self.rounds = seed, rounds

    def _train(self, values, labels, weights=None):
        lightgbm = need("lightgbm", "a model of trees", "cost")
        data = lightgbm.Dataset(values, labels, weight=weights)
        options = {"objective": "regression", "num_leaves": 31, "learning_rate": 0.05,
                   "bagging_fraction": 0.7, "bagging_freq": 1, "feature_fraction": 0.6,
                   "min_data_in_leaf": 8, "lambda_l2": 1.0, "seed": self.seed, "num_threads": 1,
                   "deterministic": True, "force_row_wise": True, "verbosity": -1}
        return lightgbm.train(options, data, self.rounds)

    def fit(self, groups, names):
        means = np.array([np.mean(np.log(group.seconds)) for group in groups])
        labels = [np.log(group.seconds) - mean for group, mean in zip(groups, means)]
        # A candidate far from the best matters less: nobody asks by how much it is bad.
        weights = [np.exp(-(label - label.min())) for label in labels]
        self.order = self._train(np.concatenate([group.candidates for group in groups]),
                                 np.concatenate(labels), np.concatenate(weights))
        self.level = self._train(np.stack([group.candidates.mean(0) for group in groups]), means)
        return self

    def predict(self, group):
        """The logarithm of the seconds of each candidate."""
        level = self.level.predict(group.candidates.mean(0)[None], num_threads=1)[0]
        return self.order.predict(group.candidates, num_threads=1) + level
