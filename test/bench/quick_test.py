"""The smallest run of each measurement, so that none rots. Those that need large packages are
skipped where `./dev bench NAME` has not installed them."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from bench.__main__ import BENCHMARKS

ROOT = Path(__file__).resolve().parents[2]
FOUND = ROOT / "build" / "bench" / "quick" / "kernels"
LARGE = {"torch", "transformers", "lightgbm", "onnx_ir", "openvino"}

pytestmark = pytest.mark.usefixtures("compiler")


def bench(*arguments):
    return subprocess.run([ROOT / "dev", "bench", *arguments], capture_output=True, text=True,
                          cwd=ROOT, timeout=3600, check=False,
                          env={**os.environ, "HEDDLE_CACHE": ""})


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_smallest_run(name):
    (FOUND / f"{name}.json").unlink(missing_ok=True)
    done = bench(name, "--quick")
    missing = re.search(r"ModuleNotFoundError: No module named '(\w+)'", done.stderr)
    if done.returncode and missing and missing[1] in LARGE:
        pytest.skip(f"{missing[1]} is not installed: './dev bench {name}' does that")
    assert done.returncode == 0, done.stderr[-3000:]
    assert re.search(r"\d", done.stdout), "no figure"
    kept = FOUND / f"{name}.json"
    if kept.exists() and not json.loads(kept.read_text(encoding="utf-8"))["found"]:
        pytest.skip("its networks are not there: './dev bench' exports them with torch")


def test_a_name_that_is_none():
    done = bench("nothing")
    assert done.returncode and "no benchmark 'nothing'; there are: ablation" in done.stderr
    listed = bench("--list")
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(BENCHMARKS)
