"""Models that exporters write against the letter of ONNX, or at its edge: judged by ONNX Runtime,
which runs them."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_graph, make_node, make_value
from onnx import TensorProto, helper

from bench.kernels.engines import runtime_session

pytestmark = pytest.mark.usefixtures("compiler")

ML = "ai.onnx.ml"
F32, I64, I8, BOOL, STRING = (getattr(TensorProto, name) for name in
                              ("FLOAT", "INT64", "INT8", "BOOL", "STRING"))
X = np.arange(6, dtype=np.float32)


def model_of(nodes, inputs, outputs, imports=(("", 13),), **graph):
    return helper.make_model(
        make_graph(nodes, inputs, outputs, **graph), ir_version=8,
        opset_imports=[helper.make_opsetid(*each) for each in imports])


def agrees(model, *runs):
    peer = runtime_session(model)
    session = heddle.compile(model, cache=False, threads=1)
    for feeds in runs:
        for wanted, found in zip(peer.run(None, feeds), session.run(None, feeds), strict=True):
            if isinstance(wanted, list):  # of maps
                assert found == wanted
            else:
                np.testing.assert_array_equal(found, wanted)


def test_constants_of_all_types_before_opset_9():
    texts = helper.make_tensor("c", STRING, [2], [b"a", b"b"])
    agrees(model_of([make_node("Constant", "", "c", value=texts),
                     make_node("ArrayFeatureExtractor", "c i", "y", domain=ML)],
                    {"i": ([1], I64)}, [make_value("y", None, STRING)], [("", 7), (ML, 1)]),
           {"i": np.array([1])})
    sizes = helper.make_tensor("c", I64, [2], [2, 3])
    agrees(model_of([make_node("Constant", "", "c", value=sizes), make_node("Reshape", "x c", "y")],
                    {"x": [6]}, {"y": None}, [("", 7)]),
           {"x": X})


def test_a_domain_that_is_not_imported():
    maps = helper.make_sequence_type_proto(
        helper.make_map_type_proto(I64, helper.make_tensor_type_proto(F32, [])))
    agrees(model_of([make_node("ZipMap", "x", "y", domain=ML, classlabels_int64s=[0, 1])],
                    {"x": [1, 2]}, [helper.make_value_info("y", maps)], [("", 8)]),
           {"x": np.array([[.25, .75]], np.float32)})


def test_a_domain_that_is_imported_twice():
    agrees(model_of([make_node("Relu", "x", "y")], {"x": [6]}, {"y": [6]}, [("", 0), ("", 7)]),
           {"x": X - 3})


def test_a_sparse_initializer_that_is_an_input():
    sparse = helper.make_sparse_tensor(helper.make_tensor("x", F32, [2], [3., 5.]),
                                       helper.make_tensor("i", I64, [2], [0, 3]), [6])
    agrees(model_of([make_node("Add", "x y", "z")], {"x": [6], "y": [6]}, {"z": [6]},
                    sparse_initializer=[sparse]),
           {"y": X})


def test_truths_as_texts():
    agrees(model_of([make_node("Cast", "x", "s", to=STRING), make_node("Cast", "s", "y", to=I8)],
                    {"x": (["n"], BOOL)}, {"s": (["n"], STRING), "y": (["n"], I8)}),
           {"x": np.array([True, False])})


@pytest.mark.parametrize("rank", [0, 1])
def test_the_counter_of_a_loop_as_a_vector(rank):
    """tf2onnx declares it so."""
    start = make_node("Identity", "i", "from") if rank else make_node("Reshape", "i one", "from")
    body = make_graph([start, make_node("Add", "from one", "to"),
                       make_node("Slice", "x from to zero", "s"),
                       make_node("Identity", "c", "again")],
                      {"i": ([1] * rank, I64), "c": ([], BOOL)}, {"again": ([], BOOL), "s": [1, 3]})
    constants = [helper.make_tensor(name, kind, dims, [number]) for name, kind, dims, number in
                 (("one", I64, [1], 1), ("zero", I64, [1], 0), ("true", BOOL, [], True))]
    agrees(model_of([make_node("Loop", "n true", "y", body=body)], {"x": ["a", 3], "n": ([], I64)},
                    {"y": None}, constants=constants),
           *({"x": X.repeat(2).reshape(4, 3), "n": np.array(count)} for count in (2, 4)))


def encoder(**attributes):
    kind = STRING if "cats_strings" in attributes else I64
    return model_of([make_node("OneHotEncoder", "x", "y", domain=ML, **attributes)],
                    {"x": (["n", 1], kind)}, {"y": None}, [("", 15), (ML, 1)])


@pytest.mark.parametrize("zeros", [0, 1])
def test_categories(zeros):
    agrees(encoder(cats_strings=["a", "b"], zeros=zeros), {"x": np.array([["a"], ["b"]], object)})
    agrees(encoder(cats_int64s=[7, 2, 5], zeros=zeros), {"x": np.array([[5], [7], [7], [2]])},
           {"x": np.zeros((0, 1), np.int64)})


def test_no_category():
    """scikit-learn's OneHotEncoder writes zeros=0 unless it is told otherwise."""
    session = heddle.compile(encoder(cats_strings=["a", "b"], zeros=0), cache=False)
    with pytest.raises(heddle.Error, match="node 'OneHotEncoder_y' .*: an input is no category"):
        session.run(None, {"x": np.array([["a"], ["q"]], object)})
    session = heddle.compile(encoder(cats_strings=["a", "b"]), cache=False)
    y, = session.run(None, {"x": np.array([["q"]], object)})
    assert y.tolist() == [[[0, 0]]]


@pytest.mark.parametrize("op, attributes", [
    ("LinearRegressor", {"targets": 2, "coefficients": [1., 2, 3, 4, 5, 6, 7],
                         "intercepts": [0., 1]}),
    ("SVMRegressor", {"n_supports": 2, "support_vectors": [1., 2, 3, 4, 5, 6], "rho": [.5],
                      "coefficients": [1., 2, 3], "kernel_params": [1., 0, 0]})])
def test_surplus_coefficients(op, attributes):
    agrees(model_of([make_node(op, "x", "y", domain=ML, **attributes)], {"x": ["n", 3]},
                    {"y": None}, [("", 15), (ML, 1)]),
           {"x": X.reshape(2, 3)})


def test_a_leaf_that_no_node_leads_to():
    tree = make_node("TreeEnsemble", "x", "y", domain=ML, n_targets=1, aggregate_function=1,
                     post_transform=0, tree_roots=[0], nodes_featureids=[0],
                     nodes_modes=helper.make_tensor("m", TensorProto.UINT8, [1], [0]),
                     nodes_splits=helper.make_tensor("s", F32, [1], [.5]), nodes_truenodeids=[0],
                     nodes_falsenodeids=[2], nodes_trueleafs=[1], nodes_falseleafs=[1],
                     leaf_targetids=[0, 0, 0],
                     leaf_weights=helper.make_tensor("w", F32, [3], [1, 2, 3]))
    agrees(model_of([tree], {"x": ["n", 1]}, {"y": None}, [("", 21), (ML, 5)]),
           {"x": np.array([[0], [1]], np.float32)})


def test_probit_of_two_classes():
    """ONNX's evaluator transforms both chances; ONNX Runtime gives one, and 0."""
    tree = make_node("TreeEnsembleClassifier", "x", "l p", domain=ML, nodes_featureids=[0] * 3,
                     nodes_values=[.5, 0., 0.], nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
                     nodes_truenodeids=[1, 0, 0], nodes_falsenodeids=[2, 0, 0],
                     nodes_treeids=[0] * 3, nodes_nodeids=[0, 1, 2], class_ids=[0, 0],
                     class_treeids=[0, 0], class_nodeids=[1, 2], class_weights=[.2, .9],
                     classlabels_int64s=[0, 1], post_transform="PROBIT")
    model = model_of([tree], {"x": ["n", 1]}, [make_value("l", None, I64), make_value("p", None)],
                     [("", 17), (ML, 3)])
    labels, scores = heddle.compile(model, cache=False).run(
        None, {"x": np.array([[.2], [.7]], np.float32)})
    assert labels.tolist() == [0, 1]
    np.testing.assert_allclose(scores, [[.8416, -.8416], [-1.2816, 1.2816]], atol=2e-4)


def test_a_mean_that_nobody_reads():
    """ONNX Runtime's tools name all outputs; this one it leaves as it is."""
    skip = make_node("SkipSimplifiedLayerNormalization", "x r w", "y mean root sum",
                     domain="com.microsoft")
    names = ("y", "mean", "root", "sum")
    model = model_of([skip], {name: ["n", 2, 6] for name in "xr"}, {name: None for name in names},
                     [("", 17), ("com.microsoft", 1)],
                     constants=[helper.make_tensor("w", F32, [6], [1, 2, 3, 4, 5, 6])])
    feeds = {"x": X.repeat(4).reshape(2, 2, 6), "r": X[::-1].repeat(4).reshape(2, 2, 6) / 8}
    y, mean, _, total = heddle.compile(model, cache=False).run(None, feeds)
    np.testing.assert_allclose(mean, total.mean(-1, keepdims=True), rtol=1e-6)
    peer = runtime_session(model)
    np.testing.assert_allclose(y, peer.run(["y"], feeds)[0], rtol=1e-5)
