"""gradients: random models that are differentiated, and steps of their training.

A model is drawn with all floats as f64 where its ops allow that. Of its one output, weighed by
random numbers, the derivative with respect to each float input and initializer is compiled, in f64
and in f32, and compared with the interpreter. A judge that knows nothing of derivatives is ONNX's
evaluator: along a random direction d of each variable (f(x + h d) - f(x - h d)) / 2h must be the
derivative times d. Three steps h have to give one number, else there is a corner or a jump between,
or rounding of f32, and nothing is said. A step of training is compared with the interpreter alone.
SPDX-License-Identifier: Apache-2.0
"""

import re
import tempfile
import warnings
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import heddle

from .check import AGREES, GAP, Outcome, difference, refusal
from .evaluate import NOISE, SINGLE, Rejected, is_float, on_peer, wide
from .evaluator_ops import OPS
from .generate import add_ops, begin, outputs_of
from .graph import FLOATS, Graph, make_rng, number_of

STEPS = (2.11e-4, 1.27e-4, 5.3e-5)  # no multiples of each other, as roundings to f32 are
JITTER = 0.01  # moves values away from corners, where many of those that are drawn would be
REFUSAL = re.compile(r"op '(?:graph\.)?(\w+)' of '[^']*' (?:has no derivative: (?!op )|lies )")
UNTRAINED = "does not depend on any weight"
EPSILON = float(np.finfo(np.float32).eps)
VARIABLES = (TensorProto.DOUBLE, TensorProto.FLOAT)


class DoubleGraph(Graph):
    """Draws f64 where an op allows it, and floats more often than other dtypes."""

    def dtype(self, allowed=None):
        drawn = "float64" if allowed is None and self.chance(0.5) else super().dtype(allowed)
        is_double = drawn in FLOATS and (allowed is None or "float64" in allowed)
        return "float64" if is_double else drawn


def joined(g, tensors):
    """The sum of all elements of these, each times another number."""
    sums = []
    for tensor in tensors:
        weights = g.fresh(tensor.dtype, tensor.dims, constant=0.8)
        sums.append(g.emit("ReduceSum", [g.emit("Mul", [tensor, weights])], keepdims=0))
    return sums[0] if len(sums) == 1 else g.emit("Sum", sums)


def generate(seed, index, ops=(3, 12), only=None):
    """(model, cases), as the generator of whole models, with one output of a float dtype."""
    g = begin(make_rng(seed, index), DoubleGraph)
    add_ops(g, g.rng.randint(*ops), only)
    last = [tensor for tensor in outputs_of(g) if tensor.dtype == "float64"]
    if not last:
        last = [g.emit("Identity", [g.input("float64", g.dims())])]
    before = len(g.nodes), set(g.tensors)
    output = last[-1]
    if len(last) > 1 and g.chance(0.7):
        try:
            output = joined(g, last)
        except Rejected:
            del g.nodes[before[0]:]
            g.tensors = {name: g.tensors[name] for name in before[1]}
    return g.model([output])


# --- a model in f64 and in f32

def tensors_of(graph):
    """All tensors that a graph and its subgraphs hold as constants."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            if attribute.HasField("g"):
                yield from tensors_of(attribute.g)


def graphs_of(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs_of(attribute.g)


def is_single(model):
    """Tells whether anything is computed in less than f64, so that f64 shows roundings of f32."""
    model = onnx.shape_inference.infer_shapes(model)
    types = {value.type.tensor_type.elem_type for graph in graphs_of(model.graph)
             for value in (*graph.input, *graph.output, *graph.value_info)}
    types |= {tensor.data_type for tensor in tensors_of(model.graph)}
    return bool(types & {TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16}) or any(
        node.op_type in SINGLE for graph in graphs_of(model.graph) for node in graph.node)


def narrowed(model):
    """The model with f32 in place of f64."""
    model = onnx.load_from_string(model.SerializeToString())
    for tensor in tensors_of(model.graph):
        if tensor.data_type == TensorProto.DOUBLE:
            array = numpy_helper.to_array(tensor).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for graph in graphs_of(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type == TensorProto.DOUBLE:
                value.type.tensor_type.elem_type = TensorProto.FLOAT
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.name in ("to", "dtype") and attribute.i == TensorProto.DOUBLE:
                    attribute.i = TensorProto.FLOAT
    return model


def narrow(array):
    return array.astype(np.float32) if array.dtype == np.float64 else array


def random_of(name, salt=0):
    return np.random.default_rng(zlib.crc32(f"{name}/{salt}".encode()))


def is_variable(array):
    return array.dtype in (np.float64, np.float32)


def moved(name, array, salt):
    """Away from corners, to numbers that f32 has as well."""
    if not is_variable(array) or array.size == 0:
        return array
    random = random_of(name, salt).uniform(-JITTER, JITTER, array.shape)
    return np.asarray(array + random).astype(np.float32).astype(array.dtype)


class Subject:
    """A model at one point: its float initializers are moved by a little, as its inputs are."""

    def __init__(self, model, salt):
        self.salt, self.weights, self.is_rounded = salt, {}, is_single(model)
        self.model = onnx.load_from_string(model.SerializeToString())
        sizes = {name for graph in graphs_of(model.graph) for node in graph.node
                 for name in node.input[1:] if node.op_type == "Resize"}
        for tensor in self.model.graph.initializer:
            array = moved(tensor.name, numpy_helper.to_array(tensor), salt)
            if is_variable(array) and array.ndim and tensor.name not in sizes:
                tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
                self.weights[tensor.name] = array
        self.output = self.model.graph.output[0].name
        read = {name for graph in graphs_of(self.model.graph) for node in graph.node
                for name in node.input}
        inputs = [value.name for value in self.model.graph.input
                  if value.type.tensor_type.elem_type in VARIABLES]
        self.variables = [name for name in dict.fromkeys([*inputs, *self.weights]) if name in read]
        self.open = self.opened()

    def values(self, feeds):
        """All that a run takes and that can be moved."""
        return {**{name: moved(name, array, self.salt) for name, array in feeds.items()},
                **self.weights}

    def opened(self):
        """ONNX's evaluator of the model with its weights as inputs."""
        model = onnx.load_from_string(self.model.SerializeToString())
        kept = [t for t in model.graph.initializer if t.name not in self.weights]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        known = {value.name for value in model.graph.input}
        model.graph.input.extend(
            helper.make_tensor_value_info(name, number_of(array.dtype.name), array.shape)
            for name, array in self.weights.items() if name not in known)
        self.names = [value.name for value in model.graph.input]
        return ReferenceEvaluator(model, new_ops=OPS)

    def evaluate(self, values):
        """The output by ONNX's evaluator, or None where it has no opinion."""
        on_peer[0](True)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                feeds = {name: values[name] for name in self.names}
                found = np.asarray(self.open.run(None, feeds)[0])
            return found if np.all(np.isfinite(wide(found))) else None
        except Exception:  # noqa: BLE001: the evaluator has gaps
            return None
        finally:
            on_peer[0](False)

    @property
    def recipe(self):
        """The recipe of the model's derivative."""
        return {"phase": "derivative", "output": self.output, "variables": self.variables}

    def points(self, cases):
        """(values, y) of the cases for which ONNX's evaluator has an output y."""
        for feeds in cases:
            values = self.values(feeds)
            y = self.evaluate(values)
            if y is not None:
                yield values, y

    def slope(self, values, name, seed):
        """(d, (f(x + h d) - f(x - h d)) / 2h, its error) for a random direction d, or None: the
        evaluator has no opinion, or three steps h do not agree."""
        x, found, most = wide(values[name]), [], 0.0
        direction = random_of(name).standard_normal(x.shape)
        for step in STEPS:
            sides = [self.evaluate({**values, name: np.asarray(x + side * direction).astype(
                values[name].dtype)}) for side in (step, -step)]
            if any(y is None or y.shape != seed.shape for y in sides):
                return None
            most = max(most, float(np.sum(np.abs(seed * sides[0]))))
            found.append(float(np.sum(seed * (wide(sides[0]) - wide(sides[1])))) / (2 * step))
        if self.is_rounded and not any(found):  # f32 does not show less than this
            return direction, 0.0, EPSILON * most / min(STEPS)
        error = 20 * float(np.ptp(found)) + NOISE["float64"] * most + 1e-6 * abs(found[-1])
        is_clear = error <= 1e-2 * abs(found[-1]) + 1e-4 * most
        return (direction, found[-1], error) if is_clear else None


# --- engines

class Compiled:
    """A model compiled with a recipe, run by both engines of Heddle."""

    def __init__(self, model, recipe, threads):
        self.data, self.recipe = model.SerializeToString(), recipe
        self.module = heddle.compile(self.data, cache=False, training=recipe)
        self.session = heddle.Session(self.module, threads=threads)
        self.feeds = [value.name for value in self.module.inputs]

    def run(self, values):
        """({name: array} of what was compiled, the same of the interpreter)."""
        feeds = {name: values[name] for name in self.feeds}
        names = [value.name for value in self.module.outputs]
        compiled = dict(zip(names, self.session.run(names, feeds)))
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(self.data)
            file.flush()
            rows = heddle.reference(file.name, list(feeds.values()), training=self.recipe)
        return compiled, {value: array for _, op, value, array in rows if op == "output"}


def compare(found, is_rounded):
    """An Outcome where the engines differ; `found` is ((compiled, reference) in f64, in f32)."""
    (compiled, reference), (compiled_f32, reference_f32) = found
    for name, array in reference.items():
        if not is_float(array) or reference_f32[name].shape != array.shape:
            continue
        values, rounded = wide(array), wide(reference_f32[name])
        if not np.all(np.isfinite(values)) or not np.all(np.isfinite(rounded)):
            continue
        largest = float(np.max(np.abs(values), initial=1e-3))
        rounding = float(np.max(np.abs(values - rounded), initial=0))
        allowed = 20 * rounding + 30 * NOISE["float32"] * largest
        wrong = difference(compiled[name], array, allowed if is_rounded else 1e-4 * allowed)
        if not wrong and rounding < 0.02 * largest:
            wrong = difference(compiled_f32[name], reference_f32[name], allowed)
        if wrong:
            return Outcome("wrong", f"'{name}': compiled and not reference: {wrong}")
    return None


def compare_slopes(subject, values, seed, reference, is_rounded):
    """(an Outcome where a derivative is not the limit of differences, how many could be judged)."""
    held = 0
    for name in subject.variables:
        found = subject.slope(values, name, seed)
        derivative = wide(reference[f"grad.{name}"])
        if found is None:
            continue
        direction, expected, error = found
        if not np.all(np.isfinite(derivative)):
            return Outcome("oracle", f"'grad.{name}' has elements that are no numbers, but along a "
                           f"direction differences give {expected:.9g}"), held
        actual, flow = float(np.sum(derivative * direction)), np.abs(derivative * direction)
        error += NOISE["float32" if is_rounded else "float64"] * float(np.sum(flow))
        held += 1
        if abs(actual - expected) > error:
            return Outcome("oracle", f"'grad.{name}': along a direction {actual:.9g}, but by "
                           f"differences {expected:.9g} (allowed {error:.3g})"), held
    return None, held


def step_of(subject):
    """(the model with one number as output, the recipe of a step that trains it)."""
    model = onnx.load_from_string(subject.model.SerializeToString())
    graph, names = model.graph, [f"{subject.output}.square", f"{subject.output}.loss"]
    graph.node.append(helper.make_node("Mul", [subject.output] * 2, names[:1], names[0]))
    graph.node.append(helper.make_node("ReduceMean", names[:1], names[1:], names[1], keepdims=0))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(names[1], TensorProto.DOUBLE, []))
    kind = ("sgd", "momentum")[zlib.crc32(names[0].encode()) % 2]
    return model, {"loss": "output", "output": names[1], "optimizer": kind, "dropout": False}


def state_of(feeds, values):
    """Inputs of a step besides the model's: numbers, and a state that begins with 0."""
    rate = {"train.learning_rate": np.float32(0.1), "train.step": np.int64(0)}
    return {**rate, **{name: np.zeros_like(values[name.partition("/")[0]])
                       for name in feeds if "/" in name}}


def seed_of(y, is_asked):
    """Weights of the output's elements, numbers of f32; ones if none are asked for."""
    if not is_asked:
        return np.ones_like(y)
    return random_of("seed").standard_normal(y.shape).astype(np.float32).astype(y.dtype)


def outcome_of(error):
    """Outcome of a refusal: an op without a derivative is named, and no finding."""
    text = str(error)
    named = REFUSAL.search(text)
    if isinstance(error, heddle.RefusedError) and named:
        return Outcome(GAP, f"{named[1]} has no derivative: {text}")
    return refusal("compile", error)


def judge_at(model, cases, threads, salt):
    subject = Subject(model, salt)
    if not subject.variables or model.graph.output[0].type.tensor_type.elem_type not in VARIABLES:
        return Outcome(AGREES)
    is_rounded = is_single(model)
    jobs, held = [(subject.model, subject.recipe)], 0
    if subject.weights:
        jobs.append(step_of(subject))
    for network, recipe in jobs:
        try:
            pair = [Compiled(each, recipe, threads) for each in (network, narrowed(network))]
        except heddle.Error as error:
            if UNTRAINED in str(error):
                continue
            return outcome_of(error)
        for values, y in subject.points(cases):
            seed = seed_of(y, f"grad.{subject.output}" in pair[0].feeds)
            values[f"grad.{subject.output}"] = seed
            values.update(state_of(pair[0].feeds, values))
            try:
                found = [pair[0].run(values),
                         pair[1].run({name: narrow(array) for name, array in values.items()})]
            except heddle.Error as error:
                return refusal("run", error)
            outcome = compare(found, is_rounded)
            if not outcome and network is subject.model:
                reference = found[0][1]
                if difference(wide(reference[subject.output]), wide(y), 1e-6 * np.max(
                        np.abs(y), initial=1.0)):
                    continue  # of models as they are others are the judges
                outcome, more = compare_slopes(subject, values, seed, reference, is_rounded)
                held += more
            if outcome:
                return outcome
    return Outcome(AGREES, held=held)


def judge_twice(judge_at, model, cases, threads):
    """The Outcome of one model for all its cases. What is wrong must be so at two points: at a
    corner rounding decides."""
    outcome = judge_at(model, cases, threads, 0)
    if outcome.kind not in ("wrong", "oracle"):
        return outcome
    again = judge_at(model, cases, threads, 1)
    return outcome if again.is_finding else again


def judge(model, cases, threads=1):
    return judge_twice(judge_at, model, cases, threads)
