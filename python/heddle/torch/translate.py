"""translate: an FX graph of ATen ops as an ONNX model.

A node is one call of the builder that `ops` has for its op. Tensors are names of ONNX values; nodes
have the names of FX, so that plans and reports speak of the module's own ops.
SPDX-License-Identifier: Apache-2.0
"""

import collections
import dataclasses
import operator

import torch

from ..packages import need
from .sizes import Sizes

OPSET, IR_VERSION = 23, 11
NUMBERS = {  # of onnx.TensorProto
    torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.uint16: 4, torch.int16: 5,
    torch.int32: 6, torch.int64: 7, torch.bool: 9, torch.float16: 10, torch.float64: 11,
    torch.uint32: 12, torch.uint64: 13, torch.bfloat16: 16, torch.float8_e4m3fn: 17,
    torch.float8_e4m3fnuz: 18, torch.float8_e5m2: 19, torch.float8_e5m2fnuz: 20}
IGNORED = {"layout", "device", "pin_memory", "memory_format", "non_blocking", "generator"}


class Refused(Exception):
    """Says why Heddle does not take a graph, and which node of FX is the reason, if one is."""

    def __init__(self, reason, node=None):
        super().__init__(reason)
        self.node = node


@dataclasses.dataclass
class Model:
    """An ONNX model, and how it is called. `inputs` are triples of a name, the number of the FX
    graph's argument, and the order of its dimensions in memory or None; `results`, one for each of
    FX, tuples that begin with a kind:

        ("tensor", number of the output, order of its dimensions in memory or None)
        ("number", number of the output)     a size or a float
        ("input", number of the argument)
        ("view of input", number of the argument, sizes, strides, elements from its first)
        ("view", result that it is a view of, sizes, strides, elements from its first)
        ("constant", value)
    """

    proto: object
    inputs: list
    results: list
    typical: dict
    is_random: bool


def number_of(dtype):
    """onnx.TensorProto.DataType of a torch.dtype."""
    if dtype not in NUMBERS:
        raise Refused(f"tensors of {dtype} are not supported")
    return NUMBERS[dtype]


def fake(node):
    return node.meta["val"]


def has_complex(node):
    """Tells whether a result or an operand of a node of FX is complex."""
    values = [each.meta.get("val") for each in (node, *node.all_input_nodes)]
    return any(isinstance(x, torch.Tensor) and x.is_complex()
               for x in torch.utils._pytree.tree_leaves(values))


def is_size(value):
    return isinstance(value, torch.SymInt) or (
        isinstance(value, torch.fx.Node) and isinstance(fake(value), (torch.SymInt, int)))


class Translator:
    """A model as builders add nodes to it. `out` is the fake tensor, or tuple of these, of the FX
    node that is being translated."""

    def __init__(self, graph_module, constants=None, names=None, is_stored=False, held=()):
        """`constants` are arguments by their number, and `names` names of these by FX's. With
        `is_stored`, arguments come with their dimensions in the order of memory, and results may be
        views of each other, and of arguments whose number is in `held`."""
        self.is_stored, self.held, self.stored = is_stored, held, {}
        self.onnx = need("onnx", "torch.compile", "torch")
        self.module, self.constants, self.names = graph_module, constants or {}, names or {}
        self.nodes, self.initializers, self.inputs, self.outputs = [], [], [], []
        self.values, self.shared, self.typical = {}, {}, {}
        self.node, self.is_random, self.counts = None, False, collections.Counter()
        self.sizes = Sizes(self)

    @property
    def out(self):
        return fake(self.node)

    # Methods of builders.

    def op(self, kind, *inputs, outputs=1, **attributes):
        """Adds a node, and returns the name of its result, or those of several. Operands are names,
        nodes of FX, or None."""
        base = self.node.name if self.node else "size"
        number = self.counts[base]
        self.counts[base] += 1
        name = f"{base}.{number}" if number else base
        names = [name] if outputs == 1 else [f"{name}:{i}" for i in range(outputs)]
        given = ["" if x is None else self.value(x) for x in inputs]
        self.nodes.append(self.onnx.helper.make_node(
            kind, given, names, name, **{k: v for k, v in attributes.items() if v is not None}))
        return names[0] if outputs == 1 else names

    def value(self, x):
        """The name of a tensor: a node of FX, or a name already."""
        if isinstance(x, str):
            return x
        if isinstance(x, torch.fx.Node):
            if is_size(x) or isinstance(fake(x), torch.SymFloat):
                return self.scalar(x, torch.int64 if is_size(x) else torch.float64)
            found = self.values[x]
            if not isinstance(found, str):
                raise Refused(f"'{x.name}' has several results", x)
            return found
        raise Refused(f"a {type(x).__name__} where a tensor is needed", self.node)

    def constant(self, value, dtype=None):
        """An initializer with this value, of torch's `dtype`; equal ones are one."""
        tensor = torch.as_tensor(value, dtype=dtype)
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        key = raw, tensor.dtype, tuple(tensor.shape)
        if key not in self.shared:
            name = f"constant_{len(self.initializers)}"
            self.initializers.append(self.onnx.TensorProto(
                name=name, data_type=number_of(tensor.dtype), dims=tensor.shape, raw_data=raw))
            self.shared[key] = name
        return self.shared[key]

    def ints(self, *values):
        """Integers, as a tensor of one dimension: axes and the like."""
        return self.constant(list(values), torch.int64)

    def scalar(self, x, dtype):
        """A number, size or tensor as a tensor of this type."""
        if isinstance(x, torch.fx.Node) and is_size(x) or isinstance(x, torch.SymInt):
            name = self.op("Reshape", self.sizes.of(x), self.ints())
            return name if dtype == torch.int64 else self.converted(name, dtype)
        if isinstance(x, torch.fx.Node) and isinstance(fake(x), (torch.SymFloat, float)):
            return self.converted(self.sizes.of(x), dtype)
        if isinstance(x, (torch.fx.Node, str)):
            return self.cast(x, dtype)
        return self.constant(x, dtype)

    def converted(self, name, dtype):
        return self.op("Cast", name, to=number_of(dtype))

    def cast(self, x, dtype):
        """A tensor or a number as one of this type."""
        if not isinstance(x, (torch.fx.Node, str)) or is_size(x):
            return self.scalar(x, dtype)
        if isinstance(x, torch.fx.Node) and isinstance(fake(x), torch.SymFloat):
            return self.scalar(x, dtype)
        if isinstance(x, torch.fx.Node) and fake(x).dtype == dtype:
            return self.value(x)
        return self.converted(x, dtype)

    def shape(self, sizes):
        """Sizes, numbers or of FX, as a tensor of one dimension."""
        return self.sizes.shape(sizes)

    def reshape(self, x, sizes):
        return self.op("Reshape", x, self.shape(sizes), allowzero=1)

    def expand(self, x, sizes):
        return self.op("Expand", x, self.shape(sizes))

    def refuse(self, reason):
        raise Refused(reason, self.node)

    # The walk over the graph.

    def model(self, builders, other=None):
        """The Model. `builders` are functions by op; `other` is asked for one of an op that has
        none."""
        results, placeholders, used = [], [], []
        for node in self.module.graph.nodes:
            self.node = node
            if node.op == "placeholder":
                placeholders.append(node)
                if node.users:
                    used += self._placeholder(node, len(placeholders) - 1)
            elif node.op == "get_attr":
                held = getattr(self.module, node.target)
                if not isinstance(held, torch.Tensor):
                    self.refuse("graphs within graphs are not supported")
                node.meta["val"] = held  # the numbers, where FX has a fake tensor
                self.values[node] = self.constant(held)
            elif node.op == "output":
                results = self._results(node, placeholders)
            else:
                self._call(node, builders, other)
        return Model(self._proto(), used, results, self.typical, self.is_random)

    def _placeholder(self, node, number):
        value = fake(node)
        name = self.names.get(node.name, node.name)
        if isinstance(value, torch.SymInt):
            return self.sizes.argument(node, number)
        if not isinstance(value, torch.Tensor):
            self.refuse(f"an argument of type {type(value).__name__} is not supported")
        if number in self.constants:
            self._initializer(name, self.constants[number])
            self.values[node] = name
            return []
        dims = [self.sizes.declared(size) for size in value.shape]
        order = memory_order(value) if self.is_stored else None
        self.inputs.append(self.onnx.helper.make_tensor_value_info(
            name, number_of(value.dtype), [dims[i] for i in order] if order else dims))
        self.counts[node.name] += 1  # the name is that of the input
        self.values[node] = self.op("Transpose", name, perm=inverse(order)) if order else name
        self.sizes.know(value, self.values[node])
        return [(name, number, order)]

    def _initializer(self, name, tensor):
        tensor = tensor.detach().contiguous()
        raw = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
        self.initializers.append(self.onnx.TensorProto(
            name=name, data_type=number_of(tensor.dtype), dims=tensor.shape, raw_data=raw))

    def _call(self, node, builders, other):
        if isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, int, float)):
            if not self.sizes.knows(node):  # one that is known only at run time
                self.sizes.measured(node, self._build(node, builders, other))
            return
        if isinstance(node.meta.get("val"), torch.SymBool) or node.target in ASSERTIONS:
            return  # Dynamo's guards have checked it
        if node.target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
        else:
            self.values[node] = self._build(node, builders, other)
        results = self.values[node]
        for value, name in ([(fake(node), results)] if isinstance(results, str) else
                            zip(fake(node), results)):
            if isinstance(value, torch.Tensor) and isinstance(name, str):
                self.sizes.know(value, name)

    def _build(self, node, builders, other):
        target = node.target
        keys = target, getattr(target, "overloadpacket", None), str(target)
        builder = next((builders[key] for key in keys if key in builders), None)
        if builder is None:
            found = other and other(self, node)
            if not found:
                self.refuse(f"there is no rule for {target}")
            return found
        if not getattr(builder, "takes_complex", False) and has_complex(node):
            self.refuse(f"{target} of complex numbers is not supported")
        schema = target._schema.arguments
        given = dict(zip((argument.name for argument in schema), node.args)) | node.kwargs
        try:
            return builder(self, **{k: v for k, v in given.items() if k not in IGNORED})
        except TypeError as error:
            if "unexpected keyword" in str(error):
                self.refuse(f"{target}: {error}")
            raise

    def _results(self, output, placeholders):
        places = {node: i for i, node in enumerate(placeholders)}
        results, known = [], {}
        self.fresh = {name for node in self.nodes for name in node.output}
        given = output.args[0]
        given = given if isinstance(given, (list, tuple)) else [given]
        families = collections.Counter(
            origin_of(item) for item in {*given} if isinstance(item, torch.fx.Node))
        for item in given:
            if not isinstance(item, torch.fx.Node):
                results.append(("constant", item))
            elif item in places:
                results.append(("input", places[item]))
            else:
                if item not in known:
                    known[item] = self._view(item, places, families) or self._output(item)
                results.append(known[item])
        return results

    def _view(self, item, places, families):
        """A result that needs no numbers of its own, since it is a view; or None."""
        origin = origin_of(item)
        place = self.is_stored and isinstance(fake(item), torch.Tensor) and view_of(item, origin)
        if not place:
            return None
        if origin in places:
            number = places[origin]
            return ("view of input", number, *place) if number in self.held else None
        if families[origin] < 2 or fake(item).numel() < fake(origin).numel():
            return None
        if origin not in self.stored:
            self.stored[origin] = self._output(origin)
        return self.stored[origin] if item is origin else ("view", self.stored[origin], *place)

    def _output(self, item):
        self.node, value = item, fake(item)
        if not isinstance(value, torch.Tensor):
            name = self.op("Identity", item)
            dtype = 7 if is_size(item) else 11
            self.outputs.append(self.onnx.helper.make_tensor_value_info(name, dtype, []))
            return ("number", len(self.outputs) - 1)
        order = memory_order(value)
        name = self.value(item)
        if order:
            name = self.op("Transpose", name, perm=order)
        elif name not in self.fresh:  # a constant, or a result already
            name = self.op("Identity", name)
        self.fresh.discard(name)
        dims = [self.sizes.declared(size) for size in value.shape]
        self.outputs.append(self.onnx.helper.make_tensor_value_info(
            name, number_of(value.dtype), [dims[i] for i in order] if order else dims))
        return ("tensor", len(self.outputs) - 1, order and inverse(order))

    def _proto(self):
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, "torch", self.inputs, self.outputs, self.initializers)
        return helper.make_model(graph, ir_version=IR_VERSION, producer_name="heddle.torch",
                                 opset_imports=[
                                     helper.make_opsetid("", OPSET),
                                     helper.make_opsetid("ai.onnx.preview.training", 1)])


ASSERTIONS = {
    torch.ops.aten._assert_async.msg, torch.ops.aten._assert_scalar.default,
    torch.ops.aten._assert_tensor_metadata.default, torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default}


aten = torch.ops.aten
VIEWS = {aten.alias.default, aten.detach.default, aten.expand.default, aten.permute.default,
         aten.select.int, aten.slice.Tensor, aten.squeeze.default, aten.squeeze.dim,
         aten.squeeze.dims, aten.t.default, aten.transpose.int, aten.unsqueeze.default,
         aten.view.default}


def origin_of(node):
    """The node of FX that a node is a view of, or itself."""
    while node.op == "call_function" and node.target in VIEWS:
        node = node.args[0]
    return node


def view_of(node, origin):
    """(Sizes, strides, offset) of a view in its origin, if all are known and that has no gaps."""
    value, own = fake(node), fake(origin)
    given = *value.shape, *value.stride(), value.storage_offset(), *own.shape, own.storage_offset()
    if not all(isinstance(x, int) for x in given):
        return None
    extent = 1
    for stride, size in sorted(zip(own.stride(), own.shape)):
        if size != 1 and stride != extent:
            return None
        extent *= size
    return tuple(value.shape), value.stride(), value.storage_offset() - own.storage_offset()


def hint(size):
    """A size as it was when the graph was traced."""
    if isinstance(size, int):
        return size
    return size.node.hint if size.node.has_hint() else 1 << 20


def inverse(order):
    return [order.index(i) for i in range(len(order))]


def memory_order(value):
    """The order of the dimensions in memory, slowest first, of a tensor that is not stored row by
    row; else None."""
    strides, sizes = [hint(s) for s in value.stride()], [hint(s) for s in value.shape]
    order = sorted(range(value.dim()), key=lambda i: (-strides[i], i))
    if any(stride == 0 and size != 1 for stride, size in zip(strides, sizes)):
        return None
    moved = [axis for axis in order if sizes[axis] != 1]
    return order if moved != sorted(moved) else None
