"""evaluate: what a model's nodes give, and how far a right result may be from it.

Every tensor has a value and a shadow: the same computation with noise of a few roundings added
after each node that rounds. Where the two part, rounding alone may part them; so their distance is
the tolerance of a comparison, and an integer or a shape in which they differ says nothing at all.
SPDX-License-Identifier: Apache-2.0
"""

import warnings
import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from .evaluator_ops import OPS

# A few roundings of each dtype, and of what compilers may make of it.
NOISE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 3e-6, "float64": 1e-9}

# Their mean and variance, or their constants and attributes, are float32 whatever the tensors are.
SINGLE = set(
    "GroupNormalization LayerNormalization RMSNormalization BatchNormalization"
    " InstanceNormalization LRN HardSwish HardSigmoid Gelu Elu Celu Selu LeakyRelu"
    " GridSample ThresholdedRelu Shrink Swish Gemm Resize Erf".split()
)

# Ops whose half-precision additions ONNX's evaluator rounds one by one: long sums stand still.
SUMS = set("AveragePool GlobalAveragePool ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp"
           " ReduceMean ReduceSum ReduceSumSquare".split())
# Their steps lose in half precision what their results can hold.
STEPS = set("Celu Elu Gelu HardSwish LogSoftmax Mish Selu Softplus Swish".split())
# Ops whose terms may leave little, beside the roundings of larger sums on the way.
LOSSES = {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}

# These give elements as they are, or a number near which nothing is rounded.
EXACT = set(
    "Abs Ceil Clip Compress Concat Constant ConstantOfShape DepthToSpace Dropout EyeLike Expand"
    " Flatten Floor Gather GatherElements GatherND GlobalMaxPool Hardmax Identity Max MaxPool Min"
    " Neg NonMaxSuppression OneHot Pad Range ReduceMax ReduceMin Relu Reshape ReverseSequence Round"
    " ScatterND Shape Sign Size Slice SpaceToDepth Split Squeeze Tile TopK Transpose Trilu Unique"
    " Unsqueeze Where".split()
)

COMPARISONS = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
# Ops whose results depend on which of two elements is the larger one.
PICKS = {"ArgMax", "ArgMin", "Hardmax", "TopK"}

# Sums of numbers of about 1, which may leave nothing but their roundings.
WINDOWS = {"BlackmanWindow", "HannWindow", "HammingWindow"}
# How far a number is from where these jump.
JUMPS = {"Floor": lambda x: np.abs(x - np.rint(x)), "Ceil": lambda x: np.abs(x - np.rint(x)),
         "Round": lambda x: np.abs(x - np.floor(x) - 0.5), "Sign": np.abs}

HALVES = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


# Called with True before others work and with False afterwards: their crashes are not ours.
on_peer = [lambda is_working: None]


class Rejected(Exception):
    """This node cannot be here."""


def is_float(array):
    return array.dtype.name in NOISE


def wide(array):
    """As float64, in which differences are taken."""
    return np.asarray(array).astype(np.float64)


def finite(array):
    """The absolute values of an array's finite elements."""
    return np.abs(array[np.isfinite(array)])


def captured(node):
    """Names that the subgraphs of a node take from outside of it."""
    names = []
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            known = {value.name for value in graph.input} | {t.name for t in graph.initializer}
            for inner in graph.node:
                names += [n for n in [*inner.input, *captured(inner)] if n and n not in known]
                known.update(inner.output)
            names += [value.name for value in graph.output if value.name not in known]
    return list(dict.fromkeys(names))


def needs(node):
    """All names that a node reads."""
    return list(dict.fromkeys([name for name in node.input if name] + captured(node)))


class Evaluator:
    """Evaluates one node again and again; sums and steps of half precision in float32."""

    def __init__(self, node, opset_imports, dtypes):
        self.half = {name: number for name, number in dtypes.items()
                     if node.op_type in SUMS | STEPS and number in HALVES}
        inputs = [helper.make_value_info(name, helper.make_tensor_type_proto(
            onnx.TensorProto.FLOAT if name in self.half else number, None))
                  for name, number in dtypes.items()]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = helper.make_graph([node], "node", inputs, outputs)
        self.node = node
        self.run_model = ReferenceEvaluator(
            helper.make_model(graph, opset_imports=opset_imports), new_ops=OPS)

    def run(self, feeds):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wider = {name: array.astype(np.float32) if name in self.half else array
                     for name, array in feeds.items()}
            results = [np.asarray(result) for result in self.run_model.run(None, wider)]
            half = [feeds[name].dtype for name in self.half]
            return [result.astype(half[0]) for result in results] if half else results


def with_noise(array, node, name, most=0.0):
    """The array after a few more roundings; zeros, which are often exact, stay nearly so. `most`:
    how large numbers on the way to it were."""
    amount = NOISE.get(array.dtype.name)
    if amount is None or array.size == 0:
        return array
    if node.op_type in SINGLE:
        amount = max(amount, NOISE["float32"])
    values = wide(array)
    generator = np.random.default_rng(zlib.crc32(name.encode()))
    scale = np.abs(values) + 0.1 * np.mean(np.abs(values)) + (node.op_type in WINDOWS) + most
    with np.errstate(all="ignore"):
        noisy = values + amount * scale * generator.uniform(-1, 1, values.shape)
    return noisy.astype(array.dtype)


def partial_sum(node, terms, result):
    """About how large a sum is on the way to one element of the result; 0 where it is not known."""
    if not terms.size or not result.size or not np.all(np.isfinite(terms)):
        return 0.0
    count = terms.size / result.size
    divisor = count if node.op_type == "ReduceMean" else 1
    return float(np.mean(np.abs(terms)) * np.sqrt(count) / divisor)


def may_swap(node, pairs):
    """Tells whether rounding may change the order of two elements of which one is picked."""
    x, shadow = pairs[node.input[0]]
    rounding = distance((x, shadow)) if is_float(x) else 0
    if rounding == 0:
        return False
    default = 0 if node.op_type in ("ArgMax", "ArgMin") else -1
    axis = next((a.i for a in node.attribute if a.name == "axis"), default)
    ordered = np.sort(np.moveaxis(wide(x), axis, -1))
    last = {"ArgMin": ordered[..., :2], "TopK": ordered}.get(node.op_type, ordered[..., -2:])
    with np.errstate(all="ignore"):
        return bool(np.any(np.diff(last) <= 20 * rounding))


def may_flip(node, pairs):
    """Tells whether rounding may change the result of a comparison or a step for some element."""
    if node.op_type in PICKS:
        return may_swap(node, pairs)
    if node.op_type in JUMPS:
        x = pairs[node.input[0]]
        rounding = distance(x) if is_float(x[0]) else 0
        with np.errstate(all="ignore"):
            return rounding > 0 and bool(np.any(JUMPS[node.op_type](wide(x[0])) <= 20 * rounding))
    if node.op_type not in COMPARISONS:
        return False
    (a, a_shadow), (b, b_shadow) = [pairs[name] for name in node.input]
    if not is_float(a):
        return False
    rounding = distance((a, a_shadow)) + distance((b, b_shadow))
    with np.errstate(all="ignore"):
        return rounding > 0 and bool(np.any(np.abs(wide(a) - wide(b)) <= 20 * rounding))


def unlike(value):
    """An array that differs from it everywhere."""
    return 1 - value if is_float(value) else ~value


def is_exact(node):
    if node.op_type == "Cast":
        return False
    return node.op_type in EXACT and node.domain in ("", "ai.onnx")


def evaluate_node(node, opset_imports, pairs):
    """The results of a node as (value, shadow), for the pairs of what it reads."""
    read = {name: pairs[name] for name in needs(node)}
    dtypes = {name: helper.np_dtype_to_tensor_dtype(pair[0].dtype) for name, pair in read.items()}
    evaluator = Evaluator(node, opset_imports, dtypes)
    values = evaluator.run({name: pair[0] for name, pair in read.items()})
    if all(pair[0] is pair[1] for pair in read.values()):
        shadows = values
    else:
        shadows = evaluator.run({name: pair[1] for name, pair in read.items()})
    if may_flip(node, read):
        shadows = [shadow if is_float(value) and node.op_type == "TopK" else unlike(value)
                   for value, shadow in zip(values, shadows)]
    names = [name for name in node.output if name]
    results, most = [], 0.0
    if node.op_type in SUMS | LOSSES:
        most = partial_sum(node, wide(pairs[node.input[0]][0]), values[0])
    for name, value, shadow in zip(names, values, shadows):
        shadow = shadow.astype(value.dtype)
        results.append((value, shadow if is_exact(node) else with_noise(shadow, node, name, most)))
    return results


def distance(pair):
    """How far the shadow of a float tensor is from it at most, where both are finite."""
    value, shadow = map(wide, pair)
    with np.errstate(all="ignore"):
        return float(np.max(finite(value - shadow), initial=0))


def is_stable(pair):
    """Tells whether rounding cannot change the result, or only a little."""
    value, shadow = pair
    if value is shadow:
        return True
    if value.shape != shadow.shape:
        return False
    if not is_float(value):
        return bool(np.array_equal(value, shadow))
    if value.size == 0:
        return True
    if not np.array_equal(np.isfinite(value), np.isfinite(shadow)):
        return False
    size = float(np.max(finite(wide(value)), initial=1.0))
    return distance(pair) < (0.1 if value.dtype.itemsize == 2 else 0.005) * size


def constants(model):
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def evaluate(model, feeds):
    """{name: (value, shadow)} for all values of the main graph that can be evaluated."""
    pairs = {name: (array, array) for name, array in {**constants(model), **feeds}.items()}
    for node in model.graph.node:
        if any(name not in pairs for name in needs(node)):
            continue
        try:
            on_peer[0](True)
            results = evaluate_node(node, model.opset_import, pairs)
        except Exception:  # noqa: BLE001: the evaluator has gaps; what hangs on this is not known
            continue
        finally:
            on_peer[0](False)
        pairs.update(zip([name for name in node.output if name], results))
    return pairs
