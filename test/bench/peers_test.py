"""The harness of the peers: workers that answer, die, hang or differ, and what is told of them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from bench.models.sources import Missing
from bench.peers import agreement, bench, cases, rounds, table
from bench.peers.cases import Case
from bench.peers.engines import Engine
from bench.peers.job import Job
from bench.peers.member import Failed, Member

HANGS = 600  # seconds, after which no answer will come


@pytest.fixture(autouse=True)
def find_fake_engine(monkeypatch, tmp_path):
    """Workers find fake_engine.py, and results go to a folder of the test's own."""
    folder = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", folder)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(bench, "STORE", tmp_path)


def fake(name, **options):
    return Engine(name, "fake_engine", options)


@pytest.fixture(name="job")
def make_job(tmp_path):
    feeds = tmp_path / "feeds.npz"
    np.savez(feeds, x=np.ones(3, np.float32))
    return Job("fake_engine", "none", str(feeds), str(tmp_path / "fake"))


@pytest.fixture(name="case")
def make_case(tmp_path):
    model = tmp_path / "model.onnx"
    model.write_bytes(b"a model")
    return Case("toy", lambda: model, lambda batch, random: {"x": np.ones(3 * batch, np.float32)})


def compete(case, monkeypatch, *engines, limit=HANGS):
    """The reports of a contest of fake engines."""
    chosen = {engine.name: engine for engine in engines}
    monkeypatch.setattr(bench, "engines", lambda *_: {"onnxruntime": fake("onnxruntime")} | chosen)
    pace = rounds.Pace(seconds=0.2, least=3, most=5, turn_ms=2, pause_s=0, limit_s=limit)
    return bench.contest(case, 1, bench.Setting(1, [], limit, pace), chosen)


def test_a_worker_answers_and_its_chatter_is_no_answer(job):
    with Member(job) as member:
        assert member.ask("prepare", HANGS)["seconds"] == 0.5
        loaded = member.ask("load", HANGS)
        assert loaded["loaded_bytes"] >= loaded["base_bytes"] > 0
        assert member.ask("run", HANGS, times=4, warm=1)["ms"] == [1] * 4
        assert member.ask("memory", HANGS, times=1)["peak_bytes"] > 0
        assert member.ask("idle", HANGS, seconds=0.01)["cpu_s"] < 0.1
        assert member.ask("serve", HANGS, callers=2, seconds=0.05)["runs_per_s"] > 0


def test_an_error_is_one_line_and_the_worker_lives_on(job):
    with Member(replace(job, options={"refuses": True})) as member:
        with pytest.raises(Failed, match="^RuntimeError: no such op and a long story$"):
            member.ask("prepare", HANGS)
        assert member.ask("load", HANGS)


def test_a_worker_that_dies_is_told_with_its_signal(job):
    with Member(replace(job, options={"dies_after": 1})) as member:
        member.ask("load", HANGS)
        with pytest.raises(Failed, match="died with SIGKILL"):
            member.ask("run", HANGS, times=1)


def test_a_worker_that_hangs_is_ended(job):
    with Member(replace(job, options={"hangs": True})) as member:
        with pytest.raises(Failed, match="no answer to 'load' within 0 s"):
            member.ask("load", 0.4)
        assert member.process.poll() is not None


def test_a_contest_ranks_who_agrees_and_tells_of_the_others(case, monkeypatch):
    reports = compete(case, monkeypatch, fake("heddle", ms=1), fake("onnxruntime", ms=4),
                      fake("wrong", adds=2), fake("refusing", refuses=True),
                      fake("dying", dies_after=3))
    assert reports["heddle"]["ratio"] == 1
    assert reports["onnxruntime"]["ratio"] == 4
    assert reports["wrong"]["status"] == "differs" and "median_ms" not in reports["wrong"]
    assert reports["refusing"]["error"].startswith("RuntimeError: no such op")
    assert reports["dying"]["status"] == "failed" and "SIGKILL" in reports["dying"]["error"]
    assert {"peak_bytes", "idle_cpu", "compile_s"} <= reports["heddle"].keys()
    for name, report in reports.items():
        assert name in bench.line_of(name, report)


def test_without_the_reference_there_is_no_contest(case, monkeypatch):
    with pytest.raises(Missing, match="the reference"):
        compete(case, monkeypatch, fake("heddle"), fake("onnxruntime", refuses=True))


def test_results_are_kept_until_a_version_changes(tmp_path):
    path = tmp_path / "toy.json"
    wanted = {"model": "toy", "batch": 1, "versions": {"heddle": "1"}}
    assert bench.kept(path, wanted) is None
    stored = {"model": "toy", "batch": 1,
              "engines": {"heddle": {"version": "1"}, "onnxruntime": {"version": "7"}}}
    path.write_text(json.dumps(stored))
    assert bench.kept(path, wanted) == stored
    assert bench.kept(path, wanted | {"batch": 16}) is None
    assert bench.kept(path, wanted | {"versions": {"heddle": "2"}}) is None
    assert bench.kept(path, wanted | {"versions": {"heddle": "1", "tvm": "3"}}) is None


def test_agreement_of_floats_integers_and_quantised():
    ones = np.ones(1000, np.float32)
    assert agreement.farthest([ones * 1.001], [ones]) < 1
    assert agreement.farthest([ones * 1.01], [ones]) > 1
    assert agreement.farthest([ones, ones], [ones]) > 1
    assert agreement.farthest([ones[:-1]], [ones]) > 1
    assert agreement.farthest([ones * np.nan], [ones]) > 1
    assert agreement.farthest([np.arange(3)], [np.arange(3)]) == 0
    assert agreement.farthest([np.arange(3)], [np.zeros(3, np.int64)]) > 1
    some = ones.copy()
    some[:5] = 0  # few are far off
    assert agreement.farthest([some], [ones]) > 1
    assert agreement.farthest([some], [ones], quantised=True) < 1


def test_ratios_are_taken_within_rounds():
    found = rounds.figures({"heddle": [1, 2, 4], "peer": [2, 4, 8], "late": [3, 3, 3]}, "heddle")
    assert found["peer"]["ratio"] == found["peer"]["ratio_q1"] == 2
    assert found["peer"]["median_ms"] == 4 and found["late"]["ratio"] == 1.5


def result(model, **ratios):
    """A result where Heddle takes 1 ms."""
    reports = {name: {"status": "ok", "version": f"{name} 1", "median_ms": ratio, "q1_ms": ratio,
                      "q3_ms": ratio, "ratio": ratio, "compile_s": 1.0, "load_s": 0.1,
                      "peak_bytes": 2**20} for name, ratio in ratios.items()}
    return {"model": model, "batch": 1, "threads": 1, "date": "2026-01-01", "machine": "m",
            "engines": reports}


def test_means_are_geometric_and_the_best_peer_is_the_fastest_of_each_row():
    found = [result("a", heddle=1, onnxruntime=2, openvino=8),
             result("b", heddle=1, onnxruntime=8, openvino=0.5)]
    found[1]["engines"]["iree"] = {"status": "differs", "version": "iree 1", "worst": 3.0}
    ratios, best, memory = table.means(found, ["onnxruntime", "openvino", "iree"])
    assert ratios["iree"] is None and memory == 1
    assert [ratios["onnxruntime"], ratios["openvino"]] == pytest.approx([4, 2])
    assert best == pytest.approx(1)  # of 2 and 0.5
    text = table.table(found)
    assert "| differs |" in text and "**4.00**" in text
    assert "off by 3 times" in table.failures(found)
    heads, _, row = (line.split(" | ") for line in table.summary(found).splitlines())
    assert dict(zip(heads, row))["ONNX Runtime"] == "4.00" and row[0] == "| 1"
    assert row[-2:] == ["1.00", "1.00 |"]
    assert "| b | 1 | 1 | 1 (1-1); 1.0+0.1; 0/1 |" in table.costs(found)


def test_the_readme_needs_its_markers():
    with pytest.raises(ValueError, match="lacks the markers"):
        table.replace("no numbers here", "table")
    text = f"before\n{table.BEGIN}\nold\n{table.END}\nafter"
    assert table.replace(text, "new") == f"before\n{table.BEGIN}\nnew\n{table.END}\nafter"


def test_files_from_anywhere_have_random_inputs_of_their_tables(tmp_path):
    path = tmp_path / "rows.onnx"
    path.write_bytes(onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 17]>
        rows (int64[batch, words] ids) => (float[batch, words, 1] y)
        <float[3, 1] table = {1, 2, 3}> { y = Gather(table, ids) }""").SerializeToString())
    case = cases.of_file(path, ["words=50"])
    ids = case.make_feeds(2)["ids"]
    assert (case.name, ids.shape, {*ids.flat}) == ("rows", (2, 50), {0, 1, 2})
    with pytest.raises(Missing, match=r"'ids' is int64\[batch, words\], whose size 'words' is"):
        cases.of_file(path, [])
    path.write_bytes(b"\x08no model")
    with pytest.raises(Missing, match="rows.onnx"):
        cases.of_file(path, [])
