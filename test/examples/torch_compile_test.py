"""examples/torch-compile: it learns, agrees with torch, and leaves an artefact."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "torch-compile"

pytestmark = pytest.mark.usefixtures("compiler")
pytest.importorskip("torch")


def test_it_learns_and_agrees(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLE / "torch_compile.py"], capture_output=True,
                          text=True, check=False, timeout=600, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"difference (\S+)", done.stdout)[1]) < 1e-4
    assert float(re.search(r"right ([\d.]+)%", done.stdout)[1]) > 80
    assert (tmp_path / "classifier.so").exists()
