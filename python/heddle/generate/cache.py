"""cache: keys and values of the tokens that a model has seen, and the run that adds to them.

The only file that knows how keys and values enter a model: as buffers that a run extends
(`kv_cache` of heddle.compile). A row of a batch has its keys at the beginning; the mask, or
`past_length`, says how many they are.
SPDX-License-Identifier: Apache-2.0
"""

import re

import numpy as np

from ..library import RefusedError
from . import pairs
from .network import INPUTS, LAST, LOGITS, MASK, POSITIONS

LENGTH = "past_length"
SCALES = ".scales"  # of a past's numbers, where these are int8: [batch, heads, length]
PAST = re.compile(r"past_key_values\.(\d+)\.(key|value)")


def check_names(inputs, outputs, pasts, where, has_source=False):
    """Refuses a model that is none of a decoder, or of one whose text has a source."""
    lacks = [name for name in (INPUTS, MASK) if name not in inputs]
    lacks += [LOGITS] if LOGITS not in outputs else []
    lacks += [] if pasts else ["past_key_values.0.key"]
    wants = [name for name in inputs
             if name not in {INPUTS, MASK, POSITIONS, LENGTH, LAST, *pasts}
             and not (has_source and (name == pairs.SOURCE_MASK or pairs.CROSS.fullmatch(name)))]
    if lacks or wants:
        raise RefusedError(
            f"{where}: is no decoder as onnxruntime-genai's builder writes it:"
            + (f" it lacks {', '.join(lacks)}" if lacks else "")
            + (" and" if lacks and wants else "")
            + (f" it wants {', '.join(wants)}" if wants else ""))


class Layout:
    """Inputs of a session that hold keys and values."""

    def __init__(self, session, where, has_source=False):
        self.session, self.where = session, where
        inputs = {info.name: info for info in session.get_inputs()}
        self.pasts = [info for info in inputs.values() if info.shares >= 0]
        check_names(inputs, {info.name for info in session.get_outputs()},
                    {info.name for info in self.pasts}, where, has_source)
        for info in self.pasts:
            if info.name.endswith(SCALES):
                continue
            if len(info.shape) != 4 or not all(isinstance(size, int) for size in info.shape[1:]):
                raise RefusedError(f"{where}: '{info.name}' is {info.shape}, but must be [batch, "
                                   "heads, length, size] with a number of heads and a size")
        self.has_positions, self.has_length = POSITIONS in inputs, LENGTH in inputs
        self.takes_last = LAST in inputs

    def buffers(self, rows):
        """Room for the keys and values of so many rows. The system gives pages as they are used."""
        return [np.zeros((rows, *info.shape[1:]), info.numpy_dtype) for info in self.pasts]


class Cache:
    """Keys and values of the rows of a batch; `lengths` are the tokens that each has. There may be
    room for more rows, so that rows come and go without new buffers."""

    def __init__(self, layout, rows=1):
        self.layout = layout
        self.lengths = np.zeros(rows, np.int64)
        self.sources = []  # of each row: the inputs that an encoder made, if there is one
        self._beside = None  # these beside each other, once they are
        self._room, self._used = layout.buffers(rows), np.zeros(rows, np.int64)

    def run(self, tokens, last=1):
        """Logits [rows, last, words] of the last ones of n more tokens a row, [rows, n]."""
        tokens = np.ascontiguousarray(tokens, np.int64)
        rows, count = tokens.shape
        after, layout = self.lengths + count, self.layout
        feeds = {INPUTS: tokens,
                 MASK: (np.arange(after.max()) < after[:, None]).astype(np.int64)}
        if layout.has_positions:
            feeds[POSITIONS] = self.lengths[:, None] + np.arange(count)
        if layout.has_length:
            feeds[LENGTH] = self.lengths[:1]
        if layout.takes_last:
            feeds[LAST] = np.arange(count - last, count)
        feeds |= self._read()
        feeds |= {info.name: room[:rows] for info, room in zip(layout.pasts, self._room)}
        self._used[:rows] = np.maximum(self._used[:rows], after)
        logits, = layout.session.run([LOGITS], feeds)
        self.lengths = after
        return logits[:, -last:]

    def _read(self):
        """Inputs of all rows that an encoder made, 0 after the end of a shorter one."""
        if len(self.sources) < 2:
            return self.sources[0] if self.sources else {}
        if self._beside is None:
            made = self._beside = {}
            for name, first in self.sources[0].items():
                axis, arrays = min(2, first.ndim - 1), [each[name] for each in self.sources]
                shape = [len(arrays), *first.shape[1:]]
                shape[axis] = max(each.shape[axis] for each in arrays)
                made[name] = np.zeros(shape, first.dtype)
                for row, each in zip(made[name], arrays):
                    row[tuple(map(slice, each.shape[1:]))] = each[0]
        return self._beside

    def fill(self, length, draw):
        """Has `length` tokens in each row, of keys and values that `draw(shape)` gives."""
        for room in self._room:
            room[:, :, :length] = draw(room[:, :, :length].shape)
        self.lengths[:] = self._used[:] = length

    def rewind(self, length):
        """Forgets what the rows have beyond `length` tokens."""
        self.lengths = np.minimum(self.lengths, length)

    def select(self, rows):
        """Leaves these rows, numbers of rows of now in rising order."""
        for place, row in enumerate(rows):
            if place < row:
                self._take(place, self, row)
        self.lengths = self.lengths[:len(rows)].copy()
        self.sources = [self.sources[row] for row in rows] if self.sources else []
        self._beside = None

    def row(self, number):
        """A cache of one row, a copy."""
        made = Cache(self.layout)
        made._take(0, self, number)
        made.sources = self.sources[number:number + 1]
        return made

    def join(self, others):
        """Adds the rows of other caches."""
        before = len(self.lengths)
        rows = [(each, row) for each in others for row in range(len(each.lengths))]
        count = before + len(rows)
        if count > len(self._used):
            grown = Cache(self.layout, max(count, 2 * before))
            for row in range(before):
                grown._take(row, self, row)
            self._room, self._used = grown._room, grown._used
        self.lengths = np.concatenate([self.lengths, np.zeros(len(rows), np.int64)])
        for place, (each, row) in enumerate(rows, before):
            self._take(place, each, row)
            self.sources += each.sources[row:row + 1]
        self._beside = None

    def _take(self, place, other, row):
        """Copies a row of a cache. What was there before is 0: a longer row beside it makes a run
        read it, and a weight of 0 times NaN were NaN."""
        length = other.lengths[row]
        for mine, theirs in zip(self._room, other._room):
            mine[place, :, :length] = theirs[row, :, :length]
            mine[place, :, length:self._used[place]] = 0
        self.lengths[place] = self._used[place] = length
