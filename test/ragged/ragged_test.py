"""`--ragged`: row b of each result, cut to its length, is what ONNX Runtime computes of row b
alone; beyond are zeros. Lengths are 0, 1, the largest, and around the sizes of tiles."""

import itertools

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import heddle
from heddle.onnx_graph import Graph, make_node

from bench.kernels.engines import runtime_session

pytestmark = pytest.mark.usefixtures("compiler")

LENGTHS = [
    ([5, 2, 7], 7),
    ([4], 9),
    ([9, 0, 4, 16, 17, 15, 1], 17),
    ([64, 1, 63, 65, 33, 31], 65),
    ([0, 0], 3),
    ([], 4),
]
TYPES = {"tensor(int64)": np.int64, "tensor(float)": np.float32, "tensor(bool)": np.bool_,
         "tensor(int32)": np.int32}


class Maker(Graph):
    """The graph of a test as it grows."""

    def constant(self, value, dtype=np.float32):
        return super().constant(np.asarray(value, dtype))

    def weight(self, *shape):
        return self.constant(self.random.standard_normal(shape) / np.sqrt(shape[0]))

    def linear(self, x, wide, out):
        return self.op("Add", self.op("MatMul", x, self.weight(wide, out)), self.weight(out))

    def made(self, inputs, result, shape, dtype=TensorProto.FLOAT):
        for name, kind, sizes in inputs:
            self.input(name, sizes, kind)
        self.output(self.op("Identity", result, name="y"), shape, dtype)
        return self.model()


X = ("x", TensorProto.FLOAT, ["batch", "seq", 8])
MASK = ("mask", TensorProto.INT64, ["batch", "seq"])


def attention(make, x, bias=None, heads=2, wide=8):
    """As exporters spell it, over [batch, seq, wide]."""
    split = make.constant([0, 0, heads, wide // heads], np.int64)
    parts = [make.op("Transpose", make.op("Reshape", make.linear(x, wide, wide), split),
                     perm=perm) for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])]
    scores = make.op("Mul", make.op("MatMul", parts[0], parts[1]), make.constant(0.5))
    if bias:
        scores = make.op("Add", scores, bias)
    mixed = make.op("MatMul", make.op("Softmax", scores, axis=-1), parts[2])
    whole = make.constant([0, 0, wide], np.int64)
    return make.op("Reshape", make.op("Transpose", mixed, perm=[0, 2, 1, 3]), whole)


def bias_of(make, mask):
    kept = make.op("Unsqueeze", make.op("Cast", mask, to=TensorProto.FLOAT),
                   make.constant([1, 2], np.int64))
    return make.op("Mul", make.op("Sub", make.constant(1), kept), make.constant(-10000))


def encoder(layers=1, has_mask=False):
    make = Maker()
    bias = bias_of(make, "mask") if has_mask else None
    x = "x"
    for _ in range(layers):
        x = make.op("LayerNormalization", make.op("Add", attention(make, x, bias), x),
                    make.weight(8), make.weight(8), axis=-1)
        inner = make.op("Relu", make.linear(x, 8, 24))
        x = make.op("Add", make.linear(inner, 24, 8), x)
    return make.made([X, MASK] if has_mask else [X], x, ["batch", "seq", 8])


def causal():
    make = Maker()
    size = make.op("Gather", make.op("Shape", "x"), make.constant(1, np.int64))
    steps = make.op("Range", make.constant(0, np.int64), size, make.constant(1, np.int64))
    later = make.op("Less", make.op("Unsqueeze", steps, make.constant([1], np.int64)),
                    make.op("Unsqueeze", steps, make.constant([0], np.int64)))
    bias = make.op("Where", later, make.constant(-1e9), make.constant(0))
    return make.made([X], attention(make, "x", bias), ["batch", "seq", 8])


def embedding():
    """Words and positions, of which each row has its own."""
    make = Maker()
    table, places = make.weight(50, 8), make.weight(512, 8)
    size = make.op("Gather", make.op("Shape", "ids"), make.constant(1, np.int64))
    steps = make.op("Range", make.constant(0, np.int64), size, make.constant(1, np.int64))
    x = make.op("Add", make.op("Gather", table, "ids"), make.op("Gather", places, steps))
    return make.made([("ids", TensorProto.INT64, ["batch", "seq"])], attention(make, x),
                      ["batch", "seq", 8])


def pooled(op):
    make = Maker()
    y = make.op(op, make.linear("x", 8, 8), **(
        {"axes": [1], "keepdims": 0} if op != "ReduceSum" else {"keepdims": 0}))
    if op == "ReduceSum":
        make.nodes[-1].input.append(make.constant([1], np.int64))
    return make.made([X], make.linear(y, 8, 5), ["batch", 5])


def bag(op):
    """Vectors of a table, weighted, as one of each row: what torch calls an embedding bag."""
    make = Maker()
    weights = make.op("Unsqueeze", "weights", make.constant([2], np.int64))
    x = make.op("Mul", make.op("Gather", make.weight(50, 8), "ids"), weights)
    axes = make.constant([1], np.int64)
    y = (make.op(op, x, axes, keepdims=0) if op == "ReduceSum"
         else make.op(op, x, axes=[1], keepdims=0))
    return make.made([("ids", TensorProto.INT64, ["batch", "seq"]),
                       ("weights", TensorProto.FLOAT, ["batch", "seq"])], y, ["batch", 8])


def masked_mean():
    """As sentence embeddings are made: the sum of what the mask keeps, divided by its sum."""
    make = Maker()
    kept = make.op("Unsqueeze", make.op("Cast", "mask", to=TensorProto.FLOAT),
                   make.constant([2], np.int64))
    axis = make.constant([1], np.int64)
    x = attention(make, "x", bias_of(make, "mask"))
    total = make.op("ReduceSum", make.op("Mul", x, kept), axis, keepdims=0)
    count = make.op("Max", make.op("ReduceSum", kept, axis, keepdims=0), make.constant(1e-9))
    return make.made([X, MASK], make.op("Div", total, count), ["batch", 8])


def per_row():
    """A vector of each row is added to all of its tokens."""
    make = Maker()
    mean = make.op("ReduceMean", "x", axes=[1], keepdims=1)
    return make.made([X], make.op("Mul", make.op("Sub", "x", mean), make.weight(8)),
                      ["batch", "seq", 8])


def time_first():
    """As torch.nn.MultiheadAttention spells it: time first, rows and heads in one dimension."""
    make = Maker()
    x = make.op("Transpose", "x", perm=[1, 0, 2])
    shape = make.op("Shape", x)
    time, rows = (make.op("Slice", shape, make.constant([i], np.int64),
                          make.constant([i + 1], np.int64)) for i in (0, 1))
    heads = make.op("Concat", time, make.op("Mul", rows, make.constant([2], np.int64)),
                    make.constant([4], np.int64), axis=0)
    q, k, v = (make.op("Transpose", make.op("Reshape", make.linear(x, 8, 8), heads),
                       perm=[1, 0, 2]) for _ in range(3))
    scores = make.op("Softmax", make.op("MatMul", q, make.op("Transpose", k,
                                                                    perm=[0, 2, 1])), axis=-1)
    mixed = make.op("Transpose", make.op("MatMul", scores, v), perm=[1, 0, 2])
    y = make.op("Reshape", mixed, make.op("Concat", time, rows,
                                          make.constant([8], np.int64), axis=0))
    return make.made([X], make.op("Transpose", make.linear(y, 8, 8), perm=[1, 0, 2]),
                      ["batch", "seq", 8])


def flattened():
    """Products over tokens of all rows in one dimension."""
    make = Maker()
    flat = make.op("Reshape", "x", make.constant([-1, 8], np.int64))
    y = make.op("Gemm", flat, make.weight(8, 6), make.weight(6))
    y = make.op("Tanh", y)
    shape = make.op("Concat", make.op("Slice", make.op("Shape", "x"),
                                      make.constant([0], np.int64),
                                      make.constant([2], np.int64)),
                    make.constant([6], np.int64), axis=0)
    return make.made([X], make.op("Reshape", y, shape), ["batch", "seq", 6])


def convolved():
    """Over time, with zeros at the borders of each row."""
    make = Maker()
    x = make.op("Transpose", "x", perm=[0, 2, 1])
    y = make.op("Relu", make.op("Conv", x, make.weight(6, 8, 3), make.weight(6), pads=[1, 1]))
    y = make.op("Conv", y, make.weight(6, 6, 3), pads=[2, 2], dilations=[2])
    return make.made([X], make.op("Transpose", y, perm=[0, 2, 1]), ["batch", "seq", 6])


def classified():
    """The first token of each row."""
    make = Maker()
    first = make.op("Gather", attention(make, "x"), make.constant(0, np.int64), axis=1)
    return make.made([X], make.op("Tanh", make.linear(first, 8, 3)), ["batch", 3])


def recurrent(op, direction, layers=1, is_last=False):
    """As torch exports it: time first, the directions apart and then together."""
    make = Maker()
    both = 2 if direction == "bidirectional" else 1
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    x, wide = make.op("Transpose", "x", perm=[1, 0, 2]), 8
    for _ in range(layers):
        weights = [make.constant(make.random.standard_normal(shape) * 0.4) for shape in
                   ([both, gates * 6, wide], [both, gates * 6, 6], [both, 2 * gates * 6])]
        last = f"last{len(make.nodes)}"
        make.nodes.append(make_node(op, [x, *weights], [f"all{last}", last], hidden_size=6,
                                    direction=direction))
        steps = make.op("Transpose", f"all{last}", perm=[0, 2, 1, 3])
        x, wide = make.op("Reshape", steps, make.constant([0, 0, -1], np.int64)), 6 * both
    if is_last:
        state = make.op("Transpose", last, perm=[1, 0, 2])
        return make.made([X], make.linear(make.op("Flatten", state), wide, 3), ["batch", 3])
    return make.made([X], make.linear(make.op("Transpose", x, perm=[1, 0, 2]), wide, 3),
                      ["batch", "seq", 3])


MODELS = {
    "encoder": (encoder(), "lengths"), "two_layers": (encoder(2), "lengths"),
    "encoder_mask": (encoder(has_mask=True), "mask"),
    "encoder_mask_and_lengths": (encoder(has_mask=True), "lengths"),
    "causal": (causal(), "lengths"), "embedding": (embedding(), "lengths"),
    "sum": (pooled("ReduceSum"), "lengths"), "mean": (pooled("ReduceMean"), "lengths"),
    "largest": (pooled("ReduceMax"), "lengths"), "masked_mean": (masked_mean(), "mask"),
    "bag_sum": (bag("ReduceSum"), "lengths"), "bag_mean": (bag("ReduceMean"), "lengths"),
    "bag_largest": (bag("ReduceMax"), "lengths"), "per_row": (per_row(), "lengths"),
    "time_first": (time_first(), "lengths"),
    "flattened": (flattened(), "lengths"), "convolved": (convolved(), "lengths"),
    "classified": (classified(), "lengths"),
    "lstm": (recurrent("LSTM", "forward"), "lengths"),
    "lstm_both": (recurrent("LSTM", "bidirectional", 2), "lengths"),
    "gru_last": (recurrent("GRU", "bidirectional", 2, is_last=True), "lengths"),
    "rnn_backwards": (recurrent("RNN", "reverse", is_last=True), "lengths"),
}
# Else 0 / 0, or no maximum.
NEEDS_ONE = {"bag_mean", "bag_largest", "largest", "classified", "mean", "per_row", "masked_mean"}


def feeds_of(session, source, lengths, size, seed=1):
    random = np.random.default_rng(seed)
    feeds = {}
    for each in session.get_inputs():
        shape = [{"batch": len(lengths), "seq": size}.get(dim, dim) for dim in each.shape]
        if each.name == "mask":
            ends = np.array(lengths, np.int64)[:, None]
            feeds["mask"] = (np.arange(size) < ends).astype(np.int64)
        elif each.type == "tensor(float)":
            feeds[each.name] = random.standard_normal(shape).astype(np.float32)
        else:
            feeds[each.name] = random.integers(0, 50, shape).astype(TYPES[each.type])
    if source == "lengths":
        feeds["lengths"] = np.array(lengths, np.int64)
    return feeds


def cut(shape, row, low, high):
    return tuple({"batch": slice(row, row + 1), "seq": slice(low, high)}.get(dim, slice(None))
                 for dim in shape)


@pytest.fixture(scope="module")
def compiled():
    made = {}

    def get(name, threads):
        model, source = MODELS[name]
        if (name, threads) not in made:
            made[name, threads] = heddle.Session(
                heddle.compile(model, ragged=f"batch:seq={source}", cache=False), threads=threads)
        return made[name, threads]
    return get


def with_row_block(kilobytes):
    """A plan with that threshold: few make a batch run as blocks of few rows."""
    return {"plan": 1, "thresholds": {"row_block": kilobytes}, "groups": []}


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_each_row_is_as_if_it_were_alone(name, threads, blocks, compiled):
    model, source = MODELS[name]
    session = runtime_session(model)
    ours = compiled(name, threads)
    if blocks:
        ours = heddle.Session(heddle.compile(model, ragged=f"batch:seq={source}", cache=False,
                                             plan=with_row_block(1)), threads=threads)
    for lengths, size in LENGTHS:
        if name in NEEDS_ONE:
            lengths = [max(length, 1) for length in lengths]
        feeds = feeds_of(session, source, lengths, size)
        (found,) = ours.run(None, feeds)
        (shape,) = (each.shape for each in session.get_outputs())
        for row, length in enumerate(lengths):
            if "seq" in shape:
                assert not found[cut(shape, row, length, None)].any(), "not 0 beyond the row"
            if length == 0:
                continue
            alone = {each.name: feeds[each.name][cut(each.shape, row, 0, length)]
                     for each in session.get_inputs()}
            (wanted,) = session.run(None, alone)
            np.testing.assert_allclose(found[cut(shape, row, 0, length)], wanted, rtol=1e-4,
                                       atol=1e-5, err_msg=f"{lengths}, row {row}")


@pytest.mark.parametrize("name", ["encoder", "encoder_mask", "time_first", "flattened", "mean"])
def test_packed_outputs_are_the_rows_without_padding(name, compiled):
    model, source = MODELS[name]
    session = heddle.Session(heddle.compile(model, ragged=f"batch:seq={source}", cache=False,
                                            ragged_outputs="packed"), threads=1)
    shape = onnxruntime.InferenceSession(model.SerializeToString()).get_outputs()[0].shape
    for lengths, size in LENGTHS:
        feeds = feeds_of(onnxruntime.InferenceSession(model.SerializeToString()), source, lengths,
                         size)
        (padded,) = compiled(name, 1).run(None, feeds)
        found, offsets = session.run(None, feeds)
        assert offsets.tolist() == [0, *itertools.accumulate(lengths)]
        if name == "flattened":
            padded = padded.reshape(len(lengths), size, 6)
        if "seq" not in str(shape):
            np.testing.assert_array_equal(found, padded)
            continue
        assert len(found) == sum(lengths)
        for row, length in enumerate(lengths):
            np.testing.assert_array_equal(found[offsets[row]:offsets[row + 1]],
                                          padded[row, :length])


def test_what_cannot_be_packed():
    with pytest.raises(heddle.UsageError, match="'--ragged' declares"):
        heddle.compile(encoder(), ragged_outputs="packed", cache=False)
    make = Maker()
    product = make.op("MatMul", "x", make.op("Transpose", "x", perm=[0, 2, 1]))
    with pytest.raises(heddle.RefusedError, match="cannot be packed"):
        heddle.compile(make.made([X], product, ["batch", "seq", "seq"]), cache=False,
                       ragged="batch:seq=lengths", ragged_outputs="packed")


def test_lengths_change_between_runs(compiled):
    session = runtime_session(encoder())
    ours = compiled("encoder", 1)
    for lengths in itertools.permutations([0, 3, 8]):
        feeds = feeds_of(session, "lengths", lengths, 8)
        (found,) = ours.run(None, feeds)
        for row, length in enumerate(lengths):
            if length:
                (wanted,) = session.run(None, {"x": feeds["x"][row:row + 1, :length]})
                np.testing.assert_allclose(found[row:row + 1, :length], wanted, rtol=1e-4,
                                           atol=1e-5)


def test_blocks_of_rows_need_the_memory_of_a_block():
    lengths, size, made = [65, 1, 64, 0, 33, 31, 63, 60] * 4, 65, {}
    model = encoder()
    for kilobytes in (0, 8, 64, 1 << 20):
        session = heddle.Session(heddle.compile(model, ragged="batch:seq=lengths", cache=False,
                                                plan=with_row_block(kilobytes)), threads=1)
        feeds = feeds_of(session, "lengths", lengths, size)
        made[kilobytes] = session.run(None, feeds)[0], session.memory["arena_bytes"]
    for result, _ in made.values():
        np.testing.assert_array_equal(result, made[0][0])
    assert made[1 << 20][1] == made[0][1] > 3 * made[64][1]
    assert made[8][1] < made[64][1] < 2 * (64 << 10)


def batch_as_number(make):
    size = make.op("Gather", make.op("Shape", "x"), make.constant(0, np.int64))
    return make.op("Mul", "x", make.op("Cast", size, to=TensorProto.FLOAT))


def given_to_all_rows(make):
    return make.op("MatMul", "x", "w")


def of_no_row(make):
    return make.op("Softmax", "w", axis=0)


OF_ALL_ROWS = ("w", TensorProto.FLOAT, [8, 8])


@pytest.mark.parametrize("result, inputs, shape, is_cut", [
    (batch_as_number, [X], X[2], True),  # of a row alone it is 1
    (given_to_all_rows, [X, OF_ALL_ROWS], X[2], True),
    (of_no_row, [X, OF_ALL_ROWS], [8, 8], False),
])
def test_a_batch_is_cut_where_results_have_rows(result, inputs, shape, is_cut):
    make = Maker()
    model = make.made(inputs, result(make), shape)
    lengths, size, found, needed = [5, 0, 17, 4, 16, 9, 33, 1], 33, [], []
    for kilobytes in (0, 1):
        session = heddle.Session(heddle.compile(model, ragged="batch:seq=lengths", cache=False,
                                                plan=with_row_block(kilobytes)), threads=1)
        found.append(session.run(None, feeds_of(session, "lengths", lengths, size))[0])
        needed.append(session.memory["arena_bytes"])
    assert found[0].any() and (needed[1] < needed[0]) == is_cut
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("lengths, why", [
    ([3, -1, 2], "row 1 has the length -1, which must be from 0 to 'seq'"),
    ([3, 2, 6], "row 2 has the length 6, which must be from 0 to 'seq'"),
    ([3, 2, 2**62], "row 2 has the length 4611686018427387904"),
    ([2, 2], "batch"),
])
def test_lengths_that_are_none(lengths, why, compiled):
    feeds = {"x": np.zeros((3, 5, 8), np.float32), "lengths": np.array(lengths, np.int64)}
    with pytest.raises(heddle.Error, match=why.replace("(", r"\(")):
        compiled("encoder", 1).run(None, feeds)


def test_lengths_of_another_type(compiled):
    feeds = {"x": np.zeros((3, 5, 8), np.float32), "lengths": np.ones(3, np.float32)}
    with pytest.raises(heddle.Error, match="lengths"):
        compiled("encoder", 1).run(None, feeds)


def test_a_mask_with_holes(compiled):
    mask = np.array([[1, 1, 0], [1, 0, 1]], np.int64)
    with pytest.raises(heddle.Error, match="input 'mask': row 1 has ones after a zero"):
        compiled("encoder_mask", 1).run(None, {"x": np.zeros((2, 3, 8), np.float32), "mask": mask})


@pytest.mark.parametrize("option, why", [
    ("batch:seq", "must name two sizes and the input of lengths, such as batch:seq=lengths"),
    ("batch:time=lengths", "no input has a size 'time'; there are: batch, seq"),
    ("batch:batch=lengths", "a size cannot depend on itself"),
    ("batch:seq=x", r"the input 'x' is neither integers \[batch\] nor a mask \[batch, seq\]"),
])
def test_options_that_say_nothing(option, why):
    with pytest.raises(heddle.UsageError, match=why):
        heddle.compile(encoder(), ragged=option, cache=False)


def test_a_batch_of_nothing_and_a_batch_of_one(compiled):
    for rows in (0, 1):
        (found,) = compiled("encoder", 2).run(
            None, {"x": np.ones((rows, 4, 8), np.float32), "lengths": np.full(rows, 2, np.int64)})
        assert found.shape == (rows, 4, 8) and not found[:, 2:].any()


def test_a_mask_of_floats_and_of_truths():
    for kind in (TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT32):
        make = Maker()
        x = make.op("Mul", "x", make.op("Unsqueeze", make.op("Cast", "mask",
                                                                  to=TensorProto.FLOAT),
                                        make.constant([2], np.int64)))
        model = make.made([X, ("mask", kind, ["batch", "seq"])], make.op("Neg", x),
                           ["batch", "seq", 8])
        module = heddle.compile(model, ragged="batch:seq=mask", cache=False)
        mask = np.array([[1, 1, 0], [0, 0, 0]]).astype(helper.tensor_dtype_to_np_dtype(kind))
        x = np.random.default_rng(0).standard_normal((2, 3, 8)).astype(np.float32)
        (found,) = module.run(None, {"x": x, "mask": mask})
        np.testing.assert_array_equal(found, -x * mask[:, :, None].astype(np.float32))


def test_rows_that_cannot_be_separated():
    make = Maker()
    model = make.made([X], make.op("Softmax", "x", axis=0), ["batch", "seq", 8])
    with pytest.raises(heddle.Error, match="node 'softmax_0'.*cannot be separated"):
        heddle.compile(model, ragged="batch:seq=lengths", cache=False)
    make = Maker()
    turned = make.op("Slice", "x", make.constant([-1], np.int64),
                     make.constant([-2**40], np.int64), make.constant([0], np.int64),
                     make.constant([-1], np.int64))
    with pytest.raises(heddle.Error, match="slice_0"):
        heddle.compile(make.made([X], turned, ["batch", "seq", 8]), ragged="batch:seq=lengths",
                       cache=False)
