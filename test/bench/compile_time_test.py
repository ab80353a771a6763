"""How the code that is made grows with a model, held without timing anything: LLVM takes longer
than in proportion for a long function, so its length has to be in proportion to the model."""

import re
import subprocess

import heddle
import numpy as np
import onnx
import pytest

from bench import compile_time
from bench.kernels.engines import runtime_session

pytestmark = pytest.mark.usefixtures("compiler")


def longest_function(family, count, folder):
    """Lines of LLVM of the longest function, as lowering has made it."""
    path = folder / f"{family}{count}.onnx"
    onnx.save(compile_time.FAMILIES[family][0](count), path)
    subprocess.run(["heddle", "compile", path, "-o", path.with_suffix(".ll"), "--emit", "ll", "-O",
                    "0", "--no-cache"], check=True, capture_output=True)
    functions = re.findall(r"^define.*?^}", path.with_suffix(".ll").read_text(), re.M | re.S)
    return max(text.count("\n") for text in functions)


@pytest.mark.parametrize("family", compile_time.FAMILIES)
def test_no_function_grows_faster_than_the_model(family, tmp_path):
    few, many = (longest_function(family, count, tmp_path) for count in (80, 160))
    assert many < 2.3 * few, f"{few} lines for 80, {many} for 160"


@pytest.mark.parametrize("family", ["forest", "classes"])
def test_a_family_gives_what_onnxruntime_gives(family):
    made = compile_time.FAMILIES[family][0](7)
    peer = runtime_session(made)
    session = heddle.compile(made, cache=False, threads=1)
    for rows in (0, 1, 50):
        x = np.random.default_rng(rows).standard_normal((rows, 8)).astype(np.float32)
        if family == "forest":
            x[::7, 1], x[::9, 2], x[::11, 3] = np.nan, np.inf, -np.inf
        np.testing.assert_allclose(session.run(None, {"x": x})[0], peer.run(None, {"x": x})[0],
                                   rtol=1e-5)
