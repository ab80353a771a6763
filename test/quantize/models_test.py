"""Trained models: what is left of their outputs, and the same numbers in ONNX Runtime."""

import numpy as np
import onnx
import pytest

import heddle
from bench.models import catalogue

pytestmark = pytest.mark.usefixtures("compiler")
LEAST = {"kws_fp32": 20}  # dB


@pytest.mark.parametrize("name", LEAST)
def test_a_trained_model(name):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = catalogue.find(name)
    try:
        path = model.path()
    except catalogue.Missing as reason:
        pytest.skip(str(reason))
    feeds = [model.feeds[0](np.random.default_rng(seed)) for seed in range(5)]
    reports = []
    made = heddle.quantize(path, feeds, report=reports.append)
    onnx.checker.check_model(made)
    facts = reports[0].facts
    assert facts["bytes_after"] < facts["bytes_before"]
    assert min(each["decibels"] for each in facts["outputs"]) > LEAST[name], facts["outputs"]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    module = heddle.compile(made)
    for ours, theirs in zip(module.run(None, feeds[-1]), session.run(None, feeds[-1])):
        # An integer within that is another one by 1 is so in all that follows.
        steps = np.abs(ours - theirs) / (theirs.max() - theirs.min()) * 255
        assert np.quantile(steps, 0.99) <= 1 and steps.max() <= 8
