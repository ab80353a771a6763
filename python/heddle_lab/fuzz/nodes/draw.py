"""draw: case i of seed s.

SPDX-License-Identifier: Apache-2.0
"""

import random
import warnings

from . import mutate, seeds


def draw_case(seed, index, only=None):
    """A case; every op is drawn as often as any other."""
    rng = random.Random(f"nodes {seed} {index}")
    ops = seeds.ops()
    names = [key for key in ops if only is None or key[1] in only]
    case = rng.choice(ops[rng.choice(names)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mutate.mutate(rng, case)


def generate(seed, index, only=None):
    """(model, cases) of it; a case that cannot be written as a model gives the next one."""
    while True:
        try:
            model, feeds = draw_case(seed, index, only).model()
            model.SerializeToString()
            return model, [feeds]
        except (ValueError, TypeError, OverflowError):
            index += 1 << 32
