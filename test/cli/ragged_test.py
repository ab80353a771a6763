"""`--ragged` in the commands that run a model."""

import importlib.util
import json

import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto, helper

from command import OK, fails, heddle, json_of, needs_heddle, ok, save

pytestmark = needs_heddle
needs_onnxruntime = pytest.mark.skipif(importlib.util.find_spec("onnxruntime") is None,
                                       reason="onnxruntime is not installed")
RAGGED = ("--ragged", "batch:seq=lengths")


@pytest.fixture
def model(tmp_path):
    nodes = [make_node("Softmax", "x", "y", "soft", axis=1),
             make_node("ReduceMax", "y", "top", "top", axes=[1], keepdims=0)]
    made = make_model(nodes, {"x": ["batch", "seq", 2]},
                      {"y": ["batch", "seq", 2], "top": ["batch", 2]})
    return save(made, tmp_path / "model.onnx")


def test_run_draws_lengths(model):
    done = json_of("run", model, *RAGGED, "--dim", "batch=40", "--dim", "seq=9")
    lengths = next(each for each in done["inputs"] if each["name"] == "lengths")
    assert lengths["shape"] == [40] and set(lengths["first"]) <= set(range(1, 10))
    assert len(set(lengths["first"])) > 2


def test_run_packs(model):
    done = json_of("run", model, *RAGGED, "--ragged-outputs", "packed", "--dim", "seq=4", "--input",
                   "lengths=3xi64=2,0,4")
    y, _, offsets = done["outputs"]
    assert y["shape"] == [6, 2] and offsets["first"] == [0, 2, 2, 6]
    fails("run", model, "--ragged-outputs", "packed", says="'--ragged' declares")


def test_a_length_that_is_none_is_named(model):
    done = heddle("run", model, *RAGGED, "--dim", "seq=4", "--input", "lengths=2xi64=2,5")
    assert done.status != OK and "row 1 has the length 5" in done.errors


@needs_onnxruntime
def test_compare_goes_row_by_row(model):
    done = ok("compare", model, *RAGGED, "--dim", "seq=7", "--input", "lengths=4xi64=3,0,7,1",
              "--json")
    assert [row["output"] for row in done.json["outputs"]] == ["y", "top"] * 3
    assert "row 1 has the length 0" in done.errors
    fails("compare", model, *RAGGED, "--per-node", says="--per-node with --ragged")


@needs_onnxruntime
def test_bench_beside_onnxruntime(model):
    done = json_of("bench", model, *RAGGED, "--dim", "batch=3", "--dim", "seq=5", "--vs",
                   "onnxruntime", "--time", "0.05")
    assert done["onnxruntime"]["median_ms"] > 0


def test_explain_counts_the_work_of_the_rows(tmp_path):
    """Products of a row of s: 2 * 8 * 16 * s, and 2 * 8 * s * s (CoRa's count of an encoder)."""
    nodes = [make_node("MatMul", "x w", "linear", "linear"),
             make_node("Transpose", "x", "t", "t", perm=[0, 2, 1]),
             make_node("MatMul", "x t", "scores", "scores")]
    weights = helper.make_tensor("w", TensorProto.FLOAT, [8, 16], [0.5] * 128)
    model = save(make_model(nodes, {"x": ["batch", "seq", 8]},
                            {"linear": ["batch", "seq", 16], "scores": ["batch", "seq", "seq"]},
                            [weights]),
                 tmp_path / "products.onnx")
    lengths = [3, 0, 7, 10]
    done = json_of("explain", model, *RAGGED, "--dim", "seq=10", "--input",
                   "lengths=4xi64=3,0,7,10")

    def flops(rows):
        return sum(2 * 8 * 16 * s + 2 * 8 * s * s for s in rows)
    told = done["rows"]
    assert told["flops"] < told.pop("computed_flops") < told["padded_flops"]
    assert told.pop("threads") * told.pop("largest_share") >= 1
    assert told == {
        "of": "batch", "size": "seq", "count": 4, "padded_length": 10, "sum_of_lengths": 20,
        "flops": flops(lengths), "padded_flops": flops([10] * 4)}
    assert sum(group["flops"] for group in done["groups"]) == flops(lengths)
    fails("explain", model, *RAGGED, "--dim", "seq=4", "--input", "lengths=1xi64=-1",
          says="row 0 has the length -1")
    text = heddle("explain", model, *RAGGED, "--dim", "batch=2", "--dim", "seq=4").output
    assert "of 8 'seq'" in text and "with padding" in text and "with what fills up tiles" in text


def test_explain_tells_what_is_left_of_padding_and_of_unequal_work(tmp_path):
    """Tiles are of m rows and n columns, as a plan sets them; threads share the tasks of rows."""
    nodes = [make_node("Transpose", "x", "t", "t", perm=[0, 2, 1]),
             make_node("MatMul", "x t", "scores", "scores")]
    model = save(make_model(nodes, {"x": ["batch", "seq", 8]}, {"scores": ["batch", "seq", "seq"]}),
                 tmp_path / "scores.onnx")
    plan = json_of("plan", model, *RAGGED)
    m, n = 4, 16
    for group in plan["groups"]:
        if group["card"] == "matmul":
            group["knobs"].update(m=m, n=n)
            group.pop("versions", None)
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    lengths = [1, 0, 6, 17, 32]
    done = json_of("explain", model, *RAGGED, "--plan", tmp_path / "plan.json", "--dim", "seq=32",
                   "--input", f"lengths=5xi64={','.join(map(str, lengths))}", "--threads", 2)

    def rows_of(size):  # one row alone is a tile; else a tile as a whole, or half of one
        rest = size % m
        return size - rest + (rest if rest <= 1 else m // 2 if rest <= m // 2 else m)
    told = done["rows"]
    assert told["flops"] == sum(16 * s * s for s in lengths)
    assert told["computed_flops"] == sum(2 * 8 * rows_of(s) * -(-s // n) * n for s in lengths)
    assert told["threads"] == 2 and 0.5 <= told["largest_share"] < 0.9
    alone = heddle("explain", model, *RAGGED, "--dim", "seq=32", "--input", "lengths=1xi64=7",
                   "--threads", 1, "--json")
    assert alone.json["rows"]["largest_share"] == 1
