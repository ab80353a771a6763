"""Buffers of past keys and values with numbers of fewer bits: `--kv-cache-type`."""

import heddle as package
import numpy as np
import onnx
import onnx.parser
import pytest
from c_test import COMPILERS, Model
from command import OK, USAGE, heddle, save
from kv_cache_test import (CAPACITY, GROUPS, MODEL, OPS, RING, SIZE, appending, draw, ones, tokens,
                           write)

ml_dtypes = pytest.importorskip("ml_dtypes")
pytestmark = pytest.mark.usefixtures("compiler")

TYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "int8": np.int8}
PASTS = ("past_k", "past_v")


@pytest.fixture(name="model")
def make_model(tmp_path):
    return write(tmp_path)


def buffers(kind, *shape, seed=5):
    """Buffers as a run finds them: with numbers of earlier texts."""
    made = {}
    for name in PASTS:
        made[name] = (50 * draw(*shape, seed=seed)).astype(TYPES[kind])
        if kind == "int8":
            made[name + ".scales"] = np.abs(draw(*shape[:-1], seed=seed + 1))
    return made


def rounded(kind, array):
    """Numbers that a buffer keeps of keys or values, and their scales."""
    if kind != "int8":
        return array.astype(TYPES[kind]), None
    scales = np.abs(array).max(-1) / np.float32(127)
    codes = array / np.maximum(scales, np.finfo(np.float32).tiny)[..., None]
    return np.round(codes).astype(np.int8), scales


def read(kind, kept, name):
    numbers = kept[name].astype(np.float32)
    return numbers * kept[name + ".scales"][..., None] if kind == "int8" else numbers


def check_kept(kind, kept, name, wanted, total):
    numbers, scales = rounded(kind, wanted)
    found = kept[name][:, :, :total].astype(np.float32)
    assert np.abs(found - numbers.astype(np.float32)).max() <= (kind == "int8")  # ties
    if kind == "int8":
        np.testing.assert_allclose(kept[name + ".scales"][:, :, :total], scales, rtol=1e-6)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", TYPES)
def test_runs_extend_the_buffers(model, kind, batch):
    """The outputs are those of a model whose past is what the buffers keep, also of new tokens."""
    exact = package.compile(model, kv_cache=CAPACITY)
    cached = package.compile(model, kv_cache=CAPACITY, kv_cache_type=kind)
    assert [value.shares for value in cached.inputs[4:]] == list(range(4, len(cached.inputs)))
    kept, total = buffers(kind, batch, GROUPS, CAPACITY, SIZE), 0
    wide = {name: np.zeros((batch, GROUPS, CAPACITY, SIZE), np.float32) for name in PASTS}
    for seed, length in enumerate((7, 1, 1, 20, 2, 9)):
        total += length
        new = {**tokens(batch, length, seed), "mask": ones(batch, total)}
        found, = cached.run(None, {**new, **kept})
        for name, array in wide.items():
            fresh = new[name[-1]].reshape(batch, length, GROUPS, SIZE).transpose(0, 2, 1, 3)
            array[:, :, total - length:total] = fresh
            check_kept(kind, kept, name, array[:, :, :total], total)
        # The same text, whose keys and values are rounded before: a prompt of all tokens.
        past = {name: read(kind, kept, name) for name in PASTS}
        for name in ("k", "v"):
            part = past["past_" + name][:, :, total - length:total].transpose(0, 2, 1, 3)
            new[name] = part.reshape(batch, length, GROUPS * SIZE)
        np.testing.assert_allclose(found, exact.run(None, {**new, **past})[0], atol=1e-5)
    assert total == CAPACITY


@pytest.mark.parametrize("kind", ["bf16", "int8"])
@pytest.mark.parametrize("op", OPS)
def test_other_nodes(tmp_path, op, kind):
    path = save(appending(op), tmp_path / "m.onnx")
    exact = package.compile(path, kv_cache=32)
    cached = package.compile(path, kv_cache=32, kv_cache_type=kind)
    kept, total = buffers(kind, 2, 2, 32, 16), 0
    for seed, length in enumerate((3, 1, 12, 1, 15)):
        new = {name: draw(2, 2, length, 16, seed=seed * 3 + place)
               for place, name in enumerate(("q", "new_k", "new_v"))}
        length_before = {"past_length": np.array([total])}
        found, = cached.run(None, {**new, **kept, **length_before})
        total += length
        past = {name: read(kind, kept, name) for name in PASTS}
        for name in ("k", "v"):
            check_kept(kind, {each: array[:, :, total - length:] for each, array in kept.items()},
                       "past_" + name, new["new_" + name], length)
            new["new_" + name] = past["past_" + name][:, :, total - length:total].copy()
        wanted, = exact.run(None, {**new, **past, **length_before})
        np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("kind", ["f16", "int8"])
def test_a_ring(tmp_path, kind):
    path = save(onnx.parser.parse_model(RING), tmp_path / "m.onnx")
    cached, wide = package.compile(path, kv_cache=8, kv_cache_type=kind), np.zeros((2, 2, 8, 4))
    kept = {"past": np.zeros((2, 2, 8, 4), TYPES[kind])}
    if kind == "int8":
        kept["past.scales"] = np.zeros((2, 2, 8), np.float32)
    for place in range(0, 20, 3):
        update, at = draw(2, 2, 3, 4, seed=place), np.array([place % 8, 7])
        for row in range(2):
            wide[row, :, (at[row] + np.arange(3)) % 8] = update[row].transpose(1, 0, 2)
        sums, = cached.run(None, {"update": update, "at": at, **kept})
        np.testing.assert_allclose(sums, wide.sum(2), atol=0.1 if kind == "int8" else 0.02)
        np.testing.assert_allclose(sums, read(kind, kept, "past").sum(2), atol=1e-5)


@pytest.mark.parametrize("kind", ["f16", "bf16", "int8"])
def test_numbers_at_the_ends(model, kind):
    """Zeros stay zeros; NaN and infinities reach the output of their head alone."""
    cached = package.compile(model, kv_cache=CAPACITY, kv_cache_type=kind)
    kept = buffers(kind, 1, GROUPS, CAPACITY, SIZE)
    new = tokens(1, 4, 0)
    new["v"][:] = 0
    found, = cached.run(None, {**new, "mask": ones(1, 4), **kept})
    np.testing.assert_array_equal(found, 0)
    for bad in (np.nan, np.inf):
        new["v"][0, 2, 3] = bad
        found, = cached.run(None, {**new, "mask": ones(1, 4), **kept})
        heads = found.reshape(4, GROUPS, -1, SIZE)
        assert np.isfinite(heads[:, 1:]).all()
        assert not np.isfinite(heads[2:, 0, :, 3]).any()


@pytest.mark.parametrize("kind", ["", "f32", "f16", "bf16", "int8"])
@pytest.mark.parametrize("element", ["float", "float16", "bfloat16"])
def test_nothing_is_copied(tmp_path, element, kind):
    """The memory of a run does not depend on the capacity, whatever the types of model and buffers
    are."""
    text = MODEL.replace("WINDOW", "").replace("float[", f"{element}[")
    path = save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    dtype = {"float": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[element]
    peaks = []
    for capacity in (64, 1 << 20):
        options = {"kv_cache_type": kind} if kind else {}
        session = package.Session(package.compile(path, kv_cache=capacity, **options))
        kept = {name: np.zeros((1, GROUPS, capacity, SIZE), TYPES.get(kind, dtype))
                for name in PASTS}
        if kind == "int8":
            kept |= {f"{name}.scales": np.zeros((1, GROUPS, capacity), np.float32)
                     for name in PASTS}
        new = {name: array.astype(dtype) for name, array in tokens(1, 1, 0).items()}
        session.run(None, {**new, "mask": ones(1, 30), **kept})
        assert kept["past_k"][:, :, 29].any() and not kept["past_k"][:, :, 30:].any()
        peaks.append(session.memory["arena_bytes"] + session.memory["scratch_bytes"])
    assert peaks[0] == peaks[1]


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
@pytest.mark.parametrize("kind", ["f16", "bf16", "int8"])
def test_a_c_file(tmp_path, model, kind):
    options = ("--kv-cache", CAPACITY, "--kv-cache-type", kind)
    done = heddle("compile", model, *options, "--target", "c", "-o", tmp_path / "m.c")
    assert done.status == OK, done.errors
    written = Model(tmp_path / "m.c", COMPILERS[0], [])
    cached = package.compile(model, kv_cache=CAPACITY, kv_cache_type=kind)
    ours, theirs = (buffers(kind, 2, GROUPS, CAPACITY, SIZE) for _ in range(2))
    order = [value.name for value in cached.inputs]
    for place in range(3):
        new = {**tokens(2, 1, place), "mask": ones(2, place + 1)}
        found, = written.run([{**new, **ours}[name] for name in order])
        np.testing.assert_allclose(found, cached.run(None, {**new, **theirs})[0], atol=2e-6)
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name])


def test_each_type_has_its_artefact(tmp_path, model):
    found = [package.compile(model, kv_cache=8, kv_cache_type=kind, cache=tmp_path / "cache")
             for kind in ("bf16", "f16", "bf16")]
    assert [each.inputs[4].type for each in found] == [
        "tensor(bfloat16)", "tensor(float16)", "tensor(bfloat16)"]


@pytest.mark.parametrize("options, says", [
    (("--kv-cache-type", "bf16"), "for which '--kv-cache' makes room"),
    (("--kv-cache", "40", "--kv-cache-type", "f8"), "f8 not in {f32,bf16,f16,int8}"),
])
def test_bad_options(tmp_path, model, options, says):
    done = heddle("compile", model, *options, "-o", tmp_path / "m.so")
    assert done.status == USAGE and says in done.errors
    assert not (tmp_path / "m.so").exists()


def test_a_name_that_is_taken(tmp_path, model):
    """Scales have names of their own, which an input of the model may have."""
    taken = onnx.load(model)
    taken.graph.input.append(onnx.helper.make_tensor_value_info("past_k.scales", 1, ["z"]))
    with pytest.raises(package.RefusedError, match="'past_k.scales' is defined twice"):
        package.compile(taken, kv_cache=8, kv_cache_type="int8")
    assert package.compile(taken, kv_cache=8, kv_cache_type="bf16").inputs


def test_bad_buffers(model):
    cached, kept = (package.compile(model, kv_cache=CAPACITY, kv_cache_type="int8"),
                    buffers("int8", 1, GROUPS, CAPACITY, SIZE))
    new = {**tokens(1, 1, 0), "mask": ones(1, 5)}
    for name, array, says in (
            ("past_k", kept["past_k"].astype(np.float32), "elements of float32"),
            ("past_k.scales", kept["past_k.scales"][:, :, 1:].copy(), "39"),
            ("past_v.scales", kept["past_k.scales"], "overlaps input 'past_k.scales'")):
        with pytest.raises(package.UsageError) as caught:
            cached.run(None, {**new, **kept, name: array})
        assert says in str(caught.value)
