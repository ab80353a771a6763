"""Sizes that a model or its inputs choose: what no memory holds, what overflows, what a body makes.

Each ends with one clear message and no signal; none reads or writes outside of its tensors, and
none takes longer than its inputs and outputs are large."""

import pytest
from heddle.onnx_graph import make_graph, make_model, make_node, make_value
from onnx import TensorProto, helper

from command import OK, REFUSED, USAGE, fails, heddle, needs_heddle, save

pytestmark = needs_heddle

I64 = TensorProto.INT64


def node(op, inputs, outputs="y", **attributes):
    return make_node(op, inputs, outputs, "n", **attributes)


def ints(name, values, dims=None):
    return helper.make_tensor(name, I64, [len(values)] if dims is None else dims, values)


def one(op, inputs, constants=(), outputs="y", domain="", **attributes):
    """A node whose operands are `inputs` (name: shape, or shape and type) and constants."""
    names = [*inputs, *(constant.name for constant in constants)]
    made = make_node(op, names, outputs, "n", domain=domain, **attributes)
    return make_model([made], inputs, {name: None for name in outputs.split()}, constants,
                      domains={domain: 3} if domain else {})


def tree(truenodes, falsenodes, modes=("BRANCH_LEQ", "LEAF", "LEAF"), ids=(0, 1, 2)):
    count = len(ids)
    return one("TreeEnsembleRegressor", {"x": ["n", 1]}, domain="ai.onnx.ml", n_targets=1,
               nodes_treeids=[0] * count, nodes_nodeids=list(ids), nodes_featureids=[0] * count,
               nodes_modes=list(modes), nodes_values=[0.5] * count,
               nodes_truenodeids=truenodes, nodes_falsenodeids=falsenodes,
               target_treeids=[0, 0], target_nodeids=[1, 2], target_ids=[0, 0],
               target_weights=[1.0, 2.0])


def doubled(times):
    names = ["x", *(f"t{i}" for i in range(times - 1)), "y"]
    nodes = [make_node("Concat", [a, a], [b], f"n{i}", axis=0)
             for i, (a, b) in enumerate(zip(names, names[1:]))]
    return make_model(nodes, {"x": [1]}, {"y": None})


# name: (model, words of the refusal)
REFUSED_MODELS = {
    "gather_elements rank": (
        one("GatherElements", {"x": [3, "n"], "i": ([3, 5, 5], I64)}),
        "indices have rank 3"),
    "gather_elements sizes": (
        one("GatherElements", {"x": [3, 4], "i": ([4, 4], I64)}, axis=1), "reach beyond x"),
    "scatter_elements updates": (
        one("ScatterElements", {"x": [2, 3], "i": ([2, 3], I64), "u": [2]}), "shape of indices"),
    "scatter_nd depth": (
        one("ScatterND", {"x": [2, 3], "i": ([1, 3], I64), "u": [1]}),
        "the last size of"),
    "scatter_nd scalar": (
        one("ScatterND", {"x": [2, 3], "i": ([], I64), "u": [1]}),
        "the last size of"),
    "scatter_nd updates": (
        one("ScatterND", {"x": [2, 3], "i": ([4, 1], I64), "u": [4]}),
        "shape of what indices"),
    "gather_nd batch": (
        one("GatherND", {"x": [2, 3], "i": ([1], I64)}, batch_dims=1), "no batch of rank 1"),
    "reverse_sequence rank": (
        one("ReverseSequence", {"x": [3], "l": ([3], I64)}),
        "two dimensions of x"),
    "reverse_sequence axes": (
        one("ReverseSequence", {"x": [4, 3], "l": ([3], I64)}, batch_axis=1, time_axis=1),
        "two dimensions of x"),
    "reverse_sequence lengths": (
        one("ReverseSequence", {"x": [4, 3], "l": ([3, 1], I64)}),
        "a vector of 3"),
    "concat of 2^64": (doubled(64), "larger than any memory"),
    "pad of 2^63": (one("Pad", {"x": [4]}, [ints("p", [1 << 62, 1 << 62])]), "beyond 2^63"),
    "tile of a matrix": (one("Tile", {"x": [2, 3]}, [ints("r", [1, 2], [1, 2])]), "'repeats'"),
    "tile below zero": (one("Tile", {"x": [2, 3]}, [ints("r", [1, -2])]), "negative"),
    "top-k below zero": (
        one("TopK", {"x": [4, "n"]}, [ints("k", [-9])], "y z", axis=0), "negative"),
    "top-k beyond": (
        one("TopK", {"x": [4, "n"]}, [ints("k", [9])], "y z", axis=0), "the axis has size 4"),
    "transposed convolution below zero": (
        one("ConvTranspose", {"x": [1, 1, 4, 4], "w": [1, 1, 3, 3]}, output_shape=[3, -5]),
        "'output_shape'"),
    "transposed convolution below zero, symbols": (
        one("ConvTranspose", {"x": ["a", "b", "c", "d"], "w": ["e", "f", "g", "h"]},
            output_shape=[0, -5]), "'output_shape'"),
    "map without labels": (one("ZipMap", {"x": ["n", "m"]}, domain="ai.onnx.ml"), "classlabels"),
    "tree: own child": (tree([0, 0, 0], [2, 0, 0]), "its own child"),
    "tree: stray node": (tree([1, 0, 0], [1, 0, 0]), "one root"),
    "tree: cycle": (
        tree([1, 3, 0, 1], [2, 2, 0, 2], ("BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "BRANCH_LEQ"),
             (0, 1, 2, 3)), "reached from itself"),
    "tree: a node twice": (tree([1, 0, 0], [1, 0, 0], ids=(0, 1, 1)), "two nodes"),
    "blocked scale": (
        one("DequantizeLinear", {"x": ([2, 60], TensorProto.INT8), "s": [2, 1]}, axis=1,
            block_size=2), "dimension 1"),
}


@pytest.mark.parametrize("name", REFUSED_MODELS)
def test_shapes_that_do_not_fit_are_refused(name, tmp_path):
    model, words = REFUSED_MODELS[name]
    model.opset_import[0].version = 22
    fails("run", save(model, tmp_path / "m.onnx"), "--no-cache", status=REFUSED, says=[words, "'n"])


def loop(sizes_input):
    """Stacks slices whose sizes are elements of an input."""
    body = make_graph([node("Identity", "going", "again"), node("Gather", "sizes i", "size"),
                       node("Unsqueeze", "size zero", "shape"),
                       node("Expand", "seven shape", "slice")],
                      {"i": ([], I64), "going": ([], TensorProto.BOOL)},
                      {"again": ([], TensorProto.BOOL), "slice": None},
                      [helper.make_tensor("seven", 1, [1], [7.0]), ints("zero", [0])])
    return make_model([node("Loop", "m c", body=body)],
                 {"m": ([], I64), "c": ([], TensorProto.BOOL), "sizes": ([sizes_input], I64)},
                 {"y": None})


def scan():
    """As loop, with a scan over the sizes."""
    body = make_graph([node("Add", "s e", "t"), node("Unsqueeze", "e zero", "shape"),
                       node("Expand", "seven shape", "slice")],
                      {"s": ([], I64), "e": ([], I64)}, {"t": ([], I64), "slice": None},
                      [helper.make_tensor("seven", 1, [1], [7.0]), ints("zero", [0])])
    return make_model([node("Scan", "s x", "last y", body=body, num_scan_inputs=1)],
                 {"s": ([], I64), "x": (["t"], I64)}, {"last": ([], I64), "y": None})


def growing_state():
    """A scan whose state is twice as long after each step."""
    body = make_graph([node("Concat", "s s", "t", axis=0), node("Neg", "e", "f")],
                      {"s": None, "e": []}, {"t": None, "f": []})
    return make_model([node("Scan", "s x", "last y", body=body, num_scan_inputs=1)],
                 {"s": ["k"], "x": ["t"]}, {"last": None, "y": None})


def scaled_size(factor, then=()):
    """Ones, as many as x has elements times `factor`."""
    return make_model([node("Shape", "x", "s"), node("Mul", "s k", "t"),
                  node("ConstantOfShape", "t", "c" if then else "y"), *then],
                 [make_value("x", ["a"]), *([make_value("i", ["m"], I64)] if then else [])],
                 {"y": None}, [ints("k", [factor]), ints("r", [-1, 64])])


QUOTIENT = [node("Reshape", "c r", "q"), node("Gather", "q i")]
ROI = one("RoiAlign", {"x": [1, 1, 4, 4], "r": [1, 4], "b": ([1], I64)})

# name: (model, inputs, words of the message; or None and the words of the result)
RUNS = {
    "slices of a loop": (
        loop("k"), ["m=i64=2", "c=bool=1", "sizes=2xi64=1,100000000"], "a size is"),
    "equal slices of a loop": (loop("k"), ["m=i64=2", "c=bool=1", "sizes=2xi64=3,3"], None),
    "slices of a scan": (scan(), ["s=i64=0", "x=3xi64=3,4,3"], "a size is"),
    "equal slices of a scan": (scan(), ["s=i64=0", "x=3xi64=3,3,3"], None),
    "no slices of a scan": (scan(), ["s=i64=0", "x=0xi64="], None),
    "a state that grows": (growing_state(), ["s=2xf32=1", "x=3xf32=1"], "a size is"),
    "a product of 2^64": (scaled_size(1 << 61), ["x=8xf32=1"], "larger than any memory"),
    "a quotient of it": (scaled_size(1 << 62, QUOTIENT), ["x=4xf32=1", "i=2xi64=0,1099511627776"],
                         "larger than any memory"),
    "sizes of an input": (one("ConstantOfShape", {"s": ([2], I64)}),
                          [f"s=2xi64=0,{(1 << 63) - 1}"], "larger than any memory"),
    "values of a one-hot": (one("OneHot", {"i": (["a"], I64), "d": ([], I64), "v": ["b"]}),
                            ["i=1xi64=0", "d=i64=3", "v=1xf32=1"], "a slice would end at 2"),
    "scales of blocks": (
        one("DequantizeLinear", {"x": ([2, 60], TensorProto.INT8), "s": [2, "k"]}, axis=1,
            block_size=2), ["x=2x60xi8=1", "s=2x1xf32=1"], "a slice would end"),
    "a box of 1e5": (ROI, ["x=1x1x4x4xf32=1", "r=1x4xf32=0,0,100000,100000", "b=1xi64=0"],
                     "more samples"),
    "a box": (ROI, ["x=1x1x4x4xf32=1", "r=1x4xf32=0,0,4,4", "b=1xi64=0"], None),
    "the longest step back": (
        one("Slice", {"x": [5], **{name: ([1], I64) for name in "seat"}}),
        ["x=5xf32=1", "s=1xi64=4", f"e=1xi64={-(1 << 63)}", "a=1xi64=0", f"t=1xi64={-(1 << 63)}"],
        None),
    "the farthest diagonal": (one("Trilu", {"x": [3, 3], "k": ([], I64)}),
                              ["x=3x3xf32=1", f"k=i64={(1 << 63) - 1}"], None),
    "a range of 2^64": (
        one("Range", {"a": ([], I64), "b": ([], I64), "c": ([], I64)}),
        [f"a=i64={-(1 << 63)}", f"b=i64={(1 << 63) - 1}", f"c=i64={1 << 62}"], None),
    "an empty pool of a pool": (one("MeanVarianceNormalization", {"x": [2, "n", 4, 0, 1]}),
                                ["x=2x3x4x0x1xf32="], None),
    "integers under a root": (one("ReduceL2", {"x": ([2, 3], TensorProto.INT32)}),
                              ["x=2x3xi32=1,2,3,4,5,6"], None),
    "places of a pool": (
        one("MaxPool", {"x": [1, 1, 2, 2]}, outputs="y z", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        ["x=1x1x2x2xf32=-inf"], None),
}
RESULTS = {
    "equal slices of a loop": "2x3 7 7 7 7 7 7", "equal slices of a scan": "3x3 7 7 7 7 7 7 7 7",
    "no slices of a scan": "0x0", "a box": "1x1x1x1", "the longest step back": "float32 1 ",
    "the farthest diagonal": "float32 3x3 0 0 0 0 0 0 0 0",
    "a range of 2^64": f"int64 4 {-(1 << 63)} {-(1 << 62)} 0 {1 << 62}",
    "an empty pool of a pool": "2x3x4x0x1", "integers under a root": "int32 1x1 9",
    "places of a pool": "int64 1x1x2x2 0 0 0 0",
}


@pytest.mark.parametrize("name", RUNS)
def test_sizes_of_a_run(name, tmp_path):
    model, inputs, words = RUNS[name]
    model.opset_import[0].version = 22
    feeds = [part for text in inputs for part in ("--input", text)]
    done = heddle("run", save(model, tmp_path / "m.onnx"), "--no-cache", *feeds)
    if words:
        assert done.status == USAGE and "internal error" not in done.errors, done.errors
        assert words in done.errors and ("node 'n'" in done.errors or "more samples" in done.errors)
    else:
        assert done.status == OK, done.errors
        assert RESULTS[name] in " ".join(done.output.split()), done.output
