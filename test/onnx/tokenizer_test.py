"""com.microsoft.Tokenizer against ONNX Runtime, whose expressions are RE2's."""

import random

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import TensorProto

from bench.kernels.engines import runtime_session


def tokenizer(x, mark=0, mincharnum=1, pad_value="#", **attributes):
    node = make_node("Tokenizer", "x", "y", name="it", domain="com.microsoft", mark=mark,
                     mincharnum=mincharnum, pad_value=pad_value, **attributes)
    shape = [f"d{i}" for i in range(np.ndim(x))]
    return make_model([node], {"x": (shape, TensorProto.STRING)}, "y", opset=15,
                      domains={"com.microsoft": 1})


def compare(*xs, **attributes):
    model = tokenizer(xs[0], **attributes)
    session = runtime_session(model)
    module = heddle.compile(model)
    for x in xs:
        feeds = {"x": np.array(x, object)}
        (wanted,), (got,) = session.run(None, feeds), module.run(None, feeds)
        assert got.shape == wanted.shape
        assert got.tolist() == wanted.tolist()


LINES = [["a b c", "d  e.", " f ", ""], ["", "..  "], ["é, ü", "a.b"]]
TABLE = [[["é, ü", "x"], ["a.b", "_"]]]


@pytest.mark.parametrize("mark, xs", [(0, LINES), (1, LINES), (1, TABLE)])
@pytest.mark.parametrize("attributes", [
    {"separators": [" ", "[.]"]},
    {"separators": [""]},
    {"separators": [", ", "[.]", " "], "mincharnum": 2},
    {"separators": ["x*"]},
    {"tokenexp": "[a-zA-Z0-9_]+"},
    {"tokenexp": r"\b\w\w+\b", "pad_value": ""},
    {"tokenexp": "[^ ]+", "mincharnum": 2},
])
def test_against_onnxruntime(xs, attributes, mark):
    compare(*xs, mark=mark, **attributes)


@pytest.mark.parametrize("attributes", [
    {"separators": ["a|ab"]}, {"separators": [r"\b"]}, {"separators": ["^a"]},
    {"separators": ["b$", "^ "]}, {"tokenexp": "a|ab"}, {"tokenexp": "^ab"}, {"tokenexp": "b*"},
    {"tokenexp": "a$"}, {"tokenexp": ".+"}, {"tokenexp": "(ab)+c?"}, {"tokenexp": "[^a]{2}"},
])
def test_the_longest_of_the_first_matches(attributes):
    letters = random.Random(7)
    compare(["ab abc", "aababc\nab", "é ab"],
            ["".join(letters.choices("aab cé\n.", k=9)) for _ in range(9)], **attributes)


def test_a_text_of_many_words():
    text = " ".join(f"word{i % 700}" for i in range(5000))
    compare([text, text[:60]], tokenexp=r"\w+")
    compare([text, text[:60]], separators=[" "], mark=1)


@pytest.mark.parametrize("attributes, message", [
    ({}, "neither 'separators' nor 'tokenexp' is given"),
    ({"separators": [" "], "mincharnum": 0}, "'mincharnum' is 0, but must be at least 1"),
    ({"separators": [""], "mincharnum": 2}, "'mincharnum' is 2, but must be 1"),
    ({"tokenexp": "(a"}, r"the pattern '\(a' cannot be used"),
])
def test_what_is_refused(attributes, message):
    with pytest.raises(heddle.RefusedError, match=rf"node 'it' \(Tokenizer\): error: {message}"):
        heddle.compile(tokenizer(["a"], **attributes))


@pytest.mark.parametrize("text", [b"a\xff b", b"\xc3", b"\x80", b"a\xe2\x82 c"])
def test_bytes_that_are_no_text(text):
    module = heddle.compile(tokenizer(["a"], tokenexp=r"\w+"))
    with pytest.raises(heddle.UsageError, match="node 'it' .*: a string is not UTF-8"):
        module.run(None, {"x": np.array([b"fine", text], object)})
