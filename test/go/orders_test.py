"""Orders of kernels that need less memory: graphs of compiled models, plans that take effect."""

import heddle
import numpy as np
import pytest

from graphs import graph_of, machine, plan_of
from heddle import UsageError
from heddle.onnx_graph import make_model, make_node
from heddle_lab.go import Simulator
from heddle_lab.go import from_onnx, fusion_plan, search_fusion
from heddle_lab.go.orders import frugal, group_graph, lower_peak, search_order

TEXT = """module attributes {graph.layouts = {}} {
  func.func @main(%arg0: tensor<2x3xf32> {graph.name = "x"}) -> (tensor<2x3xf32>) {
    %0 = graph.constant dense<2.0> : tensor<3x3xf32>
    %1:2 = graph.group "first" {mechanism = "pointwise"} : tensor<2x3xf32>, tensor<4xi8> {
      %4 = graph.add %arg0, %arg0 : tensor<2x3xf32>
      graph.yield %4, %4 : tensor<2x3xf32>, tensor<2x3xf32>
    }
    %2 = graph.group "second" : tensor<5xf64> {
      %4 = graph.dot %1#0, %0 : tensor<2x3xf32>
      %5 = graph.mul %4, %1#1 : tensor<2x3xf32>
      graph.yield %5 : tensor<2x3xf32>
    }
    %6 = graph.reshape %2 : (tensor<5xf64>) -> tensor<5x1xf64>
    %3 = graph.group "third" {mechanism = "pointwise"} : tensor<2x3xf32> {
      %4 = graph.mul %6, %1#0 : tensor<2x3xf32>
      graph.yield %4 : tensor<2x3xf32>
    }
    %7 = graph.reshape %3 : (tensor<2x3xf32>) -> tensor<6xf32>
    return %7 : tensor<6xf32>
  }
}
"""


class Compiled:
    """A compiled model, as far as its graph goes."""

    def __init__(self, text):
        self.text = lambda kind: text


def test_groups_become_nodes():
    graph = group_graph(Compiled(TEXT))
    assert graph.names == ["first", "second", "third"]
    assert graph.bytes.tolist() == [24 + 4, 40, 0]  # the result of the model is the caller's
    inputs = [graph.inputs[graph.first_input[i]:graph.first_input[i + 1]].tolist()
              for i in range(3)]
    assert [sorted(each) for each in inputs] == [[], [0], [0, 1]]


def test_sizes_known_only_at_run_time():
    text = TEXT.replace("tensor<5xf64> {", "tensor<?xf64> {")
    with pytest.raises(UsageError, match="group 'second' has results of sizes known only at run "
                                         "time; give all sizes to heddle.compile"):
        group_graph(Compiled(text))


def test_the_frugal_order_goes_deep_first():
    """Four wide results, each of which a narrow one is made of."""
    nodes = [("other", (), 1, 100)] * 4 + [("other", [node], 1, 1) for node in range(4)]
    graph = graph_of(*nodes)
    simulator = Simulator(graph, machine(1))
    as_listed = plan_of(graph, priority=-np.arange(8))
    assert simulator.run(as_listed.device, as_listed.priority, as_listed.fuse).peak_bytes == 401
    priority = frugal(simulator)
    assert simulator.run(as_listed.device, priority, as_listed.fuse).peak_bytes == 104
    assert search_order(graph, 200)[1] == 104


def branches(count=4, wide=512):
    """Products that widen x, listed before the products that narrow each of them."""
    random = np.random.default_rng(0)
    weights, first, second, names = {}, [], [], []
    for branch in range(count):
        for name, shape in ((f"up{branch}", (16, wide)), (f"down{branch}", (wide, 4))):
            weights[name] = random.standard_normal(shape).astype(np.float32)
        first.append(make_node("MatMul", f"x up{branch}", f"u{branch}", f"widen{branch}"))
        first.append(make_node("Sigmoid", f"u{branch}", f"s{branch}", f"act{branch}"))
        second.append(make_node("MatMul", f"s{branch} down{branch}", f"d{branch}",
                                f"narrow{branch}"))
        names.append(f"d{branch}")
    return make_model([*first, *second, make_node("Concat", names, "y", "concat", axis=1)],
                      {"x": [64, 16]}, {"y": [64, 4 * count]}, weights)


@pytest.mark.usefixtures("compiler")
def test_a_plan_with_the_order_takes_less_memory():
    model = branches()
    plan, before, after = lower_peak(model, 400, threads=1)
    assert after < 0.6 * before
    x = np.random.default_rng(1).standard_normal((64, 16)).astype(np.float32)
    outputs = [heddle.compile(model, threads=1, plan=each).run(None, {"x": x})[0]
               for each in (None, plan)]
    np.testing.assert_array_equal(*outputs)


@pytest.mark.usefixtures("compiler")
def test_an_order_that_brings_nothing_is_left():
    model = branches(1)
    plan, before, after = lower_peak(model, 50, threads=1)
    assert before == after > 0 and plan == heddle.compile(model, threads=1, load=False).plan


@pytest.mark.usefixtures("compiler")
def test_a_model_of_one_kernel():
    model = branches(1)
    del model.graph.node[1:]
    model.graph.node[0].output[0] = "y"
    model.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 512
    del model.graph.initializer[1:]
    assert lower_peak(model, 50, threads=1)[1:] == (0, 0)


@pytest.mark.usefixtures("compiler")
def test_fusion_bits_become_a_plan():
    model = branches(2)
    graph = from_onnx(model)
    fuse, faster = search_fusion(graph, 400)
    assert faster > 1 and fuse.sum() > 0
    x = np.random.default_rng(1).standard_normal((64, 16)).astype(np.float32)
    expected = heddle.compile(model, threads=1).run(None, {"x": x})[0]
    for bits in (fuse, np.zeros(len(graph)), np.ones(len(graph))):
        plan = fusion_plan(model, graph, bits, threads=1)
        assert plan["fusion"]["act0"] == ("joined" if bits[graph.names.index("act0")] else "apart")
        module = heddle.compile(model, threads=1, plan=plan)
        np.testing.assert_allclose(module.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)
    stored = heddle.compile(model, threads=1, load=False,
                            plan=fusion_plan(model, graph, np.zeros(len(graph)), threads=1)).plan
    assert {"widen0", "act0"} <= {group["name"] for group in stored["groups"]}
    with pytest.raises(heddle.UsageError, match="3 fusion bits"):
        fusion_plan(model, graph, np.zeros(3))
