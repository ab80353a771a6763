"""Calibrators against their definitions, on all values at once."""

import numpy as np
import pytest
from heddle.quantize.calibrate import (BINS, CALIBRATORS, CLIPPED, Grid, Histogram, divergence,
                                       squared_error)
from heddle.quantize.settings import Settings

random = np.random.default_rng(0)
PARTS = [random.standard_normal(2000) * 0.01, random.standard_normal(3000),
         random.exponential(0.7, 4000), np.array([9.5, -4.0]), np.zeros(50)]
ALL = np.concatenate(PARTS).astype(np.float32)
GRIDS = [Grid(False), Grid(True)]


@pytest.fixture
def histogram():
    """A histogram of the parts one by one, the smallest values first."""
    found = Histogram()
    for part in PARTS:
        found.add(part.astype(np.float32))
    return found


def quantised(values, grid, low, high):
    """Values as they are taken for, by the definition of QuantizeLinear."""
    scale, zero = grid.parameters(low, high)
    kind = np.iinfo(grid.dtype)
    stored = np.clip(np.rint(values / scale) + int(zero), kind.min, kind.max)
    return (stored - int(zero)) * scale


def test_it_grows_to_the_histogram_of_all_values(histogram):
    assert histogram.reach == 16 and histogram.counts.sum() == ALL.size
    assert (histogram.low, histogram.high) == (ALL.min(), ALL.max())
    wanted, _ = np.histogram(ALL, histogram.edges)
    np.testing.assert_array_equal(histogram.counts, wanted)


def test_zeros_alone_have_a_range():
    found = Histogram()
    found.add(np.zeros(5, np.float32))
    for name, calibrator in CALIBRATORS.items():
        for grid in GRIDS:
            low, high = calibrator(found, grid, Settings())
            scale, zero = grid.parameters(low, high)
            assert (low, high) == (0, 0) and scale == 1 and zero == 0, name
    found.add(np.float32([1, 3]))
    assert found.counts.sum() == 7 and found.counts[BINS // 2] == 5


def test_minmax(histogram):
    assert CALIBRATORS["minmax"](histogram, GRIDS[0], None) == (ALL.min(), ALL.max())


@pytest.mark.parametrize("percent", [90, 99, 99.9, 100])
def test_percentile_is_a_quantile_at_both_ends(histogram, percent):
    low, high = CALIBRATORS["percentile"](histogram, GRIDS[0], Settings(percentile=percent))
    tail = (1 - percent / 100) / 2 * ALL.size
    width = 2 * histogram.reach / BINS  # of a bin, within which values are taken to be spread
    for values, end in ((ALL, low), (-ALL, -high)):
        assert (values < end - width).sum() <= tail + 1e-6 <= (values <= end + width).sum()


@pytest.mark.parametrize("grid", GRIDS, ids=["u8", "s8"])
def test_squared_error_is_that_of_all_values(histogram, grid):
    for low, high in ((-4, 9.5), (-1, 2), (-0.1, 5)):
        wanted = ((quantised(ALL.astype(np.float64), grid, low, high) - ALL) ** 2).sum()
        assert squared_error(histogram, grid, low, high) == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("grid", GRIDS, ids=["u8", "s8"])
def test_mse_is_the_best_of_a_search(histogram, grid):
    low, high = CALIBRATORS["mse"](histogram, grid, None)
    found = ((quantised(ALL, grid, low, high) - ALL) ** 2).sum()
    every = [((quantised(ALL, grid, ALL.min() * a, ALL.max() * b) - ALL) ** 2).sum()
             for a in CLIPPED[::-6] for b in CLIPPED[::-6]]
    assert found <= 1.05 * min(every)


@pytest.mark.parametrize("grid", GRIDS, ids=["u8", "s8"])
def test_entropy_is_the_least_divergence(histogram, grid):
    def brute(low, high):
        """The definition, bin by bin."""
        centres, counts = histogram.filled()
        inside = [(c, n) for c, n in zip(centres, counts) if low <= c <= high]
        wanted = np.array([n for _, n in inside], float)
        stored = [round(float(quantised(np.float64(c), grid, low, high)
                              / grid.parameters(low, high)[0])) for c, _ in inside]
        levels = {}
        for level, (_, n) in zip(stored, inside):
            levels.setdefault(level, []).append(n)
        taken = np.array([np.mean(levels[level]) for level in stored])
        wanted[0] += sum(n for c, n in zip(centres, counts) if c < low)
        wanted[-1] += sum(n for c, n in zip(centres, counts) if c > high)
        wanted, taken = wanted / wanted.sum(), taken / taken.sum()
        return sum(p * np.log(p / q) for p, q in zip(wanted, taken))

    for low, high in ((-4, 9.5), (-1, 2)):
        assert divergence(histogram, grid, low, high) == pytest.approx(brute(low, high), abs=1e-9)
    low, high = CALIBRATORS["entropy"](histogram, grid, None)
    least = min(divergence(histogram, grid, histogram.low * share, histogram.high * share)
                for share in CLIPPED)
    assert divergence(histogram, grid, low, high) == least


@pytest.mark.parametrize("grid", GRIDS, ids=["u8", "s8"])
def test_zero_stays_zero(grid):
    for low, high in ((0, 3), (-2, 0), (-1.7, 2.9), (1, 2), (-3, -2)):
        scale, zero = grid.parameters(low, high)
        assert grid.rounded(np.float32([0]), low, high) == 0
        assert np.iinfo(grid.dtype).min <= zero <= np.iinfo(grid.dtype).max
        ends = grid.rounded(np.float32([min(low, 0), max(high, 0)]), low, high)
        assert np.abs(ends - [min(low, 0), max(high, 0)]).max() <= scale / 2 * 1.001
