"""graph: a model that grows a node at a time, with the values of every tensor at hand.

A tensor has one value for each case: models with symbolic sizes have two cases, which differ in
what the symbols stand for. A node that is illegal in either case, whose result is not finite or
hangs on rounding, is refused with Rejected, and the model stays as it was.
SPDX-License-Identifier: Apache-2.0
"""

import random
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .evaluate import Rejected, evaluate_node, is_float, is_stable, needs, wide

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTS = ("int64", "int32", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
DTYPE_WEIGHTS = {"float32": 62, "int64": 8, "float16": 7, "float64": 6, "int32": 5, "bool": 4,
                 "bfloat16": 3, "uint8": 3, "int8": 2, "int16": 1, "uint32": 1}
SMALL, LARGE = 8192, 65536  # the most elements of a tensor that is drawn
LIMITS = {"float16": 200.0, "bfloat16": 1e3, "float32": 1e4, "float64": 1e4}


def dtype_of(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def number_of(name):
    return helper.np_dtype_to_tensor_dtype(dtype_of(name))


@dataclass(eq=False)
class Tensor:
    """A value of the graph: a pair (value, shadow) for each case."""

    name: str
    pairs: list
    is_constant: bool = False

    @property
    def dtype(self):
        return self.pairs[0][0].dtype.name

    @property
    def rank(self):
        return self.pairs[0][0].ndim

    @property
    def shape(self):
        """The shape in the first case."""
        return self.pairs[0][0].shape

    @property
    def dims(self):
        """Per axis, the sizes in all cases."""
        return list(zip(*(pair[0].shape for pair in self.pairs)))

    def is_fixed(self, axis):
        return len(set(self.dims[axis])) == 1

    @property
    def all_fixed(self):
        return all(self.is_fixed(axis) for axis in range(self.rank))

    @property
    def values(self):
        return [pair[0] for pair in self.pairs]

    @property
    def size(self):
        return max(value.size for value in self.values)

    def range(self):
        """The least and the greatest element in any case."""
        filled = [wide(value) for value in self.values if value.size]
        if not filled:
            return 0.0, 0.0
        return min(float(v.min()) for v in filled), max(float(v.max()) for v in filled)


class Graph:
    def __init__(self, rng, opset, cases):
        self.rng, self.opset, self.cases = rng, opset, cases
        self.most = LARGE if rng.random() < 0.15 else SMALL
        self.generator = np.random.default_rng(rng.getrandbits(64))
        self.tensors, self.nodes, self.inputs, self.initializers = {}, [], [], []
        self.symbols = {}  # (size in case 0, size in case 1) -> name
        self.input_dims = {}
        self.opset_imports = [helper.make_opsetid("", opset)]
        self.serial = 0

    # --- chance

    def chance(self, probability):
        return self.rng.random() < probability

    def choice(self, items):
        items = list(items)
        if not items:
            raise Rejected("nothing to choose from")
        return self.rng.choice(items)

    def between(self, low, high):
        return self.rng.randint(low, high)

    def dtype(self, allowed=None):
        names = [name for name in DTYPE_WEIGHTS if allowed is None or name in allowed]
        if not names:
            return self.choice(allowed)
        return self.rng.choices(names, [DTYPE_WEIGHTS[name] for name in names])[0]

    def dim(self):
        """A size, and with symbols now and then a pair of sizes."""
        if self.cases == 2 and self.chance(0.45):
            return self.choice([(3, 5), (4, 7), (2, 9), (6, 2), (33, 64), (1, 4)])
        if self.most == LARGE and self.chance(0.6):
            return (self.choice([16, 17, 31, 33, 48, 64, 65, 96, 100, 128, 129, 200, 257]),
                    ) * self.cases
        roll = self.rng.random()
        if roll < 0.012:
            size = 0
        elif roll < 0.10:
            size = 1
        elif roll < 0.75:
            size = self.between(2, 8)
        elif roll < 0.96:
            size = self.choice([5, 7, 9, 11, 13, 16, 17, 24, 31, 32])
        else:
            size = self.choice([33, 48, 63, 64, 65, 100, 129])
        return (size,) * self.cases

    def fixed_dim(self, low=2, high=8):
        return (self.between(low, high),) * self.cases

    def dims(self, rank=None):
        rank = self.rng.choices(range(6), [3, 15, 27, 27, 22, 6])[0] if rank is None else rank
        dims = [self.dim() for _ in range(rank)]
        while np.prod([max(d) for d in dims], dtype=float) > self.most:
            largest = max(range(rank), key=lambda i: max(dims[i]))
            dims[largest] = self.fixed_dim(1, 4)
        return dims

    # --- elements

    def elements(self, dtype, shape):
        """Random elements: floats with few digits, small integers."""
        if np.prod(shape, dtype=float) > 4 * self.most:
            raise Rejected(f"a tensor of {shape} is too large")
        draw = self.generator
        if dtype == "bool":
            return draw.random(shape) < 0.5
        if dtype in INTS:
            low = 0 if dtype.startswith("u") else -10
            return draw.integers(low, 12, shape).astype(dtype)
        kind = self.rng.random()
        if kind < 0.6:
            array = draw.normal(0, 1, shape)
        elif kind < 0.8:
            array = draw.uniform(-3, 3, shape)
        elif kind < 0.9:
            array = draw.uniform(0.25, 2, shape)
        else:
            array = draw.integers(-4, 5, shape) * 0.5
        return np.asarray(np.round(array * 64) / 64).astype(dtype_of(dtype))

    # --- growing

    def name(self, prefix):
        self.serial += 1
        return f"{prefix}{self.serial}"

    def add(self, name, arrays, is_constant=False):
        tensor = Tensor(name, [(array, array) for array in arrays], is_constant)
        self.tensors[name] = tensor
        return tensor

    def constant(self, array, as_node=None):
        """A constant, as an initializer or as a node."""
        array = np.asarray(array)
        name = self.name("c")
        if self.chance(0.3) if as_node is None else as_node:
            proto = numpy_helper.from_array(array, name)
            self.nodes.append(helper.make_node("Constant", [], [name], value=proto))
        else:
            self.initializers.append(numpy_helper.from_array(array, name))
        return self.add(name, [array] * self.cases, True)

    def ints(self, values):
        return self.constant(np.array(values, np.int64))

    def scalar(self, value, dtype):
        return self.constant(np.array(value, dtype_of(dtype)))

    def symbol(self, sizes):
        if sizes not in self.symbols:
            self.symbols[sizes] = f"n{len(self.symbols)}"
        return self.symbols[sizes]

    def input(self, dtype, dims, arrays=None):
        """A new input of the model; dims are one size for each case."""
        name = self.name("x")
        if arrays is None:
            arrays = [self.elements(dtype, [d[case] for d in dims]) for case in range(self.cases)]
        self.inputs.append(name)
        self.input_dims[name] = [d[0] if len(set(d)) == 1 else self.symbol(tuple(d)) for d in dims]
        return self.add(name, arrays)

    def fresh(self, dtype, dims, constant=0.5):
        """A constant where sizes allow it, or an input."""
        if all(len(set(d)) == 1 for d in dims) and self.chance(constant):
            return self.constant(self.elements(dtype, [d[0] for d in dims]))
        return self.input(dtype, dims)

    def pick(self, dtypes=None, rank=None, where=None, dims=None, low=0):
        """A tensor of the model, rather a late one, or else a new one. `rank` may be a range."""
        ranks = range(9) if rank is None else [rank] if isinstance(rank, int) else rank
        found = [tensor for tensor in self.tensors.values()
                 if (dtypes is None or tensor.dtype in dtypes) and tensor.rank in ranks
                 and tensor.rank >= low and not tensor.is_constant
                 and (where is None or where(tensor))]
        if found and self.chance(0.93):
            weights = [1.12 ** min(i, 60) for i in range(len(found))]
            return self.rng.choices(found, weights)[0]
        allowed = [r for r in ranks if low <= r <= 5]
        if dims is None:
            dims = self.dims(self.choice(allowed))
        tensor = self.fresh(self.dtype(dtypes), dims, constant=0.1)
        if where is not None and not where(tensor):
            raise Rejected("no tensor is as wanted")
        return tensor

    def partner(self, tensor, dtype=None):
        """A tensor that broadcasts with this one."""
        dtype = dtype or tensor.dtype

        def fits(other):
            return (other.dtype == dtype and other.name != tensor.name
                    and all(a == b or set(a) == {1} or set(b) == {1} for a, b in
                            zip(reversed(other.dims), reversed(tensor.dims)))
                    and other.size * tensor.size <= 4 * self.most)

        found = [other for other in self.tensors.values() if fits(other)]
        if found and self.chance(0.6):
            return self.choice(found[-8:])
        dims = list(tensor.dims)[self.between(0, tensor.rank) if self.chance(0.4) else 0:]
        dims = [(1,) * self.cases if self.chance(0.2) else d for d in dims]
        if self.chance(0.06) and len(dims) == tensor.rank and tensor.rank < 5:
            dims = [self.fixed_dim(1, 3), *dims]
        return self.fresh(dtype, dims)

    def emit(self, op, inputs, outputs=1, domain="", **attributes):
        """Adds a node, and gives its one result, or a list of them."""
        names = [tensor.name if tensor is not None else "" for tensor in inputs]
        while names and not names[-1]:
            names.pop()
        results = [self.name("v") for _ in range(outputs)]
        node = helper.make_node(op, names, results, domain=domain, name=f"{op}_{results[0]}",
                                **attributes)
        wanted = self.check_types(node, inputs)
        columns = [[] for _ in results]
        for case in range(self.cases):
            pairs = {name: tensor.pairs[case] for name, tensor in self.tensors.items()}
            try:
                values = evaluate_node(node, self.opset_imports, pairs)
            except Exception as error:  # noqa: BLE001: whatever the evaluator says
                raise Rejected(f"{op}: {type(error).__name__}: {error}") from None
            if len(values) != outputs:
                raise Rejected(f"{op}: {len(values)} results")
            for column, pair, dtype in zip(columns, values, wanted):
                column.append(self.accept(op, pair, dtype))
        self.check_shapes(node, columns)
        self.nodes.append(node)
        if domain and not any(o.domain == domain for o in self.opset_imports):
            self.opset_imports.append(helper.make_opsetid(domain, 1))
        tensors = [Tensor(name, column) for name, column in zip(results, columns)]
        self.tensors.update({tensor.name: tensor for tensor in tensors})
        return tensors[0] if outputs == 1 else tensors

    def accept(self, op, pair, dtype):
        """The pair in the dtype that the schema says, unless it cannot be used."""
        value, shadow = pair
        if dtype is not None and value.dtype != dtype:
            value, shadow = value.astype(dtype), shadow.astype(dtype)
        if value.dtype.kind in "OUSc":
            raise Rejected(f"{op}: dtype {value.dtype}")
        if value.size > 4 * self.most or value.ndim > 7:
            raise Rejected(f"{op}: too large")
        if value.size:
            largest = np.max(np.abs(wide(value)))
            if not np.isfinite(largest) or not np.all(np.isfinite(wide(shadow))):
                raise Rejected(f"{op}: not finite")
            if largest > LIMITS.get(value.dtype.name, 2.0**30):
                raise Rejected(f"{op}: too great")
        if not is_stable((value, shadow)):
            raise Rejected(f"{op}: hangs on rounding")
        return (value, value if not is_float(value) else shadow)

    def check_types(self, node, inputs):
        """Refuses dtypes that the schema does not allow; gives the outputs' dtypes where known."""
        try:
            schema = onnx.defs.get_schema(node.op_type, self.opset, node.domain)
        except onnx.defs.SchemaError:
            raise Rejected(f"{node.op_type} is not in opset {self.opset}") from None
        allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        bound = {}
        for i, tensor in enumerate(inputs):
            formal = schema.inputs[min(i, len(schema.inputs) - 1)]
            if tensor is None or i >= len(schema.inputs) and formal.option.name != "Variadic":
                continue
            number = helper.np_dtype_to_tensor_dtype(tensor.pairs[0][0].dtype)
            text = TYPE_TEXTS[number]
            if text not in allowed.get(formal.type_str, [formal.type_str]):
                raise Rejected(f"{node.op_type}: {text} is not allowed")
            if formal.is_homogeneous or formal.option.name != "Variadic":
                if bound.setdefault(formal.type_str, tensor.pairs[0][0].dtype) != \
                        tensor.pairs[0][0].dtype:
                    raise Rejected(f"{node.op_type}: dtypes differ")
        formals = [schema.outputs[min(i, len(schema.outputs) - 1)]
                   for i in range(len(node.output))]
        return [bound.get(formal.type_str, FIXED_TYPES.get(formal.type_str)) for formal in formals]

    def check_shapes(self, node, columns):
        """Refuses a node whose results are not what ONNX's own shape inference says."""
        for case in range(self.cases):
            for value, column in zip(self.inferred(node, case), columns):
                array, about = column[case][0], value.type.tensor_type
                if array.ndim != column[0][0].ndim:
                    raise Rejected(f"{node.op_type}: rank differs between the cases")
                if about.elem_type not in (0, number_of(array.dtype.name)):
                    raise Rejected(f"{node.op_type}: inferred dtype differs")
                sizes = [d.dim_value if d.HasField("dim_value") else None for d in about.shape.dim]
                if about.HasField("shape") and (len(sizes) != array.ndim or any(
                        a not in (None, b) for a, b in zip(sizes, array.shape))):
                    raise Rejected(f"{node.op_type}: inferred shape differs")

    def inferred(self, node, case):
        """The outputs' types by ONNX's shape inference in one case."""
        inputs = [(name, self.tensors[name]) for name in needs(node)]
        constants = [numpy_helper.from_array(tensor.values[case], name)
                     for name, tensor in inputs if tensor.is_constant and tensor.dtype == "int64"]
        graph = helper.make_graph(
            [node], "node",
            [helper.make_tensor_value_info(name, number_of(tensor.dtype),
                                           tensor.values[case].shape) for name, tensor in inputs],
            [onnx.ValueInfoProto(name=name) for name in node.output], constants)
        model = helper.make_model(graph, opset_imports=self.opset_imports)
        try:
            return onnx.shape_inference.infer_shapes(model, True, True).graph.output
        except Exception as error:  # noqa: BLE001: several kinds
            raise Rejected(f"{node.op_type}: {error}") from None

    # --- the result

    def model(self, outputs):
        """The model with these outputs, without nodes that none of them needs."""
        nodes, wanted = [], {tensor.name for tensor in outputs}
        for node in reversed(self.nodes):
            if wanted & set(node.output):
                nodes.append(node)
                wanted.update(needs(node))
        inputs = [name for name in self.inputs if name in wanted]
        graph = helper.make_graph(
            nodes[::-1], "fuzz",
            [helper.make_tensor_value_info(name, number_of(self.tensors[name].dtype),
                                           self.input_dims[name]) for name in inputs],
            [helper.make_tensor_value_info(t.name, number_of(t.dtype), [None] * t.rank)
             for t in outputs],
            [t for t in self.initializers if t.name in wanted],
            value_info=self.ranks(nodes, {t.name for t in outputs}))
        model = helper.make_model(graph, opset_imports=self.opset_imports,
                                  producer_name="heddle.fuzz",
                                  ir_version=helper.find_min_ir_version_for(self.opset_imports))
        feeds = [{name: self.tensors[name].values[case] for name in inputs}
                 for case in range(self.cases)]
        return model, feeds


    def ranks(self, nodes, outputs):
        """Types of each Squeeze without axes, whose rank may depend on a size at run time."""
        squeezed = [self.tensors[node.output[0]] for node in nodes
                    if node.op_type == "Squeeze" and len(node.input) == 1]
        return [helper.make_tensor_value_info(t.name, number_of(t.dtype), [None] * t.rank)
                for t in squeezed if t.name not in outputs]


TYPE_TEXTS = {
    TensorProto.FLOAT: "tensor(float)", TensorProto.DOUBLE: "tensor(double)",
    TensorProto.FLOAT16: "tensor(float16)", TensorProto.BFLOAT16: "tensor(bfloat16)",
    TensorProto.BOOL: "tensor(bool)",
    **{getattr(TensorProto, name.upper()): f"tensor({name})" for name in INTS},
}
FIXED_TYPES = {f"tensor({name})": np.dtype(name) for name in [*INTS, "bool"]}
FIXED_TYPES["tensor(float)"] = np.dtype("float32")


def make_rng(seed, index):
    return random.Random(f"{seed}/{index}")
