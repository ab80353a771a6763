"""conftest: the model that most tests of the command take."""

import pytest

from command import dense_model, save


@pytest.fixture
def model(tmp_path):
    """A file of `dense_model`, m.onnx in the test's folder."""
    return save(dense_model(), tmp_path / "m.onnx")
