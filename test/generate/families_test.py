"""Greedy tokens of each family are those of a reference in NumPy, and of transformers."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from heddle.generate import Generator

import reference
import tiny

pytestmark = pytest.mark.usefixtures("compiler")
pytest.importorskip("safetensors")
pytest.importorskip("tokenizers")
PROMPT = np.random.default_rng(5).integers(3, tiny.WORDS, 40).tolist()
COUNT = 12
ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers" / "bin" / "python"


@pytest.mark.parametrize("name", tiny.FAMILIES)
def test_tokens_are_those_of_the_reference(tmp_path, name):
    folder = tiny.write(tmp_path / name, name)
    generator = Generator(folder, threads=1, prefill=7)
    made = generator.generate(PROMPT, max_tokens=COUNT, ignore_eos=True)
    wanted = reference.greedy(tiny.config(name), tiny.weights(name), PROMPT, COUNT)
    assert made.tokens == wanted and len(set(wanted)) > 2
    generator.rewind(len(PROMPT))
    right = reference.logits(tiny.config(name), tiny.weights(name), PROMPT)
    assert np.abs(generator.logits - right).max() < 1e-5 * np.abs(right).max()


PROGRAM = """
import sys, json, torch
library = torch.library.Library("torchvision", "DEF")  # its package may not load beside torch's
for name in ("nms", "qnms"):
    library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
from transformers import AutoModelForCausalLM
prompt, count, *folders = json.loads(sys.argv[1])
for folder in folders:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32,
                                                 attn_implementation="eager")
    made = model.generate(torch.tensor([prompt]), max_new_tokens=count, do_sample=False,
                          eos_token_id=None)
    print(json.dumps(made[0, len(prompt):].tolist()), flush=True)
"""


@pytest.mark.skipif(not PEERS.exists() or not list(
    PEERS.parents[1].glob("lib/python*/site-packages/transformers")),
    reason="build/peers has no transformers; `./dev bench peers` installs it")
def test_the_reference_is_that_of_transformers(tmp_path):
    folders = {name: tiny.write(tmp_path / name, name) for name in tiny.FAMILIES}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    done = subprocess.run(
        [PEERS, "-c", PROGRAM, json.dumps([PROMPT, COUNT, *map(str, folders.values())])],
        capture_output=True, text=True, check=False, env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    for name, line in zip(folders, done.stdout.splitlines(), strict=True):
        assert json.loads(line) == reference.greedy(tiny.config(name), tiny.weights(name), PROMPT,
                                                    COUNT), name
