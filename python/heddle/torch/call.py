"""call: a compiled graph as a function of torch's tensors. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
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
    convention has it. `weights` are arguments that stay the same from call to call: constants of
    the model if the option `freeze` says so."""

    def __init__(self, graph, weights, options, translate):
        self.graph, self.options, self.translate = graph, options, translate
        self.frozen = dict(weights) if options.freeze else {}
        self.states = [state_of(x) for x in self.frozen.values()]
        with unset_fake_temporarily():  # AOT traces with fake tensors; these here are real
            self._make(self.frozen)

        def boxed(args):
            return self(args)

        boxed._boxed_call = True
        self.boxed = boxed

    def _make(self, constants):
        model = self.model = self.translate(self.graph, constants)
        options = {**self.options.compile, "typical": model.typical}
        self.names = [output.name for output in model.proto.graph.output]
        self.session = self.names and Session(compile_model(model.proto, **options),
                                              threads=options["threads"])

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
        feeds = {name: fed(args[i]) for name, i in self.model.inputs}
        found = self.session.run(self.names, feeds, tensors=True) if self.names else []
        results = [self._result(result, found, args) for result in self.model.results]
        args.clear()
        return results

    @staticmethod
    def _result(result, found, args):
        kind, value = result[:2]
        if kind == "tensor":
            tensor = torch.from_dlpack(found[value])
            return tensor if result[2] is None else tensor.permute(result[2])
        if kind == "number":
            return found[value].numpy().item()
        return args[value] if kind == "input" else value


def fed(value):
    if isinstance(value, torch.Tensor):
        return value.detach() if value.requires_grad else value
    return np.asarray(value, np.int64)
