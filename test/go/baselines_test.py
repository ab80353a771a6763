"""The default, HEFT, METIS and simulated annealing, on graphs whose best plan is known."""

import sys

import numpy as np
import pytest

from graphs import graph_of, machine, plan_of, random_graph
from heddle import UsageError
from heddle_lab.go import (Machine, Simulator, Space, anneal, asap, default_fusion, generate, heft,
                           metis)
from heddle_lab.go.baselines import upward_rank


def chains(count=2, length=4, size=8):
    """Chains that share nothing; a tensor takes longer to send than a node to run."""
    nodes = []
    for _ in range(count):
        nodes.append(("matmul", (), 2, size))
        nodes += [("matmul", [len(nodes) - 1 + step], 2, size) for step in range(length - 1)]
    return graph_of(*nodes)


@pytest.mark.parametrize("place", [asap, heft, lambda each: heft(each, with_links=True)])
def test_chains_go_to_devices_of_their_own(place):
    simulator = Simulator(chains(), machine(2))
    assert simulator.seconds(place(simulator)) == 8


def test_upward_ranks():
    graph = graph_of(("matmul", (), 1, 4), ("matmul", [0], 2, 6), ("matmul", [0], 5, 6),
                     ("matmul", [1, 2], 3, 1))
    rank = upward_rank(Simulator(graph, machine(2)), np.zeros(4))
    # by hand: 3; 2 + 0.5 + 6 / 2 + 3; 5 + 3.5 + 3; 1 + 0.5 + 4 / 2 + 11.5
    assert rank.tolist() == [15, 8.5, 11.5, 3]


def test_heft_uses_gaps():
    """The long chain leaves device 0 idle while its tensor travels back and forth."""
    nodes = [("matmul", (), 4, 1), ("matmul", (), 4, 1), ("matmul", [0, 1], 4, 1),
             ("matmul", (), 1, 1)]
    simulator = Simulator(graph_of(*nodes), machine(2, link=1, latency=1))
    plan = heft(simulator)
    assert simulator.seconds(plan) == 4 + 2 + 4  # the last node takes no time of its own
    trace = simulator.trace(plan)
    assert trace.finish[3] <= 6


def test_heft_prefers_the_faster_device():
    graph = chains(1)
    simulator = Simulator(graph, Machine(2, [1, 4], 1e18, 0, 1e12, 2, 0.5))
    assert heft(simulator).device.tolist() == [1] * 4


def test_baselines_keep_to_the_memory():
    graph = graph_of(*[("variable", (), 0, 60)] * 2, ("matmul", [0], 1, 1), ("matmul", [1], 1, 1))
    graph.colocate[:2] = [2, 3]
    simulator = Simulator(graph, machine(2, memory=100))
    for place in (asap, heft):
        plan = place(simulator)
        assert plan.device[2] != plan.device[3] and np.isfinite(simulator.seconds(plan))


def test_the_default_fuses_cheap_nodes_with_one_reader():
    graph = graph_of(("matmul", (), 1, 1), ("elementwise", [0], 1, 1), ("activation", [1], 1, 1),
                     ("elementwise", [2], 1, 1), ("reduce", [2], 1, 1), ("matmul", [3], 1, 1))
    assert default_fusion(graph).tolist() == [0, 1, 0, 1, 0, 0]


def test_metis_cuts_where_few_bytes_flow():
    pytest.importorskip("pymetis")
    nodes = [("matmul", (), 5, 100)]
    nodes += [("matmul", [0], 5, 100)] * 3 + [("matmul", [1, 2, 3], 5, 1)]
    nodes += [("matmul", [4], 5, 100)] + [("matmul", [5], 5, 100)] * 3 + [("matmul", [6, 7, 8], 5,
                                                                          1)]
    simulator = Simulator(graph_of(*nodes), machine(2))
    device = metis(simulator).device
    assert len(set(device[:5])) == len(set(device[5:])) == 1 and device[0] != device[5]


def test_without_metis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    simulator = Simulator(chains(), machine(2))
    with pytest.raises(UsageError, match="METIS needs the Python package 'pymetis', of the "
                                         "extra 'go': .*; 'pip install pymetis' installs it"):
        metis(simulator)


def test_annealing_finds_the_best_plan_of_a_small_graph():
    graph = graph_of(*[("matmul", (), 3, 1)] * 6)
    simulator = Simulator(graph, machine(3))
    plan, seconds = anneal(Space(simulator, plan_of(graph), ("placement",)), 500, hottest=0.1)
    assert seconds == 6 and sorted(plan.device.tolist()) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("seed", range(5))
def test_annealing_never_ends_above_its_start(seed):
    graph = random_graph(seed, 100)
    simulator = Simulator(graph, machine(3, launch=1, bytes=10))
    start = heft(simulator)
    curve = []
    plan, seconds = anneal(Space(simulator, start), 200, seed=seed, curve=curve)
    assert seconds == simulator.seconds(plan) <= simulator.seconds(start)
    assert curve[0][0] == 1 and curve[-1][1] == seconds
    assert [each[1] for each in curve] == sorted((each[1] for each in curve), reverse=True)


def test_the_start_of_a_space_keeps_its_order():
    graph = generate("amoebanet", cells=2)
    simulator = Simulator(graph, Machine(2))
    start = heft(simulator)
    space = Space(simulator, start)
    assert simulator.seconds(space.plan(space.state())) == simulator.seconds(start)
    flat = plan_of(graph)  # equal priorities: the order of the graph
    flat = Space(simulator, flat)
    assert (np.diff(flat.base) < 0).all()


def test_annealing_where_nothing_takes_time():
    graph = graph_of(("matmul", (), 0, 0))
    simulator = Simulator(graph, machine(2))
    assert anneal(Space(simulator, plan_of(graph)), 5)[1] == 0


def test_annealing_searches_the_tasks_that_it_is_told():
    graph = generate("wavenet", stacks=1, layers=3)
    simulator = Simulator(graph, Machine(2))
    start = asap(simulator)
    plan, _ = anneal(Space(simulator, start, ("placement",)), 300)
    assert (plan.fuse == start.fuse).all() and (plan.device != start.device).any()
    assert (np.argsort(-plan.priority, kind="stable")
            == np.argsort(-start.priority, kind="stable")).all()
    plan, _ = anneal(Space(simulator, start, ("fusion",)), 300)
    assert (plan.device == start.device).all() and (plan.fuse != start.fuse).any()


def test_an_unknown_task():
    graph = chains()
    simulator = Simulator(graph, machine(2))
    with pytest.raises(UsageError, match="unknown task 'layout'; known: placement, schedule"):
        Space(simulator, plan_of(graph), ("layout",))
