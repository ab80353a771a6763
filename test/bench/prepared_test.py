"""Prepared forms of engines are kept, taken again, and made anew where they must be."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node

from bench.peers import bench, member, prepared
from bench.peers.cases import Case
from bench.peers.engines import Engine
from bench.peers.job import Job
from bench.peers.member import Failed, Late


@pytest.fixture(autouse=True)
def find_fake_engine(monkeypatch):
    """Workers find fake_engine.py."""
    folder = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", folder)
    monkeypatch.syspath_prepend(folder)


class Desk:
    """Prepares with a fake engine; each time in a folder of its own, as contests do."""

    def __init__(self, root):
        self.root, self.diary, self.count = root, root / "diary", 0
        self.shelf = prepared.Shelf(root / "shelf")
        np.savez(root / "feeds.npz", x=np.ones(3, np.float32))

    def prepare(self, model="m", limit_s=600.0, threads=1, name="fake", **options):
        """(what was told, the job's folder)."""
        self.count += 1
        options |= {"diary": str(self.diary)}
        engine = Engine(name, "fake_engine", options)
        job = Job(engine.module, model, str(self.root / "feeds.npz"),
                  str(self.root / f"job{self.count}"), threads, options=options)
        return self.shelf.prepare(engine, job, "toy-b1", model, limit_s), Path(job.folder)

    def times(self):
        """How often an engine has prepared so far."""
        return len(self.diary.read_text().splitlines())

    def names(self):
        return sorted(path.name for path in self.shelf.folder.iterdir())


@pytest.fixture(name="desk")
def make_desk(tmp_path):
    return Desk(tmp_path)


def test_what_is_prepared_once_is_taken_again(desk):
    first, _ = desk.prepare()
    again, folder = desk.prepare()
    assert first == again == {"seconds": 0.5} and desk.times() == 1
    assert (folder / "artefact").read_text() == "made"
    assert not (folder / "found.json").exists() and not (folder / "log").exists()


def test_another_model_takes_the_place_of_the_old_one_and_engines_do_not_mix(desk):
    desk.prepare()
    desk.prepare(name="fake_tuned")
    desk.prepare(threads=2)
    assert len(desk.names()) == 3
    desk.prepare(model="other")
    assert desk.times() == 4 and len(desk.names()) == 3
    desk.prepare()
    assert desk.times() == 5


def test_options_and_settings_tell_one_artefact_from_another(desk, monkeypatch):
    import fake_engine
    desk.prepare()
    desk.prepare(adds=2)
    assert desk.times() == 2
    monkeypatch.setattr(fake_engine, "SETTINGS", ["-O3"], raising=False)
    desk.prepare(adds=2)
    assert desk.times() == 3
    monkeypatch.setattr(fake_engine, "any_threads", lambda: True, raising=False)
    desk.prepare(adds=2)
    desk.prepare(adds=2, threads=2)
    assert desk.times() == 4 and not any("-t2-" in name for name in desk.names())


def test_fresh_prepares_anew(desk):
    desk.prepare()
    desk.shelf = replace(desk.shelf, fresh=True)
    desk.prepare()
    assert desk.times() == 2 and len(desk.names()) == 1


def test_a_refusal_is_kept_with_its_reason(desk):
    for _ in range(2):
        with pytest.raises(Failed, match="^RuntimeError: no such op and a long story$"):
            desk.prepare(refuses=True)
    assert desk.times() == 1


def test_want_of_time_is_kept_for_no_longer_limits(desk, monkeypatch):
    def no_answer(*_):
        """The time is over once the engine has begun."""
        for _ in range(60000):
            if desk.diary.exists() and desk.times():
                break
            time.sleep(0.01)
        return [], [], []

    wanted = desk.root / "wanted"
    with monkeypatch.context() as patch, pytest.raises(Late):
        patch.setattr(member, "select", SimpleNamespace(select=no_answer))
        desk.prepare(ponders_until=str(wanted), limit_s=1)
    with pytest.raises(Failed, match="no answer to 'prepare' within 1 s"):
        desk.prepare(ponders_until=str(wanted), limit_s=0.5)
    assert desk.times() == 1
    wanted.touch()
    assert desk.prepare(ponders_until=str(wanted))[0] == {"seconds": 0.5}
    assert desk.times() == 2


def test_what_was_interrupted_leaves_nothing(desk, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Path, "rename", interrupt)
        desk.prepare()
    desk.prepare()
    assert desk.times() == 2


def test_an_engine_may_ask_not_to_be_kept(desk, monkeypatch):
    import fake_engine
    monkeypatch.setattr(fake_engine, "KEPT", False, raising=False)
    desk.prepare()
    desk.prepare()
    assert desk.times() == 2 and not desk.shelf.folder.exists()


def test_a_contest_takes_what_was_prepared_before_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(bench, "STORE", tmp_path)
    model, diary = tmp_path / "model.onnx", tmp_path / "diary"
    model.write_bytes(b"a model")
    case = Case("toy", lambda: model, lambda batch, random: {"x": np.ones(batch, np.float32)})
    engine = Engine("onnxruntime", "fake_engine", {"diary": str(diary)})
    setting = bench.Setting(1, [], 600, bench.rounds.Pace(0.1, 1, 2, pause_s=0, limit_s=600))
    assert bench.prepare_only(case, 1, setting, {"onnxruntime": engine})
    assert "compiled in 0.5 s" in capsys.readouterr().out
    report = bench.contest(case, 1, setting, {"onnxruntime": engine})["onnxruntime"]
    assert report["status"] == "ok" and report["compile_s"] == 0.5
    assert len(diary.read_text().splitlines()) == 1


@pytest.mark.usefixtures("compiler")
def test_heddle_is_run_as_a_contest_runs_it(tmp_path):
    from bench.peers.engines import heddle as engine

    onnx.save(make_model([make_node("Neg", "x", "y")], {"x": [3]}, {"y": [3]}, opset=18),
              tmp_path / "m.onnx")
    np.savez(tmp_path / "feeds.npz", x=np.ones(3, np.float32))
    job = Job("bench.peers.engines.heddle", str(tmp_path / "m.onnx"), str(tmp_path / "feeds.npz"),
              str(tmp_path), 1, options={})
    engine.prepare(job)
    run = engine.load(job).run
    assert [result.tolist() for result in run()] == [[-1, -1, -1]]
