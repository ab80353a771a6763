"""examples/from-jax and examples/from-keras: what is exported learns, and is as it was."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.mark.parametrize("name, needs", [
    ("jax", "jax jax2onnx sklearn"), ("keras", "keras jax jax2onnx sklearn")])
def test_what_is_exported_is_as_it_was(name, needs, tmp_path):
    lacks = [package for package in needs.split() if importlib.util.find_spec(package) is None]
    if lacks:  # not imported here: Keras reads its backend then
        pytest.skip(f"no {', '.join(lacks)}; pip install -r examples/from-{name}/requirements.txt")
    program = ROOT / "examples" / f"from-{name}" / f"from_{name}.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False,
                          timeout=900, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert float(re.search(r"([\d.]+)% of 360", done.stdout)[1]) >= 95
    assert float(re.search(r"difference from \w+ (\S+)", done.stdout)[1]) < 1e-4
    assert (tmp_path / "digits.onnx").exists()
