"""Changes of weights before they are quantised leave the function of the network as it is."""

import small
import numpy as np
import onnx
import pytest
from heddle.quantize import depthwise, equalise, fold, smooth
from heddle.quantize.data import Samples
from heddle.quantize.graph import Network
from heddle.quantize.places import find_layers
from heddle.quantize.settings import Settings
from small import Net

import heddle

pytestmark = pytest.mark.usefixtures("compiler")


def outputs(model, feeds):
    module = heddle.compile(model)
    return [module.run(None, feed) for feed in feeds]


def changed(model, change, tmp_path=None):
    """The network after a change, which must compute the same; and what the change returned."""
    feeds = small.samples(model, 3)
    wanted = outputs(model, feeds)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    network = Network(copy, "m")
    found = change(network)
    onnx.checker.check_model(network.model)
    for before, after in zip(wanted, outputs(network.model, feeds)):
        for one, other in zip(before, after):
            np.testing.assert_allclose(other, one, rtol=0, atol=1e-5 * np.abs(one).max())
    return network, found


def test_normalisations_sums_and_products_are_folded():
    net = Net(0)
    x = net.batch_norm(net.conv(net.image(), 3, 8, bias=False), 8)
    x = net.relu(net.op("Add", net.conv(x, 8, 6), net.weight(1, 6, 1, 1)))
    x = net.op("Mul", net.weight(6, 1, 1), net.conv(x, 6, 6))
    x = net.op("ConvTranspose", x, net.weight(6, 4, 2, 2), strides=[2, 2])
    net.op("Add", net.batch_norm(x, 4), net.weight(4, 1, 1), name="y")
    net.output("y", ["batch", 4, 24, 24])
    network, count = changed(net.model(), fold.fold)
    assert count == 5
    assert [node.op_type for node in network.nodes] == ["Conv", "Conv", "Relu", "Conv",
                                                        "ConvTranspose"]


def test_what_others_read_is_not_folded():
    net = Net(0)
    x = net.conv(net.image(), 3, 4)
    one, other = net.batch_norm(x, 4), net.op("Add", x, net.weight(4, 1, 12))  # no vector
    net.op("Sub", one, other, name="y")
    net.output("y", ["batch", 4, 12, 12])
    _, count = changed(net.model(), fold.fold)
    assert count == 0


def test_weights_that_two_layers_share_are_folded_for_one():
    net = Net(0)
    x, weight = net.image(channels=4), net.weight(4, 4, 3, 3, scale=0.2)
    x = net.relu(net.op("Conv", x, weight, pads=[1] * 4))
    net.op("BatchNormalization", net.op("Conv", x, weight, pads=[1] * 4),
           *(net.constant(np.float32([1, 2, 3, 4])) for _ in range(4)), name="y")
    net.output("y", ["batch", 4, 12, 12])
    network, count = changed(net.model(), fold.fold)
    read = {node.input[1] for node in network.nodes if node.op_type == "Conv"}
    assert count == 1 and len(read) == 2
    layers, left = find_layers(network, Settings())
    assert len(layers) == 2 and left == {}


def grouped():
    net = Net(3)
    x = net.relu(net.conv(net.image(), 3, 8))
    x = net.op("LeakyRelu", net.conv(x, 8, 8, group=8), alpha=0.2)
    net.conv(net.conv(x, 8, 12, group=2), 12, 4, size=1, name="y")
    net.output("y", ["batch", 4, 12, 12])
    model = net.model()
    for tensor in model.graph.initializer:  # channels of very different ranges
        array = onnx.numpy_helper.to_array(tensor)
        if array.ndim == 4 and len(array) == 8:
            factors = np.geomspace(0.1, 10, 8).astype(np.float32).reshape(-1, 1, 1, 1)
            tensor.CopyFrom(onnx.numpy_helper.from_array(array * factors, tensor.name))
    return model


def test_equalised_layers_have_channels_of_like_ranges():
    network, count = changed(grouped(), equalise.equalise)
    assert count == 3
    for first, second in equalise.pairs(network):
        one, two = network.array(first.input[1]), network.array(second.input[1])
        group = next((each.i for each in second.attribute if each.name == "group"), 1)
        parts = np.abs(two.reshape(group, len(two) // group, *two.shape[1:]))
        wanted = parts.max(axis=(1, 3, 4)).reshape(-1)
        np.testing.assert_allclose(np.abs(one).reshape(len(one), -1).max(axis=1), wanted, rtol=0.02)


def test_channels_of_depthwise_layers_get_one_range():
    """Other layers that read them do not, and results are better where ranges differ."""
    net = Net(5)
    factors = np.geomspace(0.02, 1, 8).astype(np.float32).reshape(8, 1, 1)
    x = net.op("Mul", net.conv(net.image(), 3, 8), net.constant(factors))
    x = net.op("HardSwish", x)
    y = net.conv(net.op("Mul", net.conv(x, 8, 8, group=8), net.constant(1 / factors)), 8, 4)
    net.op("Add", y, net.conv(x, 8, 4), name="y")
    net.output("y", ["batch", 4, 12, 12])
    model, feeds = net.model(17), small.samples(net.model(17), 10)

    def even(network):
        layers, _ = find_layers(network, Settings())
        data = Samples(feeds, network, Settings(), None)
        return depthwise.even(network, layers, data, Settings())
    network, count = changed(model, even)
    one, = (node for node in network.nodes if node.input[0].endswith("/even"))
    assert count == 1 and {each.name: each.i for each in one.attribute}["group"] == 8
    reports = []
    for options in ({}, {"even_depthwise": True}):
        heddle.quantize(model, feeds, report=reports.append, threads=1, **options)
    plain, better = (report.facts["outputs"][0]["decibels"] for report in reports)
    assert better > plain + 6


def test_a_clip_is_no_place_to_equalise():
    network = Network(small.depthwise(), "m")
    kinds = {(first.output[0], second.output[0]) for first, second in equalise.pairs(network)}
    assert len(kinds) == 3  # the last convolution's result is clipped
    net = Net(0)
    low, high = net.constant(np.float32(0)), net.constant(np.float32(6))
    x = net.op("Clip", net.conv(net.image(), 3, 4), low, high)
    net.output(net.conv(x, 4, 4, name="y"), ["batch", 4, 12, 12])
    assert equalise.pairs(Network(net.model(), "m")) == []


@pytest.mark.parametrize("name, has_factor", [("first", False), ("written_out", False),
                                              ("last", True)])
def test_smoothed_tensors_compute_the_same(name, has_factor, tmp_path):
    net = Net(5)
    x = net.input("x", ["batch", 16])
    if name == "written_out":
        n = net.op("Add", net.op("Mul", net.op("Tanh", x), net.weight(16)), net.weight(16))
    else:
        n = net.norm(x, 16)
    inner = net.op("Tanh", net.dense(n, 16, 32))
    residual = n if name == "last" else x
    net.op("Add", residual, net.dense(inner, 32, 16), name="y")
    net.output("y", ["batch", 16])
    model = net.model()
    settings = Settings(smooth=0.5)

    def change(network):
        layers, _ = find_layers(network, settings)
        given = Samples(small.samples(model, 4), network, settings, tmp_path)
        return smooth.smooth(network, layers, given, settings)

    network, count = changed(model, change)
    assert count == 1
    assert any("smooth" in node.name for node in network.nodes) == has_factor
