"""State of a run beside tensors to compute with: outputs in the place of inputs, sizes that
are values of inputs, and the seed of random numbers."""

import heddle
import numpy as np
import onnx.parser
import pytest
from heddle.onnx_graph import make_model, make_node, make_value


def parsed(text, opset=22):
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{text}')


def session_of(text, **options):
    return heddle.Session(heddle.compile(parsed(text), threads=2, cache=False, **options))


def random(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


STEP = """step (float[n, 3] w, float[n, 3] g) => (float[n, 3] updated, float loss) {
    rate = Constant <value_float = 0.1> ()
    scaled = Mul(rate, g)
    updated = Sub(w, scaled)
    squares = Mul(updated, updated)
    loss = ReduceSum <keepdims = 0> (squares)
}"""


def test_a_state_is_updated_in_place():
    session = session_of(STEP, in_place={"updated": "w"})
    assert [output.shares for output in session.get_outputs()] == [0, -1]
    w, g = random(5, 3), random(3, 5).reshape(5, 3)
    expected = w.copy()
    for _ in range(3):
        updated, loss = session.run(None, {"w": w, "g": g}, out={"updated": w})
        assert updated is w
        expected -= np.float32(0.1) * g
        np.testing.assert_allclose(w, expected, rtol=1e-6)
        np.testing.assert_allclose(loss, (expected ** 2).sum(), rtol=1e-5)
    fresh, _ = session.run(None, {"w": w, "g": g})
    assert fresh is not w
    np.testing.assert_allclose(w, expected, rtol=1e-6)


def test_an_optimiser_updates_all_its_states_in_one_kernel():
    text = """g (float rate, int64 step, float[n, 3] w, float[n, 3] g, float[n, 3] m, float[n, 3] v)
        => (float[n, 3] w1, float[n, 3] m1, float[n, 3] v1) {
        w1, m1, v1 = ai.onnx.preview.training.Adam <alpha = 0.9, beta = 0.99, epsilon = 1e-3>
            (rate, step, w, g, m, v)
    }"""
    text = f'<ir_version: 10, opset_import: ["": 22, "ai.onnx.preview.training": 1]>\n{text}'
    module = heddle.compile(onnx.parser.parse_model(text), threads=2, cache=False,
                            in_place={"w1": "w", "m1": "m", "v1": "v"})
    kernels = [group["name"] for group in module.compiled.plan["groups"]]
    assert len(kernels) == 2, "one for the rate, one for the states"
    session = heddle.Session(module)
    w, m, g = random(40, 3), random(3, 40).reshape(40, 3), random(20, 6).reshape(40, 3)
    v = np.abs(random(60, 2)).reshape(40, 3)
    expected = [state.astype(np.float64) for state in (w, m, v)]
    for step in range(3):
        rate = np.float32(0.01)
        session.run(None, {"rate": rate, "step": np.int64(step), "w": w, "g": g, "m": m, "v": v},
                    out={"w1": w, "m1": m, "v1": v})
        first = 0.9 * expected[1] + 0.1 * g
        second = 0.99 * expected[2] + 0.01 * g.astype(np.float64) ** 2
        rate = rate * np.sqrt(1 - 0.99 ** step) / (1 - 0.9 ** step) if step else rate
        expected = [expected[0] - rate * first / (np.sqrt(second) + 1e-3), first, second]
        for state, number in zip((w, m, v), expected):
            np.testing.assert_allclose(state, number, rtol=1e-5, atol=1e-6)


def test_places_of_many_states_are_looked_at_together():
    count = 40
    names = [f"x{i}" for i in range(count)]
    model = make_model([make_node("Neg", [name], f"n{name}") for name in names],
                       {name: ["n"] for name in names}, {f"n{name}": ["n"] for name in names},
                       opset=22)
    session = heddle.Session(heddle.compile(model, threads=1, cache=False,
                                            in_place={f"n{name}": name for name in names}))
    states = {name: random(6) + i for i, name in enumerate(names)}
    expected = {name: -state for name, state in states.items()}
    session.run(None, states, out={f"n{name}": state for name, state in states.items()})
    for name, state in states.items():
        np.testing.assert_array_equal(state, expected[name])
    memory = np.zeros(9, np.float32)
    wrong = {"output 'nx7': its buffer overlaps input 'x3'": {"nx7": states["x3"]},
             "output 'nx9': its buffer overlaps output 'nx8'": {"nx8": memory[:6],
                                                               "nx9": memory[3:]}}
    for message, places in wrong.items():
        with pytest.raises(heddle.UsageError, match=message):
            session.run(None, states, out=places)


def test_without_the_option_outputs_stand_apart():
    session = session_of(STEP)
    w = random(5, 3)
    with pytest.raises(heddle.UsageError, match="output 'updated': its buffer overlaps input 'w'"):
        session.run(None, {"w": w, "g": w.copy()}, out={"updated": w})
    session = session_of(STEP, in_place={"updated": "w"})
    with pytest.raises(heddle.UsageError, match="overlaps input 'g'"):
        session.run(None, {"w": w, "g": w}, out={"updated": w})


def test_what_reads_its_neighbours_is_not_overwritten_meanwhile():
    text = """g (float[n, n] x, float[n, n] y) => (float[n, n] a, float[n, n] b) {
        turned = Transpose <perm = [1, 0]> (x)
        a = Add(turned, y)
        b = MatMul(y, x)
    }"""
    session = session_of(text, in_place={"a": "x", "b": "y"})
    for size in (1, 2, 17, 64):
        x, y = random(size, size), random(size, size) * 2
        a, b = x.T + y, y @ x
        session.run(None, {"x": x, "y": y}, out={"a": x, "b": y})
        np.testing.assert_array_equal(x, a)
        np.testing.assert_allclose(y, b, rtol=1e-4, atol=1e-4)


def test_two_states_change_places():
    text = """g (float[n] x, float[n] y) => (float[n] a, float[n] b) {
        a = Identity(y)
        b = Identity(x)
    }"""
    session = session_of(text, in_place={"a": "x", "b": "y"})
    x, y = random(7), random(7) + 1
    a, b = y.copy(), x.copy()
    session.run(None, {"x": x, "y": y}, out={"a": x, "b": y})
    np.testing.assert_array_equal(x, a)
    np.testing.assert_array_equal(y, b)


@pytest.mark.parametrize("pair, message", [
    ({"nothing": "w"}, "there is no output 'nothing'; there are: updated, loss"),
    ({"updated": "v"}, "there is no input 'v'; there are: w, g"),
    ({"loss": "w"}, "they must have one type and equal sizes"),
])
def test_pairs_that_cannot_be_are_refused(pair, message):
    with pytest.raises(heddle.UsageError, match=message):
        session_of(STEP, in_place=pair)


def test_an_input_is_the_place_of_one_output():
    text = """g (float[n] x) => (float[n] a, float[n] b) { a = Neg(x) b = Abs(x) }"""
    with pytest.raises(heddle.UsageError, match="the place of output 'a' already"):
        session_of(text, in_place={"a": "x", "b": "x"})


SHAPED = """g (int32[2] sizes, float[m] x) => (float[r, c] y) {
    wide = Cast <to = 7> (sizes)
    zeros = ConstantOfShape(wide)
    first = Constant <value_ints = [0]> ()
    one = Gather(x, first)
    ones = Add(zeros, one)
    doubled = MatMul(ones, ones)
    y = Add(doubled, ones)
}"""


def test_sizes_that_are_values_of_inputs_are_known_before_the_run():
    session = session_of(SHAPED)
    x = np.float32([2])
    for size in (3, 0, 1, 40):
        sizes = np.int32([size, size])
        place = np.empty((size, size), np.float32)
        session.run(None, {"sizes": sizes, "x": x}, out={"y": place})
        np.testing.assert_array_equal(place, np.full((size, size), 4 * size + 2, np.float32))
        # Intermediate results lie in the arena.
        assert session.memory["arena_bytes"] >= size * size * 4
    with pytest.raises(heddle.Error, match="-3"):
        session.run(None, {"sizes": np.int32([-3, 2]), "x": x})
    with pytest.raises(heddle.Error):
        session.run(None, {"sizes": np.int32([2 ** 31 - 1, 2 ** 31 - 1]), "x": x})
    with pytest.raises(heddle.Error):
        session.run(None, {"sizes": np.int32([2, 3]), "x": x})


def test_parts_of_inputs_are_sizes():
    text = """g (int64[3] all, float[m] x) => (float[r] y, int64[r] i) {
        start = Constant <value_ints = [2]> ()
        end = Constant <value_ints = [3]> ()
        k = Slice(all, start, end)
        y, i = TopK(x, k)
    }"""
    session = session_of(text)
    x = random(9)
    for k in (0, 1, 9):
        y, i = session.run(None, {"all": np.int64([-1, 77, k]), "x": x})
        np.testing.assert_array_equal(y, np.sort(x)[::-1][:k])
        np.testing.assert_array_equal(x[i], y)
    with pytest.raises(heddle.Error, match="10"):
        session.run(None, {"all": np.int64([0, 0, 10]), "x": x})


def noise(seed=None):
    attributes = {} if seed is None else {"seed": seed}
    node = make_node("RandomNormalLike", "x", "noise", **attributes)
    add = make_node("Add", "x noise", "y")
    info = [make_value(name, ["n"]) for name in "xy"]
    return make_model([node, add], info[:1], info[1:], opset=22)


@pytest.mark.parametrize("attribute", [None, 3.0])
def test_runs_draw_anew_and_a_seed_repeats_them(attribute):
    module = heddle.compile(noise(attribute), threads=1, cache=False)
    x = np.zeros(1000, np.float32)
    draw = [heddle.Session(module).run(None, {"x": x})[0] for _ in range(2)]
    np.testing.assert_array_equal(*draw)
    session = heddle.Session(module)
    runs = [session.run(None, {"x": x})[0] for _ in range(3)]
    np.testing.assert_array_equal(runs[0], draw[0])
    for a, b in ((0, 1), (1, 2), (0, 2)):
        assert abs(np.corrcoef(runs[a], runs[b])[0, 1]) < 0.15
    session.seed(1)
    for run in runs[1:]:
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], run)
    session.seed(2 ** 63 + 5)
    far = session.run(None, {"x": x})[0]
    session.seed(5)
    assert (far != session.run(None, {"x": x})[0]).any()
