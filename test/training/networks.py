"""networks: small models to train, with an op of each kind that training changes."""

import numpy as np
from heddle.onnx_graph import make_model, make_node


def initializers(seed=0, **shapes):
    """Numbers of these shapes, by name; __ stands for a dot."""
    random = np.random.default_rng(seed)
    return {name.replace("__", "."): (random.standard_normal(shape) * 0.5).astype(np.float32)
            for name, shape in shapes.items()}


def mlp(seed=0, classes=4):
    """[n, 6] -> scores [n, classes]; `unused` is an initializer that nothing reads."""
    return make_model([make_node("Gemm", "x first.weight first.bias", "h", "first"),
                  make_node("Tanh", "h", "t", "tanh"),
                  make_node("MatMul", "t second.weight", "m", "second"),
                  make_node("Add", "m second.bias", "y", "add")],
                 {"x": ["n", 6]}, {"y": ["n", classes]},
                 initializers(seed, first__weight=(6, 5), first__bias=(5,),
                              second__weight=(5, classes), second__bias=(classes,), unused=(2, 2)))


def convolutional(seed=0):
    """[n, 2, 6, 6] -> scores [n, 3], with a batch normalisation and a dropout."""
    fixed = {"norm.scale": np.ones(4), "norm.variance": np.ones(4), "norm.bias": np.zeros(4),
             "norm.mean": np.zeros(4), "ratio": 0.3}
    return make_model([make_node("Conv", "x conv.weight", "c", "conv", pads=[1, 1, 1, 1]),
                  make_node("BatchNormalization", "c norm.scale norm.bias norm.mean norm.variance",
                            "b", "norm", momentum=0.8),
                  make_node("Relu", "b", "r", "relu"),
                  make_node("MaxPool", "r", "p", "pool", kernel_shape=[2, 2], strides=[2, 2]),
                  make_node("Flatten", "p", "f", "flat"),
                  make_node("Dropout", "f ratio", "d", "dropout"),
                  make_node("MatMul", "d classes.weight", "y", "classes")],
                 {"x": ["n", 2, 6, 6]}, {"y": ["n", 3]},
                 {**initializers(seed, conv__weight=(4, 2, 3, 3), classes__weight=(36, 3)),
                  **{name: np.float32(value) for name, value in fixed.items()}})


def batch(seed, shape, classes=None):
    random = np.random.default_rng(seed)
    labels = ({} if classes is None
              else {"labels": random.integers(0, classes, shape[0], dtype=np.int64)})
    return {"x": random.standard_normal(shape).astype(np.float32), **labels}
