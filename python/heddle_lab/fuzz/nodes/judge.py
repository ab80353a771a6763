"""judge: one node that may be legal or not, through Heddle and what it is compared with.

A refusal is right unless ONNX Runtime takes the case and ONNX's evaluator, where it takes it too,
agrees: then it is a `gap`, which is counted and no finding. What runs has to give what Heddle's
interpreter gives, and what ONNX Runtime or ONNX's evaluator gives. The evaluator computes something
for many illegal nodes too, so it is no judge of what ONNX Runtime calls illegal.
SPDX-License-Identifier: Apache-2.0
"""

import re

import numpy as np

import heddle

from ..check import (AGREES, GAP, Outcome, ask_onnxruntime, difference, refusal, run_reference,
                     tolerances)
from ..evaluate import LOSSES, NOISE, WINDOWS, constants, evaluate, is_float, is_stable, wide
from . import guarded
from .case import is_integer, limits

# Characters that must not reach a terminal; a newline is between lines of Heddle's own.
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]")
# Ops for which ONNX does not define NaN; the interpreter does.
NAN_IS_OPEN = {"ArgMax", "ArgMin", "MaxPool", "GlobalMaxPool", "TopK", "ReduceMax", "ReduceMin",
               "Max", "Min", "Clip", "Relu", "Hardmax", "Sign", "DynamicQuantizeLinear", "Unique",
               "QuantizeLinear", "Cast", "CastLike", "MaxUnpool", "RoiAlign", "NonMaxSuppression",
               "GridSample", "LpPool", "MaxRoiPool"}
# Ops whose results for infinities depend on ONNX Runtime's algorithm: it takes distances from
# products, and the largest of a window from the least finite number on, and has shares of experts
# without any.
INFINITY_IS_OPEN = {"CDist", "MaxPool", "GlobalMaxPool", "GridSample", "Normalizer", "Range", "MoE",
                    "QMoE"}
# Whose functions cast what a logarithm gives to the element type, which may be an integer's.
LOGARITHMS = {"ReduceLogSum", "ReduceLogSumExp"}
BETWEEN = "interpolating "
BLAMES_ITSELF = re.compile("internal error|is damaged|code does not link")


def is_numeric(value):
    return isinstance(value, np.ndarray) and value.dtype.kind not in "OSUT"


def is_narrow(array):
    return array.dtype.name.startswith(("float8", "float4"))


def are_finite(feeds):
    return all(np.isfinite(array).all() for array in feeds.values() if is_float(array))


def any_empty(feeds):
    return any(is_numeric(array) and array.size == 0 for array in feeds.values())


def is_disputed(op, feeds):
    """Tells whether ONNX leaves the result open, or its text says otherwise than all do."""
    narrow = [a for a in feeds.values() if is_narrow(a)]
    if op in ("QuantizeLinear", "DequantizeLinear") and any(wide(a).any() for a in narrow[-1:]):
        return True  # a zero point of narrow floats that is none
    is_finite = are_finite(feeds)
    if op in INFINITY_IS_OPEN and not is_finite:
        return True
    if op in ("LpPool", "GlobalLpPool") and any((np.abs(wide(a)) > 1e6).any()
                                                for a in feeds.values()):
        return True  # others' powers leave the range of a float
    if op.startswith("MatMulInteger") and not all(a.size for a in feeds.values()):
        return True  # what ONNX Runtime finds where there is nothing to add up
    if op == "Normalizer" and any((np.abs(wide(a)) > 2**15).any()
                                  for a in feeds.values() if is_integer(a.dtype)):
        return True  # others' squares wrap
    if op.startswith("QLinear") and any((wide(a) == 0).any() or not np.isfinite(wide(a)).all()
                                        for a in feeds.values() if is_float(a)):
        return True  # what such a scale makes, is cast out of range
    if op in LOSSES and not all(a.size for a in feeds.values()):
        return True  # the mean of nothing
    if op in NAN_IS_OPEN and any(is_float(a) and np.isnan(a).any() for a in feeds.values()):
        return True
    if op.startswith("DynamicQuantize") and not is_finite:
        return True
    if op in WINDOWS and any(a.size == 1 and a.reshape(-1)[0] <= 1 for a in feeds.values()):
        return True  # a quotient of zeros
    # "for scalar input, NonZero produces output shape (0, N)"; others give (1, N).
    return op == "NonZero" and any(a.ndim == 0 for a in feeds.values())


def leaves_range(op, feeds, value):
    """Tells whether a float became an integer that cannot hold it, which ONNX leaves open."""
    if not is_numeric(value) or not is_integer(value.dtype):
        return False
    most = float(limits(value.dtype)[1])
    floats = [wide(array) for array in feeds.values() if is_float(array) or is_narrow(array)]
    integers = [array for array in feeds.values() if is_numeric(array) and is_integer(array.dtype)]
    return any(not (np.abs(array) <= most).all() for array in floats) or \
        op in ("Shrink", "Pow", "ReduceMean") and \
        any((wide(a) > 2.0**53).any() for a in integers) or \
        op in LOGARITHMS and any((wide(a) > 40).any() or (wide(a) < 0).any() for a in integers)


def is_flushed(op, feeds):
    """Tells whether float8e8m0's least number, 2^-127, is no normal float32, and so 0 in a run."""
    return op.startswith("Cast") and any(
        a.dtype.name == "float8_e8m0fnu" and not a.view(np.uint8).all() for a in feeds.values())


def allowed(op, pairs, name, like):
    """How far an output may be off: by a step where scales are multiplied before rounding, and by
    what the narrowest operand's type rounds, in which some of a node's steps are computed."""
    if like.dtype.name.startswith("float8"):
        return float(np.max(np.abs(wide(like)[np.isfinite(wide(like))]), initial=0)) / 8
    if is_integer(like.dtype) and op.startswith(BETWEEN):  # no nearer than 24 bits are
        return max(1.0, float(np.max(np.abs(wide(like)), initial=0)) * 2.0**-20)
    if is_integer(like.dtype) and ("Quantize" in op or op.startswith("QLinear")):
        return 1
    own = NOISE.get(like.dtype.name, 0)
    coarsest = max([own, *(NOISE.get(pair[0].dtype.name, 0) for pair in pairs.values())])
    return tolerances(pairs, name, like) * (coarsest / own if own else 1)


def interpolates(node):
    """Tells whether integers are between others, so that rounding may bring them to the next."""
    modes = {a.s for a in node.attribute if a.name == "mode"}
    if node.op_type == "GridSample":
        return b"nearest" not in modes
    return node.op_type == "Resize" and bool(modes & {b"linear", b"cubic"})


def is_of_nothing(op, feeds, value):
    """Tells whether whole windows lie in the padding; ONNX does not say what is largest there."""
    return op == "MaxPool" and is_float(value) and np.isinf(value).any() and are_finite(feeds)


def is_narrow_inside(node):
    """Tells whether mean and deviation are asked for in 16 bits, where engines keep 32 or not."""
    return any(a.name == "stash_type" and a.i != 1 for a in node.attribute)


def in_order(node, array):
    """Sorts the result of a TopK that need not be sorted: its own order is open."""
    axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
    return np.sort(array, axis=axis)


def is_unsorted(node):
    """Engines also differ in which numbers but 0 and 1 they take for `sorted`."""
    return node.op_type == "TopK" and any(a.name == "sorted" and a.i != 1 for a in node.attribute)


def gap_between(op, pairs, name, actual, expected):
    """None, or how two engines' values of an output differ; sequences and strings too."""
    if is_numeric(actual) and is_numeric(expected):
        if actual.dtype != expected.dtype or is_float(actual):
            return difference(actual, expected, allowed(op, pairs, name, expected))
        # In float64 also what NumPy cannot compare: narrow floats and quantised integers.
        most = allowed(op, pairs, name, expected)
        comparable = wide if most else exact
        return difference(comparable(actual), comparable(expected), most)
    if isinstance(actual, list) and isinstance(expected, list):
        if len(actual) != len(expected):
            return f"{len(actual)} tensors, not {len(expected)}"
        gaps = [gap_between(op, {}, name, np.asarray(a), np.asarray(e))
                for a, e in zip(actual, expected)]
        return next((gap for gap in gaps if gap), None)
    actual, expected = np.asarray(actual, object), np.asarray(expected, object)
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, not {list(expected.shape)}"
    return None if actual.tolist() == expected.tolist() else f"{actual} and not {expected}"


def exact(array):
    """The array in a type in which its values can be subtracted."""
    return array if array.dtype.kind in "iub" and array.dtype.itemsize == 8 else wide(array)


def refused(model, data, feeds, stage, error):
    """The Outcome of a refusal."""
    text = str(error)
    if isinstance(error, heddle.InternalError):
        return refusal(stage, error)
    if BLAMES_ITSELF.search(text) or CONTROL.search(text):
        return Outcome("bad message", text)
    names, op = [output.name for output in model.graph.output], model.graph.node[-1].op_type
    theirs, _ = ask_onnxruntime(data, names, feeds)
    if theirs is None:
        return Outcome(AGREES)
    pairs = evaluate(model, feeds)
    if any(name in pairs and gap_between(op, pairs, name, theirs[name], pairs[name][0])
           for name in names):
        return Outcome(AGREES)
    return Outcome(GAP, text)


def compare(model, data, module, feeds, compiled):
    """Compares Heddle's results, {name: value}, with everybody else's; None if all is well."""
    node = model.graph.node[-1]
    op = node.op_type
    pairs = evaluate(model, feeds)
    theirs, is_illegal = ask_onnxruntime(data, list(compiled), feeds)
    reference = {}
    if all(map(is_numeric, [*feeds.values(), *compiled.values()])):
        try:
            reference = run_reference(data, module, feeds)
        except heddle.Error as error:
            if "divided by zero" in str(error):  # which means nothing in particular
                return None
            if not ("is not known here" in str(error) and any_empty(feeds)):
                return refusal("reference", error)  # but a size divided by one that is 0
    if op in ("DFT", "STFT") and not are_finite(feeds):
        return None  # one infinite term spoils as many sums as an algorithm makes of it
    like = BETWEEN + op if interpolates(node) else op
    for name, value in compiled.items():
        if leaves_range(op, {**constants(model), **feeds}, value) or is_flushed(op, feeds):
            continue
        is_open = name in pairs and is_numeric(value) and not is_stable(pairs[name])
        if is_open and NOISE.get(value.dtype.name, 0) > NOISE["float32"]:
            continue  # code keeps 32 bits where the interpreter rounds each step to 16
        if name in reference and (gap := gap_between(op, pairs, name, value, reference[name])):
            return Outcome("wrong", f"output '{name}': compiled and not reference: {gap}")
        if is_open:
            continue
        if is_disputed(op, {**constants(model), **feeds}) or is_narrow_inside(node):
            continue
        if is_of_nothing(op, feeds, value):
            continue
        if op == "Inverse" and theirs and not np.isfinite(theirs[name]).all():
            continue  # which element of no inverse is infinite, and which is NaN
        if is_unsorted(node):
            if name != node.output[0]:
                continue
            value = in_order(node, value)
            theirs = theirs and {**theirs, name: in_order(node, theirs[name])}
            pairs = {**pairs, **{n: (in_order(node, pairs[n][0]),) * 2 for n in (name,)
                                 if n in pairs}}
        gaps = {}
        if theirs is not None:
            gaps["onnxruntime"] = gap_between(like, pairs, name, value, theirs[name])
        # The evaluator (onnx 1.22) gives negative indices for windows that begin in the padding.
        is_evaluated = not is_illegal and not (op == "MaxPool" and name != node.output[0])
        if name in pairs and is_evaluated:
            expected = pairs[name][0]
            if is_numeric(value) and is_numeric(expected):
                expected = expected.astype(value.dtype)
            gaps["onnx"] = gap_between(like, pairs, name, value, expected)
        if gaps and all(gaps.values()):
            texts = [f"{oracle}: {gap}" for oracle, gap in gaps.items()]
            return Outcome("oracle", f"output '{name}': Heddle and not " + "\n".join(texts))
    return None


def judge(model, cases, threads=1):
    """The Outcome of a model for what it is fed. LLVM takes most of the time of a case, so it
    optimises only some: its passes have tests of their own."""
    data = model.SerializeToString()
    level = 2 if len(data) % 8 == 0 else 0
    try:
        module = heddle.compile(data, cache=False, opt_level=level)
    except heddle.Error as error:
        return refused(model, data, cases[0], "compile", error)
    session = heddle.Session(module, threads=threads)
    names = [output.name for output in model.graph.output]
    for feeds in cases:
        try:
            for low in (True, False):
                found = guarded.run(session, feeds, low)
        except heddle.Error as error:
            outcome = refused(model, data, feeds, "run", error)
        else:
            outcome = compare(model, data, module, feeds, {name: found[name] for name in names})
        if outcome and outcome.kind != AGREES:
            return outcome
    return Outcome(AGREES)
