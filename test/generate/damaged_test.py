"""Damaged files and configs of any values: a model, or a refusal."""

import itertools

import numpy as np
import pytest
from heddle.generate import families, gguf, rope, safetensors

import gguf_test
import heddle
import tiny

pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")
VALUES = [0, -1, 1.5, 1e300, float("nan"), 1 << 40, True, "x", [], [1], {}, {"a": 1},
          ["sliding_attention"], {"rope_type": "yarn", "factor": 0}, {"rope_type": []},
          {"sliding_attention": {"rope_theta": "x"}}]
MORE = ["rope_parameters", "layer_types", "sliding_window", "rope_scaling", "head_dim",
        "partial_rotary_factor", "query_pre_attn_scalar", "max_window_layers",
        "hidden_activation", "quantization_config", "original_max_position_embeddings",
        "sliding_window_pattern", "use_sliding_window", "intermediate_size"]


@pytest.mark.parametrize("name", tiny.FAMILIES)
def test_configs_of_any_values(name):
    refused = 0
    config = tiny.config(name)
    for key, value in itertools.product({**config, **dict.fromkeys(MORE)}, VALUES):
        try:
            made = families.architecture({**config, key: value}, "here")
            for turn in made.ropes:
                if turn is not None:
                    rope.tables(turn, 8, "here")
        except heddle.RefusedError as error:
            assert "here" in str(error)
            refused += 1
    assert refused > 100


def damaged(data, random, most):
    """Bytes with some changed or gone, before the place `most`."""
    made = bytearray(data)
    for _ in range(random.integers(1, 5)):
        at = int(random.integers(most))
        kind = random.integers(4)
        if kind == 0:
            made[at] = random.integers(256)
        elif kind == 1:
            made[at:at + 8] = (b"\xff" * 8, bytes(8), (1 << 62).to_bytes(8, "little"),
                               (1).to_bytes(8, "little"))[random.integers(4)]
        elif kind == 2:
            made[at:at + 4] = (b"\xff" * 4, bytes(4), b"\0\0\xc0\x7f")[random.integers(3)]
        else:
            del made[at:at + int(random.integers(1, 9))]
    return bytes(made)


def read_gguf(path):
    file = gguf.File(path)
    for turn in file.architecture().ropes[:2]:
        rope.tables(turn, 8, "here")
    for name in file.tensors:
        file.read(name)
    assert file.eos is not None and file.adds_bos is not None
    file.tokenizer()


def read_safetensors(path):
    file = safetensors.File(path)
    for name in file.entries:
        file.read(name)


@pytest.mark.filterwarnings("ignore:invalid value")  # scales that are no numbers
def test_files_with_damaged_bytes(tmp_path):
    random = np.random.default_rng(6)
    tensors, _ = gguf_test.tensors("qwen2", gguf_test.Q4_0)
    whole = gguf_test.whole(gguf_test.values("qwen2"), tensors)
    store = (tiny.write(tmp_path / "m", "llama") / "model.safetensors").read_bytes()
    head = 8 + int.from_bytes(store[:8], "little")
    path = tmp_path / "damaged"
    cases = (read_gguf, whole, len(whole) - 9000), (read_safetensors, store, head)
    for read, data, most in cases:
        refused = 0
        for _ in range(150):
            path.write_bytes(damaged(data, random, most))
            try:
                read(path)
            except heddle.RefusedError:
                refused += 1
            except heddle.UsageError as error:  # without tokens
                assert "has no tokenizer" in str(error)
        assert refused > 50
