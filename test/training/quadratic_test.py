"""Quadratic layers hold the formulas that they are named by, learn, and can be taken away."""

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node
from heddle_lab import quadratic
from heddle.training import Trainer
from onnx import TensorProto, numpy_helper

from networks import batch, convolutional, initializers, mlp

pytestmark = pytest.mark.usefixtures("compiler")

OPTIONS = {"cache": False, "threads": 1}


def normed(x, mean=0.0, variance=1.0):
    return (x - mean) / np.sqrt(variance + quadratic.EPSILON)


FORMULAS = {
    "bilinear": lambda x, w, b, get: np.einsum(
        "ni,ioj,nj->no", x, get("first.a.weight").reshape(6, 5, 6), x),
    "squared_input": lambda x, w, b, get: (x * x) @ w + b,
    "square": lambda x, w, b, get: (x @ w + b) ** 2,
    "product": lambda x, w, b, get: (x @ get("first.a.weight")) * (x @ w + b),
    "sum": lambda x, w, b, get: normed(x @ get("first.a.weight")) * get("first.a.norm.scale")
    * normed(x @ get("first.b.weight")) * get("first.b.norm.scale") + normed(x @ w + b),
}


@pytest.mark.parametrize("kind", quadratic.KINDS)
def test_a_layer_is_its_formula(kind):
    made = quadratic.convert(mlp(), kind, ["first"])
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    x = batch(1, (7, 6))["x"]
    hidden = FORMULAS[kind](x, values["first.weight"], values["first.bias"], values.__getitem__)
    expected = np.tanh(hidden) @ values["second.weight"] + values["second.bias"]
    result, = heddle.compile(made, **OPTIONS).run(None, {"x": x})
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", quadratic.KINDS)
def test_quadratic_layers_learn(kind):
    trainer = Trainer(quadratic.convert(mlp(), kind), learning_rate=0.02, **OPTIONS)
    x = batch(2, (64, 6))["x"]
    feeds = {"x": x, "labels": (x[:, 0] * x[:, 1] > 0).astype(np.int64)}  # which no line parts
    losses = [trainer.step(feeds) for _ in range(150)]
    assert losses[-1] < 0.5 * losses[0]


def test_a_convolution_keeps_its_normalisation_in_the_linear_part():
    made = quadratic.convert(convolutional(), "sum", ["conv"])
    ops = [node.op_type for node in made.graph.node]
    assert ops[:8] == ["Conv", "BatchNormalization"] * 3 + ["Mul", "Add"] and ops[8] == "Relu"
    assert sum("norm.scale" in node.input for node in made.graph.node) == 1
    trainer = Trainer(made, learning_rate=0.01, **OPTIONS)
    feeds = batch(3, (8, 2, 6, 6), 3)
    losses = [trainer.step(feeds) for _ in range(40)]
    assert losses[-1] < losses[0]


def deep(width=6, seed=4):
    """[n, 6] -> scores [n, 2], of layers that can be taken out but for the last."""
    nodes, last, shapes = [], "x", {}
    for i, name in enumerate(("one", "two", "three")):
        nodes += [make_node("Gemm", [last, f"{name}.weight"], f"h{i}", name),
                  make_node("Tanh", f"h{i}", f"t{i}", f"tanh{i}")]
        last, shapes[f"{name}__weight"] = f"t{i}", (width, width)
    nodes.append(make_node("MatMul", [last, "scores.weight"], "y", "scores"))
    return make_model(nodes, {"x": ["n", width]}, {"y": ["n", 2]},
                 initializers(seed, **shapes, scores__weight=(width, 2)))


def test_layers_are_ranked_by_what_they_cost_and_bring():
    made = quadratic.convert(deep(), "product", ["two"])
    brings = {"one": 0.01, "two": 0.3, "three": 0.0}

    def accuracy(model):
        names = {node.name.split(".")[0] for node in model.graph.node}
        return 0.5 + sum(value for name, value in brings.items() if name in names)

    found = quadratic.indicators(made, accuracy, {"x": (1, 6)})
    assert [each.layer for each in found] == ["three", "one", "two"]
    assert [each.loss for each in found] == pytest.approx([0, 0.01, 0.3])
    # 36 weights each, 72 of the quadratic one, 12 of the last, which changes the shape
    assert [each.parameters for each in found] == pytest.approx([36 / 156, 36 / 156, 72 / 156])
    assert [each.operations for each in found] == pytest.approx([36 / 156, 36 / 156, 72 / 156])


@pytest.mark.parametrize("kind", [None, *quadratic.KINDS])
def test_a_layer_that_is_taken_out_leaves_the_others(kind):
    made = deep() if kind is None else quadratic.convert(deep(), kind)
    shorter = quadratic.remove(made, ["two"], {"x": (1, 6)})
    assert not any(tensor.name.startswith("two") for tensor in shorter.graph.initializer)
    x = batch(1, (7, 6))["x"]
    alone = {tensor.name: numpy_helper.to_array(tensor) for tensor in shorter.graph.initializer}
    if kind is None:
        hidden = np.tanh(np.tanh(np.tanh(x @ alone["one.weight"])) @ alone["three.weight"])
        result, = heddle.compile(shorter, **OPTIONS).run(None, {"x": x})
        np.testing.assert_allclose(result, hidden @ alone["scores.weight"], rtol=1e-5, atol=1e-6)
    trainer = Trainer(shorter, learning_rate=0.02, **OPTIONS)
    assert np.isfinite(trainer.step(batch(2, (16, 6), 2)))


def test_a_normalisation_goes_with_its_layer():
    made = quadratic.convert(convolutional(), "product", ["conv"])
    with pytest.raises(heddle.UsageError, match=r"input is \[1, 2, 6, 6\], its result \[1, 4, 6"):
        quadratic.remove(made, ["conv"], {"x": (1, 2, 6, 6)})


def test_a_network_is_built_trained_and_shortened():
    x = batch(2, (256, 6))["x"]
    labels = (x[:, 0] * x[:, 1] > 0).astype(np.int64)  # one quadratic layer suffices

    def train(model):
        trainer = Trainer(model, learning_rate=0.02, **OPTIONS)
        for _ in range(120):
            trainer.step({"x": x, "labels": labels})
        return trainer.trained()

    def accuracy(model):
        scores, = heddle.compile(model, **OPTIONS).run(None, {"x": x})
        return float((scores.argmax(1) == labels).mean())

    built = quadratic.build(deep(), train, accuracy, {"x": (1, 6)}, tolerance=0.02)
    assert built.removals and built.accuracy > 0.9
    assert built.accuracy == accuracy(built.model)
    names = [each.indicator.layer for each in built.removals]
    assert len(set(names)) == len(names)
    assert not any(node.name.split(".")[0] in names for node in built.model.graph.node)


@pytest.mark.parametrize("tolerance", [-1, float("nan")])
def test_what_the_builder_refuses(tolerance):
    with pytest.raises(heddle.UsageError, match="`tolerance` is .* but must be a number of at"):
        quadratic.build(deep(), None, None, {"x": (1, 6)}, tolerance=tolerance)


def test_what_cannot_be_converted():
    with pytest.raises(heddle.UsageError, match="no kind of quadratic layer 'cubic'"):
        quadratic.convert(mlp(), "cubic")
    with pytest.raises(heddle.UsageError, match="no layer 'third' .* it has: first, second"):
        quadratic.convert(mlp(), layers=["third"])
    with pytest.raises(heddle.UsageError, match="'conv' is a convolution"):
        quadratic.convert(convolutional(), "bilinear", ["conv"])
    for layers, why in ((["four"], "no layer 'four' .* it has: one, two, three, scores"),
                        (["scores"], "'scores' cannot be taken out: its result is one of the")):
        with pytest.raises(heddle.UsageError, match=why):
            quadratic.remove(deep(), layers, {"x": (1, 6)})
    with pytest.raises(heddle.UsageError, match="the shapes of its input and of its result are"):
        quadratic.remove(deep(), ["two"], {})


def test_what_else_cannot_be_converted():
    shared = deep()
    shared.graph.node[2].input[1] = "one.weight"
    with pytest.raises(heddle.UsageError, match="'one' has the weight 'one.weight', which 'h1' re"):
        quadratic.convert(shared)
    with pytest.raises(heddle.UsageError, match="`layers` is 'one', but must be a list"):
        quadratic.convert(deep(), layers="one")
    with pytest.raises(heddle.UsageError, match="`layers` has 'one' 2 times"):
        quadratic.convert(deep(), layers=["one", "one"])
    with pytest.raises(heddle.UsageError, match="is of type str, but must be an onnx.ModelProto"):
        quadratic.convert("model.onnx")
    old = deep()
    old.opset_import[0].version = 12
    with pytest.raises(heddle.UsageError, match="opset 12, but 'bilinear' needs .* at least 13"):
        quadratic.convert(old, "bilinear")
    sequence = deep()
    sequence.graph.input[0].type.tensor_type.shape.dim.add().dim_value = 6
    sequence.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 4
    for kind in ("sum", "bilinear"):
        with pytest.raises(heddle.UsageError, match=f"'one' multiplies .* of rank 3: '{kind}'"):
            quadratic.convert(sequence, kind)
    quadratic.convert(sequence, "product")
    none = make_model([make_node("Tanh", "x", "y")], {"x": ["n", 6]}, {"y": ["n", 6]}, [])
    with pytest.raises(heddle.UsageError, match="the model has no layer that gives its result"):
        quadratic.convert(none)


def test_names_stay_apart_when_a_model_is_converted_twice():
    once = quadratic.convert(mlp(), "product", ["first"])
    twice = quadratic.convert(once, "product", ["first.a", "first.linear"])
    tensors = [tensor.name for tensor in twice.graph.initializer]
    assert len(set(tensors)) == len(tensors)


def one_layer(form, is_normed):
    """A layer of f64, tanh, and a dense layer to scores [n, 3]."""
    def draw(name, *shape):
        return {name: np.random.default_rng(len(name)).standard_normal(shape) * 0.5}

    group = 2 if form == "grouped" else 1
    weights = (draw("layer.weight", 6, 4) if form.startswith("dense")
               else draw("layer.weight", 4, 4 // group, 3, 3))
    inputs = ["x", "layer.weight"]
    if form.endswith("bias"):
        weights |= draw("layer.bias", 4)
        inputs.append("layer.bias")
    nodes = [make_node("Gemm", inputs, "h", "layer") if form.startswith("dense")
             else make_node("Conv", inputs, "h", "layer", pads=[1, 1, 1, 1], group=group)]
    if is_normed:
        names = [f"norm.{what}" for what in ("scale", "bias", "mean", "variance")]
        weights |= {name: np.full(4, value) for name, value in zip(names, (1.0, 0.1, 0.0, 1.0))}
        nodes.append(make_node("BatchNormalization", ["h", *names], "n", "norm"))
    nodes += [make_node("Tanh", [nodes[-1].output[0]], "t", "tanh"),
              make_node("Flatten", "t", "f", "flat"),
              make_node("MatMul", "f classes.weight", "y", "classes")]
    shape = (6,) if form.startswith("dense") else (4, 3, 3)
    weights |= draw("classes.weight", 4 if len(shape) == 1 else 36, 3)
    made = make_model(nodes, {"x": ["n", *shape]}, {"y": ["n", 3]}, weights)
    for value in (*made.graph.input, *made.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return made, shape


FORMS = ("dense", "dense_bias", "conv", "conv_bias", "grouped")


@pytest.mark.parametrize("kind, form, is_normed", [
    (kind, form, is_normed) for kind in quadratic.KINDS for form in FORMS
    for is_normed in (False, True) if kind != "bilinear" or form.startswith("dense")])
def test_derivatives_are_what_differences_are(kind, form, is_normed):
    network, shape = one_layer(form, is_normed)
    trainer = Trainer(quadratic.convert(network, kind, ["layer"]), optimizer="sgd",
                      learning_rate=1.0, **OPTIONS)
    random = np.random.default_rng(4)
    feeds = {"x": random.standard_normal((5, *shape)), "labels": random.integers(0, 3, 5)}
    trained = {name: array for name, array in trainer.weights.items()
               if not name.endswith((".mean", ".variance"))}
    begin = {name: array + 0.3 * random.standard_normal(array.shape)
             for name, array in trained.items()}

    def loss_at(shift, direction):
        for name, array in trained.items():
            array[...] = begin[name] + shift * direction[name]
        return trainer.step(feeds)

    direction = {name: random.standard_normal(array.shape) for name, array in begin.items()}
    loss_at(0, direction)
    slopes = {name: begin[name] - array for name, array in trained.items()}
    for name in begin:
        alone = {other: direction[other] * (other == name) for other in begin}
        difference = (loss_at(1e-5, alone) - loss_at(-1e-5, alone)) / 2e-5
        assert difference == pytest.approx((slopes[name] * direction[name]).sum(), rel=1e-5,
                                           abs=1e-7), name
