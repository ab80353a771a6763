"""export: a module of torch as an ONNX model, an artefact, or a step of training.

SPDX-License-Identifier: Apache-2.0
"""

import torch
from torch.export.graph_signature import InputKind, OutputKind

from .. import compiler, training
from ..library import RefusedError, UsageError
from . import decompositions
from .fallback import text_of, unsupported
from .ops import BUILDERS
from .translate import Refused, Translator

HELD = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def to_onnx(module, example_inputs, kwargs=None, *, dynamic_shapes=None):
    """The onnx.ModelProto of a module, by torch.export: weights have the names of the module's,
    inputs those of `forward`, and sizes those of `dynamic_shapes`, {"x": {0: Dim("batch")}}."""
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"a torch.nn.Module is needed, but this is a {type(module).__name__}")
    example_inputs = tuple(example_inputs)
    if reason := unsupported(torch.utils._pytree.tree_leaves((example_inputs, kwargs or {}))):
        raise RefusedError(reason)
    with torch.no_grad():
        program = torch.export.export(module, example_inputs, kwargs, dynamic_shapes=dynamic_shapes)
        program = program.run_decompositions(decompositions.table())
    graph_module = program.graph_module
    try:
        translator = Translator(graph_module, *_held(program))
        translator.sizes.names = _names_of_sizes(graph_module, dynamic_shapes)
        model = translator.model(BUILDERS)
    except Refused as error:
        raise RefusedError(f"heddle cannot compile the module: "
                           f"{text_of(error, graph_module.graph)}") from error
    if not all(result[0] in ("tensor", "number") for result in model.results):
        raise RefusedError("a result of the module is one of its inputs, or no tensor at all")
    return model.proto


def export(module, example_inputs, kwargs=None, *, dynamic_shapes=None, output=None, **options):
    """Compiles a module by torch.export, with its weights as constants: a heddle.Module, or, with
    `output`, that of the artefact that is written there. `options` are those of heddle.compile."""
    proto = to_onnx(module, example_inputs, kwargs, dynamic_shapes=dynamic_shapes)
    return compiler.compile(proto, output=output, **options)


class Trainer(training.Trainer):
    """heddle.training.Trainer of a module: a step is one artefact, with the loss, the derivatives
    and the update of all parameters that ask for gradients.

        trainer = Trainer(module, (x,), loss="cross_entropy", optimizer="adamw")
        trainer.step({"x": x, "labels": classes})
        trainer.write_back()        # into the module
    """

    def __init__(self, module, example_inputs, loss="cross_entropy", *, kwargs=None,
                 dynamic_shapes=None, **options):
        was_training = module.training
        module.eval()  # a normalisation stays one op, whose statistics the step follows
        try:
            model = to_onnx(module, example_inputs, kwargs, dynamic_shapes=dynamic_shapes)
        finally:
            module.train(was_training)
        options.setdefault("trainable", [name for name, value in module.named_parameters()
                                         if value.requires_grad])
        self.module = module
        super().__init__(model, loss, **options)

    def write_back(self):
        """Copies the weights and running statistics into the module."""
        own = self.module.state_dict()
        with torch.no_grad():
            for name, array in self.weights.items():
                own[name].copy_(torch.from_numpy(array))


def _held(program):
    """Constants by the number of their placeholder, and their names by its name."""
    constants, names = {}, {}
    for number, spec in enumerate(program.graph_signature.input_specs):
        if spec.kind in HELD:
            constants[number] = program.state_dict.get(spec.target)
            if constants[number] is None:
                constants[number] = program.constants[spec.target]
            names[spec.arg.name] = spec.target
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise Refused(f"the module changes '{spec.target}' in each call; module.eval() may "
                          "end that")
    return constants, names


def _names_of_sizes(graph_module, dynamic_shapes):
    """{symbol of torch: name of the Dim} of inputs that are tensors."""
    if not isinstance(dynamic_shapes, dict):
        inputs = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
        given = list(dynamic_shapes or ())
        shapes = dict(zip((node.name for node in inputs[len(inputs) - len(given):]), given))
    else:
        shapes = dynamic_shapes
    found = {}
    for node in graph_module.graph.nodes:
        spec = shapes.get(node.name) if node.op == "placeholder" else None
        for axis, dim in (spec.items() if isinstance(spec, dict) else enumerate(spec or ())):
            size = node.meta["val"].shape[axis]
            if isinstance(size, torch.SymInt) and isinstance(dim, torch.export.Dim):
                found[str(size)] = dim.__name__
    return found
