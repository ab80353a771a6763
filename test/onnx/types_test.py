"""types_test: strings, sequences, optionals and narrow types from ONNX to NumPy, beside what Python
itself makes of them. SPDX-License-Identifier: Apache-2.0
"""

import re

import heddle
import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_graph, make_model, make_node
from onnx import TensorProto, helper


def model_of(nodes, inputs, outputs, opset=26):
    """A model; inputs and outputs are (name, type) with an element type, or a TypeProto."""

    def info(name, kind):
        if isinstance(kind, int):
            kind = helper.make_tensor_type_proto(kind, ["n"])
        return helper.make_value_info(name, kind)

    return make_model(nodes, [info(*value) for value in inputs],
                      [info(*value) for value in outputs], opset=opset, domains={"ai.onnx.ml": 4})


def run(nodes, outputs, feeds, **kinds):
    """Results of a model whose inputs have these kinds."""
    model = model_of(nodes, list(kinds.items()), outputs)
    return heddle.compile(model, threads=1).run(None, feeds)


TEXTS = np.array(
    ["", "a", "abc", "abcabc", "a-b_c", "x@y.com", "Ünïcode", "line\nend", "12.50", " 7 ", "日本"],
    object,
)


@pytest.mark.parametrize(
    "pattern",
    [
        r"", r"abc", r"(abc)*", r"(?:abc){2}", r"a.c|x.*", r"[a-c]+", r"[^a-c]+", r"\w+@\w+\.com",
        r"\W*\d+(\.\d{1,2})?\W*", r"^a\b.*$", r".*\B.", r"\s?\d\s", r"..", r"[[:alpha:]]*",
        r"[]a]b?.*", r"\S+", r"(a|ab)(c|bcd)*", r"x?y*z+|日.", r"[\w.-]+",
    ],
)
def test_patterns_match_as_in_python(pattern):
    node = make_node("RegexFullMatch", "x", "y", pattern=pattern)
    (found,) = run([node], [("y", TensorProto.BOOL)], {"x": TEXTS}, x=TensorProto.STRING)
    python = re.compile(pattern.replace("[[:alpha:]]", "[A-Za-z]"), re.ASCII)
    expected = [python.fullmatch(text) is not None for text in TEXTS]
    assert found.tolist() == expected


@pytest.mark.parametrize("delimiter", ["", "a", "ab", "-", "zz"])
@pytest.mark.parametrize("most", [None, 0, 1, 2])
def test_strings_split_as_in_python(delimiter, most):
    texts = np.array(["a b  c", "aabab", "", "a-b-c", "  x", "abzzab ", "zz"], object)
    attributes = {} if most is None else {"maxsplit": most}
    node = make_node("StringSplit", "x", "y n", delimiter=delimiter, **attributes)
    outputs = [("y", helper.make_tensor_type_proto(TensorProto.STRING, [None, None]))]
    outputs.append(("n", TensorProto.INT64))
    pieces, counts = run([node], outputs, {"x": texts}, x=TensorProto.STRING)
    for text, row, count in zip(texts, pieces, counts):
        wanted = text.split(delimiter or None, -1 if most is None else most)
        assert count == len(wanted)
        assert row.tolist() == wanted + [""] * (len(row) - count)


def test_strings_are_joined_and_equal():
    nodes = [make_node("StringConcat", "x y", "z"),
             make_node("Constant", "", "wanted", value_strings=["ab", "cc"]),
             make_node("Equal", "z wanted", "same"), make_node("Where", "same x wanted", "chosen")]
    outputs = [("z", TensorProto.STRING), ("chosen", TensorProto.STRING)]
    outputs.append(("same", TensorProto.BOOL))
    feeds = {"x": np.array(["a", "ü"], object), "y": np.array(["b", "c"])}
    z, chosen, same = run(nodes, outputs, feeds, x=TensorProto.STRING, y=TensorProto.STRING)
    assert z.tolist() == ["ab", "üc"]
    assert same.tolist() == [True, False]
    assert chosen.tolist() == ["a", "cc"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint64, np.int8, bool])
def test_numbers_become_strings_and_come_back(dtype):
    random = np.random.default_rng(7)
    values = random.standard_normal(200) * 10.0 ** random.integers(-30, 30, 200)
    if dtype in (np.float32, np.float64):
        values[:8] = [0, -0.0, 1, -1.5, 1e16, 1e-5, np.inf, np.nan]
    else:
        values = random.integers(0, 100, 200)
    values = values.astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    to_text = make_node("Cast", "x", "text", to=TensorProto.STRING)
    nodes = [to_text, make_node("Cast", "text", "y", to=kind)]
    outputs = [("text", TensorProto.STRING), ("y", kind)]
    found = run(nodes, outputs, {"x": values}, x=kind)
    if dtype is not np.float32:  # NumPy's versions differ in when they write an exponent
        printed = values.astype(int) if dtype is bool else values
        assert found[0].tolist() == [str(value) for value in printed]
    np.testing.assert_array_equal(found[1], values)


def test_what_is_no_number_is_refused():
    node = make_node("Cast", "x", "y", to=TensorProto.FLOAT)
    texts = np.array(["1", " +2.5e1 ", "two"], object)
    with pytest.raises(heddle.UsageError, match="node 'Cast_y' .*: string number 2 is no number"):
        run([node], [("y", TensorProto.FLOAT)], {"x": texts}, x=TensorProto.STRING)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 100])
@pytest.mark.parametrize("of", ["strings", "int64s", "floats"])
def test_labels_are_found(count, of):
    keys = np.random.default_rng(count).permutation(count)
    given = {
        "strings": [f"key {key}" for key in keys],
        "int64s": (keys * 3 - 50).tolist(),
        "floats": [float("nan") if key == 0 else key / 4 for key in keys],
    }[of]
    node = make_node("LabelEncoder", "x", "y", domain="ai.onnx.ml", default_string="none",
                     values_strings=[f"value {i}" for i in range(count)], **{f"keys_{of}": given})
    dtype = {"strings": object, "int64s": np.int64, "floats": np.float32}[of]
    unknown = {"strings": "other", "int64s": 7_000_000_000, "floats": 0.125}[of]
    kind = {"strings": TensorProto.STRING, "int64s": TensorProto.INT64}.get(of, TensorProto.FLOAT)
    feeds = {"x": np.array([*given, unknown], dtype)}
    (found,) = run([node], [("y", TensorProto.STRING)], feeds, x=kind)
    assert found.tolist() == [f"value {i}" for i in range(count)] + ["none"]


def sequence_of(kind, shape=None):
    return helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, shape))


def test_sequences_go_through_an_artefact(tmp_path):
    nodes = [make_node("SequenceInsert", "s x", "longer"),
             make_node("ConcatFromSequence", "longer", "joined", axis=0),
             make_node("SequenceErase", "longer at", "shorter"),
             make_node("SequenceLength", "shorter", "length")]
    tensor = helper.make_tensor_type_proto(TensorProto.STRING, [None])
    model = model_of(nodes,
                     [("s", sequence_of(TensorProto.STRING, [None])), ("x", TensorProto.STRING),
                      ("at", helper.make_tensor_type_proto(TensorProto.INT64, []))],
                     [("shorter", sequence_of(TensorProto.STRING, [None])), ("joined", tensor),
                      ("length", helper.make_tensor_type_proto(TensorProto.INT64, []))])
    module = heddle.compile(model, threads=1, output=tmp_path / "sequences.so")
    assert module.inputs[0].type == "seq(tensor(string))"
    for rounds in range(3):
        s = [np.array(["a", "b"] * rounds, object), np.array([], object)]
        feeds = {"s": s, "x": np.array(["c", "é"], object), "at": np.int64(-2)}
        shorter, joined, length = module.run(None, feeds)
        assert [item.tolist() for item in shorter] == [["a", "b"] * rounds, ["c", "é"]]
        assert joined.tolist() == ["a", "b"] * rounds + ["c", "é"]
        assert length == 2
        with pytest.raises(heddle.UsageError, match="position 9 is outside of a sequence of 3"):
            module.run(None, {**feeds, "at": np.int64(9)})
    with pytest.raises(heddle.UsageError, match="tensor 1 has rank 2, but 1 is allowed"):
        module.run(None, {**feeds, "s": [s[0], np.array([["a"]], object)]})


def test_optionals_may_be_absent():
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.INT4, [None]))
    nodes = [make_node("OptionalHasElement", "x", "has"), make_node("Identity", "x", "y")]
    scalar = helper.make_tensor_type_proto(TensorProto.BOOL, [])
    module = heddle.compile(model_of(nodes, [("x", kind)], [("has", scalar), ("y", kind)]))
    assert module(None)[0] == np.False_ and module(None)[1] is None
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for count in range(5):
        values = np.arange(-2, count - 2).astype(ml_dtypes.int4)
        has, y = module(values)
        assert has and y.dtype == ml_dtypes.int4 and y.tolist() == values.tolist()


@pytest.mark.parametrize("name", ["int2", "uint2", "int4", "uint4", "float4_e2m1fn"])
def test_narrow_types_of_any_shape(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(getattr(ml_dtypes, name))
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    for shape in [(), (0,), (1,), (3,), (2, 5), (3, 0, 2), (1, 3, 3)]:
        node = make_node("Cast", "x", "y", to=kind)
        back = make_node("Cast", "y", "z", to=TensorProto.FLOAT)
        make = helper.make_tensor_type_proto
        model = model_of([node, back], [("x", make(TensorProto.FLOAT, shape))],
                         [("y", make(kind, shape)), ("z", make(TensorProto.FLOAT, shape))])
        x = (np.arange(np.prod(shape, dtype=int)) % 3 - (name[0] != "u")).reshape(shape)
        y, z = heddle.compile(model, threads=1)(x.astype(np.float32))
        assert y.dtype == dtype and y.shape == shape
        wanted = x.astype(np.float32).astype(dtype)
        np.testing.assert_array_equal(y.astype(np.float32), wanted.astype(np.float32))
        np.testing.assert_array_equal(z, wanted.astype(np.float32))


def test_branches_of_one_element():
    branch = [make_graph([make_node("Constant", "", "a", value_float=2.0)], [],
                         [onnx.ValueInfoProto(name="a")]),
              make_graph([make_node("Constant", "", "b", value_floats=[3.0])], [],
                         [onnx.ValueInfoProto(name="b")])]
    node = make_node("If", "c", "y", then_branch=branch[0], else_branch=branch[1])
    scalar = helper.make_tensor_type_proto(TensorProto.BOOL, [])
    module = heddle.compile(model_of([node], [("c", scalar)], [("y", TensorProto.FLOAT)]))
    assert module(np.True_).tolist() == [2] and module(np.False_).tolist() == [3]
