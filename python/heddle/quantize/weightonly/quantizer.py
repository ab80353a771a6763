"""quantizer: the quantisation of weights alone; activations stay in f32.

Layers that share a weight share its integers. Products of inputs are summed as samples run, of so
many tensors at once as memory has place for. SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from ...library import RefusedError
from .. import observe
from ..branches import decibels
from ..graph import LEAST_OPSET, OPSET_OF_BLOCKS
from ..mixed import Choice, Rounding, sensitivity
from ..places import find_layers
from ..smooth import inputs_axis, move
from ..work import Work
from . import awq, gptq, lowbit
from .forms import Forms

MEMORY = 2**30  # bytes of products of inputs that are summed at once
ROWS = 2048  # of a weight that are rounded at once


class Weights(Work):
    """Weights become integers of 4 or 8 bits."""

    @property
    def opset(self):
        settings = self.settings
        has_blocks = settings.form == "dequantize" and (settings.bits == 4 or settings.block)
        return OPSET_OF_BLOCKS if has_blocks else LEAST_OPSET

    def _find(self):
        layers, left = find_layers(self.network, self.settings)
        for key, layer in list(layers.items()):
            reason = self._reason(layer)
            if reason:
                left[key] = reason
                del layers[key]
        return layers, left

    def _reason(self, layer):
        """Why a layer's weight stays as it is, or None."""
        array, bits = self.network.array(layer.weight), self.settings.bits
        if not np.isfinite(array).all():
            at = tuple(map(int, np.argwhere(~np.isfinite(array))[0]))
            raise RefusedError(
                f"'{self.network.name}': the weight '{layer.weight}' of '{self._label(layer.key)}'"
                f" has {array[at]} at {list(at)}, but finite numbers are needed; --keep leaves "
                "the layer")
        rows, columns = self._rows(layer).shape
        if not array.size:
            return "its weight has no elements"
        if layer.kind == "Gather" and self.settings.form == "matmulnbits" and (
                columns * bits % 8):
            return "its rows are no whole bytes"
        block = self.settings.block or columns
        count = -(-columns // block)
        size = rows * count * (block * bits // 8 + 4)
        return (f"its weight of {array.nbytes} bytes would take {size}" if size >= array.nbytes
                else None)

    def _rows(self, layer):
        """A weight with a row for each output channel."""
        array = self.network.array(layer.weight)
        return array.T if self._is_turned(layer) else array

    def _is_turned(self, layer):
        return layer.kind != "Gather" and inputs_axis(self.network, layer) == 0

    def _made(self):
        if self.settings.method == "awq":
            layers, _ = self._find()
            self.notes.append(f"{self._rescale(layers)} tensors are scaled by channels")
        self.layers, self.left = self._find()
        self.readers = {}
        for layer in self.layers.values():
            self.readers.setdefault(layer.weight, []).append(layer)
        widths = [self.settings.bits]
        if self.settings.mixed and self.settings.bits == 4:
            widths.append(8)
        self.coded, self.errors, self.alone = {}, {}, {}
        for weight, products in self._products():
            for bits in widths:
                self.coded[weight, bits] = self._round(self.readers[weight][0], products, bits)
        self.widths = dict.fromkeys(self.readers, self.settings.bits)
        self._weigh()
        return self.model(self.widths)

    def model(self, widths):
        """The model with weights of these numbers of bits; others are in f32."""
        coded = {layer.key: self.coded[layer.weight, widths[layer.weight]]
                 for layer in self.layers.values() if layer.weight in widths}
        return Forms(self.network, coded, self.settings).model()

    def values(self, weight, bits):
        """A weight as its integers stand for it."""
        found = self.coded[weight, bits].values()
        return np.ascontiguousarray(found.T if self._is_turned(self.readers[weight][0]) else found)

    def _in_parts(self, wanted):
        """({item: its tensors}, {tensor: Moments}), for as many items at once as memory allows."""
        part, size = {}, 0
        for item, tensors in wanted.items():
            more = sum(4 * self.inputs[name] ** 2 for name in tensors)
            if part and size + more > MEMORY:
                yield part, self._moments(part)
                part, size = {}, 0
            part[item], size = tensors, size + more
        if part:
            yield part, self._moments(part)

    def _moments(self, part):
        names = list(dict.fromkeys(name for tensors in part.values() for name in tensors))
        return observe.moments(self.network, names, self.samples, self.settings.threads)

    def _count_inputs(self, layers):
        self.inputs = {layer.x: self._rows(layer).shape[1] for layer in layers
                       if layer.kind != "Gather"}

    def _rescale(self, layers):
        """Scales channels as awq finds it; how many tensors there are."""
        groups, count = awq.groups(self.network, layers), 0
        self._count_inputs(layers.values())

        def quantise(rows):
            return self._nearest(rows, self.settings.bits)
        for part, moments in self._in_parts({name: [name] for name in groups}):
            for name in part:
                weights = [self._rows(layer) for layer in groups[name]]
                scale = awq.best_scale(weights, moments[name], quantise)
                if scale is not None:
                    move(self.network, name, groups[name], scale)
                    count += 1
        self.network.settle()
        return count

    def _products(self):
        """(weight, products of inputs of all layers that read it, or None) of each weight."""
        wanted = {weight: list(dict.fromkeys(layer.x for layer in layers if layer.kind != "Gather"))
                  for weight, layers in self.readers.items()}
        if self.settings.method == "rtn":
            yield from ((weight, None) for weight in wanted)
            return
        self._count_inputs(self.layers.values())
        for part, moments in self._in_parts(wanted):
            for weight, tensors in part.items():
                total = sum(moments[name].products * moments[name].count for name in tensors)
                yield weight, total / max(sum(moments[name].count for name in tensors), 1) if (
                    tensors) else None

    def _nearest(self, rows, bits, how="minmax"):
        grid = lowbit.Grid(bits, self.settings.symmetric)
        return lowbit.nearest(rows, grid, self.settings.block or rows.shape[1], how)

    def _round(self, layer, products, bits):
        """The Coded of a layer's weight."""
        settings, rows = self.settings, self._rows(layer)
        grid, block = lowbit.Grid(bits, settings.symmetric), settings.block or rows.shape[1]
        if products is not None and not np.isfinite(products).all():
            self.notes.append(f"'{self._label(layer.key)}' reads numbers whose squares are no "
                              "numbers of f32: its weights are rounded to the nearest")
            products = None
        found = None if products is None or settings.method != "gptq" else gptq.factor(
            products, settings.damping, settings.act_order)

        def code(part):
            if found is not None:
                return gptq.rounded(part, found, grid, block, settings.weight_scale)
            if products is not None and settings.method == "awq":
                return awq.clipped(part, products, grid, block)
            return self._nearest(part, bits, settings.weight_scale)
        parts = [code(rows[at:at + ROWS]) for at in range(0, len(rows), ROWS)]
        coded = lowbit.Coded(grid, block, *(np.concatenate([getattr(each, field) for each in parts])
                                            for field in ("codes", "scale", "zero")))
        self.errors[layer.weight, bits] = _decibels(rows, coded, products)
        return coded

    def _weigh(self):
        """Measures what weights do to the outputs, and gives some of them more bits."""
        if not self.settings.sensitivity and not self.settings.mixed:
            return
        switches = Rounding(self)
        self.alone = sensitivity(switches)
        if self.settings.mixed:
            choice = Choice(switches, self.alone)
            self.widths = switches.widths(choice.order[choice.count():])
            for layer in list(self.layers.values()):
                if layer.weight not in self.widths:
                    error = self.alone[layer.weight, self.settings.bits]
                    self.left[layer.key] = f"alone it has an error of {error:.3g} in the outputs"
                    del self.layers[layer.key]

    def _told(self):
        settings = self.settings
        return {"weights": settings.weights, "method": settings.method, "block": settings.block,
                "symmetric": settings.symmetric,
                "layers": [self._layer(layer) for layer in self.layers.values()]}

    def _layer(self, layer):
        key = layer.weight, self.widths[layer.weight]
        return {"name": self._label(layer.key), "type": layer.kind, "bits": key[1],
                "decibels": self.errors[key],
                **({"alone": self.alone[key]} if self.alone else {})}


def _decibels(rows, coded, products):
    """Signal to noise of a layer's results, or without products of inputs of its weight."""
    signal = noise = 0.0
    for at in range(0, len(rows), ROWS):
        part = slice(at, at + ROWS)
        whole = rows[part]
        off = lowbit.Coded(coded.grid, coded.block, coded.codes[part], coded.scale[part],
                           coded.zero[part]).values() - whole
        for each, sign in ((whole, 1), (off, 0)):
            moved = each if products is None else each @ products
            total = float((moved * each).sum(dtype=np.float64))
            signal, noise = (signal + total, noise) if sign else (signal, noise + total)
    return decibels(signal, max(noise, 0.0))
