"""Single nodes, legal or not: how they are drawn, guarded and judged, and a short campaign."""

import ctypes
import faulthandler
import multiprocessing
import random
import signal

import heddle
import ml_dtypes
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node
from heddle_lab.fuzz.campaign import Campaign
from heddle_lab.fuzz.check import Outcome
from heddle_lab.fuzz.evaluate import evaluate, is_stable
from heddle_lab.fuzz.nodes import draw, guarded, judge, mutate, seeds
from heddle_lab.fuzz.nodes.case import Case
from heddle_lab.fuzz.worker import Worker
from onnx import helper


def model_of(node, feeds, outputs=("y",), opset=21):
    return make_model([node], feeds, outputs, opset=opset)


def test_a_case_is_always_the_same():
    for index in range(40):
        (a, one), (b, two) = draw.generate(3, index), draw.generate(3, index)
        assert a == b
        for name, array in one[0].items():
            np.testing.assert_array_equal(array, two[0][name])


def test_every_op_of_the_seeds_is_drawn():
    drawn = {draw.draw_case(1, index).op for index in range(3000)}
    missing = {op for _, op in seeds.ops()} - drawn
    assert len(missing) < 5, missing


def test_integers_are_drawn_as_far_out_as_they_go():
    rng, found = random.Random(1), set()
    for _ in range(200):
        case = Case("Transpose", "", 21, [helper.make_attribute("perm", [1, 0])],
                    [np.zeros((2, 2), np.uint8)], 1, ["fixed"])
        mutate.change_extreme(rng, case)
        found |= {*case.attributes[0].ints, *case.inputs[0].ravel().tolist()}
    assert found == {0, 1, 254, 255, -2**63, -2**63 + 1, 2**63 - 2, 2**63 - 1}


@pytest.mark.parametrize("low, offset", [(False, 12), (True, -1)])
def test_beyond_an_array_nothing_can_be_read(low, offset):
    array = guarded.copied(np.arange(3, dtype=np.float32), low)
    assert array.tolist() == [0, 1, 2]

    def read(where):
        faulthandler.disable()
        ctypes.string_at(array.ctypes.data + where, 1)

    for where, code in ((11, 0), (offset, -signal.SIGSEGV)):
        process = multiprocessing.get_context("fork").Process(target=read, args=(where,))
        process.start()
        process.join()
        assert process.exitcode == code


X = np.array([1.0, -2.0, 3.0], np.float32)


def test_what_others_refuse_may_be_refused():
    node = make_node("Transpose", "x", "y", perm=[0, 0])
    assert judge.judge(model_of(node, {"x": X}), [{"x": X}]).kind == "agrees"


def test_what_others_take_is_a_gap(monkeypatch):
    def refuses(*_, **__):
        raise heddle.RefusedError("node 'it': no")

    monkeypatch.setattr(heddle, "compile", refuses)
    node = make_node("Neg", "x", "y")
    outcome = judge.judge(model_of(node, {"x": X}), [{"x": X}])
    assert outcome.kind == "gap" and not outcome.is_finding


@pytest.mark.parametrize("error, kind", [
    (heddle.InternalError("internal error: why"), "compile internal"),
    (heddle.RefusedError("model 'm' is damaged"), "bad message"),
    (heddle.RefusedError("node '\x1b[31m'"), "bad message")])
def test_a_refusal_blames_the_model_in_plain_text(monkeypatch, error, kind):
    def refuses(*_, **__):
        raise error

    monkeypatch.setattr(heddle, "compile", refuses)
    node = make_node("Neg", "x", "y")
    assert judge.judge(model_of(node, {"x": X}), [{"x": X}]).kind == kind


def test_wrong_numbers_are_found(monkeypatch):
    monkeypatch.setattr(guarded, "run", lambda session, feeds, low: {"y": X})
    monkeypatch.setattr(judge, "run_reference", lambda *_: {"y": X})
    node = make_node("Neg", "x", "y")
    outcome = judge.judge(model_of(node, {"x": X}), [{"x": X}])
    assert outcome.kind == "oracle" and "onnxruntime: 3 of 3 elements differ" in outcome.message


@pytest.mark.parametrize("opset, axis", [(13, 1), (13, 0), (13, None), (11, 1), (11, None)])
def test_the_evaluator_knows_both_hardmaxes(opset, axis):
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    attributes = {} if axis is None else {"axis": axis}
    model = model_of(make_node("Hardmax", "x", "y", **attributes), {"x": x}, opset=opset)
    found = evaluate(model, {"x": x})["y"][0]
    rows, along = (x.reshape(2, 12), 1) if opset < 13 else (x, -1 if axis is None else axis)
    largest = np.expand_dims(rows.argmax(along), along)
    assert found.sum() == largest.size
    assert (np.take_along_axis(found.reshape(rows.shape), largest, along) == 1).all()


def test_the_evaluator_takes_one_of_the_two_values_of_a_one_hot():
    feeds = {"i": np.array([0, 2]), "d": np.array(3), "v": np.array([np.inf, 1], np.float32)}
    model = model_of(make_node("OneHot", list(feeds), "y"), feeds)
    np.testing.assert_array_equal(evaluate(model, feeds)["y"][0],
                                  [[1, np.inf, np.inf], [np.inf, np.inf, 1]])


def test_the_evaluator_has_no_place_for_indices_beyond_a_one_hot():
    feeds = {"i": np.array([3, -3, -4]), "d": np.array(3), "v": np.array([0, 1], np.float32)}
    model = model_of(make_node("OneHot", list(feeds), "y", axis=0), feeds)
    assert evaluate(model, feeds)["y"][0].tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_the_evaluator_keeps_small_results_of_halves():
    feeds = {"x": np.array([-10], ml_dtypes.bfloat16)}
    found = evaluate(model_of(make_node("Mish", "x", "y"), feeds), feeds)["y"][0]
    assert found.dtype == ml_dtypes.bfloat16 and abs(float(found[0]) + 4.54e-4) < 1e-5


def test_the_largest_of_nothing_is_open():
    assert judge.is_of_nothing("MaxPool", {"x": X}, np.array([-np.inf], np.float32))
    assert not judge.is_of_nothing("MaxPool", {"x": X * np.inf}, np.array([-np.inf], np.float32))
    assert not judge.is_of_nothing("MaxPool", {"x": X}, X)


@pytest.mark.parametrize("mode, most", [("linear", 1), ("nearest", 0)])
def test_integers_between_others_may_be_off_by_one(mode, most):
    node = make_node("Resize", "x", "y", mode=mode)
    like = judge.BETWEEN + "Resize" if judge.interpolates(node) else "Resize"
    assert judge.allowed(like, {}, "y", np.arange(3)) == most
    near = judge.gap_between(like, {}, "y", np.array([7]), np.array([8]))
    assert (near is None) == (most == 1)
    assert judge.gap_between(like, {}, "y", np.array([7]), np.array([9]))


def test_large_integers_between_others_have_the_bits_of_a_float():
    for mode, is_between in (("linear", True), ("nearest", False)):
        assert judge.interpolates(make_node("GridSample", "x g", "y", mode=mode)) == is_between
    assert judge.allowed(judge.BETWEEN + "GridSample", {}, "y", np.array([2**28])) == 2**8


def test_the_evaluator_reads_no_counts_of_heads_at_rank_4():
    feeds = {name: np.ones((1, 2, 3, 4), np.float32) for name in "qkv"}
    node = make_node("Attention", list(feeds), "y", kv_num_heads=0)
    np.testing.assert_allclose(evaluate(model_of(node, feeds, opset=23), feeds)["y"][0],
                               feeds["v"])


def test_of_windows_that_begin_in_no_image_the_evaluator_says_nothing():
    x = np.arange(27, dtype=np.float64).reshape(1, 1, 27) ** 2
    for ceil_mode, taps, dilation, is_known in ((0, 3, 2, True), (1, 3, 1, True),
                                                (1, 3, 2, False), (1, 28, 1, False)):
        node = make_node("AveragePool", "x", "y", kernel_shape=[taps], dilations=[dilation],
                         strides=[4], ceil_mode=ceil_mode)
        assert ("y" in evaluate(model_of(node, {"x": x}), {"x": x})) == is_known


@pytest.mark.parametrize("op, inputs, y", [("ArgMax", {}, 0), ("ArgMin", {}, 0),
                                           ("TopK", {"k": np.array([2])}, 1)])
def test_of_two_elements_that_rounding_may_swap_either_may_be_picked(op, inputs, y):
    """A window is symmetric but for roundings; a ramp is not."""
    count = np.array(6)
    for first, is_open in (("HannWindow", True), ("Range", False)):
        makes = make_node("HannWindow", "n", "x", periodic=0) if is_open else make_node(
            "Range", "zero n one", "x")
        feeds = {"n": count, **inputs, **({} if is_open else {"zero": np.array(0),
                                                              "one": np.array(1)})}
        outputs = ["y"] if y == 0 else ["v", "y"]
        model = model_of(make_node(op, ["x", *inputs], outputs), feeds, ("y",))
        model.graph.node.insert(0, makes)
        assert is_stable(evaluate(model, feeds)["y"]) != is_open


@pytest.mark.parametrize("op, is_open", [("Floor", True), ("Ceil", True), ("Sign", True),
                                         ("Round", False)])
def test_a_zero_but_for_roundings_may_be_on_either_side_of_a_step(op, is_open):
    """The ends of a window are zeros; no element is near a half."""
    feeds = {"n": np.array(7)}
    model = model_of(make_node(op, "x", "y"), feeds)
    model.graph.node.insert(0, make_node("BlackmanWindow", "n", "x"))
    assert is_stable(evaluate(model, feeds)["y"]) != is_open


def test_what_a_narrow_nan_becomes_as_an_integer_is_open():
    x = np.array([1, np.nan], np.float32).astype(ml_dtypes.float8_e4m3fnuz)
    y = np.array([1, 255], np.uint8)
    assert judge.leaves_range("QLinearMatMul", {"x": x}, y)
    assert not judge.leaves_range("QLinearMatMul", {"x": x[:1]}, y)


@pytest.mark.parametrize("places, kind", [([0, 2], "agrees"), ([2, 0], "agrees"),
                                          ([1, 2], "oracle")])
def test_the_order_of_an_unsorted_top_k_is_open(monkeypatch, places, kind):
    found = {"y": X[places], "i": np.array(places, np.int64)}
    monkeypatch.setattr(guarded, "run", lambda session, feeds, low: found)
    monkeypatch.setattr(judge, "run_reference", lambda *_: found)
    node = make_node("TopK", "x k", "y i", sorted=0)
    feeds = {"x": X, "k": np.array([2], np.int64)}
    assert judge.judge(model_of(node, feeds, ("y", "i")), [feeds]).kind == kind


def test_a_crash_that_does_not_come_again_is_none(monkeypatch):
    """An engine that damaged the process long ago is none of ours."""
    campaign = Campaign(40, lambda index: draw.generate(40, index), say=print, kind="node")
    monkeypatch.setattr(Worker, "finish", lambda *_: Outcome("crash", "SIGSEGV"))
    monkeypatch.setattr(Worker, "check", lambda *_: Outcome("agrees"))
    campaign.run(range(2))
    assert campaign.models == 2 and not campaign.kinds


def test_three_hundred_nodes():
    """A short campaign; `heddle fuzz --nodes --count 100000 --jobs 2` is a long one. ONNX Runtime
    never ends with one of them, a TfIdfVectorizer whose max_skip_count is the largest integer."""
    found = []
    campaign = Campaign(40, lambda index: draw.generate(40, index), limit=120, say=found.append,
                        kind="node")
    campaign.run(range(300), jobs=2)
    assert campaign.models == 300 and not campaign.kinds, found


def test_a_head_of_one_number_is_stored_as_one():
    node = make_node("MultiHeadAttention", "q k v", "y", domain="com.microsoft", num_heads=1)
    feeds = {name: np.random.default_rng(0).standard_normal((1, rows, 1)).astype(np.float32)
             for name, rows in (("q", 3), ("k", 4), ("v", 4))}
    model = model_of(node, feeds)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    after = np.full(64, 7, np.float32)
    heddle.Session(heddle.compile(model, cache=False)).run(
        None, feeds, out={"y": after[:3].reshape(1, 3, 1)})
    scores = np.exp(feeds["q"][0] @ feeds["k"][0].T)
    expected = scores @ feeds["v"][0] / scores.sum(1, keepdims=True)
    np.testing.assert_allclose(after[:3], expected[:, 0], rtol=1e-5)
    assert (after[3:] == 7).all()
