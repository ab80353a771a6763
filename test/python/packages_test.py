"""heddle.packages: what is said of a package that is not there."""

import sys

import pytest

import heddle.onnx_graph
from heddle.packages import need


def test_a_package_that_is_there_is_imported():
    assert need("json.decoder", "this test", "test") is sys.modules["json.decoder"]


def test_one_that_is_not_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(heddle.UsageError, match="building a graph needs the Python package 'onnx', "
                                                "of the extra 'training': .*; 'pip install onnx' "
                                                "installs it"):
        heddle.onnx_graph.Graph()
