"""`./dev bench gpu`: networks whose weights are drawn from their names, and what is kept where a
section fails."""

import importlib.util
import json
import sys
from types import SimpleNamespace

import numpy as np
import onnx
import onnxruntime
import pytest

import heddle
from bench.gpu import bench, cases, peers
from bench.models import tool
from bench.networks import seeded, transformers


def saved(name, folder):
    changed = cases.tiny(name, True)
    seeded.save(transformers.make(name, **changed), folder)
    sizes = transformers.sizes_of(name, **changed)
    feeds = transformers.feeds(name, sizes, 3, 11)
    path = str(seeded.fill(folder))
    return feeds, onnxruntime.InferenceSession(path).run(None, feeds)[0]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", transformers.NETWORKS)
def test_a_network_without_weights_in_its_file(tmp_path, name):
    feeds, wanted = saved(name, tmp_path)
    found = heddle.compile(tmp_path / seeded.MODEL).run(None, feeds)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    assert wanted.std() > 0.1, "nothing to compare"
    assert (tmp_path / seeded.MODEL).stat().st_size < 100_000
    whole = transformers.make(name, **cases.tiny(name, True)).model()
    onnx.checker.check_model(whole, full_check=True)
    np.testing.assert_array_equal(
        onnxruntime.InferenceSession(whole.SerializeToString()).run(None, feeds)[0], wanted)


@pytest.mark.parametrize("name", transformers.NETWORKS)
def test_torch_has_the_same_network(tmp_path, name):
    needed = "torchvision" if name in ("vit_b_16", "resnet50") else "transformers"
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed: './dev bench gpu' does that")
    feeds, wanted = saved(name, tmp_path)
    given = "eager", name, tmp_path, "f32", "cpu", cases.tiny(name, True)
    if name == "resnet50":
        with pytest.raises(peers.Failed, match="no ResNet-50 of other sizes"):
            peers.opened(*given)
        return
    np.testing.assert_allclose(peers.opened(*given).call(feeds)(), wanted, rtol=1e-3, atol=1e-3)


def test_weights_are_those_of_their_names():
    first, again, other = (seeded.Weight(name, (40, 50), 0.5, 2.0).draw() for name in "aab")
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert abs(first.mean() - 2) < 0.1 and abs(first.std() - 0.5) < 0.05
    net = transformers.make("gpt2", **cases.tiny("gpt2", True))
    words = "transformer.wte.weight"
    np.testing.assert_array_equal(net.drawn(f"{words}.T"), net.drawn(words).T)


@pytest.mark.parametrize("is_tiny", [False, True])
def test_cases_have_folders_of_their_own_and_all_their_inputs(is_tiny):
    every = cases.all_cases(is_tiny)
    assert len({case.folder for case in every}) == len(every)
    for case in every:
        if is_tiny or case.name not in transformers.NETWORKS:
            inputs = {value.name for value in case.make().inputs}
            assert all(set(feeds) == inputs for feeds in case.feeds()), case.name


def contest(folder, monkeypatch, seconds=bench.SECONDS):
    """One whose sections are of tests."""
    monkeypatch.setattr(tool, "RESULTS", folder)
    monkeypatch.setattr(bench, "write_models", lambda *_: None)
    return bench.Contest(SimpleNamespace(artefacts=folder, emulated=True, tiny=True, chip=None,
                                         rounds=1, turn=1.0, seconds=seconds))


WRITES = """
import sys, time
print('{"case": "one", "value": 2.5}', file=open(sys.argv[1], "w"), flush=True)
print("it is over", file=sys.stderr)
open(sys.argv[1], "a").write('{"case": "ha')
"""


@pytest.mark.parametrize("then, why", [
    ("", None), ("sys.exit(3)", "ended with status 3: it is over"),
    ("import os; os.abort()", "ended with status -6: it is over"),
    ("time.sleep(600)", "stopped after 8 s")])
def test_a_section_that_fails_keeps_its_rows(tmp_path, monkeypatch, then, why):
    made = contest(tmp_path, monkeypatch)
    monkeypatch.setattr(bench, "LIMITS", bench.LIMITS | {"numbers": 8 if "sleep" in then else 200})
    monkeypatch.setattr(made, "command", lambda section, place: [
        sys.executable, "-c", WRITES + then * (section == "numbers"), str(place)])
    made.run("numbers")
    made.run("models")
    kept = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    first = {"case": "one", "value": 2.5}
    assert kept["rows"]["models"] == [first] and "it is over" in kept["said"]["models"]
    assert kept["rows"]["numbers"] == [first, *[{"case": "numbers", "error": why}] * bool(why)]
    assert bench.is_wrong(kept["rows"]) == bool(why)
    assert "| one | 2.5 |" in (tmp_path / "gpu.md").read_text(encoding="utf-8")


def test_no_time_and_no_sanitizer(tmp_path, monkeypatch):
    made = contest(tmp_path, monkeypatch, seconds=1.0)
    made.run("numbers")
    monkeypatch.setattr(bench.shutil, "which", lambda name: None)
    made.run("sanitizer")
    assert made.found["rows"] == {
        "numbers": [{"case": "numbers", "error": "no time was left"}],
        "sanitizer": [{"case": "sanitizer", "found": "there is no compute-sanitizer on PATH"}]}


def test_times_of_the_emulated_driver_are_no_page(tmp_path, monkeypatch):
    made = contest(tmp_path, monkeypatch)
    made.write()
    with pytest.raises(SystemExit, match="its times mean nothing"):
        bench.write_page(tmp_path / "gpu.json")
    made.found["settings"] |= {"emulated": False, "tiny": False}
    made.write()
    monkeypatch.setattr(bench, "PAGE", tmp_path / "page.md")
    bench.write_page(tmp_path / "gpu.json")
    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith("# Heddle on a GPU\n")
