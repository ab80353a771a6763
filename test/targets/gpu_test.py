"""The target 'cuda' where there is no GPU: code for its kernels, and what is said where it cannot
run. Numbers are those of the emulated driver's tests."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from gpu import assembled, assembler
from heddle.onnx_graph import Graph

import heddle

pytestmark = pytest.mark.usefixtures("compiler")
MODELS = Path(__file__).parents[3] / "shared" / "models"


@pytest.fixture(autouse=True)
def no_driver(monkeypatch):
    monkeypatch.setenv("HEDDLE_CUDA_DRIVER", "/nowhere/libcuda.so.1")


def model(path, size=256):
    """relu(x @ w + b) and the softmax of x's rows: large enough for a device."""
    random = np.random.default_rng(3)
    graph = Graph()
    x = graph.input("x", ["n", size])
    w = graph.constant(random.normal(size=(size, size)).astype(np.float32))
    b = graph.constant(random.normal(size=size).astype(np.float32))
    y = graph.op("Relu", graph.op("Add", graph.op("MatMul", x, w), b), name="y")
    graph.output(y, ["n", size])
    graph.output(graph.op("Softmax", x, name="z", axis=-1), ["n", size])
    onnx.save(graph.model(), path)
    return path


def ptx_of(source, folder, target="cuda"):
    path = folder / "kernels.ptx"
    heddle.compile(source, target=target, output=path, load=False)
    return path


def entries(text):
    return re.findall(r"^\.visible \.entry (\w+)\(", text, re.M)


@pytest.mark.parametrize("target, chip",
                         [("cuda", "sm_80"), ("sm_80", "sm_80"), ("sm_90", "sm_90")])
def test_kernels_are_text_for_the_chip(tmp_path, target, chip):
    text = ptx_of(model(tmp_path / "m.onnx"), tmp_path, target).read_text()
    assert f".target {chip}\n" in text and entries(text)
    assert "ld.global" in text and "st.global" in text
    assert not re.search(r"\b(ld|st)\.[usbf]\d", text), "an address of no known memory"


@pytest.mark.parametrize("name", sorted(path.stem for path in MODELS.glob("*.onnx")) or [None])
def test_kernels_of_models_are_assembled_without_spills(tmp_path, name):
    if name is None:
        pytest.skip("../shared/models is not there")
    path = ptx_of(MODELS / f"{name}.onnx", tmp_path)
    names = entries(path.read_text())
    if not names:
        pytest.skip("no group of it is large enough for a device")
    found = assembled(path, "sm_80")
    assert set(found) == set(names) and not any(spilled for _, spilled in found.values()), found


@pytest.mark.parametrize("kind, math", [("float32", "bf16"), ("float16", "fast")])
@pytest.mark.parametrize("chip", ["sm_80", "sm_90"])
def test_tensor_cores_have_what_they_multiply(tmp_path, chip, kind, math):
    """A step of a large product: 64 multiplications for 16 loads of fragments, copies meanwhile,
    and no register spilled (the loop of a hand-written kernel with the same tile has as many)."""
    graph, dtype = Graph(), np.dtype(kind)
    x = graph.input("x", [4096, 512], dtype)
    weights = [graph.constant(np.random.default_rng(1).normal(size=sizes).astype(dtype))
               for sizes in ((512, 1024), (1024, 4096))]
    hidden = graph.op("Relu", graph.op("MatMul", x, weights[0]))
    graph.output(graph.op("MatMul", hidden, weights[1]), [4096, 4096], dtype)
    onnx.save(graph.model(17), tmp_path / "m.onnx")
    path = tmp_path / "k.ptx"
    heddle.compile(tmp_path / "m.onnx", target=chip, math=math, output=path, load=False)
    blocks = re.split(r"^\$L\w+:|^\.visible", path.read_text(), flags=re.M)
    loop = max(blocks, key=lambda block: block.count("mma.sync"))
    assert (loop.count("mma.sync"), loop.count("ldmatrix")) == (64, 16)
    if assembler():
        found = assembled(path, chip).values()
        assert max(found)[0] <= 252 and not any(spilled for _, spilled in found), found


def test_large_blocks_say_how_many_threads_they_have(tmp_path):
    """Else a thread could have more registers than a processor has for all of them."""
    graph = Graph()
    graph.output(graph.op("Softmax", graph.input("x", [3, 9000]), axis=-1), [3, 9000])
    onnx.save(graph.model(), tmp_path / "m.onnx")
    assert ".maxntid 1024" in ptx_of(tmp_path / "m.onnx", tmp_path).read_text()


def test_what_is_gathered_is_checked_where_it_is_read(tmp_path):
    """No kernel before, of one thread that looks at one index after the other."""
    graph = Graph()
    ids = graph.input("ids", [1, 128], np.dtype(np.int64))
    words = graph.op("Gather", graph.weight(300, 64), ids)
    graph.output(graph.op("Add", words, graph.weight(1, 128, 64)), [1, 128, 64])
    onnx.save(graph.model(), tmp_path / "m.onnx")
    assert len(entries(ptx_of(tmp_path / "m.onnx", tmp_path).read_text())) == 1


def test_a_plan_says_which_groups_are_where(tmp_path):
    path = tmp_path / "m.plan"
    heddle.compile(model(tmp_path / "m.onnx"), target="cuda", output=path, load=False)
    groups = json.loads(path.read_text())["groups"]
    assert {group.get("device") for group in groups} == {1}


@pytest.mark.parametrize("kind, device", [("Sin", None), ("Cos", None), ("Tan", None), ("Exp", 1)])
def test_large_angles_are_the_hosts(tmp_path, kind, device):
    graph = Graph()
    graph.output(graph.op(kind, graph.input("x", ["n", 256])), ["n", 256])
    onnx.save(graph.model(), tmp_path / "m.onnx")
    path = tmp_path / "m.plan"
    heddle.compile(tmp_path / "m.onnx", target="cuda", output=path, load=False)
    groups = json.loads(path.read_text())["groups"]
    assert [group.get("device") for group in groups] == [device]
    assert bool(entries(ptx_of(tmp_path / "m.onnx", tmp_path).read_text())) == bool(device)


def test_without_a_driver_there_is_one_sentence(tmp_path):
    path = tmp_path / "m.so"
    heddle.compile(model(tmp_path / "m.onnx"), target="cuda", output=path, load=False)
    with pytest.raises(heddle.Error, match="no driver") as caught:
        heddle.load(path)
    assert "/nowhere/libcuda.so.1" in str(caught.value) and "--target host" in str(caught.value)
    with pytest.raises(heddle.RefusedError, match="no driver"):
        heddle.compile(model(tmp_path / "m.onnx"), target="cuda")


def test_an_artefact_for_both_runs_on_the_host(tmp_path):
    source, path = model(tmp_path / "m.onnx"), tmp_path / "m.so"
    heddle.compile(source, target="host+cuda", output=path, load=False)
    x = np.random.default_rng(1).normal(size=(70, 256)).astype(np.float32)
    wanted = heddle.compile(source)(x)
    np.testing.assert_array_equal(heddle.load(path)(x), wanted)
    np.testing.assert_array_equal(heddle.compile(source, target="host+cuda")(x), wanted)


@pytest.mark.parametrize("target, message", [
    ("sm_12", "no GPU of target 'sm_12' is known by that name\nnote: known are cuda, sm_80"),
    ("host+sm_nine", "no GPU of target 'host\\+sm_nine' is known")])
def test_an_unknown_chip_is_refused(tmp_path, target, message):
    with pytest.raises(heddle.UsageError, match=message):
        heddle.compile(model(tmp_path / "m.onnx"), target=target)


def test_text_is_of_one_chip(tmp_path):
    with pytest.raises(heddle.UsageError, match="'ptx' is of one chip.*for 2\n.*such as 'sm_80'"):
        ptx_of(model(tmp_path / "m.onnx"), tmp_path, "sm_80+sm_90")
    with pytest.raises(heddle.UsageError, match="cannot write 'ptx' for target"):
        ptx_of(model(tmp_path / "m.onnx"), tmp_path, "host")
