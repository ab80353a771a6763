"""conftest: what the folders of tests share."""

import copy
import os
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "python"), str(HERE.parent / "tools" / "check"),
                str(HERE / "cli")]  # whichever test comes first
import tally  # noqa: E402

for name in ("COLUMNS", "NO_COLOR", "HEDDLE_COST_MODEL", "HEDDLE_CPU", "HEDDLE_RECORDS",
             "HEDDLE_SCHEDULES"):
    os.environ.pop(name, None)  # tests that want one say it
os.environ["HEDDLE_CACHE"] = ""  # tests are of the compiler, not of what it once made


@pytest.fixture(autouse=True)
def own_numbers(request, monkeypatch):
    """A module's `random` begins anew with each test: no test has the numbers of another one."""
    random = getattr(request.module, "random", None)
    if isinstance(random, np.random.Generator):
        monkeypatch.setattr(request.module, "random", copy.deepcopy(random))


def pytest_collection_modifyitems(items):
    """Files that took long in the last run come first, so that all processes end at one time."""
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
