"""The target 'cuda' with a device: models on the emulated CUDA driver, which checks each access of
a kernel, beside what the CPU computes."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from gpu import ALL_GROUPS, DRIVER, NO_DRIVER, run
from heddle.onnx_graph import Graph

import heddle

pytestmark = [
    pytest.mark.usefixtures("compiler"),
    pytest.mark.skipif(not DRIVER.exists(), reason="`ninja heddle-emulated-cuda` makes the driver")]
MODELS = Path(__file__).parents[3] / "shared" / "models"
CARDS = Path(__file__).parents[2] / "examples" / "cards"
random = np.random.default_rng(7)
SIZES = (70, 1, 0, 300, 64, 70)
SHORT = ALL_GROUPS | {"thresholds": ALL_GROUPS["thresholds"] | {"bf16_saving": 0}}


def normal(*shape):
    return random.normal(size=shape).astype(np.float32)


def saved(graph, path, opset=17):
    onnx.save(graph.model(opset), path)
    return path


def mlp(path, size=256):
    """relu(x @ w + b) and the softmax of x's rows: large enough for a device."""
    graph = Graph()
    x = graph.input("x", ["n", size])
    y = graph.op("Add", graph.op("MatMul", x, graph.weight(size, size)), graph.weight(size))
    graph.output(graph.op("Relu", y), ["n", size])
    graph.output(graph.op("Softmax", x, axis=-1), ["n", size])
    return saved(graph, path)


def assert_same(source, runs, rtol=1e-4, atol=1e-4, settings=""):
    """Holds results of the device to those of the CPU; gives what was found of the device."""
    found = run(source, runs, settings=settings)
    assert found.report["launches"] > 0 and found.report.get("errors", 0) == 0, found.report
    session = heddle.Session(heddle.compile(source))
    for feeds, results in zip(runs, found.results, strict=True):
        assert not isinstance(results, str), results
        for result, wanted in zip(results, session.run(None, feeds), strict=True):
            assert result.dtype == wanted.dtype and result.shape == wanted.shape
            if result.dtype.kind in "biu":
                np.testing.assert_array_equal(result, wanted)
            else:
                np.testing.assert_allclose(result.astype(np.float64), wanted.astype(np.float64),
                                           rtol, atol)
    return found


@pytest.mark.parametrize("name, feed", [
    ("kws_fp32", lambda: {"serving_default_input:0": normal(1, 1960)}),
    ("ultraface_rfb320", lambda: {"input": normal(1, 3, 240, 320)}),
    ("magika_v3_3", lambda: {"bytes": random.integers(0, 257, (1, 2048)).astype(np.int32)})],
    ids=["kws", "ultraface", "magika"])
def test_published_models(name, feed):
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    assert_same(path, [feed(), feed()])


def rounded(x):
    return x.astype(ml_dtypes.bfloat16).astype(np.float64)


@pytest.mark.parametrize("rows, depth, between, columns", [
    (70, 33, 136, 130), (2000, 40, 520, 200), (16, 512, 64, 1000), (200, 72, 96, 17)])
def test_products_of_bf16(tmp_path, rows, depth, between, columns):
    """Whose left operand is f32 in memory, which registers round, and then bf16, which is fetched:
    tiles of several sizes, and parts of them."""
    w, u, b = normal(depth, between), normal(between, columns), normal(columns)
    graph = Graph()
    x = graph.input("x", ["n", depth])
    hidden = graph.op("Relu", graph.op("MatMul", x, graph.constant(w)))
    y = graph.op("MatMul", hidden, graph.constant(u))
    graph.output(graph.op("Add", y, graph.constant(b)), ["n", columns])
    feeds = {"x": normal(rows, depth)}
    found = run(saved(graph, tmp_path / "m.onnx"), [feeds], math="bf16", plan=SHORT)
    assert found.report["instructions"]["mma"] > 0, found.report
    hidden = rounded(np.maximum(rounded(feeds["x"]) @ rounded(w), 0))
    wanted = hidden @ rounded(u) + b
    np.testing.assert_allclose(found.results[0][0], wanted, rtol=1e-2,
                               atol=2e-3 * np.abs(wanted).max())


@pytest.mark.parametrize("heads, queries, keys, depth, columns", [
    (2, 100, 100, 64, 64), (1, 20, 300, 40, 96), (3, 70, 65, 128, 16), (2, 33, 1, 16, 128)])
def test_attention_of_bf16(tmp_path, heads, queries, keys, depth, columns):
    """A mask hides some keys, and in one row all but one."""
    graph = Graph()
    q, k, v = (graph.input(name, ["n", heads, *sizes]) for name, sizes in (
        ("q", (queries, depth)), ("k", (depth, keys)), ("v", (keys, columns))))
    mask = graph.input("mask", [queries, keys])
    scores = graph.op("Mul", graph.op("MatMul", q, k), graph.constant(np.float32(depth**-0.5)))
    weights = graph.op("Softmax", graph.op("Add", scores, mask), axis=-1)
    graph.output(graph.op("MatMul", weights, v), ["n", heads, queries, columns])
    hidden = random.random((queries, keys)) < 0.3
    hidden[:, 0], hidden[5, 1:] = False, True
    feeds = {"q": normal(2, heads, queries, depth), "k": normal(2, heads, depth, keys),
             "v": normal(2, heads, keys, columns),
             "mask": np.where(hidden, np.float32(-np.inf), np.float32(0))}
    found = run(saved(graph, tmp_path / "m.onnx"), [feeds], math="bf16", plan=SHORT)
    assert not isinstance(found.results[0], str), found.results[0]
    assert found.report["instructions"]["mma"] > 0, found.report
    scores = rounded(feeds["q"]) @ rounded(feeds["k"]) * depth**-0.5 + feeds["mask"]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ rounded(feeds["v"])
    np.testing.assert_allclose(found.results[0][0], wanted, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("parts, columns", [(3, 37), (3, 5), (7, 64), (2, 100)])
@pytest.mark.parametrize("math", ["fast", "bf16"])
def test_parts_of_a_product(tmp_path, parts, columns, math):
    """Parts of the columns that no tile is a multiple of, as gates of recurrent networks are."""
    w = normal(48, parts * columns)
    graph = Graph()
    x = graph.input("x", ["n", 48])
    gates = graph.op("Split", graph.op("MatMul", x, graph.constant(w)), axis=1, num_outputs=parts,
                     outputs=parts)
    product = graph.op("Tanh", gates[0])
    for gate in gates[1:]:
        product = graph.op("Mul", product, graph.op("Sigmoid", gate))
    graph.output(product, ["n", columns])
    feeds = {"x": normal(70, 48)}
    path = saved(graph, tmp_path / "m.onnx", opset=18)
    found = run(path, [feeds], math=math, plan=SHORT)
    assert not isinstance(found.results[0], str), found.results[0]
    assert found.report["launches"] > 0 and (math == "fast" or found.report["instructions"]["mma"])
    factors = (feeds["x"], w) if math == "fast" else (rounded(feeds["x"]), rounded(w))
    each = np.split(factors[0].astype(np.float64) @ factors[1], parts, axis=1)
    wanted = np.tanh(each[0]) * np.prod([1 / (1 + np.exp(-gate)) for gate in each[1:]], axis=0)
    np.testing.assert_allclose(found.results[0][0], wanted, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)],
                         ids=["f16", "bf16"])
@pytest.mark.parametrize("rows", [1, 3, 70])
def test_models_of_16_bits(tmp_path, dtype, rows):
    """Their products are of these numbers without leave to round others, with sums in f32."""
    def drawn(*sizes):
        return normal(*sizes).astype(dtype)

    w, u, v = drawn(64, 136), drawn(136, 64), drawn(64, 40)
    graph = Graph()
    x = graph.input("x", [rows, 64], dtype)
    hidden = graph.op("Relu", graph.op("MatMul", x, graph.constant(w)))
    y = graph.op("Add", graph.op("MatMul", hidden, graph.constant(u)), x)
    graph.output(graph.op("MatMul", y, graph.constant(v)), [rows, 40], dtype)
    feeds = {"x": drawn(rows, 64)}
    path = saved(graph, tmp_path / "m.onnx")
    found = run(path, [feeds], plan=ALL_GROUPS)
    assert not isinstance(found.results[0], str), found.results[0]
    assert (rows > 4) == bool(found.report["instructions"].get("mma")), found.report
    x, w, u, v = (each.astype(np.float64) for each in (feeds["x"], w, u, v))
    hidden = np.maximum(x @ w, 0).astype(dtype).astype(np.float64)
    wanted = (hidden @ u + x).astype(dtype).astype(np.float64) @ v
    unit = 2.0**-8 if dtype == ml_dtypes.bfloat16 else 2.0**-11
    np.testing.assert_allclose(found.results[0][0].astype(np.float64), wanted, rtol=4 * unit,
                               atol=2 * unit * np.abs(wanted).max())


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), np.dtype(np.float16)],
                         ids=["f32", "f16"])
@pytest.mark.parametrize("queries, keys", [(1, 1000), (3, 700), (16, 333), (1, "k")])
def test_few_queries_share_out_the_keys(tmp_path, queries, keys, dtype):
    """Blocks find what parts of the keys come to, of which some have none that is seen."""
    graph = Graph()
    q, k, v, mask = (graph.input(name, sizes, dtype) for name, sizes in (
        ("q", [1, 2, queries, 64]), ("k", [1, 2, 64, keys]), ("v", [1, 2, keys, 40]),
        ("mask", [queries, keys])))
    scores = graph.op("Mul", graph.op("MatMul", q, k), graph.constant(np.array(0.125, dtype)))
    weights = graph.op("Softmax", graph.op("Add", scores, mask), axis=-1)
    graph.output(graph.op("MatMul", weights, v), [1, 2, queries, 40], dtype)
    runs = []
    for count in ([keys] if keys != "k" else [1000, 1, 130, 0]):
        hidden = np.arange(count) < (count * 2) // 3
        hidden = np.broadcast_to(hidden, (queries, count)).copy()
        runs.append({"q": normal(1, 2, queries, 64), "k": normal(1, 2, 64, count),
                     "v": normal(1, 2, count, 40),
                     "mask": np.where(hidden, np.float32(-np.inf), np.float32(0))})
    runs = [{name: each.astype(dtype) for name, each in feeds.items()} for feeds in runs]
    source, close = saved(graph, tmp_path / "m.onnx"), 1e-5 if dtype == np.float32 else 2e-3
    assert_same(source, runs, close, close)
    compiled = heddle.compile(source, target="cuda", output=tmp_path / "m.so", load=False,
                              plan=ALL_GROUPS)
    [group] = [each for each in compiled.explanation["groups"]
               if each["mechanism"] == "attention"]
    is_of_fragments = queries > 4 and dtype == np.float16
    assert len(group["device"]["kernels"]) == (1 if is_of_fragments else 2), group


def test_attention_of_f16(tmp_path):
    graph = Graph()
    half = np.dtype(np.float16)
    q, k, v = (graph.input(name, [1, 2, *sizes], half)
               for name, sizes in (("q", (70, 64)), ("k", (64, 90)), ("v", (90, 64))))
    scores = graph.op("Mul", graph.op("MatMul", q, k), graph.constant(np.float16(0.125)))
    y = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v)
    graph.output(y, [1, 2, 70, 64], half)
    feeds = {"q": normal(1, 2, 70, 64), "k": normal(1, 2, 64, 90), "v": normal(1, 2, 90, 64)}
    found = assert_same(saved(graph, tmp_path / "m.onnx"),
                        [{name: each.astype(half) for name, each in feeds.items()}], 4e-3, 4e-3)
    assert found.report["instructions"]["mma"] > 0, found.report


def test_convolutions_of_bf16(tmp_path):
    """Images whose border is none of them, strides, groups and channels that are few."""
    graph = Graph()
    x = graph.input("x", ["n", 8, 33, 30])
    y = graph.op("Relu", graph.op("Conv", x, graph.weight(32, 8, 3, 3), pads=[1, 1, 1, 1]))
    y = graph.op("Relu", graph.op("Conv", y, graph.weight(24, 8, 3, 3), group=4, strides=[2, 2],
                                  pads=[0, 1, 1, 0]))
    y = graph.op("Conv", y, graph.weight(40, 24, 1, 1))
    graph.output(y, ["n", 40, 16, 15])
    path, feeds = saved(graph, tmp_path / "m.onnx"), {"x": normal(2, 8, 33, 30)}
    found = run(path, [feeds], math="bf16", plan=SHORT)
    wanted = heddle.Session(heddle.compile(path)).run(None, feeds)[0]
    assert not isinstance(found.results[0], str), found.results[0]
    assert found.report["instructions"]["mma"] > 0, found.report
    np.testing.assert_allclose(found.results[0][0], wanted, rtol=5e-2,
                               atol=1e-2 * np.abs(wanted).max())


def planned(source, path, target="cuda", change=lambda group: None, **options):
    """The plan of all groups on the device, with a change of each."""
    heddle.compile(source, target=target, output=path, load=False, plan=ALL_GROUPS, **options)
    plan = json.loads(path.read_text())
    for group in plan["groups"]:
        change(group)
    return plan


@pytest.mark.parametrize("m, n", [(16, 64), (64, 16), (32, 32), (64, 64), (128, 128), (64, 0)])
def test_a_plan_says_what_tile_a_product_has(tmp_path, m, n):
    source = mlp(tmp_path / "m.onnx")

    def change(group):
        if group.get("card") == "cuda_product":
            group["knobs"] = {"m": m, "n": n}

    plan = planned(source, tmp_path / "m.plan", change=change)
    assert {group["card"] for group in plan["groups"]} == {"cuda_product", "cuda_rows"}
    runs = [{"x": normal(rows, 256)} for rows in (70, 1)]
    found = run(source, runs, plan=plan)
    host = heddle.compile(source)
    for feeds, results in zip(runs, found.results, strict=True):
        assert not isinstance(results, str), results
        for result, wanted in zip(results, host.run(None, feeds), strict=True):
            np.testing.assert_allclose(result, wanted, 1e-4, 1e-4)


def test_a_tile_that_there_is_none_of(tmp_path):
    source = mlp(tmp_path / "m.onnx")
    plan = planned(source, tmp_path / "m.plan",
                   change=lambda group: group.update(knobs={"m": 16, "n": 16})
                   if group["card"] == "cuda_product" else None)
    message = "card 'cuda_product' cannot be carried out.*no tile of m = 16 by n = 16"
    with pytest.raises(heddle.UsageError, match=message):
        heddle.compile(source, target="cuda", plan=plan, output=tmp_path / "m.so", load=False)


def test_a_card_for_a_device_is_one_file(tmp_path):
    """T5's normalisation by threads whose number the card says."""
    graph = Graph()
    x = graph.input("x", ["batch", 64])
    mean = graph.op("ReduceMean", graph.op("Mul", x, x), axes=[-1])
    root = graph.op("Sqrt", graph.op("Add", mean, graph.constant(np.float32(1e-6))))
    graph.output(graph.op("Mul", graph.op("Div", x, root), graph.weight(64)), ["batch", 64])
    source, folder = saved(graph, tmp_path / "m.onnx"), str(CARDS)
    plan = planned(source, tmp_path / "m.plan", schedules=folder)
    assert [(group["card"], group["knobs"]) for group in plan["groups"]] == [
        ("t5_layer_norm_cuda", {"threads": 128})]
    options = {"target": "cuda", "output": tmp_path / "m.so", "load": False, "schedules": folder}
    compiled = heddle.compile(source, plan=plan, **options)
    kernels = compiled.explanation["groups"][0]["device"]["kernels"]
    assert [kernel["threads"] for kernel in kernels] == [128]
    runs = [{"x": normal(rows, 64)} for rows in (5, 300)]
    found = run(source, runs, plan=plan, schedules=folder)
    host = heddle.compile(source)
    for feeds, results in zip(runs, found.results, strict=True):
        np.testing.assert_allclose(results[0], host.run(None, feeds)[0], 1e-5, 1e-6)
    plan["groups"][0]["device"] = 0
    with pytest.raises(heddle.UsageError, match="card 't5_layer_norm_cuda' is for target 'cuda'"):
        heddle.compile(source, plan=plan, **options)


def test_sizes_that_grow_and_shrink(tmp_path):
    found = assert_same(mlp(tmp_path / "m.onnx"), [{"x": normal(n, 256)} for n in SIZES])
    bytes_of = dict(zip(SIZES, (memory["device_bytes"] for memory in found.memory)))
    assert bytes_of[1] >= 70 * 256 * 4, "memory is kept for the next run"
    assert bytes_of[300] >= 300 * 256 * 4 > bytes_of[1]
    assert found.report["live"] > 0 == found.report.get("leaked", 0)


def test_warps_blocks_and_streams_in_another_order(tmp_path):
    runs = [{"x": normal(n, 256)} for n in (33, 5)]
    assert_same(mlp(tmp_path / "m.onnx"), runs, settings="seed=3")


def test_memory_has_nothing_of_a_device_on_the_host(tmp_path):
    found = run(mlp(tmp_path / "m.onnx"), [{"x": normal(70, 256)}], target="host")
    assert found.memory[0]["device_bytes"] == 0 and "launches" not in found.report


def test_more_than_a_device_has_is_refused(tmp_path):
    runs = [{"x": normal(n, 256)} for n in (8000, 64)]
    found = run(mlp(tmp_path / "m.onnx"), runs, settings="memory=6M")
    assert "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY" in found.results[0]
    assert found.results[0].endswith("; use smaller inputs or fewer runs at once")
    assert [result.shape for result in found.results[1]] == [(64, 256)] * 2


KINDS = {"f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8,
         "i64": np.int64, "bool": np.bool_}


@pytest.mark.parametrize("kind", KINDS)
def test_element_types(tmp_path, kind):
    dtype = np.dtype(KINDS[kind])
    graph = Graph()
    x, y = (graph.input(name, ["n", 512], dtype) for name in "xy")
    if kind == "bool":
        made = [graph.op("Xor", x, graph.op("Not", y)), graph.op("Or", x, y),
                graph.op("Transpose", x, perm=[1, 0])]
        types = [dtype] * 3
    else:
        made = [graph.op("Add", graph.op("Mul", x, y), x), graph.op("Less", x, y),
                graph.op("Where", graph.op("Less", x, y), x, y), graph.op("Max", x, y),
                graph.op("Transpose", x, perm=[1, 0]), graph.op("Cast", x, to=1)]
        types = [dtype, np.dtype(bool), dtype, dtype, dtype, np.dtype(np.float32)]
    for each, of in zip(made, types):
        graph.output(each, None, of)

    def numbers(n):
        drawn = random.normal(size=(n, 512)) * (100 if dtype.kind in "iu" else 2)
        return (drawn > 0) if kind == "bool" else drawn.astype(dtype)

    runs = [{"x": numbers(n), "y": numbers(n)} for n in (33, 0, 7, 40)]
    close = {"f64": 1e-12, "f16": 2e-3, "bf16": 2e-2}.get(kind, 1e-6)
    assert_same(saved(graph, tmp_path / "m.onnx", opset=19), runs, close, close)


def test_special_numbers(tmp_path):
    graph = Graph()
    x = graph.input("x", ["n", 256])
    for kind in ("Exp", "Sigmoid", "Tanh", "Relu", "Floor"):
        graph.output(graph.op(kind, x), ["n", 256])
    graph.output(graph.op("ReduceMax", x, axes=[1], keepdims=0), ["n"])
    rows = normal(40, 256)
    rows.flat[::37] = np.nan
    rows[:8].flat[::5] = np.inf
    rows[9:].flat[::11] = -np.inf
    rows[20] = 1e-40
    assert_same(saved(graph, tmp_path / "m.onnx"), [{"x": rows}], 1e-5, 1e-6)


def gather(path):
    graph = Graph()
    x, rows = graph.input("x", [50, 256]), graph.input("rows", ["n"], np.dtype(np.int64))
    graph.output(graph.op("Relu", graph.op("Gather", x, rows, name="the_rows")), ["n", 256])
    return saved(graph, path)


@pytest.mark.parametrize("bad", [50, -51, 2**62])
def test_an_index_out_of_range_names_the_node(tmp_path, bad):
    path, x = gather(tmp_path / "m.onnx"), normal(50, 256)
    rows = random.integers(-50, 50, 90)
    wrong = rows.copy()
    wrong[60] = bad
    found = run(path, [{"x": x, "rows": each} for each in (rows, wrong, rows)])
    host = heddle.compile(path)
    with pytest.raises(heddle.Error, match="the_rows") as caught:
        host(x, wrong)
    assert found.results[1] == str(caught.value) and str(bad) in found.results[1]
    for place in (0, 2):
        np.testing.assert_array_equal(found.results[place][0], host(x, rows))
    assert found.report["launches"] > 0


@pytest.mark.parametrize("is_written", [False, True], ids=["compiled", "written"])
@pytest.mark.parametrize("driver, settings, chip",
                         [(DRIVER, "", "+sm_80"), (DRIVER, "devices=0", ""),
                          (DRIVER, "chip=75", ""), (DRIVER, "driver=11080", ""),
                          (NO_DRIVER, "", "")])
def test_of_both_forms_the_one_that_can_run_is_taken(tmp_path, driver, settings, chip, is_written):
    source, target = mlp(tmp_path / "m.onnx"), "host+cuda"
    runs = [{"x": normal(n, 256)} for n in (70, 3)]
    if is_written:
        heddle.compile(source, target=target, output=tmp_path / "m.so", load=False)
    found = run(tmp_path / "m.so" if is_written else source, runs,
                target=None if is_written else target, driver=driver, settings=settings)
    host = heddle.compile(source, target="host")
    assert found.target == host.info["target"] + chip
    assert found.report.get("launches", 0) > 0 if chip else not found.report.get("launches")
    for feeds, results in zip(runs, found.results):
        for result, wanted in zip(results, host.run(None, feeds)):
            np.testing.assert_allclose(result, wanted, 1e-4, 1e-4)


def test_a_driver_that_fails_is_one_error_and_no_more(tmp_path):
    runs = [{"x": normal(70, 256)}] * 3
    found = run(mlp(tmp_path / "m.onnx"), runs, settings="fail=cuLaunchKernel:1:1")
    assert "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE" in found.results[0]
    for first, second in zip(found.results[1], found.results[2]):
        np.testing.assert_array_equal(first, second)
