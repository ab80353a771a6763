"""evaluator_ops: ops that ONNX's evaluator lacks or gets wrong, written from the specification.

LRN sums over all channels (onnx 1.22 stops at the size of the batch), LpNormalization takes
absolute values, recurrent ops run in reverse, in both directions, and with all outputs, a
Loop without a condition runs on (onnx 1.22 does not begin), each group of a ConvTranspose has its
own filters and bias (onnx 1.22 adds the first one's to all, and takes minutes), and a Conv pads by
the sizes of space (onnx 1.22 takes the first sizes, batch and channels), a GlobalMaxPool keeps
its rank (onnx 1.22 adds axes by the number of those that are 1), a GridSample has no opinion of
what lies between integers (onnx 1.22 gives 0), a Hardmax before opset 13 takes all axes from
`axis` on as one (onnx 1.22 takes one axis), a LinearRegressor without intercepts
adds none (onnx 1.22 adds NaN), has fractions for coefficients of integers, and makes a row of
a vector, a OneHot takes one
of its two values (onnx 1.22 subtracts them, and infinities become NaN; indices beyond the depth
wrap), an Attention of rank 4
reads no counts of heads (onnx 1.22 divides by them), and an AveragePool has no opinion of windows
that ceil_mode lets reach beyond the image, larger ones or with dilations (onnx 1.22 pads in front
of them), and an Erf of f64 is one (onnx 1.22 rounds it to f32).
SPDX-License-Identifier: Apache-2.0
"""

import math

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops import (op_attention, op_average_pool, op_conv, op_grid_sample, op_hardmax,
                                op_loop)
from onnx.reference.ops.aionnxml import op_linear_regressor


class LRN(OpRun):
    def _run(self, x, alpha=None, beta=None, bias=None, size=None):
        squares = np.zeros_like(x)
        for c in range(x.shape[1]):
            first, last = max(0, c - (size - 1) // 2), min(x.shape[1], c + size // 2 + 1)
            squares[:, c] = np.sum(x[:, first:last] ** 2, axis=1)
        return ((x / (bias + alpha / size * squares) ** beta).astype(x.dtype),)


class LpNormalization(OpRun):
    def _run(self, x, axis=None, p=None):
        norm = np.sum(np.abs(x) ** p, axis=axis, keepdims=True) ** (1 / p)
        return (np.where(norm == 0, 0, x / np.where(norm == 0, 1, norm)).astype(x.dtype),)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn_step(x, h, c, w, r, wb, rb, _):
    return np.tanh(x @ w.T + wb + h @ r.T + rb), c


def gru_step(x, h, c, w, r, wb, rb, before_reset):
    wz, wr, wh = np.split(w, 3)
    rz, rr, rh = np.split(r, 3)
    (wbz, wbr, wbh), (rbz, rbr, rbh) = np.split(wb, 3), np.split(rb, 3)
    update = sigmoid(x @ wz.T + wbz + h @ rz.T + rbz)
    reset = sigmoid(x @ wr.T + wbr + h @ rr.T + rbr)
    if before_reset:
        new = np.tanh(x @ wh.T + wbh + reset * (h @ rh.T + rbh))
    else:
        new = np.tanh(x @ wh.T + wbh + (reset * h) @ rh.T + rbh)
    return (1 - update) * new + update * h, c


def lstm_step(x, h, c, w, r, wb, rb, _):
    i, o, f, g = np.split(x @ w.T + wb + h @ r.T + rb, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def run_recurrent(step, x, w, r, b, h0, c0, direction, before_reset=0):
    """Y [time, directions, batch, hidden], the last h and the last c."""
    count, hidden = w.shape[0], r.shape[-1]
    states = np.zeros((2, count, x.shape[1], hidden), x.dtype)
    states[0] = 0 if h0 is None else h0
    states[1] = 0 if c0 is None else c0
    b = np.zeros((count, 2 * w.shape[1]), x.dtype) if b is None else b
    y = np.zeros((x.shape[0], count, x.shape[1], hidden), x.dtype)
    for d in range(count):
        times = range(x.shape[0])
        if direction == "reverse" or d == 1:
            times = reversed(times)
        h, c = states[:, d]
        for t in times:
            h, c = step(x[t], h, c, w[d], r[d], *np.split(b[d], 2), before_reset)
            y[t, d] = h
        states[0, d], states[1, d] = h, c
    return y, states[0], states[1]


def refuse_options(options, *defaults):
    """Refuses options that this evaluator does not implement. `defaults`: the activations."""
    rest = {name: value for name, value in options.items()
            if name != "hidden_size" and value is not None and value != 0}
    if list(rest.get("activations", ())) in (list(defaults), 2 * list(defaults)):
        del rest["activations"]
    given = list(rest)
    if given:
        raise NotImplementedError(f"recurrent ops with {given}")


class RNN(OpRun):
    step, activations = staticmethod(rnn_step), ["Tanh"]

    def _run(self, X, W, R, B=None, sequence_lens=None, initial_h=None, initial_c=None, P=None,
             direction=None, linear_before_reset=0, **rest):
        refuse_options({**rest, "P": P}, *self.activations)
        results = run_recurrent(self.step, X, W, R, B, initial_h, initial_c, direction,
                                linear_before_reset)
        return results[:len(self.onnx_node.output)]


class GRU(RNN):
    step, activations = staticmethod(gru_step), ["Sigmoid", "Tanh"]


class LSTM(RNN):
    step, activations = staticmethod(lstm_step), ["Sigmoid", "Tanh", "Tanh"]


class GlobalMaxPool(OpRun):
    def _run(self, x):
        return (np.max(x, axis=tuple(range(2, x.ndim)), keepdims=True),)


class GridSample(op_grid_sample.GridSample):
    def _run(self, X, grid, mode=None, **options):
        if X.dtype.kind != "f" and mode != "nearest":
            raise NotImplementedError("GridSample between integers")
        return super()._run(X, grid, mode=mode, **options)


class Hardmax(op_hardmax.Hardmax):
    def _run(self, x, axis=None):
        is_old = self.run_params["opsets"][""] < 13
        default = 1 if is_old else -1
        axis = next((a.i for a in self.onnx_node.attribute if a.name == "axis"), default)
        axis += x.ndim if axis < 0 else 0
        rows = (int(np.prod(x.shape[:axis])), int(np.prod(x.shape[axis:])))
        wide = x.astype(np.float64).reshape(rows if is_old else x.shape)
        along = 1 if is_old else axis
        y = np.zeros_like(wide)
        if x.size:
            largest = np.argmax(wide, along)
            np.put_along_axis(y, np.expand_dims(largest, along), 1, along)
        return (y.reshape(x.shape).astype(x.dtype),)


class LinearRegressor(op_linear_regressor.LinearRegressor):
    def _run(self, x, coefficients=None, intercepts=None, targets=1, post_transform=None):
        x = np.atleast_2d(x if x.dtype.kind == "f" else x.astype(np.float32))
        return super()._run(x, coefficients=coefficients, intercepts=intercepts or [0.0] * targets,
                            targets=targets, post_transform=post_transform)


class Loop(op_loop.Loop):
    def _run(self, M, cond, *args, **options):
        return super()._run(M, np.array(True) if cond is None else cond, *args, **options)


class Conv(op_conv.Conv):
    def _run(self, X, W, B=None, auto_pad=None, dilations=None, pads=None, strides=None, **options):
        space = X.ndim - 2
        strides, dilations = strides or [1] * space, dilations or [1] * space
        if auto_pad == "VALID":
            pads = [0] * 2 * space
        elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
            last = [(-(-size // stride) - 1) * stride for size, stride in zip(X.shape[2:], strides)]
            missing = [max(0, at + (taps - 1) * dilation + 1 - size) for at, taps, dilation, size
                       in zip(last, W.shape[2:], dilations, X.shape[2:])]
            less, more = [n // 2 for n in missing], [n - n // 2 for n in missing]
            pads = less + more if auto_pad == "SAME_UPPER" else more + less
        return super()._run(X, W, B, auto_pad="NOTSET", dilations=dilations, pads=pads,
                            strides=strides, **options)


class ConvTranspose(OpRun):
    def _run(self, X, W, B=None, auto_pad=None, dilations=None, group=1, kernel_shape=None,
             output_padding=None, output_shape=None, pads=None, strides=None):
        if output_shape or auto_pad not in (None, "NOTSET"):
            raise NotImplementedError("pads that follow from the size of the result")
        space, taps, sizes = X.ndim - 2, W.shape[2:], X.shape[2:]
        strides, dilations = strides or [1] * space, dilations or [1] * space
        pads, extra = pads or [0] * 2 * space, output_padding or [0] * space
        whole = [(size - 1) * stride + (count - 1) * dilation + 1 + more for
                 size, stride, count, dilation, more in zip(sizes, strides, taps, dilations, extra)]
        images = X.reshape(X.shape[0], group, -1, *sizes)
        filters = W.reshape(group, -1, W.shape[1], *taps)
        result = np.zeros((X.shape[0], group, W.shape[1], *whole), X.dtype)
        for tap in np.ndindex(*taps):
            places = [slice(t * dilation, t * dilation + (size - 1) * stride + 1, stride)
                      for t, dilation, size, stride in zip(tap, dilations, sizes, strides)]
            part = filters[(slice(None),) * 3 + tap]
            added = np.einsum("ngc...,gcm->ngm...", images, part)
            result[(slice(None),) * 3 + tuple(places)] += added
        kept = [slice(low, size - high) for low, high, size in zip(pads, pads[space:], whole)]
        result = result.reshape(X.shape[0], -1, *whole)[(slice(None),) * 2 + tuple(kept)]
        return (result if B is None else result + B.reshape(-1, *[1] * space),)


class OneHot(OpRun):
    def _run(self, indices, depth, values, axis=None):
        count = int(np.reshape(depth, ()))
        places = np.arange(count).astype(np.float64)
        given = np.expand_dims(np.trunc(indices.astype(np.float64)), axis)
        shape = np.ones(given.ndim, int)
        shape[axis] = count
        places = places.reshape(shape)
        return (np.where((given == places) | (given + count == places), values[1], values[0]),)


class Attention(op_attention.Attention):
    def _run(self, Q, *others, q_num_heads=None, kv_num_heads=None, **options):
        if Q.ndim == 4:
            q_num_heads = kv_num_heads = None
        return super()._run(Q, *others, q_num_heads=q_num_heads, kv_num_heads=kv_num_heads,
                            **options)


class AveragePool(op_average_pool.AveragePool_19):
    def _run(self, x, ceil_mode=None, dilations=None, kernel_shape=None, **options):
        is_wide = any(taps > size for taps, size in zip(kernel_shape, x.shape[2:]))
        if ceil_mode and (is_wide or any(dilation != 1 for dilation in dilations or ())):
            raise NotImplementedError("windows beyond the image")
        return super()._run(x, ceil_mode=ceil_mode, dilations=dilations,
                            kernel_shape=kernel_shape, **options)


class Erf(OpRun):
    def _run(self, x):
        return (np.vectorize(math.erf, otypes=["d"])(x).astype(x.dtype),)


OPS = [LRN, LpNormalization, RNN, GRU, LSTM, GlobalMaxPool, GridSample, Loop, Conv, ConvTranspose,
       LinearRegressor, Hardmax, OneHot, Attention, AveragePool, Erf]
