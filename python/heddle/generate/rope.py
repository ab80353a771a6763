"""rope: tables of the cosines and sines by which queries and keys turn.

Types of scaling are those of transformers: default, linear, llama3 and yarn.
SPDX-License-Identifier: Apache-2.0
"""

import math

import numpy as np

from ..library import RefusedError


def _linear(frequencies, rope):
    return frequencies / rope.scaling["factor"], 1.0


def _llama3(frequencies, rope):
    """Long waves are stretched by the factor, short ones stay, those between are mixed."""
    given = rope.scaling
    low, high = given["low_freq_factor"], given["high_freq_factor"]
    turns = given["original_max_position_embeddings"] * frequencies / (2 * math.pi)
    share = np.clip((turns - low) / (high - low), 0, 1)
    return frequencies * (share + (1 - share) / given["factor"]), 1.0


def _yarn(frequencies, rope):
    """Frequencies between two numbers of turns are mixed (YaRN, arXiv 2309.00071, section 3.2),
    and scores grow with the logarithm of the factor (section 3.4)."""
    given = rope.scaling
    factor, original = given["factor"], given.get("original_max_position_embeddings")
    original = original or given["original"] or given["context"]

    def at(turns):
        return rope.size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(rope.theta))

    low, high = at(given.get("beta_fast") or 32), at(given.get("beta_slow") or 1)
    if given.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope.size - 1)
    ramp = np.clip((np.arange(rope.size // 2) - low) / max(high - low, 1e-3), 0, 1)

    def growth(scale):
        return 0.1 * scale * math.log(factor) + 1 if factor > 1 else 1.0

    grown = given.get("attention_factor")
    if grown is None and given.get("mscale") and given.get("mscale_all_dim"):
        grown = growth(given["mscale"]) / growth(given["mscale_all_dim"])
    return (frequencies / factor * ramp + frequencies * (1 - ramp),
            growth(1.0) if grown is None else grown)


def _factors(frequencies, rope):
    """Each frequency is divided by a number of its own, as GGUF has it."""
    return frequencies / np.asarray(rope.scaling["factors"], np.float64), 1.0


def _frequencies(rope, where):
    frequencies = rope.theta ** (-np.arange(0, rope.size, 2, dtype=np.float64) / rope.size)
    kind = rope.scaling.get("rope_type") or rope.scaling.get("type") or "default"
    kinds = {"default": lambda frequencies, _: (frequencies, 1.0), "linear": _linear,
             "llama3": _llama3, "yarn": _yarn, "factors": _factors}
    if kind not in kinds:
        raise RefusedError(f"{where}: the rope scaling is '{kind}'; supported: "
                           "default, linear, llama3, yarn")
    try:
        with np.errstate(all="ignore"):
            frequencies, growth = kinds[kind](frequencies, rope)
        if not (np.isfinite(frequencies).all() and math.isfinite(growth)):
            raise ValueError("division by zero")
        return frequencies, growth
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise RefusedError(f"{where}: the rope scaling '{kind}' lacks a number or has a bad one: "
                           f"{error}") from error


def tables(rope, length, where):
    """(cosines, sines), f32 [length, size / 2]."""
    frequencies, growth = _frequencies(rope, where)
    angles = np.arange(length, dtype=np.float64)[:, None] * frequencies
    return tuple((turn(angles) * growth).astype(np.float32) for turn in (np.cos, np.sin))
