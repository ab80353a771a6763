"""`heddle cost`: features of records, and models that learn from them."""

import json
import shutil
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parent))

from command import OK, USAGE, heddle, make_model, needs_heddle, save, value  # noqa: E402

pytestmark = needs_heddle
ONE = ("--threads", "1")


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Three small models, some candidates of each."""
    folder = tmp_path_factory.mktemp("cost")
    random = np.random.default_rng(0)
    for number, width in enumerate((32, 48, 80)):
        weights = numpy_helper.from_array(
            random.standard_normal((width, width)).astype(np.float32), "w")
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], "product"),
                 helper.make_node("Softmax", ["y"], ["z"], "softmax")]
        model = save(make_model(nodes, [value("x", ["batch", width])],
                                [value("z", ["batch", width])], [weights]),
                     folder / f"m{number}.onnx")
        done = heddle("tune", model, "--records", folder / "records.db", "--collect", 5, *ONE)
        assert done.status == OK, done.errors
    return folder / "records.db"


@pytest.fixture
def copy(records, tmp_path):
    return Path(shutil.copy(records, tmp_path / "copy.db"))


def features(path, into, *more):
    return heddle("cost", "features", path, "-o", into, *more)


def about(path):
    with np.load(path) as file:
        return json.loads(file["about"].tobytes()), dict(file)


def test_features_are_of_all_candidates(records, tmp_path):
    done = features(records, tmp_path / "x.npz")
    assert done.status == OK, done.errors
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
    done = features(copy, tmp_path / "old.npz")
    assert done.status == OK, done.errors
    assert features(records, tmp_path / "new.npz").status == OK
    (old, arrays), (new, same) = about(tmp_path / "old.npz"), about(tmp_path / "new.npz")
    assert np.array_equal(arrays["candidates"], same["candidates"])
    assert all(not group["models"] for group in old["groups"])
    done = heddle("cost", "evaluate", tmp_path / "old.npz", "--models", "analytic", "--least", 0)
    assert done.status == USAGE
    assert "does not say which models its groups are of" in done.errors


def test_damaged_files_are_refused(copy, tmp_path):
    sqlite3.connect(copy).executescript("UPDATE subject SET text = 'module {}'")
    done = features(copy, tmp_path / "x.npz")
    assert done.status == USAGE and "is damaged" in done.errors
    assert not (tmp_path / "x.npz").exists()
    copy.write_text("no records at all, and this is long enough to be looked at as a database")
    done = features(copy, tmp_path / "x.npz")
    assert done.status == USAGE and "it is no SQLite file, or a damaged one" in done.errors


def test_other_versions_are_refused(copy, tmp_path):
    sqlite3.connect(copy).execute("PRAGMA user_version = 99")
    done = features(copy, tmp_path / "x.npz")
    assert done.status == USAGE and "its schema is version 99" in done.errors


def test_records_of_another_machine_are_refused(copy, tmp_path):
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE trial SET target = 'elsewhere'")
    connection.commit()
    done = features(copy, tmp_path / "x.npz")
    assert done.status == USAGE
    assert "its measurements are of another machine: they are for 'elsewhere'" in done.errors
    # Those who ask for them are told that the file has to describe that machine.
    done = features(copy, tmp_path / "x.npz", "--target", "elsewhere")
    assert done.status == USAGE and "it does not describe the machine" in done.errors
    connection.execute("UPDATE machine SET target = 'elsewhere'")
    connection.commit()
    done = features(copy, tmp_path / "x.npz", "--target", "elsewhere")
    assert done.status == OK, done.errors
    assert about(tmp_path / "x.npz")[0]["target"] == "elsewhere"


def test_files_of_features_are_checked(records, tmp_path):
    path = tmp_path / "x.npz"
    assert features(records, path).status == OK
    held = path.read_bytes()
    path.write_bytes(held[:len(held) // 2])
    done = heddle("cost", "evaluate", path)
    assert done.status == USAGE and "cannot use tuning records" in done.errors
    path.write_bytes(held)
    says, arrays = about(path)
    arrays["about"] = np.frombuffer(json.dumps({**says, "version": 99}).encode(), np.uint8)
    np.savez(path, **arrays)
    done = heddle("cost", "evaluate", path)
    assert done.status == USAGE and "has features of version 99, this heddle reads" in done.errors
    del arrays["seconds"]
    np.savez(path, **arrays)
    assert heddle("cost", "evaluate", path).status == USAGE
