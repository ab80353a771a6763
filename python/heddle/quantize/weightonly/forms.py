"""forms: models whose weights are integers, read by MatMulNBits or DequantizeLinear.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from ...onnx_graph import make_node
from ..emit import Emitter
from ..graph import attribute, key_of
from ..weights import as_vector

MICROSOFT = "com.microsoft"


def packed(codes, bits):
    """Integers along the last axis as bytes, the lower half of a byte first."""
    if bits == 8:
        return codes
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, codes.shape[-1] % 2)])
    return codes[..., ::2] | codes[..., 1::2] << 4


class Forms:
    """The nodes of a model whose layers have integers ({layer: Coded}) for weights."""

    def __init__(self, network, coded, settings):
        self.network, self.coded, self.settings = network, coded, settings
        self.emitter = Emitter(network, None)
        self._made = {}  # (weight, integers, what is made of them) -> names

    def model(self):
        nodes, emitter = [], self.emitter
        for node in self.network.nodes:
            self._node(node)
            nodes += emitter.nodes
            emitter.nodes.clear()
        made = emitter.model([*emitter.before, *nodes])
        if any(node.domain == MICROSOFT for node in nodes) and not any(
                each.domain == MICROSOFT for each in made.opset_import):
            made.opset_import.append(self.network.onnx.helper.make_opsetid(MICROSOFT, 1))
        return made

    def _node(self, node):
        """Adds what stands for a node."""
        copy = type(node)()
        copy.CopyFrom(node)
        coded = self.coded.get(key_of(node))
        if coded is not None and self.settings.form == "dequantize":
            place = 0 if node.op_type == "Gather" else 1
            copy.input[place] = self._dequantized(node, node.input[place], coded)
        elif coded is not None:
            copy = (self._gather if node.op_type == "Gather" else self._product)(node, coded)
        self.emitter.nodes.append(copy)

    def _once(self, weight, coded, kind, make):
        """Names of tensors made of a weight's integers, once for all that read it."""
        key = weight, coded.grid.bits, kind
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _product(self, node, coded):
        """A MatMulNBits; a sum after it where the bias of a Gemm is no vector of constants."""
        rows, columns = coded.codes.shape
        alpha = attribute(node, "alpha", 1.0) if node.op_type == "Gemm" else 1.0
        inputs = [node.input[0], *self._once(node.input[1], coded, f"product {alpha}", lambda: (
            self._blocks(node.input[1], coded, alpha)))]
        bias = self._bias(node, rows)
        if isinstance(bias, np.ndarray):
            name = self.emitter.constant(f"{key_of(node)}/bias", bias)
            inputs += [""] * (5 - len(inputs)) + [name]
        more = ({"accuracy_level": self.settings.accuracy_level}
                if self.settings.accuracy_level else {})
        made = make_node("MatMulNBits", inputs, list(node.output), node.name, domain=MICROSOFT,
                         K=columns, N=rows, bits=coded.grid.bits, block_size=coded.block, **more)
        if not isinstance(bias, str):
            return made
        made.output[0] = self.emitter.name(f"{key_of(node)}/product")
        made.name = made.output[0]
        self.emitter.nodes.append(made)
        return make_node("Add", [made.output[0], bias], list(node.output), node.name)

    def _bias(self, node, rows):
        """The bias of a Gemm: an array if MatMulNBits can have it, else a name; None if none."""
        if len(node.input) < 3 or not node.input[2]:
            return None
        name, beta = node.input[2], attribute(node, "beta", 1.0)
        array = self.network.array(name)
        vector = as_vector(array) if array is not None else None
        if vector is not None and vector.size == rows:
            return (vector * np.float32(beta)).astype(np.float32)
        if beta == 1:
            return name
        beta = self.emitter.constant(f"{key_of(node)}/beta", np.float32(beta))
        return self.emitter.node("Mul", [name, beta], f"{key_of(node)}/scaled")

    def _blocks(self, weight, coded, alpha=1.0):
        """Names of the bytes [rows, blocks, bytes], scales and zero points of MatMulNBits."""
        bits, (rows, blocks) = coded.grid.bits, coded.scale.shape
        wide = np.repeat(coded.zero, coded.block, axis=1)  # what fills the last block is 0
        wide[:, :coded.codes.shape[1]] = coded.codes
        made = self.emitter.constant
        names = [made(f"{weight}/integers",
                      packed(wide, bits).reshape(rows, blocks, coded.block * bits // 8)),
                 made(f"{weight}/scale", (coded.scale * np.float32(alpha)).astype(np.float32))]
        if not coded.grid.symmetric:
            names.append(made(f"{weight}/zero", packed(coded.zero, bits)))
        return names

    def _gather(self, node, coded):
        """A GatherBlockQuantized."""
        def make():
            constant, name, bits = self.emitter.constant, node.input[0], coded.grid.bits
            names = [constant(f"{name}/integers", packed(coded.codes, bits)),
                     constant(f"{name}/scale", coded.scale)]
            return names if coded.grid.symmetric else [
                *names, constant(f"{name}/zero", packed(coded.zero, bits))]
        data, *parameters = self._once(node.input[0], coded, "rows", make)
        return make_node("GatherBlockQuantized", [data, node.input[1], *parameters],
                         list(node.output), node.name, domain=MICROSOFT, gather_axis=0,
                         quantize_axis=1, block_size=coded.block, bits=coded.grid.bits)

    def _dequantized(self, node, weight, coded):
        """The name of the weight after a DequantizeLinear, in the form that the layer reads."""
        along = 1 if node.op_type == "Gather" or attribute(node, "transB", 0) else 0

        def make():
            onnx, grid = self.network.onnx, coded.grid
            kind = f"{'' if grid.symmetric else 'U'}INT{grid.bits}"
            turned = [each if along else each.T for each in (coded.codes, coded.scale, coded.zero)]
            is_whole = coded.scale.shape[1] == 1 and coded.block == coded.codes.shape[1]
            codes, scale, zero = (each.reshape(-1) if is_whole and place else each
                                  for place, each in enumerate(turned))
            shift = grid.middle if grid.symmetric else 0

            def stored(text, array):
                name = self.emitter.name(f"{weight}/{text}")
                data = packed((array.reshape(-1) - np.uint8(shift)) & np.uint8(grid.most),
                              grid.bits)
                self.emitter.constants.append(onnx.helper.make_tensor(
                    name, getattr(onnx.TensorProto, kind), array.shape, data.tobytes(), raw=True))
                return name
            names = [stored("integers", codes), self.emitter.constant(
                f"{weight}/scale", np.ascontiguousarray(scale))]
            if not grid.symmetric:
                names.append(stored("zero", zero))
            axes = {"axis": 1 - along} if is_whole else {"axis": along, "block_size": coded.block}
            return self.emitter.node("DequantizeLinear", names, f"{weight}/dequantized",
                                     self.emitter.before, **axes)
        return self._once(weight, coded, f"dequantized {along}", make)
