"""schedules: learning rates by the number of updates that were done.

Each returns a function of the step, counted from 0. With `warmup` the rate first grows linearly to
its full height, over that many steps. SPDX-License-Identifier: Apache-2.0
"""

import math


def _warmed(warmup, rate_after):
    return lambda step: (rate_after(warmup) * (step + 1) / warmup if step < warmup
                         else rate_after(step))


def constant(rate, warmup=0):
    return _warmed(warmup, lambda step: rate)


def linear(rate, steps, warmup=0, end=0.0):
    """Falls to `end` at `steps`, and stays there."""
    def after(step):
        done = min(1.0, (step - warmup) / max(1, steps - warmup))
        return rate + (end - rate) * done
    return _warmed(warmup, after)


def cosine(rate, steps, warmup=0, end=0.0):
    """Half a cosine from `rate` to `end` at `steps` (Loshchilov and Hutter, SGDR, 2017)."""
    def after(step):
        done = min(1.0, (step - warmup) / max(1, steps - warmup))
        return end + (rate - end) * 0.5 * (1 + math.cos(math.pi * done))
    return _warmed(warmup, after)


NAMES = {"constant": constant, "linear": linear, "cosine": cosine}
