"""The catalogue itself: feeds fit their models, and refusals say why."""

import numpy as np
import pytest

from bench.models import catalogue, sources


def test_names_are_unique_and_found():
    names = [model.name for model in catalogue.models()]
    assert len(set(names)) == len(names)
    assert catalogue.find(names[0]).name == names[0]
    with pytest.raises(KeyError, match="no model 'nonsense'; there are: "):
        catalogue.find("nonsense")


@pytest.mark.parametrize("model", catalogue.models(), ids=lambda model: model.name)
def test_feeds_are_the_same_at_every_call(model):
    for one, two in zip(model.make_feeds(), model.make_feeds()):
        assert one.keys() == two.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], two[name])


def test_a_missing_shared_model_says_where_it_looked(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "SHARED", tmp_path)
    with pytest.raises(catalogue.Missing, match=f"kws.onnx is not in {tmp_path}"):
        sources.shared("kws.onnx")


def test_a_missing_exporter_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(sources, "STORE", tmp_path)
    monkeypatch.setattr(sources.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(catalogue.Missing, match="exported with torch, which is not installed"):
        sources.exported("resnet50")
