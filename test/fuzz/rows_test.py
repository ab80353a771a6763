"""Ragged batches: how they are drawn and judged, and a short campaign."""

import heddle
import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from heddle_lab.fuzz import rows
from heddle_lab.fuzz.campaign import Campaign

needs_library = pytest.mark.usefixtures("compiler")


@pytest.mark.parametrize("index", range(20))
def test_models_are_legal_and_always_the_same(index):
    model, [feeds] = rows.generate(7, index)
    onnx.checker.check_model(model, full_check=True)
    again, [others] = rows.generate(7, index)
    assert model.SerializeToString() == again.SerializeToString()
    for name, array in feeds.items():
        assert array.tobytes() == others[name].tobytes()
    for row, length in enumerate(feeds["lengths"]):
        for array in rows.row_of(model, feeds, row).values():
            assert array.dtype.kind != "f" or np.all(np.isfinite(array)), (row, length)


def test_a_row_that_is_wrong_or_goes_beyond_its_length_is_found():
    feeds = {"lengths": np.array([1, 3])}
    feeds["x"] = np.array([[1, np.nan, np.nan], [2, 3, 4]], np.float32)
    model = make_model([make_node("Neg", "x", "y")], {"x": ["batch", "seq"]},
                       {"y": ["batch", "seq"]}, opset=21)
    output = heddle.session.NodeArg(name="y", dtype=1, shape=["batch", "seq"])

    def judged(found, row):
        pairs = rows.evaluate(model, rows.row_of(model, feeds, row))
        return rows.compare_row(output, np.array(found, np.float32), pairs, 2, row)

    assert judged([[-1, 0, 0], [-2, -3, -4]], 0) is None
    assert judged([[-1, 0, 0], [-2, -3, -4]], 1) is None
    assert "beyond its length" in judged([[-1, 0, 5], [-2, -3, -4]], 0).message
    assert "row 1 of its own" in judged([[-1, 0, 0], [-2, -3, -5]], 1).message


@needs_library
def test_a_short_campaign_finds_nothing():
    campaign = Campaign(40, lambda index: rows.generate(40, index), limit=600, say=print,
                        kind="rows")
    campaign.run(range(60))
    assert not campaign.findings
    refused = sum(map(len, campaign.gaps.values()))
    assert campaign.models == 60 and refused < campaign.models / 2
