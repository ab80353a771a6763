"""graph: the main graph of a model that is being quantised, with its constants and who reads what.

A node is known by its first output, which is unique. Graphs in nodes (If, Loop, Scan) are left as
they are; what they read of the main graph stays in f32. SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from ..library import RefusedError
from ..onnx_graph import FLOAT, make_node, make_value, nodes_of
from ..packages import need

LEAST_OPSET = 13  # the first whose DequantizeLinear has a scale for each channel
OPSET_OF_BLOCKS = 21  # the first whose DequantizeLinear has blocks, and integers of 4 bits
SMALL = 1024  # elements of a constant that the inference of shapes may have to see
QUANTISED = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger",
             "MatMulInteger", "MatMulNBits", "MatMulIntegerToFloat", "DynamicQuantizeMatMul",
             "GatherBlockQuantized")


def key_of(node):
    """The name of the first output."""
    return next((name for name in node.output if name), "")


def label(node):
    """The node's name for people."""
    return node.name or key_of(node)


def attribute(node, name, default=None):
    """The value of an attribute."""
    onnx = need("onnx", "quantising", "quantize")
    for each in node.attribute:
        if each.name == name:
            return onnx.helper.get_attribute_value(each)
    return default


def _within(node):
    """The nodes of the graphs in a node's attributes."""
    for each in node.attribute:
        for inner in [each.g, *each.graphs]:
            yield from nodes_of(inner)


def new_name(taken, text):
    """A name like `text` that is not among those taken, which it joins."""
    number, found = 0, text
    while found in taken:
        number += 1
        found = f"{text}_{number}"
    taken.add(found)
    return found


HIDDEN = "heddle.hidden"  # a domain that no op has


class Network:
    """A model, which is changed in place."""

    def __init__(self, model, name, opset=LEAST_OPSET):
        """`name` is that of the model in messages, `opset` the least that the result needs; None:
        it is read only, and may be any model."""
        self.onnx = need("onnx", "quantising", "quantize")
        self.name = name
        self.model = model if opset is None else self._of_opset(model, opset)
        self.graph = self.model.graph
        self._changed = {}  # name -> array, of constants that differ from the model's
        self._lift()
        self.index()
        self.types = self._types()

    def _of_opset(self, model, least):
        """The model, of an opset that has what is needed."""
        for node in nodes_of(model.graph):
            if node.op_type in QUANTISED or node.op_type.startswith("QLinear"):
                raise RefusedError(f"'{self.name}': is quantised already: '{label(node)}' is a "
                                   f"{node.op_type}; a model in f32 is needed")
        versions = [each.version for each in model.opset_import if each.domain in ("", "ai.onnx")]
        version = max(versions, default=least)
        if version < least:
            try:
                model = self._converted(model, least)
            except Exception as error:  # the converter's own, of many kinds
                raise RefusedError(
                    f"'{self.name}': is of opset {version}, but {least} is needed, and onnx "
                    f"cannot convert it: {str(error).strip().splitlines()[-1]}; export it with "
                    f"opset {least} or later") from error
        model.ir_version = max(model.ir_version, 10 if least >= OPSET_OF_BLOCKS else 7)
        return model

    def _converted(self, model, least):
        """The model in another opset; ops that ONNX once had for trial stay what they are: its
        converter, which knows none of them, takes them for those of another domain."""
        for node in nodes_of(model.graph):
            node.domain = node.domain if self._is_known(node) else HIDDEN
        if any(node.domain == HIDDEN for node in nodes_of(model.graph)):
            model.opset_import.append(self.onnx.helper.make_opsetid(HIDDEN, 1))
        model = self.onnx.version_converter.convert_version(model, least)
        for node in nodes_of(model.graph):
            node.domain = "" if node.domain == HIDDEN else node.domain
        kept = [each for each in model.opset_import if each.domain != HIDDEN]
        del model.opset_import[:]
        model.opset_import.extend(kept)
        return model

    def _is_known(self, node):
        """False for an op that ONNX once had for trial."""
        return node.domain != "" or self.onnx.defs.has(node.op_type)

    def _lift(self):
        """Makes initializers of constants and their copies; initializers are no inputs any more."""
        graph, same, kept = self.graph, {}, []
        for node in graph.node:
            value = self._constant(node)
            if value is None:
                value = self._transposed(node)
            if value is not None:
                graph.initializer.append(value)
            else:
                kept.append(node)
        constants = {tensor.name for tensor in graph.initializer}
        made = {output.name for output in graph.output}
        rest = []
        for node in kept:
            if node.op_type == "Identity" and node.input[0] in constants | set(same) \
                    and node.output[0] not in made:
                same[node.output[0]] = same.get(node.input[0], node.input[0])
            else:
                rest.append(node)
        self.set_nodes(rest)
        for node in nodes_of(graph):
            for i, name in enumerate(node.input):
                node.input[i] = same.get(name, name)
        inputs = [value for value in graph.input if value.name not in constants]
        del graph.input[:]
        graph.input.extend(inputs)

    def _constant(self, node):
        """The tensor of a Constant node, with the name of its output; or None."""
        if node.op_type != "Constant" or node.domain or not node.attribute:
            return None
        what, value = node.attribute[0].name, attribute(node, node.attribute[0].name)
        kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64,
                 "value_ints": np.int64}
        if what in kinds:
            value = self.onnx.numpy_helper.from_array(np.array(value, kinds[what]))
        elif what != "value":
            return None
        value.name = node.output[0]
        return value

    def _transposed(self, node):
        """The tensor of a Transpose of an initializer; or None."""
        if node.op_type != "Transpose" or node.domain:
            return None
        given = next((each for each in self.graph.initializer if each.name == node.input[0]), None)
        if given is None:
            return None
        array = self.onnx.numpy_helper.to_array(given).transpose(attribute(node, "perm"))
        return self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), node.output[0])

    def set_nodes(self, nodes):
        """Makes these the nodes of the graph; they may be its own."""
        nodes = list(nodes)
        copies = []
        for node in nodes:
            copy = self.onnx.NodeProto()
            copy.CopyFrom(node)
            copies.append(copy)
        del self.graph.node[:]
        self.graph.node.extend(copies)

    def index(self):
        """Finds out again who makes and reads what."""
        graph = self.graph
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.nodes = list(graph.node)
        self.producer = {name: node for node in self.nodes for name in node.output if name}
        self.consumers = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.input):
                self.consumers.setdefault(name, []).append(node)
        self.outputs = [output.name for output in graph.output]
        self.captured = {name for node in self.nodes for inner in _within(node)
                         for name in inner.input}
        self.names = {*self.tensors, *self.producer, *(value.name for value in graph.input),
                      *(name for node in nodes_of(graph) for name in node.output)}

    def _types(self):
        """{tensor: (type of its elements, its sizes or None)}, as far as onnx infers them."""
        skeleton = self.onnx.ModelProto()
        skeleton.ir_version = self.model.ir_version
        skeleton.opset_import.extend(self.model.opset_import)
        skeleton.functions.extend(self.model.functions)
        for field in ("node", "input", "output", "value_info"):
            getattr(skeleton.graph, field).extend(getattr(self.graph, field))
        told = {value.name for value in skeleton.graph.value_info}
        skeleton.graph.value_info.extend(
            make_value(name, None) for node in self.graph.node if not self._is_known(node)
            for name in node.output if name not in told)  # ops on trial made numbers of f32
        for tensor in self.graph.initializer:
            if int(np.prod(tensor.dims)) <= SMALL:
                skeleton.graph.initializer.append(tensor)
            else:
                skeleton.graph.input.append(self.onnx.helper.make_tensor_value_info(
                    tensor.name, tensor.data_type, tensor.dims))
        graph = self.onnx.shape_inference.infer_shapes(skeleton).graph
        found = {tensor.name: (tensor.data_type, list(tensor.dims))
                 for tensor in self.graph.initializer}
        for value in [*graph.value_info, *graph.input, *graph.output]:
            kind = value.type.tensor_type
            dims = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
                    for dim in kind.shape.dim] if kind.HasField("shape") else None
            found[value.name] = kind.elem_type, dims
        return found

    def is_float(self, name):
        return self.types.get(name, (0, None))[0] == FLOAT

    def is_shared(self, name):
        """True if more than the nodes of the main graph read it."""
        return name in self.outputs or name in self.captured

    def only_consumer(self, name):
        """The one node that reads a tensor, or None."""
        readers = self.consumers.get(name, [])
        return readers[0] if len(readers) == 1 and not self.is_shared(name) else None

    def array(self, name):
        """The value of an initializer, or None."""
        if name in self._changed:
            return self._changed[name]
        tensor = self.tensors.get(name)
        return None if tensor is None else self.onnx.numpy_helper.to_array(tensor)

    def fresh(self, name):
        """A name that no tensor has, like this one."""
        return new_name(self.names, name)

    def add(self, name, array):
        """A new initializer; its name is like this one."""
        name = self.fresh(name)
        self.graph.initializer.append(self.onnx.numpy_helper.from_array(array, name))
        tensor = self.tensors[name] = self.graph.initializer[-1]
        self.types[name] = tensor.data_type, list(tensor.dims)
        return name

    def replace(self, node, place, array):
        """Gives this operand of the node another value; others that read it keep theirs."""
        name = node.input[place] if place < len(node.input) else ""
        if name and self.only_consumer(name) is node and list(node.input).count(name) == 1:
            self._changed[name] = array
            return
        made = self.add(name or f"{key_of(node)}/bias", array)
        while len(node.input) <= place:
            node.input.append("")
        if name in self.consumers:
            self.consumers[name] = [each for each in self.consumers[name] if each is not node]
        node.input[place] = made
        self.consumers[made] = [node]

    def settle(self):
        """Writes changed arrays into the model, and drops initializers that nobody reads."""
        for name, array in self._changed.items():
            self.tensors[name].CopyFrom(self.onnx.numpy_helper.from_array(array, name))
        self._changed = {}
        read = {name for node in nodes_of(self.graph) for name in node.input} | set(self.outputs)
        for place in reversed(range(len(self.graph.initializer))):
            if self.graph.initializer[place].name not in read:
                del self.graph.initializer[place]
        self.index()

    def scale(self, name, factor, text):
        """A new tensor, this one times a vector along its last axis; right after what makes it."""
        made = self.fresh(text)
        node = make_node("Mul", [name, self.add(f"{text}/factor", factor)], [made], made)
        first = self.producer.get(name)
        nodes = [] if first else [node]
        for each in self.nodes:
            nodes += [each, node] if each is first else [each]
        self.types[made] = self.types[name]
        self.set_nodes(nodes)
        self.index()
        return made
