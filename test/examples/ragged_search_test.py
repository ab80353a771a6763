"""examples/ragged-search in a small form: it runs, both ways agree, and it finds what was asked."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "ragged-search"
SMALL = ("--layers", "1", "--batch", "8", "--batches", "2", "--rounds", "1", "--threads", "1")

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.fixture
def texts(tmp_path):
    """A Markdown file of texts of one to forty words, and code, which is none."""
    path = tmp_path / "texts.md"
    words = ["loom", "weaves", "cloth", "thread", "harbour", "sails", "north", "orchard"]
    rows = [" ".join(np.random.default_rng(i).choice(words, 1 + 3 * i)) for i in range(14)]
    path.write_text("\n\n".join(["# The heddle lifts the warp", *rows, "```\nno text\n```"]),
                    encoding="utf-8")
    return path


def search(tmp_path, *arguments):
    return subprocess.run(
        [sys.executable, EXAMPLE / "ragged_search.py", *SMALL, "--picture", tmp_path / "times.svg",
         *map(str, arguments)], capture_output=True, text=True, check=False, timeout=900)


def test_it_runs_and_finds(tmp_path, texts):
    done = search(tmp_path, "--texts", texts, "--ask", "what lifts the warp")
    assert done.returncode == 0, done.stderr
    assert "all 15 texts" in done.stdout and "no text" not in done.stdout
    answers = done.stdout[done.stdout.index("what lifts the warp?"):].splitlines()
    assert answers[1].endswith("# The heddle lifts the warp")
    picture = (tmp_path / "times.svg").read_text(encoding="utf-8")
    assert len(re.findall("<title>batch", picture)) == 4


def test_it_takes_a_model_and_its_tokenizer(tmp_path, texts):
    pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    sys.path.insert(0, str(EXAMPLE))
    import encoder
    onnx.save(encoder.Encoder(np.ones(9), wide=32, layers=1, heads=4).whole(),
              tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "loom": 1, "cloth": 2},
                  "unk_token": "[UNK]"}}), encoding="utf-8")
    done = search(tmp_path, "--texts", texts, "--model", tmp_path / "model.onnx", "--tokenizer",
                  tmp_path / "tokenizer.json", "--ask", "loom")
    assert done.returncode == 0, done.stderr


def test_a_model_needs_its_tokenizer(tmp_path):
    done = search(tmp_path, "--model", "minilm.onnx")
    assert done.returncode == 2 and "--model and --tokenizer come together" in done.stderr
