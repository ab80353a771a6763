"""Ops of a user's own as ONNX functions, through the command line and Python."""

import heddle
import numpy as np
import onnx
import pytest
from heddle.onnx_graph import make_model, make_node
from onnx import helper

from command import fails, needs_heddle, ok

OPSETS = [helper.make_opsetid("", 21)]


def softcap(name="SoftCap", factor="factor"):
    nodes = [make_node("Mul", ["x", factor], "scaled"), make_node("Tanh", "scaled", "bent"),
             make_node("Div", ["bent", factor], "y")]
    return helper.make_function("org.example", name, ["x", "factor"], ["y"], nodes, OPSETS)


def outer():
    """Calls SoftCap with a constant from its attribute."""
    constant = make_node("Constant", "", "c")
    constant.attribute.add(name="value_float", ref_attr_name="cap",
                           type=onnx.AttributeProto.FLOAT)
    nodes = [constant, make_node("SoftCap", "x c", "y", domain="org.example")]
    return helper.make_function("org.example", "Capped", ["x"], ["y"], nodes,
                                [*OPSETS, helper.make_opsetid("org.example", 1)], ["cap"])


def model_of(node, **inputs):
    return make_model([node], inputs, "y", opset=21)


CALL = make_node("SoftCap", "x f", "y", "call", domain="org.example")
X = np.linspace(-3, 3, 6, dtype=np.float32).reshape(2, 3)
WANTED = np.tanh(X * 0.5) / 0.5


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("functions")
    onnx.save(model_of(CALL, x=["n", 3], f=[]), folder / "m.onnx")
    (folder / "one.onnx").write_bytes(softcap().SerializeToString())
    library = onnx.ModelProto(ir_version=10, functions=[softcap(), outer()])
    library.opset_import.extend(OPSETS)
    (folder / "library.onnx").write_bytes(library.SerializeToString())
    return folder


@pytest.mark.parametrize("given", ["one.onnx", "library.onnx", "proto"])
def test_python(files, given):
    functions = [softcap() if given == "proto" else files / given]
    module = heddle.compile(files / "m.onnx", functions=functions)
    np.testing.assert_allclose(module.run(None, {"x": X, "f": np.float32(0.5)})[0], WANTED, 1e-5)


def test_functions_call_one_another_and_take_attributes(files):
    node = make_node("Capped", "x", "y", domain="org.example", cap=0.5)
    module = heddle.compile(model_of(node, x=[2, 3]), functions=[outer(), softcap()])
    np.testing.assert_allclose(module.run(None, {"x": X})[0], WANTED, 1e-5)


def test_an_edited_function_is_not_taken_from_the_cache(files, tmp_path):
    def run(function):
        path = tmp_path / "f.onnx"
        path.write_bytes(function.SerializeToString())
        module = heddle.compile(files / "m.onnx", functions=[path], cache=tmp_path / "cache",
                                output=tmp_path / "m.so")
        return module.run(None, {"x": X, "f": np.float32(0.5)})[0]

    np.testing.assert_allclose(run(softcap()), WANTED, 1e-5)
    np.testing.assert_allclose(run(softcap(factor="x")), np.tanh(X * X) / X, 1e-5)


def test_what_is_wrong_is_refused(files, tmp_path):
    def refused(message, *functions, model=files / "m.onnx"):
        with pytest.raises(heddle.Error, match=message):
            heddle.compile(model, functions=functions)

    refused("node 'call' .SoftCap.: error: .*unknown domain 'org.example'")
    refused("'SoftCap' of domain 'org.example' is defined twice", softcap(), softcap())
    refused("the model has no functions", files / "m.onnx")
    refused("cannot read functions .*none.onnx", tmp_path / "none.onnx")
    (tmp_path / "text").write_text("not a protobuf at all")
    refused("neither an ONNX model nor a FunctionProto", tmp_path / "text")
    (tmp_path / "empty").write_bytes(b"")
    refused("neither an ONNX model nor a FunctionProto", tmp_path / "empty")
    itself = softcap()
    itself.node[0].CopyFrom(make_node("SoftCap", "x factor", "scaled", domain="org.example"))
    refused("nested deeper than 64", itself)


@needs_heddle
def test_command_line(files, tmp_path):
    artefact = tmp_path / "m.so"
    ok("compile", files / "m.onnx", "--function", files / "one.onnx", "-o", artefact)
    got = heddle.load(artefact).run(None, {"x": X, "f": np.float32(0.5)})[0]
    np.testing.assert_allclose(got, WANTED, 1e-5)
    ok("run", files / "m.onnx", "--function", files / "library.onnx", "--dim", "n=2")
    fails("run", artefact, "--function", files / "one.onnx", says="--function")
