"""networks: small models to train, with an op of each kind that training changes."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def initializers(seed=0, **shapes):
    random = np.random.default_rng(seed)
    return [numpy_helper.from_array(
        (random.standard_normal(shape) * 0.5).astype(np.float32), name.replace("__", "."))
        for name, shape in shapes.items()]


def model(nodes, inputs, outputs, weights, opset=17):
    def values(named):
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
                for name, dims in named.items()]
    graph = helper.make_graph(nodes, "network", values(inputs), values(outputs), weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def mlp(seed=0, classes=4):
    """[n, 6] -> scores [n, classes]; `unused` is an initializer that nothing reads."""
    return model(
        [helper.make_node("Gemm", ["x", "first.weight", "first.bias"], ["h"], "first"),
         helper.make_node("Tanh", ["h"], ["t"], "tanh"),
         helper.make_node("MatMul", ["t", "second.weight"], ["m"], "second"),
         helper.make_node("Add", ["m", "second.bias"], ["y"], "add")],
        {"x": ["n", 6]}, {"y": ["n", classes]},
        initializers(seed, first__weight=(6, 5), first__bias=(5,), second__weight=(5, classes),
                     second__bias=(classes,), unused=(2, 2)))


def convolutional(seed=0):
    """[n, 2, 6, 6] -> scores [n, 3], with a batch normalisation and a dropout."""
    ones = [numpy_helper.from_array(np.ones(4, np.float32), name)
            for name in ("norm.scale", "norm.variance")]
    zeros = [numpy_helper.from_array(np.zeros(4, np.float32), name)
             for name in ("norm.bias", "norm.mean")]
    ratio = numpy_helper.from_array(np.float32(0.3), "ratio")
    return model(
        [helper.make_node("Conv", ["x", "conv.weight"], ["c"], "conv", pads=[1, 1, 1, 1]),
         helper.make_node("BatchNormalization", ["c", "norm.scale", "norm.bias", "norm.mean",
                                                 "norm.variance"], ["b"], "norm", momentum=0.8),
         helper.make_node("Relu", ["b"], ["r"], "relu"),
         helper.make_node("MaxPool", ["r"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
         helper.make_node("Flatten", ["p"], ["f"], "flat"),
         helper.make_node("Dropout", ["f", "ratio"], ["d"], "dropout"),
         helper.make_node("MatMul", ["d", "classes.weight"], ["y"], "classes")],
        {"x": ["n", 2, 6, 6]}, {"y": ["n", 3]},
        [*initializers(seed, conv__weight=(4, 2, 3, 3), classes__weight=(36, 3)), *ones, *zeros,
         ratio])


def batch(seed, shape, classes=None):
    random = np.random.default_rng(seed)
    labels = ({} if classes is None
              else {"labels": random.integers(0, classes, shape[0], dtype=np.int64)})
    return {"x": random.standard_normal(shape).astype(np.float32), **labels}
