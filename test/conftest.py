"""conftest: what the folders of tests share."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools" / "check")]
import tally  # noqa: E402

os.environ.pop("COLUMNS", None)  # which pytest's workers have; tests that want a width say it
os.environ["HEDDLE_CACHE"] = ""  # tests are of the compiler, not of what it once made


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
