"""jax_onnx: an ONNX graph as a function of JAX, for the ops that the networks here are exported to.

Arrays of NumPy are known while XLA traces, as shapes are; what is computed of them alone stays so.
"""

import jax
import numpy as np
import onnx
from jax import lax
from jax import numpy as jnp
from onnx import numpy_helper

OPS = {}


def op(*names):
    def add(function):
        OPS.update(dict.fromkeys(names, function))
        return function
    return add


def library(*values):
    return np if all(value is None or isinstance(value, (np.ndarray, np.generic))
                     for value in values) else jnp


def elementwise(name, function):
    OPS[name] = lambda a, *values: function(library(*values), *values)


for each, by in {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Pow": "power", "Sqrt": "sqrt",
    "Tanh": "tanh", "Exp": "exp", "Neg": "negative", "Equal": "equal", "Where": "where",
    "Less": "less", "And": "logical_and", "Not": "logical_not", "Greater": "greater"}.items():
    elementwise(each, lambda xp, *values, by=by: getattr(xp, by)(*values))
elementwise("Div", lambda xp, x, y: xp.divide(x, y) if np.issubdtype(x.dtype, np.floating)
            else xp.floor_divide(x, y))
elementwise("Erf", lambda xp, x: jax.scipy.special.erf(x))
elementwise("Relu", lambda xp, x: jax.nn.relu(x))
elementwise("Sigmoid", lambda xp, x: jax.nn.sigmoid(x))
elementwise("Identity", lambda xp, x: x)


@op("Constant")
def constant(a):
    return a["value"]


@op("MatMul")
def matmul(a, x, y):
    return library(x, y).matmul(x, y)


@op("Gemm")
def gemm(a, x, y, z=None):
    x, y = (x.T if a.get("transA") else x), (y.T if a.get("transB") else y)
    product = a.get("alpha", 1.0) * (x @ y)
    return product if z is None else product + a.get("beta", 1.0) * z


@op("Clip")
def clip(a, x, low=None, high=None):
    return jnp.clip(x, low, high)


@op("Softmax")
def softmax(a, x):
    return jax.nn.softmax(x, a.get("axis", -1))


@op("Shape")
def shape(a, x):
    return np.array(x.shape[a.get("start", 0):a.get("end")], np.int64)


@op("Cast")
def cast(a, x):
    return library(x).asarray(x, onnx.helper.tensor_dtype_to_np_dtype(a["to"]))


@op("Reshape")
def reshape(a, x, sizes):
    sizes = [x.shape[i] if size == 0 else int(size) for i, size in enumerate(sizes)]
    return library(x).reshape(x, sizes)


@op("Transpose")
def transpose(a, x):
    return library(x).transpose(x, a.get("perm"))


@op("Flatten")
def flatten(a, x):
    return x.reshape(int(np.prod(x.shape[:a.get("axis", 1)])), -1)


@op("Unsqueeze")
def unsqueeze(a, x, axes):
    return library(x).expand_dims(x, tuple(int(axis) for axis in axes))


@op("Squeeze")
def squeeze(a, x, axes=None):
    return library(x).squeeze(x, None if axes is None else tuple(int(axis) for axis in axes))


@op("Concat")
def concat(a, *values):
    return library(*values).concatenate(values, a["axis"])


@op("Split")
def split(a, x):
    return tuple(library(x).split(x, a["outputs"], a.get("axis", 0)))


@op("Slice")
def slice_(a, x, starts, ends, axes=None, steps=None):
    places = [slice(None)] * x.ndim
    axes = range(len(starts)) if axes is None else axes
    steps = np.ones(len(starts), np.int64) if steps is None else steps
    for axis, start, end, step in zip(axes, starts, ends, steps):
        places[axis] = slice(int(start), int(end), int(step))
    return x[tuple(places)]


@op("Gather")
def gather(a, x, indices):
    return library(x, indices).take(x, indices, axis=a.get("axis", 0))


@op("Expand")
def expand(a, x, sizes):
    return library(x).broadcast_to(x, np.broadcast_shapes(x.shape, tuple(map(int, sizes))))


@op("ConstantOfShape")
def constant_of_shape(a, sizes):
    value = a.get("value", np.zeros(1, np.float32))
    return np.full([int(size) for size in sizes], value[0], value.dtype)


@op("Range")
def range_(a, start, end, step):
    return np.arange(start, end, step)


@op("Trilu")
def trilu(a, x, k=0):
    xp = library(x)
    return (xp.triu if a.get("upper", 1) else xp.tril)(x, int(k))


def reduction(name):
    def reduce(a, x, axes=None):
        axes = a.get("axes") if axes is None else axes
        axes = None if axes is None else tuple(int(axis) for axis in axes)
        return getattr(library(x), name)(x, axis=axes, keepdims=bool(a.get("keepdims", 1)))
    return reduce


OPS["ReduceMean"], OPS["ReduceSum"] = reduction("mean"), reduction("sum")


@op("LayerNormalization")
def layer_norm(a, x, scale, bias=None):
    axes = tuple(range(a.get("axis", -1) % x.ndim, x.ndim))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    y = (x - mean) * lax.rsqrt(variance + a.get("epsilon", 1e-5)) * scale
    return y if bias is None else y + bias


@op("BatchNormalization")
def batch_norm(a, x, scale, bias, mean, variance):
    axes, along = (0, *range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))
    if a.get("training_mode"):
        mean, variance = x.mean(axes), x.var(axes)
    y = (x - mean.reshape(along)) * lax.rsqrt(variance.reshape(along) + a.get("epsilon", 1e-5))
    return y * scale.reshape(along) + bias.reshape(along)


def pairs(pads, rank):
    pads = pads or [0] * (2 * rank)
    return list(zip(pads[:rank], pads[rank:]))


@op("Conv")
def conv(a, x, w, bias=None):
    rank = x.ndim - 2
    y = lax.conv_general_dilated(x, w, a.get("strides", [1] * rank), pairs(a.get("pads"), rank),
                                 rhs_dilation=a.get("dilations"),
                                 feature_group_count=a.get("group", 1))
    return y if bias is None else y + bias.reshape(1, -1, *[1] * rank)


@op("MaxPool")
def max_pool(a, x):
    rank = x.ndim - 2
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, *a["kernel_shape"]),
                             (1, 1, *a.get("strides", [1] * rank)),
                             [(0, 0), (0, 0), *pairs(a.get("pads"), rank)])


@op("GlobalAveragePool")
def global_average_pool(a, x):
    return x.mean(tuple(range(2, x.ndim)), keepdims=True)


@op("Resize")
def resize(a, x, roi=None, scales=None, sizes=None):
    for axis, scale in enumerate(scales):
        x = jnp.repeat(x, int(scale), axis) if scale != 1 else x
    return x


@op("LSTM")
def lstm(a, x, w, r, b, lengths=None, h=None, c=None):
    """One direction; gates i, o, f, c."""
    h0 = jnp.zeros((x.shape[1], r.shape[2])) if h is None else h[0]
    c0 = jnp.zeros_like(h0) if c is None else c[0]
    inputs = x @ w[0].T + (b[0][:b.shape[1] // 2] + b[0][b.shape[1] // 2:])

    def cell(state, step):
        h, c = state
        i, o, f, g = jnp.split(step + h @ r[0].T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    (h, c), ys = lax.scan(cell, (h0, c0), inputs)
    return ys[:, None], h[None], c[None]


def attributes_of(node):
    values = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    return {"outputs": len(node.output)} | {
        name: numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
        for name, value in values.items()}


def function_of(model):
    """f(weights by name, inputs by name) -> the first output; what no weight is stays as it is."""
    steps = [(node, attributes_of(node)) for node in model.graph.node]
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}

    def run(weights, feeds):
        values = {"": None, **constants, **weights, **feeds}
        for node, attributes in steps:
            results = OPS[node.op_type](attributes, *[values[name] for name in node.input])
            results = results if isinstance(results, tuple) else (results,)
            values.update(zip(node.output, results))
        return values[model.graph.output[0].name]

    return run
