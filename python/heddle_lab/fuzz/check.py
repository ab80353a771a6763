"""check: one model, compiled, against the reference, ONNX's evaluator and ONNX Runtime.

An output may be as far from another engine's as rounding can bring it (evaluate). Heddle's two
engines must agree with each other, and with ONNX's evaluator or ONNX Runtime where there is one.
SPDX-License-Identifier: Apache-2.0
"""

import os
import re
import tempfile
from dataclasses import dataclass

import numpy as np

import heddle
from heddle.onnx_graph import make_model

from .evaluate import NOISE, distance, evaluate, finite, is_float, is_stable, needs, on_peer, wide

AGREES = "agrees"
GAP = "gap"  # refused, though others take it and agree


@dataclass
class Outcome:
    """The outcome of a model; all kinds but `agrees` and `gap` are findings."""

    kind: str
    message: str = ""
    held: int = 0  # how many of what campaign.HELD names

    @property
    def is_finding(self):
        return self.kind not in (AGREES, GAP)

    @property
    def signature(self):
        """A text that is equal for findings that look alike: without names and numbers."""
        lines = [line for line in self.message.splitlines() if line.strip()]
        text = re.sub(r"'[^']*'|\[[^]]*\]|\d+|\(([A-Za-z]+)_v\)", "_", lines[0] if lines else "")
        return self.kind if self.kind in ("wrong", "oracle", "hang") else f"{self.kind}: {text}"


def tolerances(pairs, name, like):
    """Absolute errors that rounding may cause in an output."""
    pair = pairs.get(name)
    noise = NOISE.get(like.dtype.name, 0)
    largest = float(np.max(finite(wide(like)), initial=0))
    if pair is None:
        return 500 * noise * max(1.0, largest)
    return 20 * distance(pair) + 10 * noise * max(largest, 1e-3)


def difference(actual, expected, allowed):
    """None, or in words how the two differ."""
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, not {list(expected.shape)}"
    if actual.dtype != expected.dtype:
        return f"dtype {actual.dtype}, not {expected.dtype}"
    if not is_float(actual):
        wrong = actual != expected
        gap = None
    else:
        a, b = wide(actual), wide(expected)
        with np.errstate(all="ignore"):
            gap = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
        wrong = ~(gap <= allowed)
    if not np.any(wrong):
        return None
    at = np.unravel_index(int(np.argmax(wrong if gap is None else np.nan_to_num(gap, nan=np.inf))),
                          actual.shape)
    place = [int(i) for i in at]
    return (f"{int(np.sum(wrong))} of {actual.size} elements differ, at {place} "
            f"{actual[at]} and not {expected[at]} (allowed {allowed:.3g})")


def ask_onnxruntime(data, names, feeds):
    """({name: array} or None, whether it calls the model or its inputs illegal)."""
    try:
        import onnxruntime
    except ImportError:
        return None, False
    if any(array.dtype.name == "bfloat16" for array in feeds.values()):
        return None, False
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    on_peer[0](True)
    try:
        session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        return dict(zip(names, session.run(names, feeds))), False
    except Exception as error:  # noqa: BLE001: of what it lacks it has no opinion
        return None, "NOT_IMPLEMENTED" not in str(error)
    finally:
        on_peer[0](False)


def run_onnxruntime(data, names, feeds):
    """{name: array}, or None where ONNX Runtime is missing or refuses the model."""
    return ask_onnxruntime(data, names, feeds)[0]


def is_disputed(model, pairs, name):
    """Tells whether ONNX Runtime and ONNX's evaluator differ on a node that this value hangs on.

    ONNX Runtime may refuse a model for one node of many; alone, each of the others has its say.
    """
    made = {out: node for node in model.graph.node for out in node.output if out}
    names, seen = [name], set()
    while names:
        node = made.get(names.pop())
        if node is None or node.output[0] in seen:
            continue
        seen.add(node.output[0])
        names += needs(node)
        outputs = [out for out in node.output if out]
        if any(n not in pairs for n in [*needs(node), *outputs]):
            return True
        feeds = {n: pairs[n][0] for n in needs(node)}
        single = make_model([node], feeds, outputs, ir_version=model.ir_version,
                            domains={each.domain: each.version for each in model.opset_import})
        theirs = run_onnxruntime(single.SerializeToString(), outputs, feeds)
        for out in outputs if theirs else []:
            value = pairs[out][0]
            allowed = 100 * NOISE.get(value.dtype.name, 0) * max(
                1.0, float(np.max(np.abs(wide(value)), initial=0)))
            if difference(np.asarray(theirs[out]).astype(value.dtype), value, allowed):
                return True
    return False


def run_reference(data, module, feeds):
    """{name: array} of all values by Heddle's reference interpreter."""
    with tempfile.NamedTemporaryFile(suffix=".onnx", delete=False) as file:
        file.write(data)
    try:
        inputs = [feeds[info.name] for info in module.inputs]
        return {**feeds, **{value: array for _, _, value, array in
                            heddle.reference(file.name, inputs)}}
    finally:
        os.unlink(file.name)


def refusal(stage, error):
    kinds = {heddle.RefusedError: "refused", heddle.UsageError: "usage",
             heddle.LimitError: "limit"}
    kind = kinds.get(type(error), "internal")
    return Outcome(f"{stage} {kind}", str(error))


def check_case(model, data, session, module, feeds):
    """Runs one case everywhere."""
    names = [output.name for output in model.graph.output]
    try:
        compiled = dict(zip(names, session.run(names, feeds)))
    except heddle.Error as error:
        return refusal("run", error)
    try:
        reference = run_reference(data, module, feeds)
    except heddle.Error as error:
        return refusal("reference", error)
    pairs = evaluate(model, feeds)
    oracles = {"onnx": {name: pair[0] for name, pair in pairs.items()}}
    theirs = run_onnxruntime(data, names, feeds)
    if theirs is not None:
        oracles["onnxruntime"] = theirs
    for name in names:
        if name in pairs and not is_stable(pairs[name]):
            continue
        outcome = check_output(name, compiled, reference, oracles, pairs)
        if outcome and outcome.kind == "oracle" and theirs is None and \
                is_disputed(model, pairs, name):
            continue
        if outcome:
            return outcome
    return None


def check_output(name, compiled, reference, oracles, pairs):
    if name not in reference:
        return Outcome("reference internal", f"the reference gives no '{name}'")
    allowed = tolerances(pairs, name, reference[name])
    verdicts = {}
    for oracle, values in oracles.items():
        if name in values:
            value = np.asarray(values[name])
            if oracle == "onnx" and value.dtype != reference[name].dtype:
                value = value.astype(reference[name].dtype)
            verdicts[oracle] = {
                "compiled": difference(compiled[name], value, allowed),
                "reference": difference(reference[name], value, allowed)}
    between = difference(compiled[name], reference[name], allowed)
    if between:
        right = [f"{oracle}: compiled {verdict['compiled'] or 'agrees'}; "
                 f"reference {verdict['reference'] or 'agrees'}"
                 for oracle, verdict in verdicts.items()]
        return Outcome("wrong", f"output '{name}': compiled and not reference: {between}\n" +
                       "\n".join(right))
    if verdicts and all(verdict["reference"] for verdict in verdicts.values()):
        texts = [f"{oracle}: {verdict['reference']}" for oracle, verdict in verdicts.items()]
        return Outcome("oracle", f"output '{name}': Heddle and not " + "\n".join(texts))
    return None


def check(model, cases, threads=1):
    """The Outcome of one model for all its cases."""
    data = model.SerializeToString()
    try:
        module = heddle.compile(data, cache=False)
    except heddle.Error as error:
        return refusal("compile", error)
    session = heddle.Session(module, threads=threads)
    for feeds in cases:
        outcome = check_case(model, data, session, module, feeds)
        if outcome:
            return outcome
    return Outcome(AGREES)
