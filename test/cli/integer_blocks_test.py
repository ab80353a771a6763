"""Products by weights in blocks as those of 8-bit integers."""

import json
from pathlib import Path

import heddle as package
import numpy as np
import pytest
from command import OK, heddle, save
from heddle.onnx_graph import make_model, make_node
from onnx import numpy_helper

pytestmark = pytest.mark.usefixtures("compiler")


class Weights:
    """MatMulNBits' weights as they are packed, and as numbers."""

    def __init__(self, columns, depth, block, bits, zeros=None, seed=1):
        random, blocks = np.random.default_rng(seed), -(-depth // block)
        self.depth, self.block, self.bits, sizes = depth, block, bits, (columns, blocks)
        self.codes = random.integers(0, 1 << bits, (*sizes, block))
        self.scales = random.uniform(0.01, 0.1, sizes).astype(np.float32)
        self.zeros = {None: np.full(sizes, 1 << (bits - 1)),
                      "codes": random.integers(0, 1 << bits, sizes),
                      "floats": random.uniform(0, 1 << bits, sizes).astype(np.float32)}[zeros]
        self.tensors = [self._packed(self.codes), self.scales.reshape(-1)]
        if zeros:
            given = self.zeros if zeros == "floats" else self._packed(self.zeros)
            self.tensors.append(given.reshape(-1))

    def _packed(self, values):
        each = 8 // self.bits
        values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % each)])
        parts = values.reshape(*values.shape[:-1], -1, each) << (np.arange(each) * self.bits)
        return parts.sum(-1).astype(np.uint8)

    def model(self, level=4, rows="rows"):
        names = ["w", "s", "z"][:len(self.tensors)]
        constants = [numpy_helper.from_array(each, name)
                     for name, each in zip(names, self.tensors)]
        node = make_node("MatMulNBits", ["x", *names], "y", name="product", domain="com.microsoft",
                         K=self.depth, N=len(self.codes), bits=self.bits, block_size=self.block,
                         accuracy_level=level)
        return make_model([node], {"x": [rows, self.depth]}, {"y": None}, constants, opset=21,
                          domains={"com.microsoft": 1})

    def numbers(self):
        whole = (self.codes - self.zeros[:, :, None]) * self.scales[:, :, None].astype(np.float64)
        return whole.reshape(len(whole), -1)[:, :self.depth].T

    def product(self, x):
        """The product as it is computed, in f64 where sums are floats."""
        blocks = x.reshape(len(x), self.depth // self.block, self.block)
        most = np.abs(blocks).max(-1)
        with np.errstate(divide="ignore"):
            scale = np.minimum(np.float32(127) / most, np.float32(2) ** 126).astype(np.float32)
        rounded = np.rint(blocks * scale[:, :, None]).astype(np.int64)
        sums = np.einsum("mbk,nbk->mbn", rounded, self.codes - self.zeros[:, :, None])
        steps = (np.float32(1) / scale).astype(np.float64)
        return np.einsum("mbn,mb,nb->mn", sums, steps, self.scales.astype(np.float64))


def draw(rows, depth, seed=2):
    return np.random.default_rng(seed).normal(size=(rows, depth)).astype(np.float32)


def assert_equal(found, wanted):
    assert np.abs(found - wanted).max(initial=0) <= 3e-6 * np.abs(wanted).max(initial=1e-30)


@pytest.mark.parametrize("zeros", [None, "codes", "floats"])
@pytest.mark.parametrize("block", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_sums_of_blocks_are_exact(bits, block, zeros):
    weights = Weights(97, 3 * block if block > 64 else 384, block, bits, zeros)
    module = package.compile(weights.model())
    for rows in (0, 1, 2, 7, 16, 33):
        x = draw(rows, weights.depth)
        for threads in (1, 2):
            (y,) = package.Session(module, threads=threads).run(None, {"x": x})
            assert_equal(y, weights.product(x))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("target, feature", [("x86-64-v2", "ssse3"), ("x86-64-v3", "avx2"),
                                             ("x86-64-v4", "avx512bw"),
                                             ("x86-64-vnni", "avx512_vnni")])
def test_every_instruction(target, feature, bits):
    if feature not in Path("/proc/cpuinfo").read_text("utf-8").split():
        pytest.skip(f"this machine has no {feature}")
    weights = Weights(203, 192, 32, bits, "codes")
    module = package.compile(weights.model(), target=target)
    for rows in (1, 4, 60):
        x = draw(rows, weights.depth)
        assert_equal(module(x), weights.product(x))


@pytest.mark.parametrize("target, bits, instruction", [
    ("x86-64-vnni", 4, "vpdpbusd"), ("x86-64-vnni", 8, "vpdpbusd"),
    ("sapphirerapids", 4, "tdpbssd"), ("sapphirerapids", 8, "tdpbssd"),
    ("x86-64-v3", 4, "vpmaddubsw"), ("x86-64-v3", 8, "vpmaddwd"),
    ("aarch64-dotprod", 4, "sdot"), ("aarch64-dotprod", 8, "sdot"), ("aarch64", 4, "mla"),
    ("aarch64", 8, "smull")])
def test_the_instructions_of_a_target_are_used(tmp_path, target, bits, instruction):
    path = save(Weights(128, 256, 32, bits).model(), tmp_path / "m.onnx")
    done = heddle("compile", path, "--target", target, "-o", tmp_path / "m.s")
    assert done.status == OK, done.errors
    assert instruction in (tmp_path / "m.s").read_text().split()


@pytest.mark.parametrize("bits", [4, 8])
def test_before_a_norm(bits):
    """The product is in one kernel with what normalises its rows."""
    weights = Weights(160, 128, 32, bits)
    names = ["w", "s"]
    nodes = [make_node("MatMulNBits", ["x", *names], "p", name="product", domain="com.microsoft",
                       K=128, N=160, bits=bits, block_size=32, accuracy_level=4),
             make_node("LayerNormalization", ["p", "g"], "y", axis=-1)]
    constants = [numpy_helper.from_array(each, name)
                 for name, each in zip([*names, "g"], [*weights.tensors, np.ones(160, np.float32)])]
    module = package.compile(make_model(nodes, {"x": ["rows", 128]}, {"y": None}, constants,
                                        opset=21, domains={"com.microsoft": 1}))
    for rows in (0, 1, 9, 16, 75, 400):
        x = draw(rows, 128)
        wanted = weights.product(x)
        wanted = wanted - wanted.mean(-1, keepdims=True)
        wanted = wanted / np.sqrt(np.square(wanted).mean(-1, keepdims=True) + 1e-5)
        np.testing.assert_allclose(module(x), wanted, atol=2e-5)


@pytest.mark.parametrize("bits", [4, 8])
def test_rows_of_other_numbers(bits):
    weights = Weights(96, 256, 32, bits)
    x = draw(9, 256)
    x[1], x[2, 3], x[3, 0], x[4] = 0, np.nan, -np.inf, 1e-41
    x[5] *= np.float32(1e36)
    x[6] *= np.float32(1e-30)
    found = package.compile(weights.model())(x)
    assert np.isnan(found[2:4]).all() and not found[1].any() and np.abs(found[4]).max() < 1e-38
    for row in (0, 5, 6, 7, 8):
        assert_equal(found[row], weights.product(x[row:row + 1])[0])


def is_rounded(weights, found, x):
    """True if rows were rounded; they either were or not."""
    far, near = (np.abs(found - wanted).max() / np.abs(wanted).max()
                 for wanted in (x.astype(np.float64) @ weights.numbers(), weights.product(x)))
    assert min(far, near) < 5e-6 and max(far, near) > 1e-4 and far < 2e-2
    return near < far


@pytest.mark.parametrize("level, math, wanted", [
    (4, "fast", True), (4, "strict", False), (0, "fast", False), (1, "fast", False),
    (0, "int8", True)])
def test_the_model_or_the_user_allows_it(tmp_path, level, math, wanted):
    weights, x = Weights(96, 256, 32, 4), draw(5, 256)
    path = save(weights.model(level), tmp_path / "m.onnx")
    assert is_rounded(weights, package.compile(path, math=math)(x), x) == wanted
    told = heddle("explain", path, "--json", "--math", math).json
    assert told["integers"] == (["product"] if wanted else [])


def test_a_plan_says_which(tmp_path):
    weights, x = Weights(96, 256, 32, 4), draw(5, 256)
    path, plan = save(weights.model(), tmp_path / "m.onnx"), tmp_path / "m.plan"
    for names in ([], ["product"]):
        plan.write_text(json.dumps({"plan": 1, "integers": names, "groups": []}))
        assert is_rounded(weights, package.compile(path, plan=plan)(x), x) == bool(names)


def test_compare_knows_that_they_are_smaller(tmp_path):
    path = save(Weights(96, 256, 32, 4).model(), tmp_path / "m.onnx")
    assert heddle("compare", path, "--against", "reference", "--dim", "x.0=9").status == OK


@pytest.mark.parametrize("depth, block", [(250, 64), (100, 128)])
def test_a_last_block_that_is_not_whole_stays_as_it_is(depth, block):
    weights, x = Weights(200, depth, block, 4), draw(5, depth)
    found = package.compile(weights.model())(x)
    np.testing.assert_allclose(found, x.astype(np.float64) @ weights.numbers(), 1e-4, 1e-4)
