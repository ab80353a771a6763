"""`heddle cost`: features of records, and models that learn from them."""

import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node, make_value
from onnx import TensorProto

from command import fails, heddle, json_of, needs_heddle, ok, save

pytestmark = needs_heddle
ONE = ("--threads", "1")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Three small models, some candidates of each."""
    folder = tmp_path_factory.mktemp("cost")
    random = np.random.default_rng(0)
    for number, width in enumerate((32, 48, 80)):
        weights = {"w": random.standard_normal((width, width)).astype(np.float32)}
        nodes = [make_node("MatMul", "x w", "y", "product"),
                 make_node("Softmax", "y", "z", "softmax")]
        model = save(make_model(nodes, {"x": ["batch", width]}, {"z": ["batch", width]}, weights),
                     folder / f"m{number}.onnx")
        ok("tune", model, "--records", folder / "records.db", "--collect", 5, *ONE)
    return folder / "records.db"


@pytest.fixture
def copy(records, tmp_path):
    return Path(shutil.copy(records, tmp_path / "copy.db"))


def about(path):
    with np.load(path) as file:
        return json.loads(file["about"].tobytes()), dict(file)


def test_features_are_of_all_candidates(records, tmp_path):
    ok("cost", "features", records, "-o", tmp_path / "x.npz")
    says, arrays = about(tmp_path / "x.npz")
    trials = sqlite3.connect(records).execute("SELECT count(*) FROM trial WHERE failure = ''")
    assert len(arrays["seconds"]) == trials.fetchone()[0]
    assert arrays["candidates"].shape == (len(arrays["seconds"]), len(says["candidate_names"]))
    assert arrays["nodes"].shape == (len(arrays["ops"]), len(says["node_names"]))
    assert {model for group in says["groups"] for model in group["models"]} == {
        "m0.onnx", "m1.onnx", "m2.onnx"}
    assert says["threads"] == 1 and np.all(arrays["seconds"] > 0)
    # The default choice of each group is among its candidates.
    starts = arrays["candidate_starts"]
    assert [int(arrays["is_default"][a:b].sum()) for a, b in zip(starts, starts[1:])] == \
        [1] * len(says["groups"])
    # Knobs are told as they were recorded.
    m = says["candidate_names"].index("knob_m")
    rows = sqlite3.connect(records).execute("SELECT knobs FROM trial WHERE failure = ''")
    measured = {json.loads(knobs)["m"] for knobs, in rows if "m" in json.loads(knobs)}
    told = {round(2 ** (float(x) - 1) - 1) for x in arrays["candidates"][:, m] if x}
    assert told == measured and len(told) > 1


def test_version_two_files_will_do(copy, records, tmp_path):
    sqlite3.connect(copy).executescript(
        "DROP TABLE origin; DROP TABLE card; DROP TABLE machine; PRAGMA user_version = 2")
    ok("cost", "features", copy, "-o", tmp_path / "old.npz")
    ok("cost", "features", records, "-o", tmp_path / "new.npz")
    (old, arrays), (_, same) = about(tmp_path / "old.npz"), about(tmp_path / "new.npz")
    assert np.array_equal(arrays["candidates"], same["candidates"])
    assert all(not group["models"] for group in old["groups"])
    fails("cost", "evaluate", tmp_path / "old.npz", "--models", "analytic", "--least", 0,
          says="does not say which models its groups are of")


def test_records_of_another_machine_are_refused(copy, tmp_path):
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE trial SET target = 'elsewhere'")
    connection.commit()
    asked = ("cost", "features", copy, "-o", tmp_path / "x.npz")
    fails(*asked, says="its measurements are of another machine: they are for 'elsewhere'")
    # Those who ask for them are told that the file has to describe that machine.
    asked = (*asked, "--target", "elsewhere")
    fails(*asked, says="it does not describe the machine")
    connection.execute("UPDATE machine SET target = 'elsewhere'")
    connection.commit()
    ok(*asked)
    assert about(tmp_path / "x.npz")[0]["target"] == "elsewhere"


def test_files_of_features_are_checked(records, tmp_path):
    path = tmp_path / "x.npz"
    ok("cost", "features", records, "-o", path)
    held = path.read_bytes()
    path.write_bytes(held[:len(held) // 2])
    fails("cost", "evaluate", path, says="cannot use tuning records")
    path.write_bytes(held)
    says, arrays = about(path)
    arrays["about"] = np.frombuffer(json.dumps({**says, "version": 99}).encode(), np.uint8)
    np.savez(path, **arrays)
    fails("cost", "evaluate", path, says="has features of version 99, this heddle reads")
    del arrays["seconds"]
    np.savez(path, **arrays)
    fails("cost", "evaluate", path)


@pytest.mark.parametrize("action", ["features", "evaluate", "train"])
@pytest.mark.parametrize("change, problem, way_out", [
    (lambda path: path.unlink(), "no such file", ""),
    (lambda path: path.write_bytes(path.read_bytes()[:5000]), "", ""),
    (lambda path: path.write_text("no records at all, and this is long enough to be one"),
     "it is no SQLite file, or a damaged one", ""),
    (lambda path: sqlite3.connect(path).executescript("UPDATE subject SET text = 'module {}'"),
     "is damaged: its hash is", "note: name another file, or remove this one"),
    (lambda path: sqlite3.connect(path).executescript("UPDATE trial SET target = 'elsewhere'"),
     "of another machine: they are for 'elsewhere'", "note: --target names one of these"),
    (lambda path: sqlite3.connect(path).executescript("PRAGMA user_version = 99"),
     "its schema is version 99", "note: "),
])
def test_a_bad_corpus_is_refused(copy, tmp_path, action, change, problem, way_out):
    change(copy)
    made = tmp_path / "made"
    more = {"features": ("-o", made), "evaluate": ("--models", "analytic", "--least", 0),
            "train": ("-o", made, "--least", 0)}[action]
    fails("cost", action, copy, *more, says=[str(copy), problem, way_out])
    assert not made.exists()


# Choosing by a cost model.

def made_cost_model(says, folder, name, knob="tiles", outside=0, version=1, weight=None):
    """An artefact with the interface of a cost model, which thinks that a candidate is the faster
    the larger this knob is; `weight`: and the slower the larger this feature is."""
    width = len(says["candidate_names"])
    weights = np.zeros((width, 1), np.float32)
    weights[says["candidate_names"].index(f"knob_{knob}")] = -1
    if weight:
        weights[says["candidate_names"].index(weight[0])] = weight[1]
    shapes = {"ops": [1, "n"], "nodes": [1, "n", len(says["node_names"])], "makers": [1, "n", "n"],
              "readers": [1, "n", "n"], "mask": [1, "n", 1], "candidates": [1, "c", width]}
    inputs = [make_value(each, shape, TensorProto.INT64 if each == "ops" else TensorProto.FLOAT)
              for each, shape in shapes.items()]
    outputs = {each: shape
               for each, shape in (("scores", [1, "c"]), ("outside", [1, "c"]), ("version", [2]))}
    constants = {"w": weights, "last": np.array([2], np.int64),
                 "beyond": np.array(outside, np.float32), "zero": np.array(0, np.float32),
                 "v": np.array([version, len(says["op_names"])], np.float32)}
    nodes = [make_node("MatMul", "candidates w", "y"), make_node("Squeeze", "y last", "scores"),
             make_node("Mul", "scores zero", "none"), make_node("Add", "none beyond", "outside"),
             make_node("Identity", "v", "version")]
    model = make_model(nodes, inputs, outputs, constants, opset=20)
    model.ir_version = 9
    onnx.save(model, folder / f"{name}.onnx")
    ok("compile", folder / f"{name}.onnx", "-o", folder / f"{name}.so", *ONE)
    return folder / f"{name}.so"


@pytest.fixture(scope="module")
def says(records, tmp_path_factory):
    path = tmp_path_factory.mktemp("says") / "x.npz"
    ok("cost", "features", records, "-o", path)
    return about(path)[0]


def product_of(rows, path):
    return save(make_model([make_node("MatMul", "x w", "y", "product")], {"x": [rows, 96]},
                           {"y": [rows, 64]}, {"w": np.ones((96, 64), np.float32)}), path)


@pytest.fixture
def product(tmp_path):
    return product_of(200, tmp_path / "p.onnx")


def knobs_of(model, *more):
    done = ok("plan", model, "--json", *ONE, *more)
    return done.json["groups"][0]["knobs"], done.errors


def test_a_cost_model_chooses(product, says, tmp_path):
    tiles = made_cost_model(says, tmp_path, "tiles")
    panels = made_cost_model(says, tmp_path, "panels", "panels")
    ruled, _ = knobs_of(product)
    assert ruled["tiles"] == ruled["panels"] == 0
    assert knobs_of(product, "--cost-model", tiles)[0]["tiles"] == 32
    assert knobs_of(product, "--cost-model", panels)[0]["panels"] == 32
    done = json_of("explain", product, "--cost-model", tiles, *ONE)
    said = done["cost_model"]["groups"]["product"]
    assert said["kept"] is None and said["instead_of"]["knobs"] == ruled
    assert said["speedup"] > 1.2
    assert said["moved"][0]["feature"] == "knob_tiles" and said["moved"][0]["factor"] > 1.2
    done = heddle("explain", product, "--cost-model", tiles, *ONE, "--group", "product")
    assert "as the cost model says; what moved its score:\n  knob_tiles: " in done.output
    done = heddle("explain", product, "--cost-model", tiles, *ONE)
    assert "cost     1 of 1 groups as the cost model says" in done.output
    # The numbers are right whatever was chosen.
    for each in (tiles, panels):
        ok("compare", product, "--cost-model", each, *ONE)


def test_plans_and_records_decide_before_a_cost_model(product, says, tmp_path):
    other = made_cost_model(says, tmp_path, "other")
    ok("plan", product, "-o", tmp_path / "m.plan", *ONE)
    ruled, _ = knobs_of(product)
    assert knobs_of(product, "--cost-model", other, "--plan", tmp_path / "m.plan")[0] == ruled
    ok("tune", product, "--records", tmp_path / "r.db", "--collect", 3, *ONE)
    both = ("--cost-model", other, "--records", tmp_path / "r.db")
    assert knobs_of(product, *both)[0]["tiles"] == 32  # short looks are no tuning
    connection = sqlite3.connect(tmp_path / "r.db")
    connection.execute("UPDATE trial SET confirmed = 1, speedup = 0.9 WHERE speedup <> 1")
    connection.commit()
    assert knobs_of(product, *both)[0] == ruled


def test_a_model_that_has_learned_from_f32_alone(product, says, tmp_path):
    """It lacks the feature that tells precisions apart, and chooses as before without them."""
    assert says["candidate_names"][-1] == "has_bf16"
    older = {**says, "candidate_names": says["candidate_names"][:-1]}
    tiles = made_cost_model(older, tmp_path, "older")
    assert knobs_of(product, "--cost-model", tiles)[0]["tiles"] == 32
    short = ("--math", "bf16-emulated", "--cost-model", tiles)
    assert json_of("plan", product, *ONE, *short)["groups"][0]["precision"] == "bf16"  # by rule
    assert knobs_of(product, *short)[0]["tiles"] == 0
    said = json_of("explain", product, *ONE, *short)["cost_model"]["groups"]["product"]
    assert said["kept"].startswith("1 of its features are outside of what the model has learned")


def test_a_cost_model_owns_precision(product, says, tmp_path):
    """One that finds bf16 slower is followed under `--math bf16`, against the rules."""
    exact = made_cost_model(says, tmp_path, "exact", weight=("has_bf16", 8))
    plan = json_of("plan", product, *ONE, "--math", "bf16-emulated", "--cost-model", exact)
    assert "precision" not in plan["groups"][0]
    told = json_of("explain", product, *ONE, "--math", "bf16-emulated", "--cost-model", exact)
    assert told["groups"][0]["why_precision"] == "the cost model says so"


def test_the_rules_take_over(product, says, tmp_path):
    ruled, _ = knobs_of(product)
    strange = made_cost_model(says, tmp_path, "strange", outside=3)
    assert knobs_of(product, "--cost-model", strange)[0] == ruled
    done = heddle("explain", product, "--cost-model", strange, *ONE, "--group", "product")
    assert ("the cost model was not followed: 3 of its features are outside of what the model has "
            "learned from") in done.output
    old = made_cost_model(says, tmp_path, "old", version=77)
    knobs, errors = knobs_of(product, "--cost-model", old)
    assert knobs == ruled
    assert "it has learned features of version 77, this heddle has 1; the rules choose" in errors
    other = tmp_path / "other.so"
    ok("compile", product, "-o", other, *ONE)
    knobs, errors = knobs_of(product, "--cost-model", other)
    assert knobs == ruled and "its inputs are not those of a cost model" in errors
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(old.read_bytes()[:3000])
    knobs, errors = knobs_of(product, "--cost-model", damaged)
    assert knobs == ruled and f"note: '{damaged}' is no cost model of this heddle" in errors
    fails("plan", product, "--cost-model", tmp_path / "nothing.so", *ONE,
          says="there is no such file")


def test_who_chooses_can_be_said(product, says, tmp_path, monkeypatch):
    tiles = made_cost_model(says, tmp_path, "tiles")
    ruled, _ = knobs_of(product)
    for more in (("--cost-model", tiles), ("--chooser", "learned", "--cost-model", tiles)):
        assert knobs_of(product, *more)[0]["tiles"] == 32
    fails("plan", product, "--chooser", "learned", *ONE,
          says=["error: chooser 'learned' needs a cost model",
                "--cost-model or HEDDLE_COST_MODEL names its file"])
    fails("plan", product, "--chooser", "rules", "--cost-model", tiles, *ONE,
          says=f"error: chooser 'rules' asks no cost model, but '{tiles}' is given")
    fails("plan", product, "--chooser", "oracle", *ONE, says=["--chooser", "learned"])
    # Records are measurements, which neither goes by.
    ok("tune", product, "--records", tmp_path / "r.db", "--collect", 2, *ONE)
    connection = sqlite3.connect(tmp_path / "r.db")
    connection.execute("UPDATE trial SET confirmed = 1, speedup = 2 WHERE speedup <> 1")
    connection.commit()
    [(card, knobs)] = connection.execute("SELECT card, knobs FROM trial WHERE speedup = 2 LIMIT 1")
    monkeypatch.setenv("HEDDLE_RECORDS", str(tmp_path / "r.db"))
    monkeypatch.setenv("HEDDLE_COST_MODEL", str(tiles))
    assert knobs_of(product)[0] == json.loads(knobs), card
    assert knobs_of(product, "--chooser", "learned")[0]["tiles"] == 32
    assert knobs_of(product, "--chooser", "rules")[0] == ruled
    fails("plan", product, "--chooser", "rules", "--records", tmp_path / "r.db", *ONE,
          says="error: chooser 'rules' goes by no measurement")
    import heddle as package

    monkeypatch.delenv("HEDDLE_RECORDS")
    options = {"threads": 1, "cache": False, "load": False}
    assert package.compile(product, **options).plan["groups"][0]["knobs"]["tiles"] == 32
    made = package.compile(product, chooser="rules", **options)
    assert made.plan["groups"][0]["knobs"] == ruled and "cost_model" not in made.report
    with pytest.raises(package.UsageError, match="there is no chooser 'oracle'; known: learned"):
        package.compile(product, chooser="oracle", **options)


def test_the_environment_only_hints(product, says, tmp_path, monkeypatch):
    ruled, _ = knobs_of(product)
    missing = tmp_path / "nothing.so"
    monkeypatch.setenv("HEDDLE_COST_MODEL", str(missing))
    for more in ((), ("--chooser", "learned")):
        knobs, errors = knobs_of(product, *more)
        assert knobs == ruled
        assert (f"note: '{missing}' is no cost model of this heddle: there is no such file; the "
                "rules choose instead ('heddle cost train' makes one") in errors
    assert knobs_of(product, "--chooser", "rules") == (ruled, "")
    damaged = tmp_path / "damaged.so"
    damaged.write_bytes(made_cost_model(says, tmp_path, "whole").read_bytes()[:3000])
    monkeypatch.setenv("HEDDLE_COST_MODEL", str(damaged))
    knobs, errors = knobs_of(product)
    assert knobs == ruled and f"note: '{damaged}' is no cost model of this heddle: " in errors


# Tuning by a cost model.

def tune(model, records, *more):
    return ok("tune", model, "--records", records, "--time", 600, "--json", *ONE, *more)


def measured(records, card="matmul"):
    rows = sqlite3.connect(records).execute("SELECT knobs FROM trial WHERE card = ?", [card])
    return [json.loads(knobs) for knobs, in rows]


def test_tuning_measures_what_a_cost_model_finds_fastest(product, says, tmp_path):
    path = made_cost_model(says, tmp_path, "tiles")
    done = tune(product, tmp_path / "r.db", "--cost-model", path, "--candidates", 3)
    [group] = done.json["groups"]
    assert group["scored"] > 4000 and group["unscored"] is None
    assert done.json["cost_model"] == {"path": str(path), "problem": None}
    assert done.json["ended"] == "done" and group["is_done"]
    knobs = measured(tmp_path / "r.db")
    assert 1 + 1 <= len(knobs) <= 1 + 3  # the default choice is one of them
    assert any(each["tiles"] == 32 for each in knobs)
    # A second time there is nothing left, and more candidates are more.
    again = tune(product, tmp_path / "r.db", "--cost-model", path, "--candidates", 3)
    assert again.json["trials"] == 0 and len(measured(tmp_path / "r.db")) == len(knobs)
    more = tune(product, tmp_path / "r.db", "--cost-model", path, "--candidates", 5)
    assert more.json["trials"] <= 2


def test_tuning_tries_what_a_cost_model_cannot_judge(says, tmp_path):
    model = product_of("batch", tmp_path / "p.onnx")
    path = made_cost_model(says, tmp_path, "tiles")
    done = tune(model, tmp_path / "r.db", "--cost-model", path, "--candidates", 1, "--at",
                "batch=200")
    [group] = done.json["groups"]
    assert group["scored"] > 4000 and group["sizes"] == {"batch": 200}
    offered = {card for card, in sqlite3.connect(tmp_path / "r.db").execute(
        "SELECT name FROM card WHERE mechanism LIKE 'onednn%' OR mechanism LIKE 'kernel%'")}
    assert all(len(measured(tmp_path / "r.db", card)) == 1 for card in offered)


def test_tuning_goes_on_without_a_cost_model_that_is_none(product, says, tmp_path, monkeypatch):
    old = made_cost_model(says, tmp_path, "old", version=77)
    done = tune(product, tmp_path / "r.db", "--cost-model", old, "--trials", 3)
    assert done.json["trials"] == 3 and done.json["groups"][0]["scored"] == 0
    problem = (f"'{old}' is no cost model of this heddle: it has learned features of version 77, "
               "this heddle has 1; the search goes on without it ('heddle cost train' makes one")
    assert f"note: {problem}" in done.errors
    assert done.json["cost_model"]["problem"].startswith(problem)
    strange = made_cost_model(says, tmp_path, "strange", outside=3)
    done = tune(product, tmp_path / "s.db", "--cost-model", strange, "--candidates", 2)
    assert done.json["groups"][0]["scored"] > 4000  # as strange as the default choice
    # The environment is for compilations.
    monkeypatch.setenv("HEDDLE_COST_MODEL", str(tmp_path / "nothing.so"))
    done = tune(product, tmp_path / "t.db", "--trials", 1)
    assert done.json["cost_model"] is None and done.errors == ""


@pytest.mark.parametrize("more, problem", [
    (("--candidates", 3), "--candidates counts what a cost model proposes, but there is none"),
    (("--candidates", 0), "--candidates"),
    (("--cost-model", "MODEL", "--collect", 3), "and --collect draws by chance"),
    (("--cost-model", "MODEL", "--over", "batch=1,2"), "but --over searches for all sizes"),
    (("--cost-model", "nothing.so"), "cannot read cost model 'nothing.so': there is no such file"),
    (("--chooser", "rules"), "--chooser says who chooses without measuring, and tuning measures"),
])
def test_tuning_refuses_what_contradicts(product, says, tmp_path, more, problem):
    if "MODEL" in more:
        path = made_cost_model(says, tmp_path, "one")
        more = [path if each == "MODEL" else each for each in more]
    fails("tune", product, "--records", tmp_path / "r.db", *ONE, *more, says=problem)


def test_the_cache_tells_cost_models_apart(product, says, tmp_path, monkeypatch):
    monkeypatch.setenv("HEDDLE_CACHE", str(tmp_path / "cache"))
    path = made_cost_model(says, tmp_path, "one")

    def artefact():
        ok("compile", product, "-o", tmp_path / "p.so", "--cost-model", path, *ONE)
        return (tmp_path / "p.so").read_bytes()

    def entries():
        return json_of("cache")["entries"]

    first = artefact()
    count = entries()
    assert artefact() == first and entries() == count
    made_cost_model(says, tmp_path, "one", "panels")  # in place of the first one
    assert artefact() != first


def test_training_makes_what_chooses(records, product, tmp_path):
    ok("cost", "train", records, "--least", 0, "--epochs", 2, "-o", tmp_path / "cost.onnx")
    ok("compile", tmp_path / "cost.onnx", "-o", tmp_path / "cost.so", *ONE)
    done = json_of("explain", product, "--cost-model", tmp_path / "cost.so", *ONE)
    assert done["cost_model"]["problem"] is None
    said = done["cost_model"]["groups"]["product"]
    # It has seen other sizes alone.
    assert "are outside of what the model has learned from" in said["kept"]
    assert said["knobs"] == said["instead_of"]["knobs"]
    fails("cost", "train", records, "--least", 1, "-o", tmp_path / "none.onnx",
          says="has no group with an order to learn")
