"""Differentiated models: how they are drawn and judged, and a short campaign."""

import heddle
import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from heddle_lab.fuzz import gradients
from heddle_lab.fuzz.campaign import Campaign
from onnx import TensorProto

needs_library = pytest.mark.usefixtures("compiler")
X = np.array([[0.5, -1.25, 2.0], [0.25, 3.0, -0.75]])


def network(*nodes, **weights):
    """A model of an input x [2, 3] and an output y, in f64."""
    return make_model(list(nodes), {"x": ([2, 3], TensorProto.DOUBLE)},
                      [make_value("y", None, TensorProto.DOUBLE)],
                      {name: np.asarray(array) for name, array in weights.items()}, opset=21)


def product():
    """y = sin(x) w"""
    return network(make_node("Sin", "x", "s"), make_node("Mul", "s w", "y"),
                   w=np.array([1.5, -2.0, 0.25]))


@pytest.mark.parametrize("index", range(10))
def test_models_are_legal_and_always_the_same(index):
    model, cases = gradients.generate(7, index)
    onnx.checker.check_model(model, full_check=True)
    onnx.checker.check_model(gradients.narrowed(model), full_check=True)
    again, others = gradients.generate(7, index)
    assert model.SerializeToString() == again.SerializeToString()
    assert all(np.array_equal(feeds[name], other[name]) for feeds, other in zip(cases, others)
               for name in feeds)


def slopes_of(scale):
    """Findings on y = sin(x) w, whose derivative by w is off by a factor."""
    subject = gradients.Subject(product(), 0)
    values = subject.values({"x": X})
    x, w, seed = values["x"], values["w"], np.ones((2, 3))
    derivatives = {"grad.x": np.cos(x) * w, "grad.w": np.sin(x).sum(0) * scale}
    return gradients.compare_slopes(subject, values, seed, derivatives, is_rounded=False)


def test_a_wrong_derivative_is_found():
    assert slopes_of(1) == (None, 2)
    outcome, held = slopes_of(1 + 1e-5)
    assert outcome.kind == "oracle" and "'grad.w'" in outcome.message and held == 2


@pytest.mark.parametrize("op, is_held", [("Abs", False), ("Relu", False), ("Floor", False),
                                         ("Tanh", True)])
def test_nothing_is_said_of_corners_and_jumps(op, is_held):
    """At a distance of 1e-4 from one."""
    subject = gradients.Subject(network(make_node(op, "x", "y")), 0)
    values = {"x": np.full((2, 3), 1e-4)}
    assert (subject.slope(values, "x", np.ones((2, 3))) is not None) == is_held


@needs_library
def test_what_differs_from_the_interpreter_is_found(monkeypatch):
    """A step that is off in its second digit stands for a compiler that gets it wrong."""
    assert gradients.judge(product(), [{"x": X}]) == gradients.Outcome("agrees", held=2)
    run = heddle.Session.run

    def wrong(session, names, feeds):
        return [array * 1.01 if name == wanted else array
                for name, array in zip(names, run(session, names, feeds))]

    monkeypatch.setattr(heddle.Session, "run", wrong)
    for wanted in ("grad.x", "grad.w", "w"):
        outcome = gradients.judge(product(), [{"x": X}])
        assert outcome.kind == "wrong" and f"'{wanted}'" in outcome.message


@needs_library
def test_an_op_without_a_derivative_is_named():
    """Its bits as an integer."""
    model = network(make_node("BitCast", "x", "i", to=TensorProto.INT64),
                    make_node("BitCast", "i", "y", to=TensorProto.DOUBLE))
    model.opset_import[0].version = 26
    outcome = gradients.judge(model, [{"x": X}])
    assert outcome.kind == "gap" and outcome.message.startswith("bitcast has no derivative: ")


@needs_library
def test_a_short_campaign_finds_nothing():
    campaign = Campaign(40, lambda index: gradients.generate(40, index), limit=600,
                        kind="gradients")
    campaign.run(range(16))
    assert not campaign.findings
    assert campaign.models == 16 and campaign.held > campaign.models
