"""analytic: a roofline: the slowest of arithmetic, loads and memory, and the tasks' starts.

A baseline that has learned nothing but the machine's five rates.
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from heddle.packages import need

USED = ("vector_operations", "vector_loads", "moved_bytes", "tasks", "balance", "register_spill")


class Analytic:
    """seconds = max(operations / a, loads * (1 + 2 spilled) / b, bytes / c) / balance
                 + tasks * d + e

    The rates are those that fit the training groups best, in the logarithm."""

    name = "analytic"

    def fit(self, groups, names):
        minimize = need("scipy.optimize", "the analytic model", "cost").minimize
        self.columns = {name: names.index(name) for name in USED}
        self.rates = np.log(np.array([2e9, 2e9, 5e9, 1e-7, 1e-6]))
        if not groups:
            return self
        values = np.concatenate([group.candidates for group in groups])
        seconds = np.log(np.concatenate([group.seconds for group in groups]))

        def error(rates):
            return float(np.mean(np.abs(self._predict(values, rates) - seconds)))

        found = minimize(error, self.rates, method="Nelder-Mead",
                         options={"maxiter": 1000, "xatol": 1e-3, "fatol": 1e-5})
        self.rates = found.x
        return self

    def _predict(self, values, rates):
        column = {name: values[:, i].astype(float) for name, i in self.columns.items()}
        counts = {name: 2 ** column[name] - 1 for name in
                  ("vector_operations", "vector_loads", "moved_bytes", "tasks")}
        a, b, c, task, once = np.exp(np.clip(rates, -40, 40))
        loads = counts["vector_loads"] * (1 + 2 * column["register_spill"])
        work = np.maximum(np.maximum(counts["vector_operations"] / a, loads / b),
                          counts["moved_bytes"] / c)
        return np.log(work / np.maximum(column["balance"], 0.05) + counts["tasks"] * task + once)

    def predict(self, group):
        """The logarithm of the seconds of each candidate."""
        return self._predict(group.candidates, self.rates)
