"""layers: nodes of common layers, and the backward computation of a forward graph.

Sizes are those of f32 tensors. SPDX-License-Identifier: Apache-2.0
"""

from collections import namedtuple

from .graph import KIND_NAMES, Builder

F32 = 4
ADAM_STATE = 3  # a weight and its two moments

Value = namedtuple("Value", "node elements")


class Layers(Builder):
    """A builder of forward graphs; `with_backward` adds the step of training."""

    def _value(self, kind, inputs, elements, flops):
        nodes = [each.node if isinstance(each, Value) else each for each in inputs]
        return Value(self.node(kind, nodes, float(flops), float(elements) * F32), elements)

    def variable(self, elements):
        node = self.node("variable", (), 0.0, float(elements) * F32,
                         float(elements) * F32 * ADAM_STATE)
        return Value(node, elements)

    def input(self, elements):
        node = self.node("input", (), 0.0, float(elements) * F32, float(elements) * F32)
        return Value(node, elements)

    def elementwise(self, *inputs, elements=None):
        elements = elements or inputs[0].elements
        return self._value("elementwise", inputs, elements, elements)

    def activation(self, x):
        return self._value("activation", [x], x.elements, 4 * x.elements)

    def move(self, *inputs, elements=None):
        """Concatenation, a part of a tensor, or another order of its elements."""
        elements = elements or sum(each.elements for each in inputs)
        return self._value("move", inputs, elements, 0)

    def reduce(self, x, elements):
        return self._value("reduce", [x], elements, x.elements)

    def softmax(self, x):
        return self._value("softmax", [x], x.elements, 5 * x.elements)

    def normalize(self, x, scale):
        return self._value("normalize", [x, scale], x.elements, 8 * x.elements)

    def matmul(self, a, b, rows, inner, columns, batch=1):
        return self.product("matmul", a, b, batch * rows * columns, inner)

    def product(self, kind, a, b, elements, inner):
        """A contraction, each element of whose result is a sum of `inner` products."""
        return self._value(kind, [a, b], elements, 2 * elements * inner)

    def gather(self, table, indices, elements):
        return self._value("gather", [table, indices], elements, 0)

    def dense(self, x, weight, bias, rows, inner, columns):
        return self.elementwise(self.matmul(x, weight, rows, inner, columns), bias)

    def conv(self, x, batch, pixels, channels, filters, window):
        """A convolution, its normalisation and its activation; `pixels` of the result."""
        weight, scale = self.variable(window * channels * filters), self.variable(2 * filters)
        elements = batch * pixels * filters
        y = self.product("conv", x, weight, elements, window * channels)
        return self.activation(self.normalize(y, scale))

    def pool(self, x, elements, window):
        return self._value("pool", [x], elements, elements * window)

    def lstm_cell(self, x, h, c, weight, bias, batch, inputs, size):
        """(h, c) after a step, in the ops of TensorFlow's BasicLSTMCell."""
        gates = self.dense(self.move(x, h), weight, bias, batch, inputs + size, 4 * size)
        i, j, f, o = (self.move(gates, elements=batch * size) for _ in range(4))
        kept = self.elementwise(c, self.activation(f))
        new = self.elementwise(self.activation(i), self.activation(j))
        c = self.elementwise(kept, new)
        return self.elementwise(self.activation(c), self.activation(o)), c

    def with_backward(self, loss):
        """Adds the gradient of every node between the loss and a weight, sums of those of several
        readers, and an update per weight, which is placed with the weight."""
        self.colocate_resident()
        forward = len(self)
        wanted = [False] * forward
        for node in range(forward):
            wanted[node] = (KIND_NAMES[self.kinds[node]] == "variable"
                            or any(wanted[each] for each in self.inputs[node]))
        parts = [[] for _ in range(forward)]
        parts[loss.node] = [self.node("elementwise", [loss.node], 1.0, self.bytes[loss.node])]
        for node in reversed(range(forward)):
            if not parts[node] or not wanted[node]:
                continue
            gradient = parts[node][0]
            if len(parts[node]) > 1:
                elements = self.bytes[node] / F32
                gradient = self.node("elementwise", parts[node],
                                     elements * (len(parts[node]) - 1), self.bytes[node])
            kind = KIND_NAMES[self.kinds[node]]
            if kind == "variable":
                self.node("update", [gradient, node], 10 * self.bytes[node] / F32, 0.0,
                          colocate=node)
            else:
                self._gradients(node, kind, gradient, wanted, parts)
        return self

    def _gradients(self, node, kind, gradient, wanted, parts):
        """One node for each input whose gradient is wanted."""
        inputs = self.inputs[node]
        for place, each in enumerate(inputs):
            if not wanted[each]:
                continue
            if kind in ("matmul", "conv", "elementwise") and len(inputs) == 2:
                reads = [gradient, inputs[1 - place]]
            elif kind == "move":
                reads = [gradient]
            elif kind in ("activation", "softmax"):
                reads = [gradient, node]
            else:
                reads = [gradient, each]
            flops = self.flops[node] if kind in ("matmul", "conv") else \
                max(self.flops[node], self.bytes[each] / F32)
            kind_of = "reduce" if kind == "elementwise" and self.bytes[each] < self.bytes[node] \
                else kind
            if kind == "gather":  # the scatter into the table's gradient
                flops = self.bytes[node] / F32
            parts[each].append(self.node(kind_of, reads, flops, self.bytes[each]))
