"""Keys and values of past tokens in buffers that a run extends: `--kv-cache`."""

import heddle as package
import numpy as np
import onnx.parser
import pytest
from c_test import COMPILERS, Model
from command import DIFFERS, OK, REFUSED, USAGE, heddle, save

pytestmark = pytest.mark.usefixtures("compiler")

HEADS, GROUPS, SIZE, CAPACITY = 6, 2, 24, 40
MODEL = f"""<ir_version: 10, opset_import: ["": 20, "com.microsoft": 1]>
grouped (float[b, s, {HEADS * SIZE}] q, float[b, s, {GROUPS * SIZE}] k,
         float[b, s, {GROUPS * SIZE}] v, int64[b, t] mask,
         float[b, {GROUPS}, p, {SIZE}] past_k, float[b, {GROUPS}, p, {SIZE}] past_v)
    => (float[b, s, {HEADS * SIZE}] y, float[b, {GROUPS}, r, {SIZE}] next_k,
        float[b, {GROUPS}, r, {SIZE}] next_v)
<int64[1] axis = {{1}}, int64[1] one = {{1}}, int64 second = {{1}}> {{
  sums = ReduceSum <keepdims = 1> (mask, axis)
  less = Sub (sums, one)
  lengths = Cast <to = 6> (less)
  shape = Shape (mask)
  size = Gather (shape, second)
  total = Cast <to = 6> (size)
  y, next_k, next_v = com.microsoft.GroupQueryAttention
    <num_heads = {HEADS}, kv_num_heads = {GROUPS}WINDOW> (q, k, v, past_k, past_v, lengths, total)
}}"""

RING = """<ir_version: 12, opset_import: ["": 24]>
  ring (float[b, 2, p, 4] past, float[b, 2, s, 4] update, int64[b] at)
    => (float[b, 2, 4] sums, float[b, 2, p, 4] next)
  <int64[1] axis = {2}> {
    next = TensorScatter <mode = "circular"> (past, update, at)
    sums = ReduceSum <keepdims = 0> (next, axis)
  }"""


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def write(folder, window=0):
    text = MODEL.replace("WINDOW", f", local_window_size = {window}" if window else "")
    return save(onnx.parser.parse_model(text), folder / "m.onnx")


@pytest.fixture(name="model")
def make_model(tmp_path):
    return write(tmp_path)


def buffers(batch, fill=0.0):
    return {name: np.full((batch, GROUPS, CAPACITY, SIZE), fill, np.float32)
            for name in ("past_k", "past_v")}


def tokens(batch, length, seed):
    """New queries, keys and values."""
    widths = {"q": HEADS, "k": GROUPS, "v": GROUPS}
    return {name: draw(batch, length, heads * SIZE, seed=seed * 3 + i)
            for i, (name, heads) in enumerate(widths.items())}


def ones(batch, total):
    return np.ones((batch, total), np.int64)


@pytest.mark.parametrize("window", [0, 5])
@pytest.mark.parametrize("batch", [1, 3])
def test_runs_extend_the_buffers(tmp_path, batch, window):
    path = write(tmp_path, window)
    plain, cached = package.compile(path), package.compile(path, kv_cache=CAPACITY)
    assert [output.name for output in cached.outputs] == ["y"]
    assert [value.shares for value in cached.inputs] == [-1, -1, -1, -1, 4, 5]
    past = {name: np.zeros((batch, GROUPS, 0, SIZE), np.float32) for name in ("past_k", "past_v")}
    kept, total = buffers(batch, fill=np.nan), 0
    for array in kept.values():
        array[:, :, :] = draw(*array.shape)  # of earlier texts, which count for nothing
    for seed, length in enumerate((7, 1, 1, 20, 2, 9)):  # up to the capacity
        total += length
        feeds = {**tokens(batch, length, seed), "mask": ones(batch, total)}
        wanted, past["past_k"], past["past_v"] = plain.run(None, {**feeds, **past})
        found, = cached.run(None, {**feeds, **kept})
        np.testing.assert_allclose(found, wanted, atol=2e-6)
        for name, array in kept.items():
            np.testing.assert_array_equal(array[:, :, :total], past[name])
    assert total == CAPACITY


@pytest.mark.parametrize("math", ["fast", "strict"])
def test_keys_that_no_query_sees_change_nothing(model, math):
    """Longer texts leave out panels of keys; among those are numbers that are not finite."""
    plain, cached = package.compile(model, math=math), package.compile(model, kv_cache=400)
    kept = {name: draw(1, GROUPS, 400, SIZE, seed=9) for name in ("past_k", "past_v")}
    past = {name: np.zeros((1, GROUPS, 0, SIZE), np.float32) for name in kept}
    total = 0
    for seed, length in enumerate((150, 77, 1, 129)):
        feeds = tokens(1, length, seed)
        if seed == 3:
            feeds["k"][0, 100, 3], feeds["v"][0, 120, 5] = np.inf, np.nan
        total += length
        feeds["mask"] = ones(1, total)
        wanted, past["past_k"], past["past_v"] = plain.run(None, {**feeds, **past})
        found, = cached.run(None, {**feeds, **kept})
        np.testing.assert_allclose(found, wanted, atol=2e-6)
        if seed < 3:
            np.testing.assert_allclose(found[0], attended(feeds, past, total - length), atol=5e-6)


def attended(feeds, past, before):
    """Attention of the new queries in f64, [s, heads * size]."""
    q = feeds["q"][0].astype(np.float64).reshape(-1, HEADS, SIZE)
    made = np.zeros_like(q)
    for head in range(HEADS):
        k, v = (past[name][0, head * GROUPS // HEADS].astype(np.float64)
                for name in ("past_k", "past_v"))
        for row, query in enumerate(q[:, head]):
            seen = before + row + 1
            scores = k[:seen] @ query / np.sqrt(SIZE)
            powers = np.exp(scores - scores.max())
            made[row, head] = powers / powers.sum() @ v[:seen]
    return made.reshape(len(q), -1)


def test_a_shorter_mask_goes_back(model):
    cached, kept = package.compile(model, kv_cache=CAPACITY), buffers(1)
    steps = [tokens(1, 1, seed) for seed in range(6)]
    first = [cached.run(None, {**step, "mask": ones(1, place + 1), **kept})[0]
             for place, step in enumerate(steps)]
    for place in (2, 3, 4, 5):
        again, = cached.run(None, {**steps[place], "mask": ones(1, place + 1), **kept})
        np.testing.assert_array_equal(again, first[place])


def test_rows_have_lengths_of_their_own(model):
    cached = package.compile(model, kv_cache=CAPACITY)
    lengths, kept, alone = (9, 3), buffers(2), [buffers(1), buffers(1)]
    for row, length in enumerate(lengths):  # the texts so far, each by itself
        feeds = tokens(1, length, row)
        cached.run(None, {**feeds, "mask": ones(1, length), **alone[row]})
        for name, array in kept.items():
            array[row] = alone[row][name][0]
    for step in range(3):
        feeds = tokens(2, 1, 10 + step)
        mask = np.arange(lengths[0] + step + 1) < np.array(lengths)[:, None] + step + 1
        together, = cached.run(None, {**feeds, "mask": mask.astype(np.int64), **kept})
        for row, length in enumerate(lengths):
            single = {name: array[row:row + 1] for name, array in feeds.items()}
            single["mask"] = ones(1, length + step + 1)
            wanted, = cached.run(None, {**single, **alone[row]})
            np.testing.assert_allclose(together[row:row + 1], wanted, atol=2e-6)


def test_nothing_is_copied(model):
    """The memory of a run does not depend on the capacity, but for the buffers themselves."""
    peaks = []
    for capacity in (64, 1 << 20):
        session = package.Session(package.compile(model, kv_cache=capacity))
        shape = (1, GROUPS, capacity, SIZE)
        kept = {name: np.zeros(shape, np.float32) for name in ("past_k", "past_v")}
        session.run(None, {**tokens(1, 1, 0), "mask": ones(1, 30), **kept})
        peaks.append(session.memory["arena_bytes"] + session.memory["scratch_bytes"])
    assert peaks[0] == peaks[1]


def test_an_artefact_and_commands(tmp_path, model):
    sizes = ("--dim", "b=1", "--dim", "s=2", "--dim", "t=9", "--kv-cache", CAPACITY)
    done = heddle("compile", model, "--kv-cache", CAPACITY, "-o", tmp_path / "m.so")
    assert done.status == OK, done.errors
    kept, feeds = buffers(1), {**tokens(1, 2, 0), "mask": ones(1, 9)}
    found, = package.load(tmp_path / "m.so").run(None, {**feeds, **kept})
    wanted, = package.compile(model, kv_cache=CAPACITY).run(None, {**feeds, **buffers(1)})
    np.testing.assert_array_equal(found, wanted)
    compared = heddle("compare", model, "--against", "reference", *sizes)
    assert compared.status == OK, compared.output + compared.errors
    assert heddle("compare", model, "--against", "reference", *sizes, "--rtol", "0", "--atol",
                  "0").status in (OK, DIFFERS)


@pytest.mark.skipif(not COMPILERS, reason="no C compiler")
def test_a_c_file(tmp_path, model):
    done = heddle("compile", model, "--kv-cache", CAPACITY, "--target", "c", "-o", tmp_path / "m.c")
    assert done.status == OK, done.errors
    written, cached = Model(tmp_path / "m.c", COMPILERS[0], []), package.compile(
        model, kv_cache=CAPACITY)
    ours, theirs = buffers(2), buffers(2)
    for place in range(3):
        feeds = {**tokens(2, 1, place), "mask": ones(2, place + 1)}
        found, = written.run([*feeds.values(), *ours.values()])
        np.testing.assert_allclose(found, cached.run(None, {**feeds, **theirs})[0], atol=2e-6)
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], atol=2e-6)


def test_tensor_scatter(tmp_path):
    path = save(onnx.parser.parse_model(RING), tmp_path / "m.onnx")
    cached, plain = package.compile(path, kv_cache=8), package.compile(path)
    kept = draw(2, 2, 8, 4)
    for place in range(0, 20, 3):
        feeds = {"update": draw(2, 2, 3, 4, seed=place), "at": np.array([place % 8, 7])}
        sums, wanted = plain.run(None, {"past": kept.copy(), **feeds})
        np.testing.assert_allclose(cached.run(None, {"past": kept, **feeds})[0], sums, atol=1e-6)
        np.testing.assert_array_equal(kept, wanted)


# Attentions of two heads over a past [b, 2, p, 16] and what is new, [b, 2, s, 16].
CONCAT = """
  k = Concat <axis = -2> (same, new_k)  v = Concat <axis = 2> (past_v, new_v)
  columns = Transpose <perm = [0, 1, 3, 2]> (k)  scores = MatMul (q, columns)
  weights = Softmax (scores)  y = MatMul (weights, v)"""
OPS = {
    "concat": "same = Concat <axis = 2> (past_k)" + CONCAT,
    "identity": "same = Identity (past_k)" + CONCAT,
    "attention": "y, k, v = Attention <is_causal = 1> (q, new_k, new_v, , past_k, past_v)",
    "multi": """
  split = Transpose <perm = [0, 2, 1, 3]> (q)  flat = Reshape (split, flat_shape)
  z, k, v = com.microsoft.MultiHeadAttention <num_heads = 2>
    (flat, new_k, new_v, , , , past_k, past_v)
  y = Reshape (z, y_shape)"""}


def appending(op, mask=""):
    """A model that appends by this op; `mask`: an input whose size is the past's."""
    y = "float[b, s, 2, 16] y" if op == "multi" else "float[b, 2, s, 16] y"
    extra = "twice = Concat <axis = 0> (mask, mask)" if mask else ""
    return onnx.parser.parse_model(f"""
      <ir_version: 11, opset_import: ["": 23, "com.microsoft": 1]>
      appending (float[b, 2, s, 16] q, float[b, 2, s, 16] new_k, float[b, 2, s, 16] new_v, {mask}
                 float[b, 2, p, 16] past_k, float[b, 2, p, 16] past_v)
        => ({y}, float[b, 2, r, 16] k, float[b, 2, r, 16] v{", float[n] twice" if mask else ""})
      <int64[3] flat_shape = {{0, 0, 32}}, int64[4] y_shape = {{0, 0, 2, 16}}>
      {{ {extra} {OPS[op]} }}""")


@pytest.mark.parametrize("op", OPS)
def test_pasts_that_are_as_long_as_they_are(tmp_path, op):
    path = save(appending(op), tmp_path / "m.onnx")
    plain, cached = package.compile(path), package.compile(path, kv_cache=32)
    assert [output.name for output in cached.outputs] == ["y"]
    assert cached.inputs[-1].name == "past_length" and cached.inputs[-1].shape == [1]
    past = {name: np.zeros((2, 2, 0, 16), np.float32) for name in ("past_k", "past_v")}
    kept, total = {name: draw(2, 2, 32, 16) for name in past}, 0
    for seed, length in enumerate((3, 1, 12, 1, 15)):
        feeds = {name: draw(2, 2, length, 16, seed=seed * 3 + place)
                 for place, name in enumerate(("q", "new_k", "new_v"))}
        wanted, past["past_k"], past["past_v"] = plain.run(None, {**feeds, **past})
        found, = cached.run(None, {**feeds, **kept, "past_length": np.array([total])})
        np.testing.assert_allclose(found, wanted, atol=2e-6)
        total += length
        for name, array in kept.items():
            np.testing.assert_array_equal(array[:, :, :total], past[name])
    for length in (-1, 18, 1 << 40):
        before = {name: array.copy() for name, array in kept.items()}
        with pytest.raises(package.UsageError, match="past_length|slice would end|larger than any"):
            cached.run(None, {**feeds, **kept, "past_length": np.array([length])})
        for name, array in kept.items():
            np.testing.assert_array_equal(array, before[name])


def test_another_input_says_how_long_the_past_is(tmp_path):
    cached = package.compile(save(appending("concat", "float[p] mask,"), tmp_path / "m.onnx"),
                             kv_cache=32)
    assert "past_length" not in {value.name for value in cached.inputs}
    kept = {name: draw(1, 2, 32, 16) for name in ("past_k", "past_v")}
    feeds = {name: draw(1, 2, 4, 16, seed=place)
             for place, name in enumerate(("q", "new_k", "new_v"))}
    cached.run(None, {**feeds, **kept, "mask": np.ones(9, np.float32)})
    np.testing.assert_array_equal(kept["past_v"][:, :, 9:13], feeds["new_v"])


def test_a_branch_does_not_extend_it(tmp_path):
    """Another Concat of the past, in a graph of the model's, is one of its own."""
    model = appending("concat")
    branches = {
        name: onnx.helper.make_graph(
            [onnx.helper.make_node("Concat", ["past_k", other], [name], axis=2)], name, [],
            [onnx.helper.make_tensor_value_info(name, 1, ["b", 2, "r", 16])])
        for name, other in (("then_branch", "new_v"), ("else_branch", "q"))}
    model.graph.node.append(onnx.helper.make_node("If", ["chosen"], ["more"], **branches))
    model.graph.input.append(onnx.helper.make_tensor_value_info("chosen", 9, []))
    model.graph.output.append(onnx.helper.make_tensor_value_info("more", 1, ["b", 2, "r", 16]))
    cached = package.compile(save(model, tmp_path / "m.onnx"), kv_cache=32)
    for chosen, other in ((True, "new_v"), (False, "q")):
        kept = {name: draw(1, 2, 32, 16) for name in ("past_k", "past_v")}
        feeds = {name: draw(1, 2, 4, 16, seed=place)
                 for place, name in enumerate(("q", "new_k", "new_v"))}
        _, more = cached.run(None, {**feeds, **kept, "chosen": np.array(chosen),
                                    "past_length": np.array([5])})
        np.testing.assert_array_equal(kept["past_k"][:, :, 5:9], feeds["new_k"])
        np.testing.assert_array_equal(
            more, np.concatenate([kept["past_k"][:, :, :5], feeds[other]], 2))


def test_two_nodes_that_extend_one_past(tmp_path):
    model = appending("concat")
    model.graph.node.append(onnx.helper.make_node("Concat", ["past_k", "q"], ["more"], axis=2))
    model.graph.output.append(onnx.helper.make_tensor_value_info("more", 1, ["b", 2, "r", 16]))
    path = save(model, tmp_path / "m.onnx")
    done = heddle("compile", path, "--kv-cache", 8, "-o", tmp_path / "m.so")
    assert done.status == REFUSED
    assert "two nodes extend it, so that '--kv-cache' cannot keep both" in done.errors


def refused(cached, says, **changed):
    feeds = {**tokens(1, 1, 0), "mask": ones(1, 5), **buffers(1), **changed}
    kept = {name: feeds[name].copy() for name in ("past_k", "past_v")}
    with pytest.raises(package.UsageError) as caught:
        cached.run(None, feeds)
    assert says in str(caught.value)
    for name, array in kept.items():
        np.testing.assert_array_equal(feeds[name], array)


def test_bad_buffers(model):
    cached, array = package.compile(model, kv_cache=CAPACITY), buffers(1)["past_k"]
    locked = array.copy()
    locked.flags.writeable = False
    refused(cached, "is read-only", past_k=locked)
    refused(cached, "elements of float64", past_k=array.astype(np.float64))
    refused(cached, "is not dense", past_k=array[:, :, :, ::-1])
    refused(cached, "39", past_k=array[:, :, 1:].copy())
    refused(cached, "overlaps input 'past_k', but the run writes it", past_k=array, past_v=array)
    refused(cached, f"ends at {CAPACITY}", mask=ones(1, CAPACITY + 1))


def test_buffers_are_not_bound(model):
    session = package.Session(package.compile(model, kv_cache=CAPACITY))
    with pytest.raises(package.UsageError, match="'past_k' is a buffer that a run writes"):
        session.bind(buffers(1))


@pytest.mark.parametrize("options, says", [
    (("--kv-cache", "-1"), "--kv-cache"),
    (("--kv-cache", "40", "--training", "recipe.json"), "'--kv-cache' is for generation, but"),
    (("--kv-cache", "40", "--dim", "p=7"), "it holds 7 past tokens, but '--kv-cache' asks for 40"),
])
def test_bad_options(tmp_path, model, options, says):
    (tmp_path / "recipe.json").write_text('{"loss": "mse"}')
    options = [tmp_path / each if each == "recipe.json" else each for each in options]
    done = heddle("compile", model, *options, "-o", tmp_path / "m.so")
    assert done.status in (USAGE, REFUSED) and says in done.errors
    assert not (tmp_path / "m.so").exists()


def test_a_model_without_any(tmp_path):
    path = save(onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 20]>
      g (float[n] x) => (float[n] y) { y = Neg (x) }"""), tmp_path / "m.onnx")
    done = heddle("compile", path, "--kv-cache", 8, "-o", tmp_path / "m.so")
    assert done.status == REFUSED and "no input holds keys or values of past tokens" in done.errors
