"""The corpus of measured candidates: networks that are drawn, and a collection that is ended."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import checker, shape_inference

from bench.learning import corpus, evaluation, repeats, sources, tuning
from bench.networks import blocks, drawn

ROOT = Path(__file__).resolve().parents[2]


def test_drawn_networks_are_models():
    names = set()
    for seed in range(2 * 3 * len(drawn.FAMILIES)):
        name, model = drawn.network(seed)
        names.add(name)
        if "step_of" not in name:  # the checker knows nothing of Gradient
            checker.check_model(model)
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    assert len(names) == 42
    assert {name.split("_", 2)[2] for name in names} == {
        *drawn.FAMILIES, *(f"step_of_{name}" for name in drawn.TRAINED)}


def test_a_seed_is_always_the_same_network():
    for seed in range(14):
        (name, one), (_, other) = drawn.network(seed), drawn.network(seed)
        assert one.SerializeToString() == other.SerializeToString(), name
    assert drawn.network(0)[1] != drawn.network(7)[1]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("seed", range(21))
def test_drawn_networks_are_planned(seed, tmp_path):
    import onnx

    import heddle

    name, model = drawn.network(seed)
    onnx.save(model, tmp_path / "m.onnx")
    compiled = heddle.compile(tmp_path / "m.onnx", cache=False, threads=1, opt_level=0, load=False)
    assert compiled.plan["groups"], name


def test_published_networks_are_models():
    assert len(set(blocks.NAMES)) == 2 * len(blocks.MAKERS) + len(blocks.SYMBOLS)
    for name in blocks.NAMES:
        model = blocks.network(name)
        checker.check_model(model)
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        sizes = [dim for value in model.graph.input for dim in value.type.tensor_type.shape.dim]
        assert any(dim.dim_param for dim in sizes) == name.endswith("dynamic"), name


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("name", [name for name in blocks.NAMES if not name.endswith("big")])
def test_published_networks_are_planned(name):
    import heddle

    compiled = heddle.compile(blocks.network(name).SerializeToString(), cache=False, threads=1,
                              opt_level=0, load=False)
    assert compiled.plan["groups"]


def test_kinds_are_interleaved(tmp_path):
    names = [name for name, _ in sources.models({"drawn": 9, "catalogue": 2, "fuzz": 3}, tmp_path)]
    kinds = ["drawn" if name.startswith("drawn") else "fuzz" if name.startswith("fuzz") else "real"
             for name in names]
    four = ["drawn"] * 4
    assert kinds == [*four, "real", "fuzz", *four, "real", "fuzz", "drawn", "fuzz"]


# A collection that gets a signal while its first model is measured, of which something is known.
ENDED = """
import os, signal, sqlite3, subprocess, sys, time, types
from bench.learning import corpus

class Ended(subprocess.Popen):
    def communicate(self, **options):
        while options and self.poll() is None and not self.has_found_some():
            time.sleep(0.01)
        if options:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().communicate(**options)

    def has_found_some(self):
        try:
            return corpus.counts_of(sys.argv[2])[1] >= 2
        except sqlite3.OperationalError:  # there is no table yet
            return False

corpus.subprocess = types.SimpleNamespace(**{**vars(subprocess), "Popen": Ended})
sys.exit(corpus.main())
"""


@pytest.mark.usefixtures("compiler")
def test_a_collection_goes_on_where_it_was_ended(tmp_path):
    path = tmp_path / "corpus.db"

    def collect(*program):
        """(output, what is known then)."""
        done = subprocess.run(
            [sys.executable, *program, "-o", str(path), "--drawn", "2", "--published", "0",
             "--catalogue", "0", "--fuzz", "0", "--collect", "2", "--model-time", "600"], cwd=ROOT,
            env={**os.environ, "HEDDLE_CACHE": "", "PYTHONPATH": f"{ROOT / 'python'}:{ROOT}"},
            capture_output=True, text=True, check=False, timeout=3600)
        assert done.returncode == 0, done.stderr
        return done.stdout, corpus.counts_of(path)

    output, before = collect("-c", ENDED)
    assert "ended; the same command goes on" in output and before[1] > 0
    output, after = collect("-m", "bench.learning.corpus")
    assert "2 models" in output and after[1] > before[1]
    output, again = collect("-m", "bench.learning.corpus")
    assert again == after and output.count(" 0 trials now") == 2
    packed = tmp_path / "corpus.db.xz"
    corpus.pack(path, packed)
    (tmp_path / "unpacked").mkdir()
    held, evaluation.KEPT = evaluation.KEPT, packed
    try:
        assert corpus.counts_of(evaluation.unpacked(tmp_path / "unpacked")) == after
        assert evaluation.target_of(path)
    finally:
        evaluation.KEPT = held


def trial_file(path, seconds):
    """Records of two groups: candidates of these seconds, and one that is alone."""
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE trial (key, sizes, base, card, knobs, seconds, speedup, "
                     "failure)")
    for number, each in enumerate(seconds):
        database.execute("INSERT INTO trial VALUES ('a', '', 'b', 'c', ?, ?, ?, '')",
                         [str(number), each, 1e-4 / each])
    database.execute("INSERT INTO trial VALUES ('b', '', 'b', 'c', '0', 1.0, 1.0, '')")
    database.commit()
    database.close()
    return repeats.read(path, 2e-6)


def test_what_is_timed_again_is_compared(tmp_path):
    once = trial_file(tmp_path / "0.db", [1e-4, 2e-4, 3e-4, 3.03e-4])
    again = trial_file(tmp_path / "1.db", [1e-4, 2e-4, 3.06e-4, 3e-4])
    kinds = repeats.common([once, again], {"a": "rows"})
    [group] = kinds["rows"]  # the other group has one candidate
    assert group.shape == (4, 2)
    tau, clear = repeats.between([group], [0], [1])
    assert tau == pytest.approx(4 / 6) and clear == 1  # what differs by 1 % changed places
    assert repeats.between([group], [0], [0]) == (1, 1)


def test_tunings_are_summed_up():
    def found(led, trials):
        less = {"trials": trials, "seconds": 20.0}
        return {"full": {"trials": 160, "seconds": 100.0}, "led": less, "few": less,
                "times": {"full": 0.8, "led": led, "few": 1.0}}

    text = tuning.summary({"a": found(0.8, 20), "b": found(0.8, 20)})
    assert "with the model: 1.000 of full tuning's speed" in text and "8.0 times fewer" in text
    assert "in 5.0 times less time" in text and "led: 1.250 times as fast" in text
