"""Every op that Heddle supports, in the forms that need another algorithm: one row each."""

import numpy as np
from heddle.onnx_graph import make_node

from bench.ops import trees
from bench.ops.case import Row, between, ints, normal, scalar, side

UNARY = ("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu "
         "HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Log Mish Neg Reciprocal Relu Round "
         "Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu").split()
BINARY = "Add Sub Mul Div Max Min Mean Sum Pow PRelu".split()
COMPARE = "Equal Less LessOrEqual Greater GreaterOrEqual".split()
REDUCE = ("ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum "
          "ReduceLogSumExp ReduceSumSquare").split()


def positive(*shape):
    return np.abs(normal(*shape)) % 0.9 + np.float32(0.05)


def weights(*shape):
    """Weights of a recurrent layer of 64 units, as PyTorch begins: larger ones make it chaotic."""
    return (normal(*shape) % 2 - 1) / np.float32(8)


def square(n):
    return normal(side(n), side(n))


def image(n, channels=8):
    s = side(n / channels)
    return normal(1, channels, s, s)


def boxes(n, count):
    """[1, count, 4] of low and high corners."""
    low = np.random.default_rng(1).random((1, count, 2)).astype(np.float32) * 600
    high = low + np.random.default_rng(2).random((1, count, 2)).astype(np.float32) * 60
    return np.concatenate([low, high], -1)


def suppression(n):
    classes = 1 if n < 1000 else 80
    count = max(1, n // classes)
    scores = np.random.default_rng(3).random((1, classes, count)).astype(np.float32) ** 4
    return [boxes(n, count), scores, ints(100), np.float32([0.5]), np.float32([0.25])]


def quantised(left, right, axis=1):
    """Operands of QLinearMatMul and QLinearConv: u8 by i8 with a scale per column or filter."""
    count = right[axis]
    return [between(0, 255, *left, dtype=np.uint8), np.float32(0.02), np.uint8(128),
            between(-64, 64, *right, dtype=np.int8), np.full(count, 0.01, np.float32),
            np.zeros(count, np.int8), np.float32(1), np.uint8(128)]


def elementwise():
    for op in UNARY:
        feeds = positive if op not in ("Acosh",) else (lambda n: positive(n) + 1)
        yield Row(op, "", lambda n, feeds=feeds: [feeds(n)])
    for op in BINARY:
        yield Row(op, "", lambda n: [positive(n), positive(n)])
    yield Row("Add", "of 25 MB", lambda n: [normal(n), normal(n)], sizes=(6553600,))
    for op in ("Add", "Mul"):
        yield Row(op, "row", lambda n: [square(n), normal(side(n))])
        yield Row(op, "column", lambda n: [square(n), normal(side(n), 1)])
    for op in ("Add", "Mul", "Div"):
        yield Row(op, "int64", lambda n: [between(1, 99, n), between(1, 99, n)])
    for op in COMPARE:
        yield Row(op, "", lambda n: [normal(n), normal(n)])
    for op in ("And", "Or", "Xor"):
        yield Row(op, "", lambda n: [normal(n) > 0, normal(n) > 0])
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield Row(op, "", lambda n: [between(0, 99, n, dtype=np.int32),
                                     between(0, 99, n, dtype=np.int32)])
    yield Row("BitwiseNot", "", lambda n: [between(0, 99, n, dtype=np.int32)])
    yield Row("BitShift", "", lambda n: [between(0, 99, n, dtype=np.uint32),
                                         between(0, 9, n, dtype=np.uint32)],
              attributes={"direction": "LEFT"})
    yield Row("Not", "", lambda n: [normal(n) > 0])
    yield Row("Mod", "int64", lambda n: [between(-99, 99, n), between(1, 99, n)])
    yield Row("Mod", "int32", lambda n: [between(-99, 99, n, dtype=np.int32),
                                         between(1, 99, n, dtype=np.int32)])
    yield Row("Mod", "scalar", lambda n: [between(-99, 99, n), scalar(7)], constants=(1,))
    yield Row("Mod", "fmod", lambda n: [normal(n), positive(n)], attributes={"fmod": 1})
    yield Row("Clip", "", lambda n: [normal(n), np.float32(-1), np.float32(1)], constants=(1, 2))
    yield Row("Where", "", lambda n: [normal(n) > 0, normal(n), normal(n)])
    for form, to in (("int64", 7), ("float16", 10), ("uint8", 2), ("double", 11), ("bool", 9)):
        yield Row("Cast", f"to {form}", lambda n: [normal(n)], attributes={"to": to})
    yield Row("Cast", "from int64", lambda n: [between(-99, 99, n)], attributes={"to": 1})
    yield Row("QuantizeLinear", "", lambda n: [normal(n), np.float32(0.02), np.uint8(3)],
              constants=(1, 2))
    yield Row("DequantizeLinear", "", lambda n: [between(0, 255, n, dtype=np.uint8),
                                                 np.float32(0.02), np.uint8(3)], constants=(1, 2))
    yield Row("DynamicQuantizeLinear", "", lambda n: [normal(n)], outputs=3)


def reductions():
    for op in REDUCE:
        given = positive if "Log" in op else normal
        for form, axis in (("rows", 1), ("columns", 0)):
            yield Row(op, form, lambda n, given=given, axis=axis: [
                given(side(n), side(n)), ints(axis)], constants=(1,))
    yield Row("ReduceSum", "all", lambda n: [normal(n), ints(0)], constants=(1,))
    for op in ("ArgMax", "ArgMin"):
        yield Row(op, "rows", lambda n: [square(n)], attributes={"axis": 1})
        yield Row(op, "columns", lambda n: [square(n)], attributes={"axis": 0})
        yield Row(op, "8 rows", lambda n: [normal(8, max(1, n // 8))], attributes={"axis": 1})
        yield Row(op, "one row", lambda n: [normal(1, n)], attributes={"axis": 1})
        yield Row(op, "of 21", lambda n: [normal(max(1, n // 21), 21)], attributes={"axis": 1})
        yield Row(op, "of 21 channels", lambda n: [normal(1, 21, max(1, n // 21))],
                  attributes={"axis": 1})
    for form, shape, axis in (("rows", lambda n: (side(n), side(n)), 1),
                              ("columns", lambda n: (side(n), side(n)), 0),
                              ("of 10", lambda n: (max(1, n // 10), 10), 1),
                              ("one row", lambda n: (1, n), 1),
                              ("8 rows", lambda n: (8, max(1, n // 8)), 1)):
        for op in ("Softmax", "LogSoftmax", "Hardmax"):
            yield Row(op, form, lambda n, shape=shape: [normal(*shape(n))],
                      attributes={"axis": axis})
    yield Row("CumSum", "one row", lambda n: [normal(n), scalar(0)], constants=(1,))
    yield Row("CumSum", "rows", lambda n: [square(n), scalar(1)], constants=(1,))
    yield Row("CumSum", "columns", lambda n: [square(n), scalar(0)], constants=(1,))
    yield Row("CumSum", "int64", lambda n: [between(0, 9, n), scalar(0)], constants=(1,))
    yield Row("CumSum", "reverse", lambda n: [square(n), scalar(1)], constants=(1,),
              attributes={"reverse": 1, "exclusive": 1})


def selection():
    for form, k in (("k 1", 1), ("k 5", 5), ("k 100", 100)):
        yield Row("TopK", form, lambda n, k=k: [normal(1, n), ints(min(k, n))], constants=(1,),
                  outputs=2, sizes=(64, 8400, 128000))
    yield Row("TopK", "all", lambda n: [normal(1, n), ints(n)], constants=(1,), outputs=2,
              sizes=(64, 8400, 128000))
    yield Row("TopK", "k 1000 int64", lambda n: [between(0, 10 ** 6, n), ints(min(1000, n))],
              constants=(1,), outputs=2, sizes=(64, 8400, 128000))
    yield Row("TopK", "rows", lambda n: [square(n), ints(min(10, side(n)))], constants=(1,),
              outputs=2)
    yield Row("TopK", "columns", lambda n: [square(n), ints(min(10, side(n)))], constants=(1,),
              outputs=2, attributes={"axis": 0})
    for form, density in (("sparse", 0.02), ("half", 0.5), ("dense", 1.0)):
        yield Row("NonZero", form, lambda n, density=density: [
            (np.random.default_rng(0).random((side(n), side(n))) < density).astype(np.float32)],
            sizes=(64, 102400, 1048576))
    yield Row("NonZero", "bool", lambda n: [normal(n) > 0])
    yield Row("NonZero", "int64", lambda n: [between(0, 2, 4, max(1, n // 4))])
    yield Row("Compress", "", lambda n: [normal(n), normal(n) > 0], attributes={"axis": 0})
    yield Row("Compress", "rows", lambda n: [square(n), normal(side(n)) > 0],
              attributes={"axis": 0})
    yield Row("Unique", "floats", lambda n: [normal(n)], outputs=4, sizes=(64, 8400, 128000))
    yield Row("Unique", "few", lambda n: [between(0, 50, n)], outputs=4,
              sizes=(64, 8400, 128000))
    yield Row("Unique", "unsorted", lambda n: [between(0, n, n)], outputs=4,
              attributes={"sorted": 0}, sizes=(64, 8400, 128000))
    yield Row("Unique", "rows", lambda n: [between(0, 4, n, 4)], outputs=4,
              attributes={"axis": 0}, sizes=(64, 8400, 128000))
    yield Row("NonMaxSuppression", "", suppression, sizes=(100, 80 * 1000, 80 * 18900))
    yield Row("NonMaxSuppression", "all", lambda n: [*suppression(n)[:2], ints(n),
                                                     np.float32([0.5])],
              sizes=(64, 512, 900))


def movement():
    yield Row("Transpose", "", lambda n: [square(n)], attributes={"perm": [1, 0]})
    yield Row("Transpose", "nhwc", lambda n: [image(n)], attributes={"perm": [0, 2, 3, 1]})
    yield Row("Transpose", "heads", lambda n: [normal(1, max(1, n // 768), 12, 64)],
              attributes={"perm": [0, 2, 1, 3]})
    yield Row("Concat", "rows", lambda n: [square(n), square(n)], attributes={"axis": 0})
    yield Row("Concat", "columns", lambda n: [square(n), square(n)], attributes={"axis": 1})
    yield Row("Split", "rows", lambda n: [square(n)], outputs=2,
              attributes={"axis": 0, "num_outputs": 2})
    yield Row("Split", "columns", lambda n: [square(n)], outputs=2,
              attributes={"axis": 1, "num_outputs": 2})
    yield Row("Slice", "", lambda n: [square(n), ints(1, 1), ints(-1, -1), ints(0, 1)],
              constants=(1, 2, 3))
    yield Row("Slice", "step 2", lambda n: [square(n), ints(0), ints(10 ** 9), ints(1), ints(2)],
              constants=(1, 2, 3, 4))
    yield Row("Slice", "reverse", lambda n: [square(n), ints(-1), ints(-10 ** 9), ints(1),
                                             ints(-1)], constants=(1, 2, 3, 4))
    for mode in ("constant", "edge", "reflect", "wrap"):
        yield Row("Pad", mode, lambda n: [image(n), ints(0, 0, 1, 1, 0, 0, 1, 1)],
                  constants=(1,), attributes={"mode": mode})
    yield Row("Pad", "reflect signal", lambda n: [normal(1, n), ints(0, n // 8, 0, n // 8)],
              constants=(1,), attributes={"mode": "reflect"})
    yield Row("Gather", "rows", lambda n: [square(n), between(0, side(n), side(n))],
              attributes={"axis": 0})
    yield Row("Gather", "columns", lambda n: [square(n), between(0, side(n), side(n))],
              attributes={"axis": 1})
    yield Row("Gather", "embedding", lambda n: [normal(1000, 64),
                                                between(0, 1000, max(1, n // 64))],
              constants=(0,))
    yield Row("GatherElements", "", lambda n: [square(n), between(0, side(n), side(n), side(n))],
              attributes={"axis": 1})
    yield Row("GatherND", "elements", lambda n: [square(n), between(0, side(n), n, 2)])
    yield Row("GatherND", "rows", lambda n: [square(n), between(0, side(n), side(n), 1)])
    yield Row("ScatterElements", "", lambda n: [
        square(n), between(0, side(n), side(n), side(n)), square(n)], attributes={"axis": 1})
    yield Row("ScatterElements", "add", lambda n: [
        square(n), between(0, side(n), side(n), side(n)), square(n)],
        attributes={"axis": 1, "reduction": "add"})
    yield Row("ScatterND", "elements", lambda n: [square(n), between(0, side(n), n, 2), normal(n)],
              sizes=(64, 65536, 1048576))
    yield Row("ScatterND", "rows", lambda n: [
        square(n), np.random.default_rng(0).permutation(side(n))[:, None], square(n)])
    yield Row("ScatterND", "few rows", lambda n: [
        square(n), ints(0, 2, 1)[:, None], normal(3, side(n))])
    yield Row("Expand", "", lambda n: [normal(side(n), 1), ints(side(n), side(n))],
              constants=(1,))
    yield Row("Tile", "", lambda n: [square(n), ints(2, 2)], constants=(1,))
    yield Row("Trilu", "", lambda n: [square(n)])
    yield Row("EyeLike", "", lambda n: [square(n)])
    yield Row("OneHot", "", lambda n: [between(0, 32, max(1, n // 32)), ints(32),
                                       np.float32([0, 1])], constants=(1, 2))
    yield Row("Range", "", lambda n: [scalar(0), scalar(n), scalar(1)])
    yield Row("ReverseSequence", "", lambda n: [normal(side(n), side(n), 1),
                                                between(1, side(n), side(n))],
              attributes={"time_axis": 1, "batch_axis": 0})
    yield Row("DepthToSpace", "", lambda n: [image(n)], attributes={"blocksize": 2})
    yield Row("SpaceToDepth", "", lambda n: [normal(1, 8, 2 * side(n / 32), 2 * side(n / 32))],
              attributes={"blocksize": 2})


def networks():
    images = (512, 65536, 1048576)
    yield Row("MatMul", "", lambda n: [square(n), square(n)], sizes=(64, 65536, 1048576))
    yield Row("MatMul", "vector", lambda n: [normal(1, side(n)), square(n)])
    yield Row("Gemm", "", lambda n: [square(n), square(n), normal(side(n))], constants=(1, 2),
              sizes=(64, 65536, 1048576))
    yield Row("MatMulInteger", "", lambda n: [
        between(0, 255, side(n), side(n), dtype=np.uint8),
        # ONNX Runtime's sums of pairs saturate at i16 on CPUs without VNNI.
        between(-64, 64, side(n), side(n), dtype=np.int8)], constants=(1,),
        sizes=(64, 65536, 1048576))
    yield Row("QLinearMatMul", "", lambda n: quantised([side(n)] * 2, [side(n)] * 2),
              constants=range(1, 8), sizes=(64, 65536, 1048576))
    yield Row("QLinearConv", "3x3", lambda n: quantised(
        [1, 64, *[side(n / 64)] * 2], [64, 64, 3, 3], axis=0), constants=range(1, 8),
        attributes={"pads": [1] * 4}, sizes=(512, 65536, 1048576))
    yield Row("Conv", "3x3", lambda n: [image(n), normal(8, 8, 3, 3)], constants=(1,),
              attributes={"pads": [1] * 4}, sizes=images)
    yield Row("Conv", "1x1", lambda n: [image(n), normal(8, 8, 1, 1)], constants=(1,), sizes=images)
    yield Row("Conv", "64 channels", lambda n: [image(n, 64), normal(64, 64, 3, 3)], constants=(1,),
              attributes={"pads": [1] * 4}, sizes=images)
    yield Row("Conv", "depthwise", lambda n: [image(n), normal(8, 1, 3, 3)], constants=(1,),
              attributes={"pads": [1] * 4, "group": 8}, sizes=images)
    yield Row("ConvTranspose", "", lambda n: [image(n), normal(8, 8, 2, 2)], constants=(1,),
              attributes={"strides": [2, 2]}, sizes=images)
    for op in ("MaxPool", "AveragePool", "LpPool"):
        yield Row(op, "3x3", lambda n: [image(n)], sizes=images,
                  attributes={"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4})
    for op in ("GlobalAveragePool", "GlobalMaxPool"):
        yield Row(op, "", lambda n: [image(n)])
    yield Row("BatchNormalization", "", lambda n: [image(n), *(positive(8) for _ in range(4))],
              constants=(1, 2, 3, 4))
    yield Row("InstanceNormalization", "", lambda n: [image(n), normal(8), normal(8)],
              constants=(1, 2))
    yield Row("GroupNormalization", "", lambda n: [image(n), normal(8), normal(8)],
              constants=(1, 2), attributes={"num_groups": 2})
    yield Row("LayerNormalization", "", lambda n: [square(n), normal(side(n))], constants=(1,))
    yield Row("LpNormalization", "", lambda n: [square(n)])
    yield Row("LRN", "", lambda n: [image(n)], attributes={"size": 5})
    yield Row("MeanVarianceNormalization", "", lambda n: [image(n)])
    for mode in ("nearest", "linear", "cubic"):
        yield Row("Resize", mode, lambda n: [image(n), None, np.float32([1, 1, 2, 2])],
                  constants=(2,), attributes={"mode": mode}, sizes=images)
    yield Row("GridSample", "", lambda n: [image(n), np.clip(normal(1, 64, 64, 2), -1, 1)],
              sizes=images)
    yield Row("RoiAlign", "", lambda n: [image(n), boxes(n, 32)[0] / 20, between(0, 1, 32)],
              attributes={"output_height": 7, "output_width": 7, "sampling_ratio": 2},
              sizes=images)
    for op, gates, outputs in (("LSTM", 4, 3), ("GRU", 3, 2)):
        yield Row(op, "", lambda n, rows=64 * gates: [normal(n // 64, 1, 64), weights(1, rows, 64),
                                                      weights(1, rows, 64)],
                  constants=(1, 2), outputs=outputs, attributes={"hidden_size": 64},
                  sizes=(64, 4096, 65536))
    yield Row("Einsum", "bij,bjk->bik", lambda n: [normal(4, side(n / 4), side(n / 4)),
                                                   normal(4, side(n / 4), side(n / 4))],
              attributes={"equation": "bij,bjk->bik"}, sizes=(64, 65536, 1048576))
    yield Row("Det", "", lambda n: [normal(max(1, n // 16), 4, 4)])


def attend(names, outputs, sink):
    """Nodes of attention over queries, keys (transposed) and values, perhaps with one column more
    that takes a part of each row's sum; a second result are the probabilities."""
    steps = [("MatMul", names[:2], "scores", {})]
    if sink:
        steps += [("Concat", ["scores", names[3]], "columns", {"axis": -1}),
                  ("Softmax", ["columns"], "all", {"axis": -1}),
                  ("Slice", ["all", *names[4:7]], "shares", {})]
    else:
        steps += [("Softmax", ["scores"], outputs[1], {"axis": -1})]
    steps.append(("MatMul", ["shares" if sink else outputs[1], names[2]], outputs[0], {}))
    return [make_node(op, operands, [result], **attributes)
            for op, operands, result, attributes in steps]


def attention():
    """Attention of 8 heads of size 64."""
    def feeds(n):
        length = n // 512
        return [normal(1, 8, length, 64) / 8, normal(1, 8, 64, length), normal(1, 8, length, 64)]

    sizes = (8192, 65536, 524288)
    yield Row("Attention", "with a sink", sizes=sizes, constants=(4, 5, 6),
              feeds=lambda n: [*feeds(n), normal(1, 8, n // 512, 1), ints(0), ints(-1), ints(3)],
              nodes=lambda names, outputs: attend(names, outputs, True))
    yield Row("Attention", "and its probabilities", feeds, sizes=sizes, outputs=2,
              nodes=lambda names, outputs: attend(names, outputs, False))


def signals():
    for form, size in (("power of 2", lambda n: n), ("mixed", lambda n: n // 16 * 15),
                       ("prime", lambda n: {64: 61, 16384: 16381, 262144: 262139}[n])):
        yield Row("DFT", form, lambda n, size=size: [normal(1, size(n), 2)],
                  attributes={"axis": 1}, opset=19, sizes=(64, 16384, 262144))
    yield Row("DFT", "real", lambda n: [normal(1, n, 1)], attributes={"axis": 1, "onesided": 1},
              opset=19, sizes=(64, 16384, 262144))
    yield Row("DFT", "rows", lambda n: [normal(side(n), side(n), 1)], attributes={"axis": 1},
              opset=19)
    yield Row("STFT", "", lambda n: [normal(1, n, 1), scalar(160), np.hanning(400).astype("f"),
                                     scalar(400)], constants=(1, 2, 3),
              sizes=(1600, 16000, 480000))
    # torchaudio's resampling: a filter for each sample of the shorter period, over the longer one.
    for form, filters, stride, taps in (("44.1 to 16 kHz", 160, 441, 475),
                                        ("22.05 to 16 kHz", 320, 441, 459),
                                        ("11.025 to 16 kHz", 640, 441, 455),
                                        ("48 to 16 kHz", 1, 3, 41), ("8 to 16 kHz", 2, 1, 15)):
        yield Row("Conv", form, lambda n, filters=filters, taps=taps: [
            normal(1, 1, n + taps), normal(filters, 1, taps)], constants=(1,),
            attributes={"strides": [stride]}, sizes=(4410, 44100, 441000))
    yield Row("HannWindow", "", lambda n: [scalar(n)], sizes=(64, 400, 4096))
    yield Row("MelWeightMatrix", "", lambda n: [ints(80)[0], scalar(n), scalar(16000),
                                                np.float32(0), np.float32(8000)],
              sizes=(64, 400, 2048))


def support_vectors(classes, each, features):
    """Attributes of SVMClassifier with probabilities, as scikit-learn's SVC has them."""
    vectors, pairs = classes * each, classes * (classes - 1) // 2
    return {"kernel_type": "RBF", "kernel_params": [1 / features, 0.0, 3.0],
            "support_vectors": normal(vectors * features).tolist(),
            "coefficients": normal((classes - 1) * vectors).tolist(),
            "vectors_per_class": [each] * classes, "rho": normal(pairs).tolist(),
            "prob_a": [-1.0] * pairs, "prob_b": [0.0] * pairs,
            "classlabels_ints": list(range(classes)), "post_transform": "NONE"}


def perceptron(names, outputs):
    """Gemm, Relu, Gemm, Relu, Gemm: scikit-learn's MLPClassifier without its last function."""
    nodes, x = [], names[0]
    for layer in range(3):
        y = outputs[0] if layer == 2 else f"y{layer}"
        nodes.append(make_node("Gemm", [x, *names[2 * layer + 1:2 * layer + 3]], [y]))
        x = f"z{layer}"
        nodes.append(make_node("Relu", [y], [x]))
    return nodes[:-1]


def learning():
    for rows in (1, 100, 10000):
        for depth, count in ((6, 100), (10, 30)):
            yield Row("TreeEnsembleRegressor", f"{count} of height {depth}, {rows} rows",
                      lambda n, rows=rows: [normal(rows, 30)], sizes=(rows,),
                      attributes=trees.regressor(count, depth, 30), domain="ai.onnx.ml")
        yield Row("TreeEnsembleClassifier", f"3 classes, {rows} rows",
                  lambda n, rows=rows: [normal(rows, 30)], sizes=(rows,), outputs=2,
                  attributes=trees.classifier(60, 6, 30, 3), domain="ai.onnx.ml")
        for classes in (2, 10):
            yield Row("SVMClassifier", f"{classes} classes, {rows} rows",
                      lambda n, rows=rows: [normal(rows, 30)], sizes=(rows,), outputs=2,
                      attributes=support_vectors(classes, 40, 30), domain="ai.onnx.ml")
        yield Row("Gemm", f"three layers, {rows} rows", lambda n, rows=rows: [
            normal(rows, 30), normal(30, 100), normal(100), normal(100, 100), normal(100),
            normal(100, 3), normal(3)], constants=range(1, 7), sizes=(rows,), nodes=perceptron)
    rows = lambda n: [normal(max(1, n // 16), 16)]  # noqa: E731
    yield Row("Scaler", "", rows, domain="ai.onnx.ml",
              attributes={"offset": [0.5] * 16, "scale": [2.0] * 16})
    yield Row("Normalizer", "", rows, domain="ai.onnx.ml", attributes={"norm": "L2"})
    yield Row("Binarizer", "", rows, domain="ai.onnx.ml", attributes={"threshold": 0.1})
    yield Row("Imputer", "", rows, domain="ai.onnx.ml",
              attributes={"imputed_value_floats": [0.0], "replaced_value_float": 1.0})
    yield Row("LinearRegressor", "", rows, domain="ai.onnx.ml",
              attributes={"coefficients": [0.5] * 16, "intercepts": [1.0]})
    yield Row("FastGelu", "", lambda n: [normal(n)], domain="com.microsoft")
    yield Row("QuickGelu", "", lambda n: [normal(n)], domain="com.microsoft")
    yield Row("BiasGelu", "", lambda n: [square(n), normal(side(n))], domain="com.microsoft")
    yield Row("SkipLayerNormalization", "", lambda n: [square(n)[None], square(n)[None],
                                                       normal(side(n))], domain="com.microsoft",
              constants=(2,))


def all_rows():
    """In the order of the table."""
    for family in (elementwise, reductions, selection, movement, networks, attention, signals,
                   learning):
        yield from family()
