"""dynamo: torch.compile's backend "heddle".

Dynamo's graph goes through AOTAutograd, which makes graphs of functional ATen ops: one of
inference, or a forward and a backward. Each is translated to ONNX and compiled, and becomes a
function of torch's tensors. SPDX-License-Identifier: Apache-2.0
"""

import contextlib
import dataclasses

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._guards import TracingContext
from torch.nn.attention import SDPBackend, sdpa_kernel

from .. import compiler
from ..library import Error, UsageError
from . import decompositions, fallback
from .call import Call
from .ops import BUILDERS
from .translate import Refused, Translator

OURS = {"fallback": "warn", "freeze": False}
NOT_HERE = {"model", "output", "load", "training", "in_place", "shapes", "typical", "ragged",
            "ragged_outputs", "functions"}
FROZEN_BYTES = 1900 << 20  # a protobuf ends at 2 GB


@dataclasses.dataclass(frozen=True)
class Options:
    freeze: bool
    fallback: str
    compile: dict  # those of heddle.compile

    @classmethod
    def of(cls, given):
        """The options of torch.compile, each refused by name if there is none such."""
        given = dict(given or {})
        ours = {name: given.pop(name, default) for name, default in OURS.items()}
        for name in given:
            if name in NOT_HERE:
                raise UsageError(f"the option '{name}' of heddle.compile is not one of "
                                 "torch.compile's")
        try:
            compiler.check(OURS, **given)
        except TypeError as error:
            raise UsageError(str(error)) from error
        if ours["fallback"] not in fallback.CHOICES:
            raise UsageError(f"`fallback` is {ours['fallback']!r}, but must be one of "
                             f"{', '.join(fallback.CHOICES)}")
        if not isinstance(ours["freeze"], bool):
            raise UsageError(f"`freeze` is {ours['freeze']!r}, but must be True or False")
        given.setdefault("threads", torch.get_num_threads())
        return cls(compile=given, **ours)


def backend(graph_module, example_inputs, options=None, **others):
    """torch.compile's backend: `options` are `freeze`, `fallback`, and those of heddle.compile."""
    if others:
        raise UsageError(f"torch.compile's {', '.join(map(repr, others))} is not supported by the "
                         "backend 'heddle'")
    options = Options.of(options)
    if reason := fallback.unsupported(example_inputs):
        return _refused(options, graph_module, reason)
    graphs = Graphs(graph_module, example_inputs, options)
    # The fused attention's derivative has no decomposition; what is trained has a plain one.
    trained = torch.is_grad_enabled() and any(
        isinstance(x, torch.Tensor) and x.requires_grad for x in example_inputs)
    with sdpa_kernel(SDPBackend.MATH) if trained else contextlib.nullcontext():
        return aot_autograd(
            fw_compiler=graphs.compile_forward, bw_compiler=graphs.compile,
            inference_compiler=graphs.compile_inference, decompositions=decompositions.table(),
            keep_inference_input_mutations=False)(graph_module, example_inputs)


def _refused(options, graph_module, text):
    if options.fallback == "raise":
        raise UsageError(f"heddle cannot compile a graph: {text}")
    if options.fallback == "warn":
        fallback.tell(text)
    return graph_module.forward


class Graphs:
    """The graphs that AOTAutograd makes of one of Dynamo's."""

    def __init__(self, graph_module, example_inputs, options):
        self.options = options
        placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        self.held = {node.name: value for node, value in zip(placeholders, example_inputs)
                     if isinstance(value, torch.Tensor) and is_state(node, value)}
        self.names = [node.name for node in placeholders]

    def compile(self, graph_module, example_inputs):
        return self._compile(graph_module, example_inputs, {})

    def compile_forward(self, graph_module, example_inputs):
        return self._compile(graph_module, example_inputs, self._weights())

    def compile_inference(self, graph_module, example_inputs):
        return self._compile(graph_module, example_inputs, self._weights(), self.options.freeze)

    def _weights(self):
        """{number of an argument: tensor} of what stays from call to call: parameters and buffers
        that the graph does not change."""
        about = TracingContext.get().fw_metadata
        changed = {i for i, info in enumerate(about.input_info) if info.mutates_data}
        return {i: self.held[self.names[i]] for i in about.static_input_indices
                if i < len(self.names) and self.names[i] in self.held and i not in changed}

    def _compile(self, graph_module, example_inputs, weights, freeze=False):
        try:
            if reason := fallback.unsupported(example_inputs):
                raise Refused(reason)
            return Call(graph_module, weights, self.options, translate, freeze).boxed
        except (Refused, Error) as error:
            text = fallback.text_of(error, graph_module.graph)
            return make_boxed_func(_refused(self.options, graph_module, text))


def is_state(node, value):
    kind = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
    return bool(kind) or isinstance(value, torch.nn.Parameter)


def translate(graph_module, constants, held=()):
    """The Model of a graph, in which arguments of these numbers are constants, and results may be
    views of those that are `held`."""
    if sum(x.nbytes for x in constants.values()) > FROZEN_BYTES:
        raise Refused("the weights are more than an ONNX model holds; leave out 'freeze'")
    return Translator(graph_module, constants, is_stored=True, held=held).model(BUILDERS)
