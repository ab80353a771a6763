"""A limit of memory: results that are computed twice are in the plan, and change no number."""

import json
import os
import re

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node
from heddle.training import Trainer

from command import OK, REFUSED, USAGE, needs_heddle
from command import heddle as command
from networks import initializers

pytestmark = needs_heddle

WIDTH, LAYERS, BATCH = 32, 10, 256


def deep():
    """[n, 32] -> [n, 32], layers of a product, an activation, a normalisation and a dropout, with
    sums of every second one with an earlier one."""
    nodes, last, skip = [], "x", "x"
    shapes = {}
    for i in range(LAYERS):
        shapes[f"w{i}"] = (WIDTH, WIDTH)
        shapes[f"scale{i}"] = (WIDTH,)
        names = [f"{kind}{i}" for kind in ("product", "act", "norm", "drop", "sum")]
        nodes += [make_node("MatMul", [last, f"w{i}"], [names[0]], names[0]),
                  make_node(("Tanh", "Gelu", "Relu")[i % 3], [names[0]], [names[1]], names[1]),
                  make_node("LayerNormalization", [names[1], f"scale{i}"], [names[2]], names[2]),
                  make_node("Dropout", [names[2], "ratio"], [names[3]], names[3])]
        last = names[3]
        if i % 2:
            nodes.append(make_node("Add", [last, skip], [names[4]], names[4]))
            last = skip = names[4]
    nodes.append(make_node("Identity", [last], "y", "out"))
    return make_model(nodes, {"x": ["n", WIDTH]}, {"y": ["n", WIDTH]},
                 {**initializers(1, **shapes), "ratio": np.float32(0.2)}, opset=20)


def images():
    """[n, 3, 12, 12] -> [n, 4]: convolutions of several kinds, normalisations and a pool."""
    nodes, last, channels, weights, shapes = [], "x", 3, {}, {}
    for i in range(5):
        shapes[f"w{i}"] = (8, 1 if i == 3 else channels, 3, 3)
        weights |= {f"{name}{i}": np.full(8, value, np.float32) for name, value in
                    (("scale", 1), ("bias", 0), ("mean", 0), ("variance", 1))}
        nodes += [make_node("Conv", [last, f"w{i}"], f"c{i}", f"conv{i}", pads=[1, 1, 1, 1],
                            group=8 if i == 3 else 1),
                  make_node("BatchNormalization", f"c{i} scale{i} bias{i} mean{i} variance{i}",
                            f"b{i}", f"norm{i}"),
                  make_node("Relu", f"b{i}", f"r{i}", f"relu{i}")]
        last, channels = f"r{i}", 8
    nodes += [make_node("GlobalAveragePool", [last], "p", "pool"),
              make_node("Flatten", "p", "f", "flat"),
              make_node("MatMul", "f classes", "y", "classes")]
    return make_model(nodes, {"x": ["n", 3, 12, 12]}, {"y": ["n", 4]},
                 {**initializers(1, **shapes, classes=(8, 4)), **weights})


def batches_of(name, count=3):
    random = np.random.default_rng(3)
    for _ in range(count):
        if name == "deep":
            yield {"x": random.standard_normal((BATCH, WIDTH)).astype(np.float32),
                   "labels": random.standard_normal((BATCH, WIDTH)).astype(np.float32)}
        else:
            yield {"x": random.standard_normal((16, 3, 12, 12)).astype(np.float32),
                   "labels": random.integers(0, 4, 16)}


MODELS = {"deep": (deep, "mse"), "images": (images, "cross_entropy")}


def trainer_of(name, **options):
    make, loss = MODELS[name]
    return Trainer(make(), loss, optimizer="momentum", learning_rate=1e-2, threads=1, cache=False,
                   seed=5, **options)


@pytest.mark.parametrize("name", MODELS)
def test_a_step_in_less_memory_is_the_same_step(name):
    wide = trainer_of(name, without="recomputation")
    first = next(batches_of(name))
    need = wide.prepare(first)
    assert need["total"] == sum(need.values()) - need["total"]
    losses = [wide.step(feeds) for feeds in batches_of(name)]
    assert wide.memory["arena_bytes"] == need["between_kernels"]
    for share in (0.8, 0.5):
        limit = need["total"] - int((1 - share) * need["between_kernels"])
        narrow = trainer_of(name, memory=limit)
        assert narrow.prepare(first)["total"] <= limit
        np.testing.assert_allclose([narrow.step(feeds) for feeds in batches_of(name)], losses,
                                   rtol=1e-5)
        assert narrow.memory["arena_bytes"] <= share * need["between_kernels"]
        for key, value in wide.state.items():
            np.testing.assert_allclose(narrow.state[key], value, rtol=1e-4, atol=1e-5, err_msg=key)


def test_a_step_saves_what_is_nearly_free():
    plain, spared = (trainer_of("images", without=without) for without in ("recomputation", None))
    first = next(batches_of("images"))
    kept, need = plain.prepare(first), spared.prepare(first)
    assert need["between_kernels"] < 0.95 * kept["between_kernels"]
    assert spared.step(first) == pytest.approx(plain.step(first), rel=1e-6)
    for phase, is_spared in (("step", True), ("gradients", True), ("evaluate", False)):
        compiled = heddle.compile(images(), threads=1, cache=False, load=False, typical={"n": 16},
                                  training={"optimizer": "momentum", "phase": phase})
        assert is_spared == any("again" in group for group in compiled.plan["groups"]), phase


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The deep model, a recipe, and what a step takes."""
    folder = tmp_path_factory.mktemp("memory")
    (folder / "deep.onnx").write_bytes(deep().SerializeToString())
    (folder / "recipe.json").write_text(json.dumps({"loss": "mse", "optimizer": "momentum"}))
    compiled = heddle.compile(str(folder / "deep.onnx"), threads=1, cache=False, load=False,
                              typical={"n": BATCH}, training={"loss": "mse",
                                                              "optimizer": "momentum"})
    return folder, compiled.report["memory"]


def compile_step(folder, *options):
    return command("compile", folder / "deep.onnx", "--training", folder / "recipe.json",
                   "--typical", f"n={BATCH}", "--threads", 1, "--no-cache", *options)


def limited(files):
    """The plan for two thirds of what lies between kernels."""
    folder, need = files
    limit = need["total"] - need["between_kernels"] // 3
    path = folder / "limited.json"
    done = compile_step(folder, "--memory", limit, "-o", path)
    assert done.status == OK, done.errors
    return path, json.loads(path.read_text())


def test_the_plan_says_what_is_computed_again_and_is_carried_out(files, tmp_path):
    folder, _ = files
    path, plan = limited(files)
    again = [group for group in plan["groups"] if "again" in group]
    assert again and all(group["name"].startswith(group["again"]["group"] + "~") for group in again)
    replayed = tmp_path / "replayed.json"
    done = compile_step(folder, "--plan", path, "-o", replayed)
    assert done.status == OK, done.errors
    assert replayed.read_bytes() == path.read_bytes()
    # Without one of its lines the readers read what was computed first.
    names = [group["name"] for group in plan["groups"]]
    last = next(group["name"] for group in again
                if not any(group["name"] in other["again"]["readers"] for other in again))
    plan["groups"] = [group for group in plan["groups"] if group["name"] != last]
    shorter = tmp_path / "shorter.json"
    shorter.write_text(json.dumps(plan))
    done = compile_step(folder, "--plan", shorter, "-o", tmp_path / "made.json")
    assert done.status == OK, done.errors
    made = json.loads((tmp_path / "made.json").read_text())
    assert [group["name"] for group in made["groups"]] == [name for name in names if name != last]


@pytest.mark.parametrize("change, message", [
    ({"group": "nothing"}, "the model has no group 'nothing' in its main graph to compute again"),
    ({"results": [9]}, "results, which are counted from 0; there is none of number 9"),
    ({"readers": ["nobody"]}, "the model has no group 'nobody' in its main graph to read it"),
    ({"readers": []}, "no group reads it"),
    ({"results": "all"}, "'results' is \"all\", but must be a list of integers"),
    ({"reader": []}, "unknown field 'reader'; did you mean 'readers'?"),
])
def test_wrong_lines_are_refused(files, tmp_path, change, message):
    folder, _ = files
    _, plan = limited(files)
    line = next(group for group in plan["groups"] if "again" in group)
    line["again"].update(change)
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(plan))
    done = compile_step(folder, "--plan", path, "-o", tmp_path / "made.json")
    assert done.status == USAGE
    assert str(path) in done.errors and f"group '{line['name']}'" in done.errors
    assert message in done.errors
    assert not os.path.exists(tmp_path / "made.json")


def test_too_little_is_refused_with_what_it_takes(files, tmp_path):
    folder, need = files
    least = need["total"] - need["between_kernels"]
    done = compile_step(folder, "--memory", least + 1000, "-o", tmp_path / "a.so")
    assert done.status == REFUSED and not os.path.exists(tmp_path / "a.so")
    assert "deep.onnx: error: a run may take" in done.errors
    assert "between kernels" in done.errors and "make the batch smaller" in done.errors
    path, _ = limited(files)
    done = compile_step(folder, "--memory", f"{least // 1024 + 1}KiB", "--plan", path,
                        "-o", tmp_path / "a.so")
    assert done.status == REFUSED and "with what the plan computes again" in done.errors
    done = compile_step(folder, "--memory", "-5", "-o", tmp_path / "a.so")
    assert done.status == USAGE


def test_the_least_that_a_refusal_names_will_do(files, tmp_path):
    folder, need = files
    limit = need["total"] - need["between_kernels"] + 1000
    done = compile_step(folder, "--memory", limit, "-o", tmp_path / "a.json")
    least = int(re.search(r"the least that was found is [^:]*\((\d+) bytes\)", done.errors)[1])
    assert limit < least < need["total"]
    done = compile_step(folder, "--memory", least, "-o", tmp_path / "a.json")
    assert done.status == OK, done.errors
    plan = json.loads((tmp_path / "a.json").read_text())
    assert any("again" in group for group in plan["groups"])


def test_inference_has_a_limit_too():
    plain = heddle.compile(deep(), threads=1, cache=False, typical={"n": BATCH}, load=False)
    need = plain.report["memory"]
    with pytest.raises(heddle.RefusedError, match="a run may take"):
        heddle.compile(deep(), threads=1, cache=False, typical={"n": BATCH}, load=False,
                       memory=need["inputs"])
    assert heddle.compile(deep(), threads=1, cache=False, typical={"n": BATCH}, load=False,
                          memory=need["total"]).plan == plain.plan


@pytest.mark.parametrize("name", MODELS)
def test_activations_of_16_bits_take_less_and_train_alike(name):
    wide, narrow = trainer_of(name), trainer_of(name, recipe={"activations": "bf16"})
    first = next(batches_of(name))
    before, after = wide.prepare(first), narrow.prepare(first)
    assert after["between_kernels"] < 0.9 * before["between_kernels"]
    assert narrow.step(first) == pytest.approx(wide.step(first), rel=1e-6)  # the way forward is f32
    weights = [key for key in wide.weights if key.startswith("w")]
    start = trainer_of(name).state
    for key in weights:  # updates differ by the rounding alone
        moved = wide.state[key] - start[key]
        assert np.abs(narrow.state[key] - wide.state[key]).max() <= 0.05 * np.abs(moved).max(), key
