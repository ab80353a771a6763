"""conftest: what the folders of tests share."""

import copy
import os
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
FOLDERS = (".", "python", "tools/check", "test/cli", "test/fuzz", "test/generate", "test/go",
           "test/models", "test/onnx", "test/python", "test/quantize", "test/serve", "test/targets",
           "test/torch", "test/training")
sys.path[:0] = [str(HERE.parent / folder) for folder in FOLDERS]  # what tests import from
import tally  # noqa: E402

for name in ("COLUMNS", "NO_COLOR", "HEDDLE_COST_MODEL", "HEDDLE_CPU", "HEDDLE_DEVICE",
             "HEDDLE_RECORDS", "HEDDLE_SCHEDULES"):
    os.environ.pop(name, None)  # tests that want one say it
os.environ["HEDDLE_CACHE"] = ""  # tests are of the compiler, not of what it once made


from heddle import compiler as heddle_compiler  # noqa: E402

heddle_compiler.compile.__kwdefaults__["verify_stages"] = True
OPT_LEVEL = os.environ.get("HEDDLE_TEST_OPT")  # of LLVM, where a test asks for none
if OPT_LEVEL:
    heddle_compiler.compile.__kwdefaults__["opt_level"] = int(OPT_LEVEL)


@pytest.fixture(autouse=True)
def own_numbers(request, monkeypatch):
    """A module's `random` begins anew with each test: no test has the numbers of another one."""
    random = getattr(request.module, "random", None)
    if isinstance(random, np.random.Generator):
        monkeypatch.setattr(request.module, "random", copy.deepcopy(random))


def mark_long(items):
    """Marks what `./dev test` leaves to `./dev test --all`."""
    for line in (HERE / "long.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            _, share, name = line.split("\t")
            found = [item for item in items if item.nodeid.startswith(name)]
            for number, item in enumerate(found):
                if share == "0" or number % int(share):
                    item.add_marker("long")


def pytest_collection_modifyitems(items):
    """Files that took long in the last run come first, so that all processes end at one time."""
    mark_long(items)
    runs = [run for run in tally.kept_runs() if "pytest" in run["suites"]]
    took = runs[-1]["files"] if runs else {}

    def seconds(item):
        return took.get(f"pytest {item.nodeid.split('.py')[0].replace('/', '.')}", 0)

    items.sort(key=seconds, reverse=True)


@pytest.fixture
def compiler():
    """Skips a test where libheddle.so was not built."""
    from heddle import library

    try:
        library.function("heddle_compile")
    except library.Error:
        pytest.skip("there is no libheddle.so; `./dev build` makes it")
