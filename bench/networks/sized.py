"""sized: ONNX graphs that know the sizes of their values, and layers with weights of these sizes.

Weights are random: which numbers they are does not change how long a group takes.
"""

import numpy as np
import onnx
from heddle.onnx_graph import FLOAT, Graph

OPSET = 20
PREVIEW = "ai.onnx.preview.training"


class Sized(Graph):
    """A model while it is built; `shapes` has the sizes of each value."""

    def __init__(self, seed):
        super().__init__(seed)
        self.shapes, self.types = {}, {}

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def chance(self, share):
        return self.random.random() < share

    def note(self, name, shape, dtype):
        self.shapes[name] = list(shape)
        self.types[name] = onnx.helper.make_tensor_type_proto(dtype, shape)
        return name

    def input(self, shape, dtype=FLOAT):
        return self.note(super().input(f"input{len(self.inputs)}", shape, dtype), shape, dtype)

    def constant(self, value, name=None):
        name = super().constant(value, name)
        array = self.arrays[name]
        return self.note(name, array.shape, onnx.helper.np_dtype_to_tensor_dtype(array.dtype))

    def weight(self, *shape, fan=None):
        scale = (2.0 / (fan or max(1, int(np.prod(shape[1:]))))) ** 0.5
        return super().weight(*shape, name=f"weight{len(self.arrays)}", scale=scale)

    def op(self, kind, *inputs, **attributes):
        """A node; the sizes of its result are those that ONNX infers."""
        name = super().op(kind, *inputs, **attributes)
        given = [each for each in inputs if each]
        data = {each: onnx.numpy_helper.from_array(self.arrays[each]) for each in given
                if each in self.arrays and self.arrays[each].size < 100}
        (made,) = onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(kind, OPSET), self.nodes[-1],
            {each: self.types[each] for each in given}, data).values()
        tensor = made.tensor_type
        return self.note(name, [dim.dim_value for dim in tensor.shape.dim], tensor.elem_type)

    def finished(self, *results, are_sized=True):
        """The model with these outputs; where they have no sizes, the compiler infers these."""
        for name in results:
            shape = self.shapes[name]
            self.output(name, (shape if are_sized else [None] * len(shape)) or None)
        return self.model(OPSET, ir_version=9, domains={PREVIEW: 1})

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def number(self, value):
        return self.constant(np.float32(value))

    # Layers.

    def dense(self, x, width, bias=True):
        columns = self.shapes[x][-1]
        y = self.op("MatMul", x, self.weight(columns, width, fan=columns))
        return self.op("Add", y, self.weight(width, fan=100)) if bias else y

    def conv(self, x, width, size=3, stride=1, groups=1, dilation=1):
        _, channels, *space = self.shapes[x]
        rank, pad = len(space), dilation * (size // 2)
        filters = self.weight(width, channels // groups, *[size] * rank,
                              fan=channels // groups * size ** rank)
        return self.op("Conv", x, filters, self.weight(width, fan=100), kernel_shape=[size] * rank,
                       strides=[stride] * rank, pads=[pad] * 2 * rank, dilations=[dilation] * rank,
                       group=groups)

    def layer_norm(self, x):
        width = self.shapes[x][-1]
        return self.op("LayerNormalization", x, self.weight(width, fan=1),
                       self.weight(width, fan=100), axis=-1)

    def rms_norm(self, x):
        mean = self.op("ReduceMean", self.op("Mul", x, x), self.ints(-1), keepdims=1)
        scale = self.op("Sqrt", self.op("Add", mean, self.number(1e-6)))
        return self.op("Mul", self.op("Div", x, scale), self.weight(self.shapes[x][-1], fan=1))

    def reshape(self, x, *shape):
        return self.op("Reshape", x, self.ints(*shape))

    def transpose(self, x, *order):
        return self.op("Transpose", x, perm=order)

    def attention(self, x, heads, memory=None):
        memory = memory or x
        batch, length, width = self.shapes[x]
        keys, each = self.shapes[memory][1], width // heads
        q, k, v = (self.transpose(self.reshape(self.dense(of, width), batch, rows, heads, each),
                                  *order) for of, rows, order in
                   ((x, length, (0, 2, 1, 3)), (memory, keys, (0, 2, 3, 1)),
                    (memory, keys, (0, 2, 1, 3))))
        scores = self.op("Mul", self.op("MatMul", q, k), self.number(each ** -0.5))
        if memory is x and self.chance(0.4):  # causal
            mask = np.triu(np.full((length, keys), -1e9, np.float32), 1)
            scores = self.op("Add", scores, self.constant(mask))
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.dense(self.reshape(self.transpose(mixed, 0, 2, 1, 3), batch, length, width),
                          width)

    def pooled(self, x):
        return self.reshape(self.op("GlobalAveragePool", x), *self.shapes[x][:2])
