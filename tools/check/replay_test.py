"""Finds of ./dev replay: what changed, and nothing else."""

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("replay", Path(__file__).with_name("replay.py"))
replay = importlib.util.module_from_spec(spec)
spec.loader.exec_module(replay)
NAMES = ["op Abs", "op Gemm"]


@pytest.fixture(name="paths")
def models(tmp_path, monkeypatch):
    """Two small models; what is kept lies in a folder of the test."""
    monkeypatch.setattr(replay, "KEPT", tmp_path / "kept")
    return replay.fetch_models(NAMES, tmp_path)


def test_a_tree_equals_itself(paths, capsys):
    replay.keep("itself", replay.compile_all(replay.HEDDLE, paths, ["x86-64-v3"]))
    assert replay.compare("itself", "itself", paths, ["x86-64-v3"]) == 0
    assert "2 compilations of 2 models: none differs from itself" in capsys.readouterr().out


def test_another_object_a_plan_and_a_refusal_are_seen(paths, capsys):
    made = replay.compile_all(replay.HEDDLE, paths, ["x86-64-v3", "aarch64"])
    assert len({each.digest for each in made.values()}) == 4
    abs_v3, gemm_v3 = ((name, "x86-64-v3") for name in NAMES)
    made[abs_v3].digest = "0"
    made[gemm_v3].plan = made[gemm_v3].plan.replace('"card":"', '"card":"other_')
    made["op Abs", "aarch64"] = replay.Compilation("", "error: no")
    replay.keep("other", made)
    assert replay.compare("other", "other", paths, ["x86-64-v3", "aarch64"]) == 1
    text = capsys.readouterr().out
    assert "op Abs, x86-64-v3:\n  equal plans, another object" in text
    assert "op Gemm, x86-64-v3:\n  another plan:\n    -" in text and "other_" in text
    assert "op Abs, aarch64:\n  was: error: no" in text
    assert "op Gemm, aarch64" not in text
    assert "4 compilations of 2 models: 3 differ from other" in text


def test_an_unknown_model_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="no model 'op Nothing'; there are 'ops'"):
        replay.fetch_models(["op Nothing"], tmp_path)
