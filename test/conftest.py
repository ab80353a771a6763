"""conftest: what the folders of tests share."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
os.environ.pop("COLUMNS", None)  # which pytest's workers have; tests that want a width say it
os.environ["HEDDLE_CACHE"] = ""  # tests are of the compiler, not of what it once made


@pytest.fixture
def compiler():
    """Skips a test where libheddle.so was not built."""
    from heddle import library

    try:
        library.function("heddle_compile")
    except library.Error:
        pytest.skip("there is no libheddle.so; `./dev build` makes it")
