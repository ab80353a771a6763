"""fuzz_test: that generated models are legal and always the same, that a wrong result is found and
reduced, and that the compiler agrees with the oracles on some of them."""

import os
import signal

import numpy as np
import onnx
import onnxruntime
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx.reference import ReferenceEvaluator

pytest.importorskip("ml_dtypes")

from heddle_lab.fuzz import distribution, evaluate  # noqa: E402
from heddle_lab.fuzz.campaign import Campaign  # noqa: E402
from heddle_lab.fuzz.check import Outcome, check  # noqa: E402
from heddle_lab.fuzz.evaluator_ops import OPS  # noqa: E402
from heddle_lab.fuzz.generate import generate  # noqa: E402
from heddle_lab.fuzz.graph import Graph, make_rng  # noqa: E402
from heddle_lab.fuzz.reduce import reduce_model  # noqa: E402
from heddle_lab.fuzz.spec import SPECS  # noqa: E402
from heddle_lab.fuzz.worker import Worker  # noqa: E402

needs_library = pytest.mark.usefixtures("compiler")


@pytest.mark.parametrize("index", range(20))
def test_models_are_legal_and_always_the_same(index):
    model, cases = generate(7, index, (3, 20))
    onnx.checker.check_model(model, full_check=True)
    again, cases_again = generate(7, index, (3, 20))
    assert model.SerializeToString() == again.SerializeToString()
    for feeds, others in zip(cases, cases_again):
        assert feeds.keys() == others.keys()
        assert all(np.array_equal(feeds[name], others[name]) for name in feeds)


def test_seeds_and_indices_differ():
    texts = {generate(seed, index, (3, 6))[0].SerializeToString()
             for seed in (1, 2) for index in range(3)}
    assert len(texts) == 6


def test_values_are_finite_and_stable():
    for index in range(10):
        model, cases = generate(11, index, (3, 20))
        for feeds in cases:
            pairs = evaluate.evaluate(model, feeds)
            for output in model.graph.output:
                assert np.all(np.isfinite(evaluate.wide(pairs[output.name][0])))
                assert evaluate.is_stable(pairs[output.name])


def test_every_op_kind_can_be_drawn():
    """Each spec adds its node in one of many tries, in some opset."""
    for name, spec in SPECS.items():
        for attempt in range(150):
            g = Graph(make_rng(3, attempt), (18, 24, 26)[attempt % 3], 1 + attempt % 2)
            g.input(g.dtype(), g.dims())
            try:
                spec.draw(g, name)
            except evaluate.Rejected:
                continue
            assert any(node.op_type == name for node in g.nodes)
            break
        else:
            pytest.fail(f"{name} was refused each time")


def test_a_result_that_hangs_on_rounding_is_refused():
    g = Graph(make_rng(1, 1), 21, 1)
    x = g.input("float32", [(3,)], [np.array([0.1, 0.2, 0.3], np.float32)])
    third = g.emit("Div", [x, g.scalar(0.1, "float32")])  # about 1, 2 and 3
    with pytest.raises(evaluate.Rejected, match="hangs on rounding"):
        g.emit("Floor", [third])


@pytest.mark.parametrize("op, shapes, attributes", [
    ("ConvTranspose", [(2, 6, 4), (6, 2, 3), (6,)], {"group": 3, "strides": [2]}),
    ("ConvTranspose", [(2, 3, 4, 5), (3, 2, 3, 2), (2,)],
     {"strides": [2, 3], "dilations": [2, 1], "pads": [1, 0, 2, 1], "output_padding": [1, 0]}),
    ("ConvTranspose", [(1, 2, 2, 3, 1), (2, 1, 1, 2, 3)], {"pads": [0, 1, 0, 0, 0, 1]}),
    *[("Conv", [(1, 4, 6, 2), (2, 2, 3, 2)], {"group": 2, "strides": [2, 1], "auto_pad": pad})
      for pad in ("SAME_UPPER", "SAME_LOWER", "VALID")]])
def test_what_the_evaluator_gets_wrong_is_right(op, shapes, attributes):
    feeds = {f"x{i}": np.random.default_rng(7).standard_normal(shape, np.float32)
             for i, shape in enumerate(shapes)}
    model = make_model([make_node(op, list(feeds), "y", **attributes)],
                       {name: value.shape for name, value in feeds.items()}, {"y": None}, opset=11)
    ours, = ReferenceEvaluator(model, new_ops=OPS).run(None, feeds)
    theirs, = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_reduction_finds_the_one_node():
    found = 0
    for index in range(40):
        model, cases = generate(5, index, (8, 20))
        subjects = [node.op_type for node in model.graph.node if node.op_type in ("Conv", "MatMul")]
        if not subjects:
            continue
        found += 1

        def fails(smaller, _, op=subjects[0]):
            return any(node.op_type == op for node in smaller.graph.node)

        small, cases = reduce_model(model, cases, fails)
        assert [node.op_type for node in small.graph.node] == subjects[:1]
        assert len(small.graph.output) == 1 and len(cases) == 1
        assert all(max(array.shape, default=1) <= 3 for array in cases[0].values())
        if found == 3:
            return
    pytest.fail("no model has a Conv or a MatMul")


def test_reduction_keeps_the_numbers_that_matter():
    """A predicate on computed values: the sum of an output is negative."""
    model = make_model([make_node("Abs", "x", "a"), make_node("Neg", "a", "n"),
                        make_node("Relu", "x", "r"), make_node("Add", "n n", "y")],
                       {"x": [4]}, {"y": [4], "r": [4]}, opset=21)

    def fails(smaller, cases):
        pairs = evaluate.evaluate(smaller, cases[0])
        return any(pairs[output.name][0].sum() < 0 for output in smaller.graph.output)

    small, _ = reduce_model(model, [{"x": np.arange(4, dtype=np.float32)}], fails)
    assert len(small.graph.node) == 1


def test_a_dead_or_silent_worker_is_a_finding(monkeypatch):
    def crash(model, cases, threads):
        if threads == 1:
            os.write(2, b"about to die")
            os.kill(os.getpid(), signal.SIGKILL)
        signal.pause()

    monkeypatch.setattr("heddle_lab.fuzz.check.check", crash)
    model, cases = generate(1, 0, (1, 2))
    worker = Worker()
    try:
        outcome = worker.check(model, cases, 600)
        assert outcome.kind == "crash" and "SIGKILL" in outcome.message
        assert "about to die" in outcome.message
        assert worker.check(model, cases, 0.5, threads=2).kind == "hang"
    finally:
        worker.stop()


def test_a_finding_is_written_and_reduced(monkeypatch, tmp_path):
    """A checker that dislikes Relu stands for a compiler that gets it wrong."""

    def dislikes(model, cases, threads):
        bad = [node for node in model.graph.node if node.op_type == "Relu"]
        return Outcome("wrong", "output 'y': differs") if bad else Outcome("agrees")

    monkeypatch.setattr("heddle_lab.fuzz.check.check", dislikes)
    campaign = Campaign(1, lambda index: generate(1, index, (4, 8), ["Relu", "Add", "Transpose"]),
                        tmp_path, limit=600, reduce_seconds=600, say=lambda text: None)
    campaign.run(range(3))
    assert campaign.models == 3 and set(campaign.kinds) == {"wrong"}
    assert "3 models" in campaign.summary_line()
    folder = next(tmp_path.iterdir())
    small = onnx.load(folder / "reduced.onnx")
    assert [node.op_type for node in small.graph.node] == ["Relu"]
    assert (folder / "model.onnx").exists() and (folder / "input_0.npy").exists()
    assert "Relu" in (folder / "message.txt").read_text()


def test_judge_of_distributions():
    generator = np.random.default_rng(1)
    samples = generator.normal(2, 0.5, distribution.SAMPLES)
    assert distribution.judge(samples, distribution.normal(2, 0.5)) is None
    assert "mean" in distribution.judge(samples + 0.1, distribution.normal(2, 0.5))
    assert "variance" in distribution.judge(2 + (samples - 2) * 1.1, distribution.normal(2, 0.5))
    flat = generator.uniform(2 - 0.75**0.5, 2 + 0.75**0.5, distribution.SAMPLES)
    assert "distribution" in distribution.judge(flat, distribution.normal(2, 0.5))
    assert "0 or 1" in distribution.judge(np.full(distribution.SAMPLES, 0.5),
                                          (0.5, 0.0, None))


@needs_library
def test_random_numbers_have_their_distributions():
    assert distribution.check_distributions() == []


@needs_library
@pytest.mark.parametrize("index", range(60))
def test_sixty_models_agree(index):
    model, cases = generate(20, index, (4, 16))
    outcome = check(model, cases, threads=1 + index % 2)
    assert not outcome.is_finding, outcome
