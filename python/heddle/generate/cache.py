"""cache: keys and values of the tokens that a model has seen, and the run that adds to them.

The only file that knows how keys and values enter and leave a model: here as the inputs
past_key_values.N.key/value and the outputs present.N.key/value of onnxruntime-genai's builder. A
row of a batch has its keys at the beginning, and padding after them; the mask says how many they
are.
SPDX-License-Identifier: Apache-2.0
"""

import re

import numpy as np

from ..library import RefusedError
from .network import INPUTS, LOGITS, MASK, POSITIONS

PAST = re.compile(r"past_key_values\.(\d+)\.(key|value)")


class Layout:
    """Inputs of a session that hold keys and values, and the outputs that give the next ones."""

    def __init__(self, session, where):
        self.session, self.where = session, where
        inputs = {info.name: info for info in session.get_inputs()}
        outputs = [info.name for info in session.get_outputs()]
        self.pasts = [info for name, info in inputs.items() if PAST.fullmatch(name)]
        self.presents = [f"present.{info.name.split('.', 1)[1]}" for info in self.pasts]
        missing = [name for name in (INPUTS, MASK) if name not in inputs]
        missing += [name for name in (LOGITS, *self.presents) if name not in outputs]
        if not self.pasts:
            missing.append("past_key_values.0.key")
        more = [name for name in inputs
                if name not in (INPUTS, MASK, POSITIONS) and not PAST.fullmatch(name)]
        if missing or more:
            raise RefusedError(
                f"{where}: is no decoder as onnxruntime-genai's builder writes it:"
                + (f" it lacks {', '.join(missing)}" if missing else "")
                + (" and" if missing and more else "")
                + (f" it wants {', '.join(more)}" if more else ""))
        for info in self.pasts:
            if len(info.shape) != 4 or not all(isinstance(info.shape[i], int) for i in (1, 3)):
                raise RefusedError(f"{where}: '{info.name}' is {info.shape}, but must be [batch, "
                                   "heads, length, size] with a number of heads and a size")
        self.has_positions = POSITIONS in inputs


class Cache:
    """Keys and values of the rows of a batch; `lengths` are the tokens that each has."""

    def __init__(self, layout, rows=1):
        self.layout = layout
        self.lengths = np.zeros(rows, np.int64)
        self._kept = [np.zeros((rows, info.shape[1], 0, info.shape[3]), info.numpy_dtype)
                      for info in layout.pasts]

    def run(self, tokens):
        """Logits [rows, n, words] of n more tokens a row, [rows, n]."""
        tokens = np.ascontiguousarray(tokens, np.int64)
        count = tokens.shape[1]
        after = self.lengths + count
        feeds = {INPUTS: tokens,
                 MASK: (np.arange(after.max()) < after[:, None]).astype(np.int64)}
        if self.layout.has_positions:
            feeds[POSITIONS] = self.lengths[:, None] + np.arange(count)
        feeds |= {info.name: kept for info, kept in zip(self.layout.pasts, self._kept)}
        logits, *self._kept = self.layout.session.run([LOGITS, *self.layout.presents], feeds,
                                                      tensors=True)
        self.lengths = after
        return np.asarray(logits)

    def rewind(self, length):
        """Forgets what the rows have beyond `length` tokens."""
        if length < self.lengths.max():
            self.lengths = np.minimum(self.lengths, length)
            self._kept = [np.asarray(kept)[:, :, :length] for kept in self._kept]

    def select(self, rows):
        """Leaves these rows, numbers of rows of now."""
        self.lengths = self.lengths[rows]
        longest = int(self.lengths.max(initial=0))
        self._kept = [np.asarray(kept)[rows, :, :longest] for kept in self._kept]

    def join(self, others):
        """Adds the rows of other caches."""
        caches = [self, *others]
        self.lengths = np.concatenate([each.lengths for each in caches])
        longest = int(self.lengths.max(initial=0))
        for i, info in enumerate(self.layout.pasts):
            made = np.zeros((len(self.lengths), info.shape[1], longest, info.shape[3]),
                            info.numpy_dtype)
            at = 0
            for part in [np.asarray(each._kept[i]) for each in caches]:
                keys = min(part.shape[2], longest)
                made[at:at + len(part), :, :keys] = part[:, :, :keys]
                at += len(part)
            self._kept[i] = made
