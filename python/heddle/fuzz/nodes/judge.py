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

from ..check import (
    AGREES,
    GAP,
    Outcome,
    ask_onnxruntime,
    difference,
    refusal,
    run_reference,
    tolerances,
)
from ..evaluate import evaluate, is_stable
from . import guarded

# What must not reach a terminal; a newline stands between lines of Heddle's own.
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\x80-\x9f]")
BLAMES_ITSELF = re.compile("internal error|is damaged|code does not link")


def is_numeric(value):
    return isinstance(value, np.ndarray) and value.dtype.kind not in "OSUT"


def gap_between(pairs, name, actual, expected):
    """None, or how two engines' values of an output differ; sequences and strings too."""
    if is_numeric(actual) and is_numeric(expected):
        return difference(actual, expected, tolerances(pairs, name, expected))
    if isinstance(actual, list) and isinstance(expected, list):
        if len(actual) != len(expected):
            return f"{len(actual)} tensors, not {len(expected)}"
        gaps = [gap_between({}, name, np.asarray(a), np.asarray(e))
                for a, e in zip(actual, expected)]
        return next((gap for gap in gaps if gap), None)
    actual, expected = np.asarray(actual, object), np.asarray(expected, object)
    if actual.shape != expected.shape:
        return f"shape {list(actual.shape)}, not {list(expected.shape)}"
    return None if actual.tolist() == expected.tolist() else f"{actual} and not {expected}"


def refused(model, data, feeds, stage, error):
    """The Outcome of a refusal."""
    text = str(error)
    if isinstance(error, heddle.InternalError):
        return refusal(stage, error)
    if BLAMES_ITSELF.search(text) or CONTROL.search(text):
        return Outcome("bad message", text)
    names = [output.name for output in model.graph.output]
    theirs, _ = ask_onnxruntime(data, names, feeds)
    if theirs is None:
        return Outcome(AGREES)
    pairs = evaluate(model, feeds)
    if any(name in pairs and gap_between(pairs, name, theirs[name], pairs[name][0])
           for name in names):
        return Outcome(AGREES)
    return Outcome(GAP, text)


def compare(model, data, module, feeds, compiled):
    """What Heddle computed, {name: value}, against everybody else; None where all is well."""
    pairs = evaluate(model, feeds)
    theirs, is_illegal = ask_onnxruntime(data, list(compiled), feeds)
    reference = {}
    if all(map(is_numeric, [*feeds.values(), *compiled.values()])):
        try:
            reference = run_reference(data, module, feeds)
        except heddle.Error as error:
            return refusal("reference", error)
    for name, value in compiled.items():
        if name in reference and (gap := gap_between(pairs, name, value, reference[name])):
            return Outcome("wrong", f"output '{name}': compiled and not reference: {gap}")
        if name in pairs and not is_stable(pairs[name]) and is_numeric(value):
            continue
        gaps = {}
        if theirs is not None:
            gaps["onnxruntime"] = gap_between(pairs, name, value, theirs[name])
        if name in pairs and not is_illegal:
            expected = pairs[name][0]
            if is_numeric(value) and is_numeric(expected):
                expected = expected.astype(value.dtype)
            gaps["onnx"] = gap_between(pairs, name, value, expected)
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
