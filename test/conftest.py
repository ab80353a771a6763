"""conftest: what the folders of tests share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))


@pytest.fixture
def compiler():
    """Skips a test where libheddle.so was not built."""
    from heddle import library

    try:
        library.function("heddle_compile")
    except library.Error:
        pytest.skip("there is no libheddle.so; `./dev build` makes it")
