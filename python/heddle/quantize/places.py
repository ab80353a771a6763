"""places: which ops work on integers, and which tensors therefore are quantised.

A layer is a product with a constant weight (or, by option, of two activations). Ops between layers
carry integers on: they are quantised if all that they read comes from quantised ops, and a
quantised op reads them. Ops that move or choose elements have one scale for what they read and
make. A Relu or Clip after a layer or a sum belongs to it: the range is that of its result.
SPDX-License-Identifier: Apache-2.0
"""

import fnmatch
from dataclasses import dataclass

import numpy as np

from ..library import UsageError
from .graph import attribute, key_of, label
from .settings import LAYERS, PRODUCTS, TABLES

MOVES = ("MaxPool", "Concat", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice",
         "Identity", "DepthToSpace", "SpaceToDepth", "Expand", "Tile", "Pad", "Resize", "Split")
SUMS = ("Add", "Mul", "AveragePool", "GlobalAveragePool")  # with a scale of their own
BOUNDS = ("Relu", "Clip")
OPS = LAYERS + MOVES + SUMS + BOUNDS


@dataclass(frozen=True)
class Layer:
    """A product: its node's key, names of its operands, and the axis of the weight along which
    output channels lie (None: no scale for each)."""

    key: str
    kind: str
    x: str
    weight: str
    axis: int | None
    bias: str
    constant: bool  # whether the weight is


def _layer(network, node, settings):
    """The layer that a node is, or a text that says why it is none."""
    if node.op_type in TABLES:
        return _table(network, node)
    x, weight = node.input[:2]
    bias = node.input[2] if len(node.input) > 2 else ""
    tensor = network.tensors.get(weight)
    if not network.is_float(x):
        return f"'{x}' is not known to be float32"
    if x in network.tensors:
        return "its first operand is a constant"
    if tensor is None:
        if node.op_type != "MatMul":
            return f"its weight '{weight}' is not constant"
        if settings.weights is not None:
            return "it has no constant operand"
        if not settings.products:
            return "it has no constant operand; --products quantises such ones, too"
        is_float = network.is_float(weight)
        return (Layer(key_of(node), node.op_type, x, weight, None, "", False) if is_float
                else f"'{weight}' is not known to be float32")
    if not network.is_float(weight):
        return f"its weight '{weight}' is not of float32"
    if len(tensor.dims) < 2:
        return f"its weight '{weight}' has less than two dimensions"
    if settings.weights is not None and len(tensor.dims) > 2:
        return f"its weight '{weight}' has more than two dimensions"
    if node.op_type == "Gemm" and attribute(node, "transA", 0):
        return "it transposes its first operand"
    axis = {"Conv": 0, "ConvTranspose": 1 if attribute(node, "group", 1) == 1 else None,
            "MatMul": 1 if len(tensor.dims) == 2 else None,
            "Gemm": 0 if attribute(node, "transB", 0) else 1}[node.op_type]
    return Layer(key_of(node), node.op_type, x, weight, axis, bias, True)


def _table(network, node):
    """The layer that a choice of rows of a table is, or a text that says why it is none."""
    name, indices = node.input
    tensor = network.tensors.get(name)
    if tensor is None or not network.is_float(name):
        return f"its table '{name}' is no constant of float32"
    if len(tensor.dims) != 2 or attribute(node, "axis", 0) != 0:
        return f"it does not choose rows of a matrix, '{name}'"
    return Layer(key_of(node), node.op_type, indices, name, 0, "", True)


def _why_table(network, node, settings):
    """Why a table stays in f32."""
    size = 4 * int(np.prod(network.tensors[node.input[0]].dims))
    how = ("--ops Gather --ops MatMul --ops Gemm rounds it, too" if settings.weights is not None
           else "--weights rounds tables")
    return f"it chooses from a table of {size} bytes; {how}"


def _matches(node, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns
               for name in (node.name, key_of(node)))


def _check_names(network, settings):
    allowed = OPS if settings.weights is None else PRODUCTS + TABLES
    known = [node for node in network.nodes if node.op_type in allowed]
    for flag, patterns in (("keep", settings.keep), ("only", settings.only)):
        for pattern in patterns:
            if not any(_matches(node, [pattern]) for node in known):
                names = [label(node) for node in known if node.op_type in settings.kinds]
                more = ", ..." if names[8:] else ""
                raise UsageError(f"--{flag} {pattern}: no layer of '{network.name}' has that name; "
                                 f"there are {', '.join(names[:8])}{more}")
    for kind in settings.ops:
        if kind not in allowed:
            raise UsageError(f"--ops {kind}: is not an op that is quantised; these are "
                             f"{', '.join(allowed)}")


def find_layers(network, settings):
    """({key: Layer}, {key: why the node is left in f32}) of all products of the main graph."""
    _check_names(network, settings)
    layers, left = {}, {}
    for node in network.nodes:
        if node.domain not in ("", "ai.onnx"):
            continue
        if node.op_type not in settings.kinds:
            if node.op_type in TABLES and isinstance(_table(network, node), Layer):
                left[key_of(node)] = _why_table(network, node, settings)
            continue
        found = _layer(network, node, settings)
        if settings.ops and node.op_type not in settings.ops:
            found = "--ops leaves it out"
        elif settings.only and not _matches(node, settings.only):
            found = "--only leaves it out"
        elif _matches(node, settings.keep):
            found = "--keep says so"
        if isinstance(found, str):
            left[key_of(node)] = found
        else:
            layers[found.key] = found
    return layers, left


class Places:
    """The quantised ops, for a choice of layers."""

    def __init__(self, network, layers, settings):
        self.network, self.settings, self.layers = network, settings, layers
        self._by_key = {key_of(node): node for node in network.nodes}
        self.ops = {**{key: self._by_key[key] for key in layers}}
        self._carry()
        self.pairs = list(dict.fromkeys(name for key in self.ops for name in self.reads(key)))
        self.groups = self._groups()

    def reads(self, key):
        """The activations that a quantised op reads."""
        if key in self.layers:
            layer = self.layers[key]
            return [layer.x] if layer.constant else [layer.x, layer.weight]
        node = self._by_key[key]
        return list(node.input) if node.op_type in ("Concat", "Add", "Mul") else [node.input[0]]

    def result(self, name):
        """The tensor that carries on what an op makes: after a Relu or Clip that belongs to it."""
        node, reader = self.network.producer[name], self.network.only_consumer(name)
        belongs = (reader is not None and reader.op_type in BOUNDS and reader.input[0] == name
                   and node.op_type in LAYERS + SUMS)
        return reader.output[0] if belongs else name

    def _carry(self):
        """Adds the ops between layers: first all, then without those that do not belong."""
        network = self.network
        found = {key_of(node): node for node in network.nodes if self._may_carry(node)}
        while True:
            keys = {**self.ops, **found}
            made = {self.result(name) for key in keys for name in self._by_key[key].output
                    if name in network.producer}
            read = {name for key in keys for name in self.reads(key)}
            wrong = [key for key, node in found.items()
                     if not all(name in made for name in self.reads(key))
                     or not any(self.result(name) in read for name in node.output)]
            if not wrong:
                break
            for key in wrong:
                del found[key]
        order = {key_of(node): place for place, node in enumerate(network.nodes)}
        self.ops = dict(sorted({**self.ops, **found}.items(), key=lambda each: order[each[0]]))

    def _may_carry(self, node):
        settings, kind = self.settings, node.op_type
        if kind not in MOVES + SUMS + BOUNDS or node.domain not in ("", "ai.onnx"):
            return False
        if (settings.ops and kind not in settings.ops) or _matches(node, settings.keep):
            return False
        if kind == "Pad" and (attribute(node, "mode", b"constant") == b"constant"
                              and self._is_padded_with_more(node)):
            return False
        if kind == "Resize" and attribute(node, "mode", b"nearest") != b"nearest":
            return False
        if kind == "MaxPool" and len(node.output) > 1:
            return False
        if kind in BOUNDS and node.input[0] in self.network.producer and (
                self.result(node.input[0]) == node.output[0]):
            return False
        reads = self.reads(key_of(node))
        return all(name and name not in self.network.tensors and self.network.is_float(name)
                   for name in reads)

    def _is_padded_with_more(self, node):
        """True if a Pad may write another number than 0."""
        if len(node.input) < 3 or not node.input[2]:
            return False
        value = self.network.array(node.input[2])
        return value is None or bool(value.any())

    def _groups(self):
        """{tensor: tensors of the same scale}, for all that are quantised."""
        groups = {name: [name] for name in self.pairs}
        for key, node in self.ops.items():
            if node.op_type not in MOVES:
                continue
            together = [name for name in [*self.reads(key), *node.output] if name in groups]
            merged = list(dict.fromkeys(each for name in together for each in groups[name]))
            for name in merged:
                groups[name] = merged
        return groups

    def observed(self):
        """The tensors whose values have to be seen: others are parts of them."""
        moved = {name for node in self.ops.values() if node.op_type in MOVES
                 for name in node.output if node.op_type != "Concat"}
        return [name for name in self.pairs if name not in moved]

    def ranges(self, found):
        """{tensor: (low, high)} of those that were found for the observed ones."""
        ranges = {}
        for name, group in self.groups.items():
            bounds = [found[each] for each in group if each in found]
            ranges[name] = min(low for low, _ in bounds), max(high for _, high in bounds)
        return ranges
