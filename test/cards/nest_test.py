"""Cards whose kernels take any nest: several reductions, products and results in one kernel."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto, numpy_helper

import heddle
from command import ROOT, ok

pytestmark = pytest.mark.usefixtures("compiler")
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
FOLDER = str(ROOT / "examples" / "cards")
COLUMNS = 2051
random = np.random.default_rng(5)


def node(op, inputs, output, **attributes):
    return make_node(op, inputs, [output], name=output, **attributes)


def model(nodes, sizes, outputs, constants):
    infos = [make_value(name, shape, kind) for name, kind, shape in outputs]
    return make_model(nodes, {"x": sizes}, infos, constants)


def gated_unit(rows, depth, columns, extra=(), outputs=("y",)):
    """RMSNorm, two products, silu(a) * b."""
    weights = {name: (random.standard_normal((depth, columns)) / depth**0.5).astype(np.float32)
               for name in ("a", "b")}
    nodes = [node("Mul", ["x", "x"], "square"), node("ReduceMean", ["square"], "mean", axes=[-1]),
             node("Add", ["mean", "epsilon"], "shifted"), node("Sqrt", ["shifted"], "root"),
             node("Div", ["x", "root"], "unit"), node("Mul", ["unit", "scale"], "norm"),
             node("MatMul", ["norm", "a"], "gate"), node("MatMul", ["norm", "b"], "up"),
             node("Sigmoid", ["gate"], "half"), node("Mul", ["gate", "half"], "silu"),
             node("Mul", ["silu", "up"], "y"), *extra]
    return model(nodes, [*rows, depth], [(name, FLOAT, None) for name in outputs],
                 {"epsilon": np.float32(1e-6), **weights,
                  "scale": random.uniform(0.5, 2, depth).astype(np.float32)})


def choice(rows, columns=COLUMNS, keepdims=0, between=()):
    """Softmax with a temperature, and its argmax."""
    nodes = [node("Div", ["x", "temperature"], "scaled"), node("Softmax", ["scaled"], "p", axis=-1),
             *between, node("ArgMax", ["p"], "best", axis=-1, keepdims=keepdims)]
    outputs = [("p", FLOAT, None), ("best", INT64, None)]
    outputs += [(each.output[0], FLOAT, None) for each in between]
    return model(nodes, [*rows, columns], outputs, {"temperature": np.float32(0.7)})


def groups(made):
    return {group["name"]: group["card"] for group in made.compiled.plan["groups"]}


def agrees(source, feeds, **options):
    """With the cards, and without: the same numbers, NaN where NaN is."""
    made = heddle.compile(source, schedules=FOLDER, **options)
    for found, wanted in zip(made.run(None, feeds), heddle.compile(source).run(None, feeds)):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    return made


def rows_of(*shape):
    return (3 * random.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("name", ["norm_gate.mlir", "norm_gate.c", "softmax_argmax.mlir",
                                  "softmax_argmax.c"])
def test_the_card_is_short(name):
    text = Path(FOLDER, name).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60


@pytest.mark.parametrize("depth, columns", [(96, 80), (33, 130), (64, 64), (1, 17), (100, 3)])
def test_a_gated_unit_is_one_kernel(depth, columns):
    source = gated_unit(["batch", "length"], depth, columns)
    for shape in [(1, 1), (3, 7), (2, 64), (1, 131), (0, 4)]:
        made = agrees(source, {"x": rows_of(*shape, depth)})
    if depth > 1:
        assert groups(made) == {"y": "norm_gate"}


def test_a_gated_unit_of_known_rows_is_one_kernel():
    for rows in (*range(1, 10), 131):
        made = agrees(gated_unit([1, rows], 48, 50), {"x": rows_of(1, rows, 48)}, threads=2)
        assert groups(made) == {"y": "norm_gate"}


def test_a_norm_that_others_read_is_a_second_result():
    """The kernel is written for one result, so the card is refused, and says why."""
    extra = [node("Relu", ["norm"], "z")]
    source = gated_unit(["rows"], 32, 48, extra, ("y", "z"))
    made = agrees(source, {"x": rows_of(5, 32)})
    assert "norm_gate" not in groups(made).values()


def test_a_gate_of_another_operand_is_another_kernel():
    """The input of both products has to be one tensor: the kernel normalises a row once."""
    source = gated_unit(["rows"], 32, 32)
    source.graph.node[7].input[0] = "unit"
    made = agrees(source, {"x": rows_of(5, 32)})
    assert "norm_gate" not in groups(made).values()


@pytest.mark.parametrize("rows, keepdims", [(("rows",), 0), (("a", "b"), 1), ((3,), 0)])
def test_a_softmax_and_its_argmax_are_one_kernel_of_two_results(rows, keepdims):
    source = choice(rows, keepdims=keepdims)
    for shape in [(3,), (1,), (18,)] if len(rows) == 1 else [(2, 5), (1, 1), (0, 3)]:
        if isinstance(rows[0], int) and shape != rows:
            continue
        made = agrees(source, {"x": rows_of(*shape, COLUMNS)}, threads=2)
        assert groups(made) == {"best": "softmax_argmax"}


def test_what_is_not_finite_passes_as_in_generated_code():
    x = rows_of(6, COLUMNS)
    for row, number in enumerate([np.nan, np.inf, -np.inf, 0.0, 3e38]):
        x[row, 1000 + 13 * row] = number
    x[5] = -np.inf
    x[0, 40] = np.nan
    with np.errstate(all="ignore"):
        agrees(choice(["rows"]), {"x": x})
        agrees(gated_unit(["rows"], 96, 80), {"x": x[:, 960:1056].copy()})


def test_a_reader_between_the_results_follows_the_group():
    """The exporter has put what reads the shares before their argmax."""
    made = agrees(choice(["rows"], between=[node("Sqrt", ["p"], "roots")]),
                  {"x": rows_of(4, COLUMNS)})
    assert groups(made)["best"] == "softmax_argmax"


def test_a_path_out_of_the_results_and_back_is_refused():
    """The argmax of what a kernel of its own makes of the shares cannot be in their group."""
    source = choice(["rows"], between=[node("CumSum", ["p", "axis"], "sums")])
    source.graph.initializer.append(numpy_helper.from_array(np.int64(1), "axis"))
    source.graph.node[-1].input[0] = "sums"
    made = agrees(source, {"x": rows_of(4, COLUMNS)})
    assert "softmax_argmax" not in groups(made).values()


@pytest.mark.parametrize("columns", [33, 100, 2047, "columns"])
def test_rows_that_the_guard_does_not_allow_have_other_cards(columns):
    made = agrees(choice(["rows"], columns),
                  {"x": rows_of(3, columns if isinstance(columns, int) else 70)})
    assert "softmax_argmax" not in groups(made).values()


def test_a_group_of_several_results_is_in_plans_and_records(tmp_path):
    source = choice(["rows"])
    plan = heddle.compile(source, schedules=FOLDER).compiled.plan
    plan["groups"][0]["knobs"] = {"rows": 2}
    made = agrees(source, {"x": rows_of(9, COLUMNS)}, plan=plan)
    assert made.compiled.plan["groups"][0]["knobs"] == {"rows": 2}
    onnx.save(source, tmp_path / "choice.onnx")
    made.compiled.write(tmp_path / "choice.so")
    assert (tmp_path / "choice.so").stat().st_size > 0


def test_a_group_of_several_results_is_tuned_and_found_in_the_records(tmp_path):
    """The card's knobs in the records are those that the next run takes."""
    source, records = tmp_path / "choice.onnx", tmp_path / "records.db"
    onnx.save(choice(["rows"]), source)
    asked = [source, "--records", records, "--schedules", FOLDER, "--threads", "1", "--json"]
    # So many that draws among all cards are in them, whichever looks the fastest on this machine.
    [group] = ok("tune", *asked, "--trials", "12", "--time", "600").json["groups"]
    assert group["problem"] is None and group["default"]["card"] == "softmax_argmax"
    database = sqlite3.connect(records)
    tried = database.execute("SELECT card, knobs, failure FROM trial").fetchall()
    assert not any(failure for _, _, failure in tried)
    # One of them is made the best, so that what is chosen hangs on no machine.
    best = next(knobs for card, knobs, _ in tried
                if card == "softmax_argmax" and json.loads(knobs)["rows"] != 1)
    database.execute("UPDATE trial SET speedup = 0.5, confirmed = 1")
    database.execute("UPDATE trial SET speedup = 1.5 WHERE card = 'softmax_argmax' AND knobs = ?",
                     [best])
    database.commit()
    [planned] = ok("plan", *asked).json["groups"]
    assert planned["card"] == "softmax_argmax" and planned["knobs"] == json.loads(best)
    agrees(choice(["rows"]), {"x": rows_of(5, COLUMNS)}, records=str(records), threads=1)


def test_generated_rows_are_offered_for_a_group_of_several_results():
    """The built-in card is keyed by loops, so a plan may take it for what another card claimed."""
    source = choice(["rows"])
    plan = heddle.compile(source, schedules=FOLDER).compiled.plan
    plan["groups"][0] |= {"card": "reduce_rows", "knobs": {"rows": 2}}
    del plan["groups"][0]["card_hash"]
    made = agrees(source, {"x": rows_of(9, COLUMNS)}, plan=plan)
    assert groups(made) == {"best": "reduce_rows"}
