"""Every fenced block of README, the guide and the examples is carried out, page by page, in order.

Commands run with what they name, and programs in Python and C, in a folder of the page's own.
Options that say how long or how often are cut down. A page's models and arrays are those of
`FILES` and `PAGES`: a new name in a page needs a line there. What is not carried out is a line of
`LEFT_OUT`; its commands have to exist, with all of their options.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.parser
import pytest
from heddle.onnx_graph import make_model, make_node

import tiny
from command import ROOT, find_heddle, needs_heddle, save

import heddle

pytestmark = [needs_heddle, pytest.mark.usefixtures("compiler")]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
SHORTER = [(re.compile(pattern), text) for pattern, text in (
    (r"(--(?:time|epochs|count) )\d+", r"\g<1>1"), (r"\b(steps=)\d[\d_]*", r"\g<1>2"),
    (r"(heddle (?:tune|fuzz)\b)(?!.* --time)", r"\1 --time 2"))]
if "avx512_bf16" not in Path("/proc/cpuinfo").read_text():
    SHORTER += [(re.compile(pattern), text) for pattern, text in (
        (r"(heddle compile(?!.*--math).*--tolerance \S+)", r"\1 --math bf16-emulated"),
        (r"--math bf16\b(?!-|.*--target)", "--math bf16-emulated"))]
# Beginnings or parts of commands and blocks -> why these are not carried out here.
LEFT_OUT = {
    "./dev ": "the project's own script", "pip install": "nothing is fetched",
    "build/python/bin/python": "models are fetched", "test/onnx/suite.py": "test/onnx",
    "python ragged_search.py": "test/examples", "python torch_compile.py": "test/examples",
    "python from_jax.py": "test/examples", "python from_keras.py": "test/examples",
    "from jax2onnx": "test/examples", "model.export(": "test/examples",
    "python train_digits.py": "test/examples", "python chat.py": "test/examples",
    "trainer = Trainer(network.Gpt2": "test/examples",
    "trainer = Trainer(digits_network()": "test/examples", "heddle cost": "test/cost",
    "--math bf16 ": "few machines multiply bf16",
    "cost.so": "test/cost", "compile cost.onnx": "test/cost",
    "heddle_lab.quadratic": "test/training/quadratic_test.py", "find_package": "test/package",
    "heddle.compile(model, ragged": "test/examples",
    "heddle generate flan": "test/generate", "Generator(\"whisper": "test/generate",
    "Embedder(": "test/generate", "heddle generate whisper": "test/generate",
    "heddle serve": "test/serve", "curl ": "test/serve",
    "torch.compile(model, backend=\"heddle\")       #": "docs/guide/torch.md",
    "torch.onnx.export(net": "PyTorch's exporter needs packages of its own",
    "heddle completion": "test/cli/terminal_test.py"}


def network(*sizes):
    """x: float[sizes] -> y: float[sizes[0], 4], by a mean over what follows the channels, a product
    and a sum."""
    axes = list(range(2, len(sizes)))
    nodes = [make_node("ReduceMean", "x", "m", "mean", axes=axes, keepdims=0)] if axes else []
    nodes += [make_node("MatMul", ["m" if axes else "x", "weight"], "p",
                        "/layer.0/attention/MatMul"),
              make_node("Add", "p dense.bias", "y", "sum")]
    random = np.random.default_rng(0)
    return make_model(nodes, {"x": sizes}, {"y": [sizes[0], 4]},
                      {"weight": random.random((sizes[1], 4), np.float32),
                       "dense.bias": np.zeros(4, np.float32)})


def step():
    return make_model([make_node("Add", "state x", "new_state")], {"state": [4], "x": [4]},
                      {"new_state": [4]})


def decoder():
    """A language model of 50 words with one attention."""
    made = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>
      decoder (int64[batch, new] input_ids, int64[batch, total] attention_mask,
               float[batch, 1, past, 16] past_key,
               float[batch, 1, past, 16] past_value)
          => (float[batch, new, 50] logits, float[batch, 1, present, 16] present_key,
              float[batch, 1, present, 16] present_value)
      <int64[1] axis = {1}, int64[1] one = {1}, int64 second = {1}> {
        lengths = ReduceSum <keepdims = 1> (attention_mask, axis)
        last = Sub (lengths, one)
        lasts = Cast <to = 6> (last)
        sizes = Shape (attention_mask)
        size = Gather (sizes, second)
        total = Cast <to = 6> (size)
        x = Gather (embeddings, input_ids)
        y, present_key, present_value = com.microsoft.GroupQueryAttention
          <num_heads = 2, kv_num_heads = 1>
          (x, , , past_key, past_value, lasts, total)
        logits = MatMul (y, head)
      }""")
    for name, shape in {"embeddings": (50, 64), "head": (32, 50)}.items():
        weight = np.random.default_rng(len(name)).normal(size=shape).astype(np.float32)
        made.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    return made


FILES = {"model.onnx": network("batch", 8), "dense.onnx": network("batch", 3), "step.onnx": step(),
         "decoder.onnx": decoder(),
         "det.onnx": network(1, 3, "height", "width"), "other.onnx": network("batch", 6),
         "resnet50.onnx": network("N", 3, 8, 8), "bert.onnx": network("batch", 8, "seq"),
         "squeezenet_imagenet.onnx": network("None", 3, 8, 8)}
X, LABELS = np.ones((64, 8), np.float32), np.arange(64) % 4
TWO_LAYERS = make_model(
    [make_node("MatMul", "x first", "h", "/layer.0/MatMul"), make_node("Tanh", "h", "t"),
     make_node("MatMul", "t second", "y", "/head/MatMul")],
    {"x": ["batch", 8]}, {"y": ["batch", 4]},
    {"first": np.random.default_rng(0).random((8, 8), np.float32),
     "second": np.random.default_rng(1).random((8, 4), np.float32)})

# The page's own model.onnx, and names that its programs take as given.
PAGES = {
    "README.md": (network("batch", 8, "side"), {"image": np.ones((1, 8, 3), np.float32)}),
    "explain.md": (network("batch", 8, "sequence"), {}),
    "python.md": (None, {"feeds": {"x": X[:1]}, "state": X[0, :4].copy(), "x": X[0, :4]}),
    "kv-cache.md": (None, {"ids": LABELS[None, :5]}),
    "onnxruntime.md": (None, {"x": X}),
    "precision.md": (TWO_LAYERS, {"samples": X}),
    "quantize.md": (TWO_LAYERS, {}),
    "training.md": (None, {"images": X, "classes": LABELS, "batches": [(X, LABELS)] * 2})}


def graphs():
    """Names that the page of graph policies takes as given."""
    from heddle_lab.go import Machine, Simulator, Space, generate, heft

    simulators = [Simulator(generate("gnmt", layers=1), Machine(devices=2))]
    return {"simulators": simulators, "other": Space(simulators[0], heft(simulators[0]))}


def pages():
    found = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md")),
             *sorted((ROOT / "examples").glob("*/README.md"))]
    return [page for page in found if page.name != "walk.md"]  # test/cli/walk_test.py


def commands_of(kind, text):
    """The commands of a block; of one without a language, lines after a prompt, or all of them."""
    lines = text.replace("\\\n", " ").splitlines()
    if kind == "":
        prompted = [line[2:] for line in lines if line.startswith("$ ")]
        lines = prompted or (lines if lines[0].startswith(("heddle ", "./dev ")) else [])
    return [line for line in lines if line.split("#")[0].strip()]


def reason_of(text):
    return next((why for start, why in LEFT_OUT.items() if start in text), None)


def check_options(line):
    """The command exists, and its help names all options."""
    words = shlex.split(line.split("|")[0], comments=True)
    if words[0] == "./dev":
        assert re.search(rf"^  {words[1]}\b", run("./dev help", ROOT), re.M), line
    if words[0] != "heddle":
        return
    commands = [word for word in words[1:3] if re.fullmatch("[a-z]+", word)]
    shown = run(shlex.join(["heddle", *commands, "--help"]), ROOT)
    for word in words:
        assert not word.startswith("-") or re.search(rf"(?<![\w-]){word}\b", shown), line


def run(line, folder):
    for pattern, text in SHORTER:
        line = pattern.sub(text, line)
    environment = {**os.environ, "HEDDLE_PYTHON": sys.executable, "PYTHONPATH": f"{ROOT}/python",
                   "PATH": f"{Path(find_heddle()).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=600)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def carry_out(kind, text, place, folder, names):
    if kind in ("sh", ""):
        for line in commands_of(kind, text):
            check_options(line)
            if reason_of(line) is None:
                run(line, folder)
    elif reason_of(text) is not None:
        pass
    elif kind == "python":
        if "torch" in text:
            pytest.importorskip("torch")
            import heddle.torch  # noqa: F401: an installed Heddle is known without it
        for pattern, shorter in SHORTER:
            text = pattern.sub(shorter, text)
        exec(compile(text, place, "exec"), names)
    elif kind == "c":
        source = folder / ("main.c" if "int main" in text else "op.c")
        source.write_text(text)
        run(f"cc -std=c99 -Wall -Werror -c -I{ROOT}/include -I. {source.name} -o /dev/null", folder)
    elif kind == "json":
        json.loads(text)
    else:
        pytest.fail(f"{place}: nothing is known of blocks of '{kind}'")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_are_carried_out(page, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "page"
    shutil.copytree(page.parent if "examples" in page.parts else ROOT / "examples" / "add-a-card",
                    folder)
    for place in ("build", "examples"):  # pages may say where it lies in a checkout
        (folder / place).symlink_to(ROOT / place)
    monkeypatch.chdir(folder)
    model, given = PAGES.get(page.name, (None, {})) if "examples" not in page.parts else (None, {})
    for name, each in FILES.items():
        save(model if model and name == "model.onnx" else each, folder / name)
    tiny.write(folder / "model", "qwen2")  # a language model
    run("heddle compile model.onnx -o model.so", folder)
    sizes = [size.dim_value or 8 for size in
             (model or FILES["model.onnx"]).graph.input[0].type.tensor_type.shape.dim]
    np.save("x.npy", np.ones(sizes, np.float32))
    for name in ("train.npz", "test.npz", "samples.npz"):
        np.savez(name, x=np.ones((64, *sizes[1:]), np.float32), labels=LABELS)
    names = {"heddle": heddle, "np": np, "numpy": np, **given}
    if page.name == "graph-policies.md":
        names.update(graphs())
    text = page.read_text(encoding="utf-8")
    for block in FENCE.finditer(text):
        line = text[:block.start()].count("\n") + 2
        carry_out(block[1], block[2], f"{page.relative_to(ROOT)}:{line}", folder, names)


def test_a_wrong_option_is_found():
    with pytest.raises(AssertionError, match="--mathe"):
        check_options("heddle compile model.onnx --mathe strict -o model.so")
    with pytest.raises(AssertionError):
        check_options("heddle compiles model.onnx -o model.so")
    with pytest.raises(AssertionError):
        check_options("./dev fly")
