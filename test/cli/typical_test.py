"""`--typical`: what a size usually is decides how work is laid out, and nothing else."""

import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node

from command import OK, fails, heddle, json_of, needs_heddle, save

import heddle as package

pytestmark = needs_heddle


@pytest.fixture(autouse=True)
def environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path):
    """A convolution that pays in transformed tiles on large images, and not on small ones."""
    filters = np.random.default_rng(0).standard_normal((64, 64, 3, 3)).astype(np.float32) / 24
    return save(make_model([make_node("Conv", "x w", "y", "conv", pads=[1, 1, 1, 1])],
                           {"x": [1, 64, "height", "width"]}, {"y": [1, 64, "height", "width"]},
                           {"w": filters}),
                tmp_path / "m.onnx")


def cards(model, *options):
    found = [heddle(command, model, "--json", *options) for command in ("plan", "explain")]
    assert all(done.status == OK for done in found), found
    planned, explained = ([group["card"] or "" for group in done.json["groups"]] for done in found)
    assert planned == explained
    return planned


def test_decides_between_forms(model):
    small = ("--typical", "height=2", "--typical", "width=2")
    assert "conv_winograd" in cards(model)
    assert "conv_winograd" not in cards(model, *small)
    assert "conv_winograd" in cards(model, "--typical", "height=56", "--typical", "width=56")


def test_all_sizes_stay_right(model):
    usual, other = package.compile(model), package.compile(
        model, typical={"height": 2, "width": 2}, cache=False)
    for height, width in ((2, 2), (17, 5), (56, 56), (1, 64)):
        x = np.random.default_rng(height).standard_normal((1, 64, height, width), np.float32)
        np.testing.assert_allclose(usual(x), other(x), rtol=1e-3, atol=1e-3)


def test_is_part_of_the_key_of_what_is_kept(model, tmp_path):
    small = ("--typical", "height=2", "--typical", "width=2")
    for options, is_kept in (((), False), (small, False), (small, True)):
        done = json_of("compile", model, "-o", tmp_path / "m.so", "--cache", tmp_path / "kept",
                       *options)
        assert done["report"].get("from_cache", False) == is_kept


def test_tuning_measures_at_it(model, tmp_path):
    done = json_of("tune", model, "--records", tmp_path / "r.db", "--time", 600, "--trials", 1,
                   "--threads", 1, "--typical", "height=8", "--typical", "width=8", "--at",
                   "width=9")
    assert done["groups"][0]["sizes"] == {"height": 8, "width": 9}


@pytest.mark.parametrize("text, complaint", [
    ("depth=3", "no input has a size 'depth'; there are: height, width"),
    ("height", "must be a name and a size from 1 to 2^40, such as seq=128"),
    ("height=0", "must be a name and a size from 1 to 2^40"),
    ("height=99999999999999999999", "must be a name and a size from 1 to 2^40"),
])
def test_is_refused(model, text, complaint):
    fails("plan", model, "--typical", text, says=complaint)
