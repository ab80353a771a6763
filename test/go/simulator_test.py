"""The simulator: makespans and memory computed by hand, bounds that hold for every plan, and random
graphs beside a slow simulator."""

import numpy as np
import pytest

from graphs import graph_of, machine, plan_of, random_graph, seconds, slow_makespan
from heddle import UsageError
from heddle_lab.go import Machine, Simulator, default_fusion, generate, reward


def test_a_node_takes_its_launch_and_the_longer_of_flops_and_traffic():
    graph = graph_of(("input", (), 0, 4), ("matmul", [0], 10, 8))
    assert seconds(graph, machine(1, launch=1, flops=2)) == 6  # 1 + 10 / 2
    assert seconds(graph, machine(1, launch=1, flops=2, bytes=1)) == 13  # 1 + (4 + 8) / 1


def test_independent_nodes_share_devices():
    graph = graph_of(*[("matmul", (), 3, 1)] * 4)
    assert seconds(graph, machine(2)) == 12
    assert seconds(graph, machine(2), device=[0, 1, 0, 1]) == 6


def test_a_transfer_takes_bytes_over_the_link_and_its_latency():
    graph = graph_of(("matmul", (), 1, 6), ("matmul", [0], 1, 1))
    assert seconds(graph, machine(2)) == 2
    assert seconds(graph, machine(2), device=[0, 1]) == 1 + 6 / 2 + 0.5 + 1


def test_transfers_of_a_link_wait_for_one_another():
    graph = graph_of(("matmul", (), 1, 6), ("matmul", (), 1, 6), ("matmul", [0], 1, 1),
                     ("matmul", [1], 1, 1))
    # sent 1 .. 4 and 4 .. 7, there at 4.5 and 7.5
    assert seconds(graph, machine(2), device=[0, 0, 1, 1]) == 8.5


def test_a_tensor_is_sent_once_per_device():
    graph = graph_of(("matmul", (), 1, 6), ("matmul", [0], 1, 1), ("matmul", [0], 1, 1))
    assert seconds(graph, machine(2), device=[0, 1, 1]) == 6.5


def test_a_weight_is_sent_from_the_start_and_takes_no_device():
    graph = graph_of(("variable", (), 0, 4), ("matmul", [0], 1, 1))
    assert seconds(graph, machine(2), device=[0, 1]) == 4 / 2 + 0.5 + 1
    assert seconds(graph, machine(2, launch=1), device=[0, 0]) == 2


def test_the_ready_node_of_the_highest_priority_runs_first():
    graph = graph_of(("matmul", (), 2, 2), ("matmul", (), 1, 2), ("matmul", [1], 9, 1))
    on = machine(2)
    assert seconds(graph, on, device=[0, 0, 1], priority=[0, 1, 0]) == 1 + 1 + 0.5 + 9
    assert seconds(graph, on, device=[0, 0, 1], priority=[1, 0, 0]) == 3 + 1 + 0.5 + 9
    assert seconds(graph, on, device=[0, 0, 1]) == 3 + 1 + 0.5 + 9  # the smaller index


def test_a_fused_node_saves_its_launch_and_its_traffic():
    graph = graph_of(("input", (), 0, 4), ("elementwise", [0], 1, 4), ("elementwise", [1], 1, 4))
    on = machine(1, launch=1, flops=1e9, bytes=2)
    assert seconds(graph, on) == 2 * (1 + 8 / 2)
    assert seconds(graph, on, fuse=[0, 1, 0]) == 1 + 8 / 2


def test_a_node_with_two_readers_is_computed_in_both():
    graph = graph_of(("elementwise", (), 5, 1), ("elementwise", [0], 1, 1),
                     ("elementwise", [0], 2, 1))
    simulator = Simulator(graph, machine(2))
    kernels = simulator.kernels([1, 0, 0])
    assert kernels.is_root.tolist() == [False, True, True]
    assert kernels.flops[1:].tolist() == [6, 7]
    assert simulator.seconds(plan_of(graph, device=[0, 0, 1], fuse=[1, 0, 0])) == 7
    assert simulator.seconds(plan_of(graph, device=[0, 0, 1])) == 5 + 0.5 + 0.5 + 2


@pytest.mark.parametrize(("nodes", "is_fused"), [
    ([("matmul", (), 1, 1), ("elementwise", [0], 1, 1)], True),
    ([("matmul", (), 1, 1), ("matmul", [0], 1, 1)], False),  # two contractions
    ([("matmul", (), 1, 1), ("elementwise", [0], 1, 1), ("elementwise", [0], 1, 1)], False),
    ([("gather", (), 1, 1), ("elementwise", [0], 1, 1)], False),
    ([("elementwise", (), 1, 1), *[("gather", [0], 1, 1)] * 4], True),
    ([("elementwise", (), 1, 1), *[("gather", [0], 1, 1)] * 5], False),  # too many copies
])
def test_what_may_be_fused(nodes, is_fused):
    graph = graph_of(*nodes)
    fuse = np.zeros(len(graph))
    fuse[0] = 1
    assert Simulator(graph, machine(1)).kernels(fuse).is_root[0] == (not is_fused)


def test_kernels_have_at_most_64_nodes():
    graph = graph_of(("input", (), 0, 1), *(("elementwise", [node], 1, 1) for node in range(150)))
    kernels = Simulator(graph, machine(1)).kernels(np.ones(151))
    sizes = np.bincount(kernels.owner[1:])
    assert sizes[sizes > 0].tolist() == [22, 64, 64]


def test_memory_is_free_after_the_last_reader():
    graph = graph_of(("variable", (), 0, 100), ("elementwise", [0], 1, 10),
                     ("elementwise", [1], 1, 20), ("elementwise", [2], 1, 30))
    simulator = Simulator(graph, machine(2, memory=155))
    result = simulator.run(np.zeros(4), np.zeros(4), np.zeros(4))
    assert result.peak_bytes[0].tolist() == [150, 0]  # the weight, and the last two results
    assert result.is_valid[0]
    apart = simulator.run([0, 0, 1, 1], np.zeros(4), np.zeros(4))
    assert apart.peak_bytes[0].tolist() == [110, 50]  # the copy of 10 is gone when 30 begins


def test_a_plan_beyond_the_memory_is_invalid():
    graph = graph_of(("matmul", (), 1, 80), ("matmul", [0], 1, 80))
    simulator = Simulator(graph, machine(2, memory=100))
    plan = plan_of(graph)
    result = simulator.run(plan.device, plan.priority, plan.fuse)
    assert simulator.seconds(plan) == float("inf")
    assert reward(result, 1.0).tolist() == [-10]


def test_the_reward_is_minus_the_root_of_the_relative_time():
    graph = graph_of(("matmul", (), 8, 1))
    result = Simulator(graph, machine(1)).run([0], [0], [0])
    assert reward(result, 2.0).tolist() == [-2]


def test_colocated_nodes_follow_their_node():
    from heddle_lab.go import Builder

    builder = Builder("colocated")
    weight = builder.node("variable", (), 0, 4, 4, colocate=1)
    product = builder.node("matmul", [weight], 1, 1)
    builder.node("update", [weight, product], 1, 0, colocate=weight)
    graph = builder.graph()
    simulator = Simulator(graph, machine(2))
    trace = simulator.trace(plan_of(graph, device=[0, 1, 0]))
    assert trace.device.tolist() == [1, 1, 1]


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_beside_a_slow_simulator(seed):
    graph = random_graph(seed)
    random = np.random.default_rng(seed)
    on = Machine(3, [1, 2, 3], [4, 5, 6], [0.25, 0, 0.5], 1e9, random.integers(1, 5, (3, 3)),
                 random.integers(0, 3, (3, 3)))
    plan = plan_of(graph, device=random.integers(0, 3, len(graph)),
                   priority=random.integers(0, 4, len(graph)))
    plan.device[0] = 0
    assert Simulator(graph, on).seconds(plan) == pytest.approx(slow_makespan(graph, on, plan))


@pytest.mark.parametrize("seed", range(20))
def test_no_plan_is_faster_than_the_bounds(seed):
    graph = random_graph(seed, 120)
    simulator = Simulator(graph, machine(3, launch=0.5, bytes=3))
    random = np.random.default_rng(seed)
    for _ in range(20):
        plan = plan_of(graph, random.integers(0, 3, 120), random.random(120),
                       random.integers(0, 2, 120))
        trace = simulator.trace(plan)
        total = trace.result.seconds[0]
        assert total >= simulator.lower_bound(plan.fuse) - 1e-9
        kernels = simulator.kernels(plan.fuse)
        length = simulator.kernel_seconds(kernels)[0]
        alone = plan_of(graph, 0, plan.priority, plan.fuse)
        assert simulator.seconds(alone) == pytest.approx(length.sum())  # one device never waits
        for device in range(3):  # kernels of a device follow one another
            own = np.flatnonzero(kernels.is_root & (length > 0) & (trace.device == device))
            own = own[np.argsort(trace.start[own])]
            assert (trace.start[own][1:] >= trace.finish[own][:-1] - 1e-9).all()


def test_equal_plans_have_equal_results_alone_and_together():
    graph = generate("transformer_xl", layers=2)
    simulator = Simulator(graph, Machine(4))
    random = np.random.default_rng(0)
    device = random.integers(0, 4, (8, len(graph)))
    priority = random.random((8, len(graph)))
    fuse = random.integers(0, 2, (8, len(graph)))
    together = simulator.run(device, priority, fuse)
    again = Simulator(graph, Machine(4))
    for number in reversed(range(8)):
        alone = again.run(device[number], priority[number], fuse[number])
        assert alone.seconds[0] == together.seconds[number]
        assert (alone.peak_bytes[0] == together.peak_bytes[number]).all()
    assert simulator.evaluations == again.evaluations == 8


def test_a_graph_of_eighty_thousand_nodes():
    graph = generate("gnmt", layers=8, steps=100)
    assert len(graph) > 70_000
    simulator = Simulator(graph, Machine(8, memory_bytes=2**50))
    plan = plan_of(graph, np.arange(len(graph)) * 8 // len(graph), -np.arange(len(graph)),
                   default_fusion(graph))
    assert simulator.lower_bound(plan.fuse) < simulator.seconds(plan) < float("inf")


@pytest.mark.parametrize(("make", "message"), [
    (lambda: Machine(0), "a machine has 0 devices, but needs at least one"),
    (lambda: Machine(2, flops_per_second=0), "'flops_per_second' has 0, but must be finite and "
                                             "greater than 0"),
    (lambda: Machine(2, launch_seconds=-1), "'launch_seconds' has -1, but must be finite and not "
                                            "negative"),
    (lambda: Machine(2, memory_bytes=[1, 2, 3]), r"'memory_bytes' has shape \[3\], but must be a "
                                                 r"number or have shape \[2\]"),
])
def test_a_machine_that_is_none(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_a_node_larger_than_every_device():
    graph = graph_of(("matmul", (), 1, 2.0**31), ("matmul", [0], 1, 1))
    with pytest.raises(UsageError, match="node 'matmul_0' of graph 'toy' needs 2 GiB, but the "
                                         "largest device has 1 GiB"):
        Simulator(graph, Machine(2, memory_bytes=2**30))


def test_plans_that_do_not_fit():
    graph = graph_of(("matmul", (), 1, 1), ("matmul", [0], 1, 1))
    simulator = Simulator(graph, machine(2))
    with pytest.raises(UsageError, match="a plan names devices from 0 to 2, but there are 2"):
        simulator.run([0, 2], [0, 0], [0, 0])
    with pytest.raises(UsageError, match=r"'priority' of a plan has shape \[3\], but the graph has "
                                         "2 nodes"):
        simulator.run([0, 1], [0, 0, 0], [0, 0])
