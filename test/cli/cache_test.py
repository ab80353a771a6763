"""A second compilation comes from the cache, whole or in parts, and is the same."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node

from command import dense, dense_model, fails, heddle, json_of, needs_heddle, ok, save

pytestmark = needs_heddle
PACKAGE = Path(__file__).parents[2] / "python"
X = np.float32([[1, 2, 3], [-4, 5, 0.5]])


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache"


def compiled(model, output, folder, *more):
    """The JSON that `heddle compile` prints."""
    return json_of("compile", model, "-o", output, "--cache", folder, *more)


def is_whole_hit(result):
    return result["report"].get("from_cache", False)


def runs(path, tmp_path, *more):
    np.save(tmp_path / "x.npy", X)
    ok("run", path, "--input", f"x=@{tmp_path}/x.npy", "--output", f"y=@{tmp_path}/y.npy", *more)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), dense(X), 1e-5)
    return True


def entries(folder):
    return [path for path in folder.iterdir() if len(path.name) == 32]


def test_the_same_model_is_compiled_once(model, tmp_path, folder):
    first = compiled(model, tmp_path / "a.so", folder, "--plan-out", tmp_path / "a.json")
    again = compiled(model, tmp_path / "b.so", folder, "--plan-out", tmp_path / "b.json")
    assert not is_whole_hit(first) and is_whole_hit(again)
    for kind in ("so", "h", "json"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    assert again["report"]["groups"] == first["report"]["groups"]
    assert os.access(tmp_path / "b.so", os.X_OK) == os.access(tmp_path / "a.so", os.X_OK)
    assert runs(tmp_path / "b.so", tmp_path)


SESSION = """
import json, sys
import numpy as np
import heddle

module = heddle.compile(sys.argv[1], cache=sys.argv[2])
report, plan = module.compiled.report, module.compiled.plan
y = module.run(None, {"x": np.ones((2, 3), np.float32)})[0]
print(json.dumps({"from_cache": report.get("from_cache", False), "groups": report["groups"],
                  "mapped": sys.argv[2] in open("/proc/self/maps").read(), "y": y.tolist(),
                  "told": module.compiled.report == report and module.compiled.plan == plan}))
"""


def test_a_session_maps_its_artefact(model, folder):
    def session():
        done = subprocess.run([sys.executable, "-c", SESSION, str(model), str(folder)], check=True,
                              capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(PACKAGE)})
        return json.loads(done.stdout)

    first, again = session(), session()
    assert len(entries(folder)) > 0
    assert (first.pop("from_cache"), again.pop("from_cache")) == (False, True)
    assert first == again and first["mapped"] and first["told"]


CHILD = """
import os, signal, sys
import heddle

compiled = [heddle.compile(sys.argv[1], cache=False, load=False, jobs=2) for _ in range(3)]
modules = [each.module() for each in compiled]
child = os.fork()
if not child:
    signal.alarm(60)  # ends what would hang
    modules.clear()
    compiled.clear()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_a_child_leaves_what_its_parent_has_compiled(model):
    """It has none of the compiler's threads, which whoever lets go of a compilation waits for."""
    subprocess.run([sys.executable, "-c", CHILD, str(model)], check=True,
                   env={**os.environ, "PYTHONPATH": str(PACKAGE)})


def test_bytes_depend_neither_on_jobs_nor_on_the_cache(model, tmp_path, folder):
    ways = (["--no-cache", "--jobs", "1"], ["--no-cache", "--jobs", "2"], ["--no-cache"],
            ["--cache", folder, "--jobs", "2"], ["--cache", folder, "-O", "3"])
    made = []
    for way in ways:
        output = tmp_path / "m.so"
        ok("compile", model, "-o", output, *way)
        made.append(output.read_bytes())
    assert all(bytes == made[0] for bytes in made)


@pytest.mark.parametrize("options", [["--threads", "1"], ["--math", "strict"], ["-O", "1"],
                                     ["--dim", "batch=2"], ["--target", "x86-64-v2"],
                                     ["--without", "fusion"], ["--fold-limit", "5"]])
def test_another_option_is_another_entry(model, tmp_path, folder, options):
    compiled(model, tmp_path / "a.so", folder)
    assert not is_whole_hit(compiled(model, tmp_path / "b.so", folder, *options))
    assert is_whole_hit(compiled(model, tmp_path / "b.so", folder, *options))
    assert is_whole_hit(compiled(model, tmp_path / "b.so", folder))


def test_another_model_takes_the_kernels_that_it_shares(tmp_path, folder):
    def network(scale):
        weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) * scale
        return make_model([make_node("MatMul", "x w", "m", "product"),
                           make_node("Softmax", "m", "y", "last")],
                          {"x": ["batch", 64]}, {"y": ["batch", 64]}, {"w": weights})

    first = compiled(save(network(1), tmp_path / "m.onnx"), tmp_path / "m.so", folder)
    other = compiled(save(network(2), tmp_path / "m.onnx"), tmp_path / "m.so", folder)
    assert first["report"]["objects"]["from_cache"] == 0
    assert not is_whole_hit(other)
    assert other["report"]["objects"] == {"count": first["report"]["objects"]["count"],
                                          "from_cache": first["report"]["objects"]["count"]}


def test_a_mix_of_precisions_has_the_kernels_of_both(tmp_path, folder):
    """Kernels of some size are found one by one, also where others beside them are new."""
    random, layers = np.random.default_rng(0), 8
    sizes = [32 + 16 * layer for layer in range(layers + 1)]
    weights = {f"w{layer}": random.standard_normal(sizes[layer:layer + 2]).astype(np.float32)
               for layer in range(layers)}
    names = ["x", *(f"h{layer}" for layer in range(1, layers)), "y"]
    nodes = [make_node("MatMul", f"{names[layer]} w{layer}", names[layer + 1], f"n{layer}")
             for layer in range(layers)]
    network = save(make_model(nodes, {"x": [64, sizes[0]]}, {"y": [64, sizes[-1]]}, weights),
                   tmp_path / "m.onnx")

    def objects(math, *more):
        return compiled(network, tmp_path / "m.so", folder, "--math", math, *more)[
            "report"]["objects"]

    objects("bf16-emulated", "--plan-out", tmp_path / "m.plan")
    assert objects("fast", "--plan-out", tmp_path / "exact.plan")["count"] > layers
    plan = json.loads((tmp_path / "m.plan").read_text())
    plan["groups"][:4] = json.loads((tmp_path / "exact.plan").read_text())["groups"][:4]
    (tmp_path / "m.plan").write_text(json.dumps(plan))
    mixed = objects("bf16-emulated", "--plan", tmp_path / "m.plan")
    assert layers - 1 <= mixed["from_cache"] < mixed["count"]  # one has a side of each


def test_what_is_damaged_is_compiled_anew(model, tmp_path, folder):
    first = compiled(model, tmp_path / "a.so", folder)
    for damage in ("cut", "changed", "empty"):
        for path in entries(folder):
            data = bytearray(path.read_bytes())
            data[len(data) // 3] ^= 1
            path.write_bytes({"cut": data[:-7], "changed": data, "empty": b""}[damage])
        compiled(model, tmp_path / "b.so", folder)
        assert (tmp_path / "a.so").read_bytes() == (tmp_path / "b.so").read_bytes(), damage
        assert is_whole_hit(compiled(model, tmp_path / "b.so", folder)), damage
    assert not is_whole_hit(first)


def test_other_forms_than_the_artefact_are_compiled_when_asked_for(model, tmp_path, folder):
    compiled(model, tmp_path / "a.so", folder)
    for kind in ("o", "ll", "asm", "graph", "loops", "plan"):
        compiled(model, tmp_path / "other", folder, "--emit", kind)
        assert (tmp_path / "other").stat().st_size > 0, kind
    ok("explain", model, "--cache", folder)


def test_run_takes_the_artefact_that_is_kept(model, tmp_path, folder):
    compiled(model, tmp_path / "a.so", folder)
    assert runs(model, tmp_path, "--cache", folder)


def test_external_data_is_part_of_the_model(tmp_path, folder):
    model = dense_model()
    onnx.save_model(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin",
                    size_threshold=0)
    data = (tmp_path / "w.bin").read_bytes()
    old = time.time() - 100  # what has just been written might still change

    def write(content):
        (tmp_path / "w.bin").write_bytes(content)
        os.utime(tmp_path / "w.bin", (old, old))

    write(data)
    compiled(tmp_path / "m.onnx", tmp_path / "a.so", folder)
    assert is_whole_hit(compiled(tmp_path / "m.onnx", tmp_path / "b.so", folder))
    write(data[::-1])
    assert not is_whole_hit(compiled(tmp_path / "m.onnx", tmp_path / "b.so", folder))
    assert (tmp_path / "a.so").read_bytes() != (tmp_path / "b.so").read_bytes()


def test_cards_of_ones_own_are_read_each_time(model, tmp_path, folder):
    (tmp_path / "cards").mkdir()
    for _ in range(2):
        assert not is_whole_hit(compiled(model, tmp_path / "a.so", folder, "--schedules",
                                         tmp_path / "cards"))


def test_no_cache_keeps_nothing(model, tmp_path, folder, monkeypatch):
    monkeypatch.setenv("HEDDLE_CACHE", str(folder))
    ok("compile", model, "-o", tmp_path / "a.so", "--no-cache")
    assert not folder.exists()
    ok("compile", model, "-o", tmp_path / "a.so")
    assert entries(folder)
    fails("compile", model, "-o", tmp_path / "a.so", "--no-cache", "--cache", folder)


@pytest.mark.parametrize("home", ["", "/nowhere/at/all", "relative"])
def test_without_a_home_there_is_no_cache(model, tmp_path, monkeypatch, home):
    monkeypatch.delenv("HEDDLE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    assert not ok("compile", model, "-o", tmp_path / "a.so").errors


def test_the_folder_stays_below_its_limit(tmp_path, folder):
    for size in range(3, 20):
        weights = np.ones((size, 100000), np.float32)
        model = make_model([make_node("Add", "x w", "y", "n")], {"x": [size, 1]},
                           {"y": [size, 100000]}, {"w": weights})
        compiled(save(model, tmp_path / "m.onnx"), tmp_path / "m.so", folder, "--cache-limit",
                 20_000_000)
        assert sum(path.stat().st_size for path in entries(folder)) <= 20_100_000
    assert entries(folder)


def test_cache_says_and_empties(model, tmp_path, folder):
    assert json_of("cache", "--cache", folder)["entries"] == 0
    compiled(model, tmp_path / "a.so", folder)
    usage = json_of("cache", "--cache", folder)
    assert usage == {"path": str(folder), "entries": len(entries(folder)),
                     "bytes": sum(path.stat().st_size for path in entries(folder))}
    assert f"{usage['entries']} entries" in heddle("cache", "--cache", folder).output
    assert json_of("cache", "--cache", folder, "--clear")["bytes"] == 0
    assert not is_whole_hit(compiled(model, tmp_path / "a.so", folder))


def test_a_plan_needs_no_code(model, tmp_path, folder):
    done = compiled(model, tmp_path / "m.json", folder)
    assert set(done["report"]["seconds"]) == {"import", "simplify", "partition", "plan"}
    assert not folder.exists()


def test_the_folder_may_be_a_name_alone(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not is_whole_hit(compiled(model, "a.so", "name"))
    assert is_whole_hit(compiled(model, "b.so", "name")) and (tmp_path / "name").is_dir()


def test_a_limit_of_nothing(model, tmp_path):
    fails("compile", model, "-o", tmp_path / "m.so", "--cache-limit", "0",
          says="--cache-limit: it is 0, but a number above 0 is allowed\n")


def test_a_folder_that_others_may_write_to_is_not_used(model, folder, tmp_path):
    compiled(model, tmp_path / "a.so", folder)
    folder.chmod(0o777)
    assert not is_whole_hit(compiled(model, tmp_path / "b.so", folder))
    assert "is not used: other users may write to it" in ok("cache", "--cache", folder).output
