"""Decoders whose weights have 4 or 8 bits: activations are rounded to 8, unless math is strict."""

import numpy as np
import pytest
from bench.llm import network
from heddle.generate import Generator

pytestmark = pytest.mark.usefixtures("compiler")
PROMPT = np.random.default_rng(8).integers(3, 300, 37).tolist()
SMALL = {"hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 352, "vocab_size": 304}


@pytest.mark.parametrize("kind", ["int4", "int8"])
def test_logits_are_near_those_of_floats(tmp_path, monkeypatch, kind):
    monkeypatch.setitem(network.SIZES, "small", SMALL)
    network.write(tmp_path, "small", kind, 64)
    rounded, floats = (Generator(tmp_path, threads=1, math=math) for math in ("fast", "strict"))
    for tokens in (PROMPT, [7], [8]):  # a prompt, and tokens after it
        rounded.append(tokens)
        floats.append(tokens)
        far = np.abs(rounded.logits - floats.logits).max() / np.abs(floats.logits).max()
        assert 1e-5 < far < 3e-2
    assert np.argmax(rounded.logits) == np.argmax(floats.logits)
