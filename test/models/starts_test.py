"""Second starts: what was compiled before runs without the compiler, and nothing else is taken
for it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import heddle
import numpy as np
import onnx
import pytest
from heddle import starts
from heddle.onnx_graph import make_model, make_node

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("compiler")

PROGRAM = """
import json, sys, numpy as np
sys.path.insert(0, {python!r})
import heddle

def mapped(name):
    with open("/proc/self/maps") as file:
        return any(name in line for line in file)

x = np.arange(3, dtype="f4")
module = heddle.compile({model!r}, threads=1)
y, = module.run(None, {{"x": x}})
without = not mapped("libheddle.so") and not mapped("libLLVM")
report = module.compiled.report
{more}
print(json.dumps([y.tolist(), without, report.get("from_cache", False)]))
"""


def save(path, factor, external=False):
    model = make_model([make_node("Mul", "x w", "y")], {"x": [3]}, {"y": [3]},
                       {"w": np.full(3, factor, np.float32)}, opset=18)
    onnx.save(model, path, save_as_external_data=external, location="w.bin", size_threshold=0)
    time.sleep(1.1 if external else 0.15)  # what is younger is not noted


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("HEDDLE_CACHE", str(folder))
    monkeypatch.setattr(heddle.library, "has_own_ops", lambda: False)  # of other tests
    return folder


def product(path, **options):
    module = heddle.compile(path, threads=1, **options)
    return module.run(None, {"x": np.ones(3, np.float32)})[0].tolist(), module


def is_found(path, **options):
    given = {name: value.default for name, value in
             heddle.compiler.inspect.signature(heddle.compile).parameters.items()}
    return starts.Start(path, {**given, "threads": 1, **options}).find() is not None


def in_a_process(model, more=""):
    text = PROGRAM.format(python=str(ROOT / "python"), model=str(model), more=more)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_second_process_needs_no_compiler(tmp_path, cache):
    save(tmp_path / "m.onnx", 2)
    assert in_a_process(tmp_path / "m.onnx") == [[0, 2, 4], False, False]
    assert in_a_process(tmp_path / "m.onnx") == [[0, 2, 4], True, True]


def test_the_compiler_may_come_after_the_runtime(tmp_path, cache):
    save(tmp_path / "m.onnx", 2)
    save(tmp_path / "other.onnx", 5)
    more = f"""
for cache in (None, False):
    other = heddle.compile({str(tmp_path / 'other.onnx')!r}, cache=cache)
    assert other.run(None, {{"x": x}})[0].tolist() == [0, 5, 10], cache
    assert other.compiled.report["groups"] == 1
assert mapped("libheddle.so")
assert module.run(None, {{"x": x}})[0].tolist() == [0, 2, 4]
"""
    for _ in range(2):
        assert in_a_process(tmp_path / "m.onnx", more)[0] == [0, 2, 4]


def test_ops_of_this_process_are_known_to_both_libraries(tmp_path, cache):
    save(tmp_path / "m.onnx", 2)
    onnx.save(make_model([make_node("Twice", "x", "y", domain="mine")], {"x": [3]}, {"y": [3]},
                         opset=18, domains={"mine": 1}),
              tmp_path / "own.onnx")
    define = """
@heddle.custom_op("mine", "Twice", shape=lambda x: x)
def twice(x):
    return x * 2
"""
    use = f"""
own = heddle.compile({str(tmp_path / 'own.onnx')!r})
assert own.run(None, {{"x": x}})[0].tolist() == [0, 2, 4]
"""
    in_a_process(tmp_path / "m.onnx")
    # `report` has loaded the compiler before the op is defined, or the op comes first.
    in_a_process(tmp_path / "m.onnx", define + use)
    late = define + "module = heddle.compile({!r})\n".format(str(tmp_path / "m.onnx")) + use
    in_a_process(tmp_path / "m.onnx", late)


@pytest.mark.parametrize("external", [False, True])
def test_another_file_is_another_model(tmp_path, cache, external):
    path = tmp_path / "m.onnx"
    for factor in (2, 3, 4):
        save(path, factor, external)
        assert product(path)[0] == [factor] * 3
        assert is_found(path)
        assert product(path)[0] == [factor] * 3
    if external:
        weights = tmp_path / "w.bin"
        weights.write_bytes(np.full(weights.stat().st_size // 4, 9, np.float32).tobytes())
        assert not is_found(path)
        assert product(path)[0] == [9] * 3


def test_other_options_are_another_model(tmp_path, cache, monkeypatch):
    path = tmp_path / "m.onnx"
    save(path, 2)
    product(path)
    assert is_found(path)
    assert not is_found(path, opt_level=1)
    assert not is_found(path, math="strict")
    assert not is_found(path, cache=False)
    assert not is_found(path, cache=tmp_path / "elsewhere")
    monkeypatch.setenv("HEDDLE_RECORDS", "r.sqlite")
    assert not is_found(path)
    monkeypatch.delenv("HEDDLE_RECORDS")
    monkeypatch.setattr(starts.library, "candidates", lambda: ["libheddle.so"])
    assert not is_found(path)


def test_a_file_that_is_just_written_is_not_noted(tmp_path, cache):
    path = tmp_path / "m.onnx"
    save(path, 2)
    product(path)
    later = time.time() + 3
    os.utime(path, (later, later))
    product(path)
    assert not is_found(path)


def test_damage_is_no_module(tmp_path, cache):
    path = tmp_path / "m.onnx"
    save(path, 2)
    in_a_process(path)  # a file that this one has mapped is not to be written to
    note, = (cache / "starts").iterdir()
    whole = note.read_text()
    artefact = cache / json.loads(whole)["artefact"]
    for text in ("", "{", "[]", "7", whole.replace('"artefact"', '"artifact"')):
        note.write_text(text)
        assert not is_found(path)
        assert in_a_process(path)[:2] == [[0, 2, 4], False]
        assert in_a_process(path)[:2] == [[0, 2, 4], True]
    body = bytearray(artefact.read_bytes())
    for at in range(64, len(body), 512):
        body[at] ^= 0x55
    with open(artefact, "r+b") as file:
        file.write(body)
    assert not is_found(path)
    assert in_a_process(path) == [[0, 2, 4], False, False]
    artefact.unlink()
    assert not is_found(path)
    assert in_a_process(path) == [[0, 2, 4], False, False]
    assert in_a_process(path) == [[0, 2, 4], True, True]


@pytest.mark.parametrize("what", ["folder", "note", "artefact"])
def test_what_others_may_write_is_not_run(tmp_path, cache, what):
    path = tmp_path / "m.onnx"
    save(path, 2)
    product(path)
    assert is_found(path)
    note, = (cache / "starts").iterdir()
    place = {"folder": cache, "note": note,
             "artefact": cache / json.loads(note.read_text())["artefact"]}[what]
    place.chmod(0o777)
    assert not is_found(path)


def test_notes_do_not_pile_up(tmp_path, cache, monkeypatch):
    monkeypatch.setattr(starts, "MOST_NOTES", 6)
    save(tmp_path / "m.onnx", 2)
    for name in range(12):
        os.link(tmp_path / "m.onnx", tmp_path / f"{name}.onnx")
        time.sleep(0.12)
        product(tmp_path / f"{name}.onnx")
    assert 3 <= len(list((cache / "starts").iterdir())) <= 6


MEMORY = """
import json, sys, numpy as np
sys.path.insert(0, {python!r})
import heddle
module = heddle.compile({model!r}, threads=1)
module.run(None, {{"x": np.ones((1, {side}), np.float32)}})
with open("/proc/self/status") as file:
    print(json.dumps([int(line.split()[1]) >> 10 for line in file
                      if line.startswith(("VmHWM:", "VmRSS:"))]))
"""


def test_weights_are_in_memory_once(cache, tmp_path):
    """Those of external data, while a model is compiled (1) and by the run after it (2), in MiB."""
    side, count = 4096, 4
    names = ["x", *(f"h{i}" for i in range(1, count)), "y"]
    model = make_model([make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]])
                        for i in range(count)],
                       {"x": ["n", side]}, {"y": ["n", side]},
                       {f"w{i}": np.full((side, side), i, np.float32) for i in range(count)},
                       opset=18)
    path, weights = str(tmp_path / "m.onnx"), count * side * side * 4 >> 20
    onnx.save(model, path, save_as_external_data=True, location="w.bin")
    time.sleep(1.1)
    program = MEMORY.format(python=str(ROOT / "python"), model=path, side=side)
    peak, kept = json.loads(subprocess.run([sys.executable, "-c", program], check=True,
                                           stdout=subprocess.PIPE).stdout)
    assert peak < 1.2 * weights + 250 and kept < 1.05 * weights + 250, (peak, kept)
