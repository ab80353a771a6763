"""The emulated driver over kernels of products and attention of bf16 that lack something: each
fault is found, in whatever order warps and blocks run. A mutation changes an artefact's text."""

import re

import numpy as np
import onnx
import pytest
from gpu import ALL_GROUPS, DRIVER, errors, in_process, loaded
from heddle.onnx_graph import Graph

import heddle

pytestmark = [
    pytest.mark.usefixtures("compiler"),
    pytest.mark.skipif(not DRIVER.exists(), reason="`ninja heddle-emulated-cuda` makes the driver")]
SHORT = ALL_GROUPS | {"thresholds": ALL_GROUPS["thresholds"] | {"bf16_saving": 0}}
ENTRY = b".visible .entry"
BARRIER = re.compile(rb"bar\.sync \t0;")
WAIT = re.compile(rb"cp\.async\.wait_group ([1-8]);")
random = np.random.default_rng(5)


def normal(*shape):
    return random.standard_normal(shape, np.float32)


def product(graph):
    """Two products; the left operand of the second one is copied ahead."""
    x = graph.input("x", [None, 64])
    hidden = graph.op("Relu", graph.op("MatMul", x, graph.weight(64, 256)))
    graph.output(graph.op("MatMul", hidden, graph.weight(256, 128)), [None, 128])
    return {"x": normal(70, 64)}


def attention(graph):
    shapes = {"q": (2, 2, 100, 64), "k": (2, 2, 64, 100), "v": (2, 2, 100, 64)}
    q, k, v = (graph.input(*each) for each in shapes.items())
    scores = graph.op("Mul", graph.op("MatMul", q, k), graph.constant(np.float32(0.125)))
    graph.output(graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v), shapes["q"])
    return {name: normal(*shape) for name, shape in shapes.items()}


def artefact(build, folder):
    """The bytes of an artefact, and feeds."""
    graph = Graph()
    feeds = build(graph)
    onnx.save(graph.model(), folder / "m.onnx")
    heddle.compile(folder / "m.onnx", target="sm_80", math="bf16", plan=SHORT, load=False,
                   output=folder / "m.so")
    return (folder / "m.so").read_bytes(), feeds


def without(content, match, text=b""):
    """The artefact with other text in this place."""
    return content[:match.start()] + text.ljust(len(match[0])) + content[match.end():]


@pytest.mark.parametrize("settings", ["", "seed=7"])
@pytest.mark.parametrize("build, unneeded", [(product, 2), (attention, 1)])
def test_missing_barriers_and_waits_are_found(tmp_path, build, unneeded, settings):
    """Unneeded here are a kernel's first barrier, which parts the tasks of a block with several,
    and that after the last wait: nothing was copied since the one before."""
    content, feeds = artefact(build, tmp_path)
    waits = [without(content, match, b"cp.async.wait_group %d;" % (int(match[1]) + 1))
             for match in WAIT.finditer(content)]
    barriers = list(BARRIER.finditer(content))
    said = in_process(errors, tmp_path,
                      [content, *waits, *(without(content, match) for match in barriers)], feeds,
                      settings=settings)
    assert said[0] == "" and bool(waits) == (build is product)
    assert all("CUDA_ERROR_LAUNCH_FAILED" in each for each in said[1:] if each), said
    assert all(said[1:1 + len(waits)]), "a wait for one group less"
    kernels = [content.count(ENTRY, 0, match.start()) for match in barriers]
    found = said[1 + len(waits):]
    for kernel in set(kernels):
        unseen = [not error for error, of in zip(found, kernels) if of == kernel]
        assert len(unseen) >= 4 and sum(unseen) <= unneeded, (kernel, found)


@pytest.mark.parametrize("build", [product, attention])
def test_damaged_text_is_refused_or_read(tmp_path, build):
    content, _ = artefact(build, tmp_path)
    start = content.index(b".version")
    text = content[start:content.index(b"\0", start)]
    damaged = []
    for _ in range(60):
        changed = bytearray(text)
        for _ in range(random.integers(1, 4)):
            at, size = random.integers(len(changed)), random.integers(1, 13)
            other = random.integers(len(changed))
            changed[at:at + size] = changed[other:other + size] if random.random() < 0.5 else b""
        damaged.append(bytes(changed))
    answers = in_process(loaded, [text, *damaged])
    assert answers[0] == 0 and set(answers) <= {0, 2, 209, 218, 222}
    assert 218 in answers, "invalid text"
