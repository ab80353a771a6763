"""chunks: the nodes of a graph in parts of fixed size, as the policy's models take them.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .features import DEVICE_FEATURES, DYNAMIC, FEATURES, STATIC
from .policy import CHUNK, HALO, MASKED, MOST_DEVICES, SEGMENT, SIZES

ROWS = CHUNK + HALO


class Chunk:
    """Nodes begin .. end of a graph, and the neighbours outside that most of them have."""

    def __init__(self, view, number):
        self.view, self.number = view, number
        count = len(view.graph)
        self.begin, self.end = number * CHUNK, min((number + 1) * CHUNK, count)
        self.size = self.end - self.begin
        own = view.neighbours[self.begin:self.end]
        outside, times = np.unique(own[(own < self.begin) | (own >= self.end)],
                                   return_counts=True)
        halo = outside[np.argsort(-times, kind="stable")][:HALO]
        self.nodes = np.concatenate([np.arange(self.begin, self.end), halo])
        self.rows = np.concatenate([np.arange(self.size), CHUNK + np.arange(len(halo))])
        row_of = np.full(count, -1)
        row_of[self.nodes] = self.rows
        near = row_of[view.neighbours[self.nodes]]
        near = np.where(near >= 0, near, self.rows[:, None])
        self.static = {"kind": self._rows(view.graph.kind[self.nodes].astype(np.int64)),
                       "neighbours": np.repeat(np.arange(ROWS)[:, None], near.shape[1], 1),
                       "mask": self._mask()}
        self.static["neighbours"][self.rows] = near

    def _rows(self, values, rows=ROWS):
        result = np.zeros((rows, *values.shape[1:]), values.dtype)
        result[self.rows if rows == ROWS else slice(self.size)] = values
        return result

    def _mask(self):
        """Masks the keys of a segment that there are: nodes, and a segment before it."""
        is_there = np.zeros(SEGMENT + CHUNK, bool)
        is_there[:SEGMENT] = self.number > 0
        is_there[SEGMENT:SEGMENT + self.size] = True
        windows = np.stack([is_there[first:first + 2 * SEGMENT]
                            for first in range(0, CHUNK, SEGMENT)])
        return np.where(windows, 0, MASKED).astype(np.float32)[:, None, None, :]

    def own(self, values):
        """Values of the chunk's nodes, filled up with zeros."""
        return self._rows(values[self.begin:self.end], CHUNK)

    def feeds(self, tasks, dynamic, of_devices, state, memories):
        """Inputs of the model, but for those of the loss."""
        view, features = self.view, np.zeros((ROWS, FEATURES), np.float32)
        features[self.rows, :STATIC] = view.static[self.nodes]
        features[self.rows, STATIC:STATIC + DYNAMIC] = dynamic[self.nodes]
        found = {**self.static, "features": features, **memories}
        devices = view.machine.devices
        if "placement" in tasks:
            found["of_devices"] = np.zeros((CHUNK, MOST_DEVICES, DEVICE_FEATURES), np.float32)
            found["of_devices"][:self.size, :devices] = of_devices[self.begin:self.end]
        share = np.log(len(view.graph)) / 7
        for task, decisions in zip(("placement", "schedule", "fusion"), state):
            if task not in tasks:
                continue
            size = SIZES[task]
            given = np.eye(size, dtype=np.float32)[decisions[self.begin:self.end]] * share
            found[f"given_{task}"] = self._rows(given.astype(np.float32), CHUNK)
            allowed = np.zeros((CHUNK, size), np.float32)
            if task == "placement":
                allowed[:, devices:] = MASKED
            found[f"allowed_{task}"] = allowed
        return found


def chunks_of(view):
    return [Chunk(view, number) for number in range(-(-len(view.graph) // CHUNK))]
