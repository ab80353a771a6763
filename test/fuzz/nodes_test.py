"""Single nodes, legal or not: how they are drawn, guarded and judged, and a short campaign."""

import ctypes
import faulthandler
import multiprocessing
import signal

import heddle
import numpy as np
import pytest
from heddle.fuzz.campaign import Campaign
from heddle.fuzz.nodes import draw, guarded, judge, seeds
from onnx import helper


def model_of(node, feeds, outputs=("y",), opset=21):
    inputs = [helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()]
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(name)
                                                    for name in outputs])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


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
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[0, 0])
    assert judge.judge(model_of(node, {"x": X}), [{"x": X}]).kind == "agrees"


def test_what_others_take_is_a_gap(monkeypatch):
    def refuses(*_, **__):
        raise heddle.RefusedError("node 'it': no")

    monkeypatch.setattr(heddle, "compile", refuses)
    node = helper.make_node("Neg", ["x"], ["y"])
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
    node = helper.make_node("Neg", ["x"], ["y"])
    assert judge.judge(model_of(node, {"x": X}), [{"x": X}]).kind == kind


def test_wrong_numbers_are_found(monkeypatch):
    monkeypatch.setattr(guarded, "run", lambda session, feeds, low: {"y": X})
    monkeypatch.setattr(judge, "run_reference", lambda *_: {"y": X})
    node = helper.make_node("Neg", ["x"], ["y"])
    outcome = judge.judge(model_of(node, {"x": X}), [{"x": X}])
    assert outcome.kind == "oracle" and "onnxruntime: 3 of 3 elements differ" in outcome.message


def test_three_hundred_nodes():
    """A short campaign; `heddle fuzz --nodes --count 100000 --jobs 2` is a long one."""
    found = []
    campaign = Campaign(40, lambda index: draw.generate(40, index), limit=60, say=found.append,
                        is_node=True)
    campaign.run(range(300), jobs=2)
    assert campaign.models == 300 and not campaign.kinds, found
