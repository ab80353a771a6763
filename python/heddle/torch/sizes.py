"""sizes: sizes of FX as values of ONNX.

A size is an expression of symbols. Each symbol is the size of some tensor, so that Heddle sees the
one symbol of that tensor; expressions are arithmetic on these. SPDX-License-Identifier: Apache-2.0
"""

import functools

import torch


def expression(size):
    """The SymPy expression of a SymInt or SymFloat, or the number itself."""
    if isinstance(size, torch.fx.Node):
        size = size.meta["val"]
    return size.node.expr if isinstance(size, (torch.SymInt, torch.SymFloat)) else size


class Sizes:
    """The sizes of one graph. A size is a tensor [1] of int64, a float one of no dimensions and
    float64."""

    def __init__(self, translator):
        self.t = translator
        self.sources = {}  # symbol -> (name, axis), or name
        self.made = {}     # expression -> name
        self.names = {}    # of symbols, where they have others than torch's

    def declared(self, size):
        """A size as the type of an input says it: a number, a symbol's name, or None."""
        found = expression(size)
        if isinstance(found, int):
            return found
        if found.is_Integer:
            return int(found)
        return self.names.get(str(found), str(found)) if found.is_Symbol else None

    def know(self, value, name):
        """The tensor `name` has these sizes."""
        for axis, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt):
                found = size.node.expr
                if found.is_Symbol and found not in self.sources:
                    self.sources[found] = name, axis
                    if size.node.has_hint():
                        self.t.typical[self.declared(size)] = int(size.node.hint)

    def argument(self, node, number):
        """A size among the arguments is read from a tensor that has it, or else is an input."""
        symbol = expression(node)
        for other in self.t.module.graph.nodes:
            value = other.meta.get("val") if other.op == "placeholder" else None
            if isinstance(value, torch.Tensor) and other.users and any(
                    isinstance(size, torch.SymInt) and size.node.expr == symbol
                    for size in value.shape):
                return []
        if not symbol.is_Symbol or symbol in self.sources:
            return []
        self.t.inputs.append(self.t.onnx.helper.make_tensor_value_info(node.name, 7, []))
        self.sources[symbol] = node.name
        return [(node.name, number, None)]

    def knows(self, node):
        found = expression(node)
        return isinstance(found, (int, float)) or all(
            symbol in self.sources for symbol in found.free_symbols)

    def measured(self, node, name):
        """The tensor `name` is the number that the node is."""
        self.sources[expression(node)] = name

    def shape(self, sizes):
        """A tensor of one dimension with these sizes."""
        parts, numbers = [], []
        for size in sizes:
            found = expression(size)
            if isinstance(found, int) or found.is_Integer:
                numbers.append(int(found))
                continue
            if numbers:
                parts.append(self.t.ints(*numbers))
                numbers = []
            parts.append(self.of(size))
        if numbers or not parts:
            parts.append(self.t.ints(*numbers))
        return parts[0] if len(parts) == 1 else self.t.op("Concat", *parts, axis=0)

    def of(self, size):
        found = expression(size)
        if isinstance(found, int):
            return self.t.ints(found)
        if isinstance(found, float):
            return self.t.constant(found, torch.float64)
        return self._of(found)

    def _of(self, found):
        if found not in self.made:
            self.made[found] = self._make(found)
        return self.made[found]

    def _make(self, found):
        t, kind = self.t, type(found).__name__
        if found.is_Integer:
            return t.ints(int(found))
        if found.is_Float or found.is_Rational:
            return t.constant(float(found), torch.float64)
        if found.is_Symbol:
            return self._symbol(found)
        if kind in FLOATS:
            return self._float(kind, found)
        if kind == "Pow" and found.args[1].is_Integer and found.args[1] > 0:
            return self._fold("Mul", [found.args[0]] * int(found.args[1]))
        if kind in FOLDED:
            if any(self._is_float(part) for part in found.args):
                parts = [self._wide(part) for part in found.args]
                return functools.reduce(lambda a, b: t.op(FOLDED[kind], a, b), parts)
            return self._fold(FOLDED[kind], found.args)
        if kind in ("FloorDiv", "CleanDiv"):
            return self._quotient(*found.args)
        if kind in ("Mod", "PythonMod"):
            return t.op("Mod", *map(self._of, found.args))
        if kind == "ModularIndexing":
            base, divisor, modulus = found.args
            return t.op("Mod", self._quotient(base, divisor), self._of(modulus))
        if kind == "Identity":
            return self._of(found.args[0])
        return t.refuse(f"the size {found} is not supported")

    def _symbol(self, symbol):
        if symbol not in self.sources:
            self.t.refuse(f"no argument has the size {symbol}")
        source = self.sources[symbol]
        if isinstance(source, str):
            return self.t.op("Reshape", source, self.t.ints(1))
        name, axis = source
        return self.t.op("Shape", name, start=axis, end=axis + 1)

    def _fold(self, kind, parts):
        return functools.reduce(lambda a, b: self.t.op(kind, a, b), map(self._of, parts))

    def _quotient(self, base, divisor):
        """The quotient rounded down, where ONNX's of integers goes towards zero."""
        over, under = self._of(base), self._of(divisor)
        if not base.is_nonnegative:
            over = self.t.op("Sub", over, self.t.op("Mod", over, under))
        return self.t.op("Div", over, under)

    @staticmethod
    def _is_float(found):
        return type(found).__name__ in FLOATS or found.is_integer is False

    def _wide(self, found):
        """An expression as a float64 of no dimensions."""
        if self._is_float(found):
            return self._of(found)
        return self.t.converted(self.t.op("Reshape", self._of(found), self.t.ints()), torch.float64)

    def _float(self, kind, found):
        if kind == "ToFloat":
            return self._wide(found.args[0])
        return self.t.op(FLOATS[kind], *map(self._wide, found.args))


FOLDED = {"Add": "Add", "Mul": "Mul", "Max": "Max", "Min": "Min"}
FLOATS = {"ToFloat": "Cast", "FloatTrueDiv": "Div", "IntTrueDiv": "Div", "FloatPow": "Pow",
          "OpaqueUnaryFn_sqrt": "Sqrt"}
