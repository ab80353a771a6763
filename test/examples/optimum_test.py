"""Programs of optimum and sentence-transformers over `heddle.onnxruntime.install()` give what they
give over ONNX Runtime: where these packages are installed."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("optimum.onnxruntime", reason="needs optimum[onnxruntime] and torch")
pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")

PROGRAM = pathlib.Path(__file__).with_name("optimum_program.py")


def run(*arguments):
    done = subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_tokens_and_embeddings_are_those_of_onnxruntime(tmp_path):
    theirs, ours = run(tmp_path), run(tmp_path, "heddle")
    assert ours["tokens"] == theirs["tokens"]
    assert any(len(set(row)) > 10 for search in theirs["tokens"].values() for row in search[0])
    np.testing.assert_allclose(ours["embeddings"], theirs["embeddings"], rtol=1e-4, atol=1e-5)
