"""examples/train-digits: it learns, and what it leaves is a model."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "train-digits"

pytestmark = pytest.mark.usefixtures("compiler")
for package in ("safetensors", "sklearn", "matplotlib"):
    pytest.importorskip(package)


def test_it_learns_to_read(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLE / "train_digits.py", "--output", tmp_path / "digits.onnx",
         "--picture", tmp_path / "loss.svg"], capture_output=True, text=True, check=False,
        timeout=900)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"([\d.]+)% of 360", done.stdout)[1]) >= 98.5
    assert (tmp_path / "digits.onnx").exists()
    assert "<svg" in (tmp_path / "loss.svg").read_text(encoding="utf-8")
