"""measure: errors of a model's outputs beside those of another one.

SPDX-License-Identifier: Apache-2.0
"""

from dataclasses import dataclass, field

import numpy as np

from .branches import decibels


@dataclass
class OutputError:
    """Greatest error beside the largest finite number of the f32 output, and sums of squares."""

    name: str
    worst: float = 0.0
    largest: float = 0.0
    noise: float = 0.0
    signal: float = 0.0
    each: list = field(default_factory=list)  # greatest errors, in order of the inputs
    largests: list = field(default_factory=list)  # numbers of the f32 output, of each input

    def add(self, wanted, found):
        if wanted.dtype.kind not in "fiu" or wanted.shape != found.shape:
            differs = wanted.shape != found.shape or (wanted != found).any()
            wanted, found = np.ones(1), np.full(1, 0.0 if differs else 1.0)
        if not wanted.size:
            return
        wanted, found = np.asarray(wanted, np.float64), np.asarray(found, np.float64)
        is_same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        with np.errstate(invalid="ignore"):  # of infinities
            error = np.where(is_same, 0, np.nan_to_num(np.abs(found - wanted), nan=np.inf))
        wanted = np.where(np.isfinite(wanted), wanted, 0)
        self.each.append(float(error.max()))
        self.worst = max(self.worst, self.each[-1])
        self.largests.append(float(np.abs(wanted).max()))
        self.largest = max(self.largest, self.largests[-1])
        self.noise += float((error ** 2).sum())
        self.signal += float((wanted ** 2).sum())

    @property
    def relative(self):
        return self.worst / self.largest if self.largest else float(self.worst > 0)

    @property
    def expected(self):
        """The greatest relative error to expect of other inputs: that of these, or three standard
        deviations more than their mean, relative to the largest number that they have on average:
        a few others may lack the largest of all."""
        if not self.largest or not np.isfinite(self.worst):
            return self.relative
        most = float(np.mean(self.each) + 3 * np.std(self.each)) / float(np.mean(self.largests))
        return max(self.relative, most)

    @property
    def decibels(self):
        return decibels(self.signal, self.noise)


def output_errors(names, pairs):
    """OutputError of each output, of pairs of a run's results in f32 and of others."""
    errors = [OutputError(name) for name in names]
    for wanted, found in pairs:
        for error, *arrays in zip(errors, wanted, found):
            error.add(*map(np.asarray, arrays))
    return errors


def compare(reference, module, feeds):
    """OutputError of each output of a module, beside those of a reference."""
    return output_errors([output.name for output in reference.outputs],
                         ((reference.run(None, dict(feed)), module.run(None, dict(feed)))
                          for feed in feeds))
