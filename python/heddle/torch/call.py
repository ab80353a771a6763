"""call: a compiled graph as a function of torch's tensors. SPDX-License-Identifier: Apache-2.0"""

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ..compiler import compile as compile_model
from ..session import Session
from .fallback import tell_thawed


def state_of(tensor):
    """A pair that differs once the numbers of a tensor may be others."""
    return tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version


class Call:
    """A graph of AOTAutograd. `boxed` takes the list of its arguments and empties it, as AOT's
    convention has it. `weights` are arguments that stay the same from call to call, and so are
    bound to the session, or constants of the model if `freeze` says so."""

    def __init__(self, graph, weights, options, translate, freeze=False):
        self.graph, self.options, self.translate = graph, options, translate
        self.weights, self.frozen = weights, dict(weights) if freeze else {}
        self.states = [state_of(x) for x in self.frozen.values()]
        with unset_fake_temporarily():  # AOT traces with fake tensors; these here are real
            self._make(self.frozen)

        def boxed(args):
            return self(args)

        boxed._boxed_call = True
        self.boxed = boxed

    def _make(self, constants):
        model = self.model = self.translate(self.graph, constants, self.weights)
        options = {**self.options.compile, "typical": model.typical}
        self.names = [output.name for output in model.proto.graph.output]
        self.session = self.names and Session(compile_model(model.proto, **options),
                                              threads=options["threads"])
        bound = {name: i for name, i, _ in model.inputs
                 if i in self.weights and self.weights[i].is_contiguous()
                 and not self.weights[i].is_neg()}  # a copy would not hear of changes
        self.inputs = [each for each in model.inputs if each[0] not in bound]
        self.bound, self.places = [*bound], [*bound.values()]
        self.pointers = [None] * len(bound)

    def _thaw(self):
        """Compiles anew, with what was constant among the inputs."""
        tell_thawed()
        self.frozen, self.states = {}, []
        self._make({})

    def __call__(self, args):
        if self.frozen and [state_of(args[i]) for i in self.frozen] != self.states:
            self._thaw()
        if self.model.is_random:  # torch.manual_seed is heard, and each run has other numbers
            self.session.seed(int(torch.empty((), dtype=torch.int64).random_()))
        if self.places and self.names:
            self._bind(args)
        feeds = {name: args[i] if order is None else args[i].permute(order)
                 for name, i, order in self.inputs}
        found = self.session.run(self.names, feeds, tensors=torch.Tensor) if self.names else []
        results = [self._result(result, found, args) for result in self.model.results]
        args.clear()
        return results

    def _bind(self, args):
        """Binds weights whose memory is another one than in the last call."""
        given = [args[i] for i in self.places]
        pointers = [*map(torch.Tensor.data_ptr, given)]
        if pointers != self.pointers:
            self.session.bind(dict(zip(self.bound, given)))
            self.pointers = pointers

    @classmethod
    def _result(cls, result, found, args):
        kind, value = result[:2]
        if kind == "tensor":
            return found[value] if result[2] is None else found[value].permute(result[2])
        if kind in ("view", "view of input"):
            base = args[value] if kind == "view of input" else cls._result(value, found, args)
            sizes, strides, offset = result[2:]
            return base.as_strided(sizes, strides, base.storage_offset() + offset)
        if kind == "number":
            return found[value].item()
        return args[value] if kind == "input" else value
