"""The policy and PPO: the loss beside its formula, chunks of large graphs, and what is found for
small graphs whose best plan is known."""

import numpy as np
import pytest

from graphs import graph_of, machine, plan_of, random_graph
from heddle import UsageError
from heddle_lab.go import Agent, Episode, Machine, Simulator, Space, asap, generate, pretrain
from heddle_lab.go.chunks import chunks_of
from heddle_lab.go.features import View, clusters_of, critical_path
from heddle_lab.go.policy import CHUNK, CLIP, HALO, SAMPLES, SEGMENT

pytestmark = pytest.mark.usefixtures("compiler")

AGENTS = {}


def agent_for(*tasks, seed=0):
    """A policy that has learned nothing. Compiled once per choice of tasks."""
    if tasks not in AGENTS:
        agent = Agent(tasks or Space.TASKS, learning_rate=3e-3)
        AGENTS[tasks] = agent, agent.weights()
    agent, weights = AGENTS[tasks]
    agent.load(weights)
    agent.random = np.random.default_rng(seed)
    return agent


def products(count=8, devices=2):
    """Equal products, all on one device."""
    graph = graph_of(*[("matmul", (), 3, 1)] * count)
    return Simulator(graph, machine(devices)), plan_of(graph)


def test_products_are_spread_over_devices():
    simulator, start = products(12, 3)
    episode = Episode(Space(simulator, start, ("placement",)))
    plan = agent_for("placement").search(episode, 20)
    assert np.bincount(plan.device).tolist() == [4, 4, 4]
    assert simulator.seconds(plan) == episode.seconds == 12


def test_a_chain_is_fused():
    nodes = [("input", (), 0, 8), *(("elementwise", [node], 1, 8) for node in range(12))]
    graph = graph_of(*nodes)
    simulator = Simulator(graph, machine(1, launch=4, bytes=4))
    episode = Episode(Space(simulator, plan_of(graph), ("fusion",)))
    assert episode.first_seconds == 12 * (4 + 16 / 4)
    plan = agent_for("fusion").search(episode, 30)
    assert plan.fuse[1:-1].all() and simulator.seconds(plan) == 4 + 12  # of 12 FLOPs and 16 bytes


def test_a_schedule_runs_first_what_others_wait_for():
    """Six nodes on one device, of which the last by default has a long reader on another."""
    nodes = [("matmul", (), 2, 1)] * 6 + [("matmul", [5], 12, 1)]
    graph = graph_of(*nodes)
    simulator = Simulator(graph, machine(2, link=1, latency=0))
    start = plan_of(graph, device=[0] * 6 + [1])
    assert simulator.seconds(start) == 12 + 1 + 12
    episode = Episode(Space(simulator, start, ("schedule",)))
    plan = agent_for("schedule").search(episode, 30)
    assert simulator.seconds(plan) == 2 + 1 + 12


def test_all_tasks_together():
    """Two chains: each on a device of its own, fused into one kernel."""
    nodes = []
    for _ in range(2):
        nodes.append(("elementwise", (), 1, 8))
        nodes += [("elementwise", [len(nodes) - 1 + step], 1, 8) for step in range(5)]
    graph = graph_of(*nodes)
    simulator = Simulator(graph, machine(2, launch=4, bytes=8))
    episode = Episode(Space(simulator, plan_of(graph)))
    agent_for().search(episode, 40)
    assert episode.seconds == 4 + 6


def test_a_plan_beyond_the_memory_becomes_a_valid_one():
    graph = graph_of(*[("matmul", (), 1, 10)] * 6)
    simulator = Simulator(graph, machine(2, memory=40))
    episode = Episode(Space(simulator, plan_of(graph), ("placement",)))
    assert episode.seconds == float("inf") and episode.reward() == -10
    agent_for("placement").search(episode, 20)
    assert episode.seconds == 3


def leaving(agent, count, devices):
    """How much likelier a long product leaves the device that all are on than a short one. Every
    other one is short."""
    episode = Episode(products_of_two_lengths(count, devices))
    logs, _ = agent.logs(episode)
    leaves = 1 - np.exp(logs["placement"][:, 0])
    return leaves[::2].mean() / leaves[1::2].mean()


def products_of_two_lengths(count, devices):
    graph = graph_of(*[("matmul", (), length, 1) for length in (30, 1)] * (count // 2))
    return Space(Simulator(graph, machine(devices)), plan_of(graph), ("placement",))


def test_what_is_learned_serves_larger_graphs_and_more_devices():
    agent = agent_for("placement")
    before = leaving(agent, 40, 4)
    pretrain(agent, [products_of_two_lengths(count, devices)
                     for count in (12, 20) for devices in (2, 3)], 120, length=1)
    assert leaving(agent, 40, 4) > 1.5 * before


def test_changes_of_a_step_add_up():
    """Each sample is tried on the best plan by then; one without changes is not simulated."""
    simulator, start = products(4, 2)
    episode = Episode(Space(simulator, start, ("placement",)))
    states = [np.repeat(array[None], SAMPLES, 0) for array in episode.state]
    states[0][0, 0] = states[0][1, 1] = states[0][2, 2] = 1
    gains = episode.took(states)
    assert episode.state[0].tolist() == [1, 1, 0, 0] and episode.seconds == 6
    assert episode.evaluations == 4 and episode.curve == [(1, 12), (2, 9), (3, 6)]
    times = np.sqrt(np.array([12, 9, 6, 9]) / 12)
    assert gains[:3] == pytest.approx(times[:3] - times[1:]) and (gains[3:] == -np.inf).all()


def test_a_plan_that_stays_is_asked_for_once():
    simulator, start = products(1, 2)  # no other plan is faster
    episode, agent = Episode(Space(simulator, start, ("placement",))), agent_for("placement")
    agent.step(episode)
    known = agent.known
    agent.step(episode)
    assert agent.known is known
    agent.load(agent.weights())
    assert agent.known is None


def test_equal_seeds_find_equal_plans():
    graph = generate("wavenet", stacks=1, layers=3)
    simulator = Simulator(graph, Machine(2))
    found = []
    for seed in (1, 1, 2):
        episode = Episode(Space(simulator, asap(simulator)))
        agent_for(seed=seed).search(episode, 6)
        found.append(episode.curve)
    assert found[0] == found[1] != found[2]


def test_evaluations_are_all_counted():
    graph = generate("wavenet", stacks=1, layers=2)
    simulator = Simulator(graph, Machine(2))
    before = simulator.evaluations
    episode = Episode(Space(simulator, plan_of(graph)))
    agent_for().search(episode, 4)
    assert episode.evaluations == simulator.evaluations - before


def random_feeds(agent, seed):
    """Inputs of the model with numbers as they occur, but for those of the loss."""
    graph = random_graph(seed, 300)
    simulator = Simulator(graph, machine(3))
    episode = Episode(Space(simulator, plan_of(graph, device=np.arange(300) % 3)))
    return episode, agent.logs(episode)


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_that_of_ppo(seed):
    agent = agent_for()
    episode, (logs, (feeds,)) = random_feeds(agent, seed)
    random = np.random.default_rng(seed)
    given = {**feeds, "advantage": random.standard_normal((1, SAMPLES)).astype(np.float32),
             "entropy_share": np.float32(0.25)}
    expected = 0.0
    for task, values in (("placement", 3), ("schedule", 5), ("fusion", 2)):
        actions = random.integers(0, values, (CHUNK, SAMPLES))
        weight = (random.random((CHUNK, SAMPLES)) * (np.arange(CHUNK) < 300)[:, None])
        decides = (np.arange(CHUNK) < 300)[:, None] / 300
        now = np.take_along_axis(logs[task], actions[:300], 1)
        before = np.zeros((CHUNK, SAMPLES))
        before[:300] = now + random.uniform(-0.5, 0.5, now.shape)
        given.update({f"actions_{task}": actions, f"before_{task}": before.astype(np.float32),
                      f"weight_{task}": weight.astype(np.float32),
                      f"decides_{task}": decides.astype(np.float32)})
        ratio = np.exp(now - before[:300])
        gain = np.minimum(ratio * given["advantage"],
                          np.clip(ratio, 1 - CLIP, 1 + CLIP) * given["advantage"])
        entropy = -(np.exp(logs[task]) * logs[task]).sum(1).mean()
        expected -= (gain * weight[:300]).sum() + 0.25 * entropy
    loss, _ = agent.trainer.evaluate(given)
    assert loss == pytest.approx(expected, rel=1e-3, abs=1e-2)


def test_a_segment_reads_the_one_before():
    agent = agent_for()
    _, (_, (feeds,)) = random_feeds(agent, 0)
    given = {**feeds, **agent._nothing()}
    _, first = agent.trainer.evaluate(given)
    given["mask"] = np.zeros_like(given["mask"])  # as if another chunk came before
    _, with_zeros = agent.trainer.evaluate(given)
    given["memory_layer0"] = np.ones((SEGMENT, 64), np.float32)
    _, with_ones = agent.trainer.evaluate(given)
    for other in (first, with_ones):
        assert abs(other["scores_fusion"][:SEGMENT]
                   - with_zeros["scores_fusion"][:SEGMENT]).max() > 1e-4


@pytest.mark.parametrize("count", [40, CHUNK, CHUNK + 1, 3 * CHUNK - 5])
def test_chunks_hold_every_node_once_and_know_their_neighbours(count):
    graph = random_graph(1, count)
    view = View(Space(Simulator(graph, machine(2)), plan_of(graph)))
    chunks = chunks_of(view)
    assert np.concatenate([np.arange(each.begin, each.end) for each in chunks]).tolist() \
        == list(range(count))
    missing = 0
    for chunk in chunks:
        node_of = np.full(CHUNK + HALO, -1)
        node_of[chunk.rows] = chunk.nodes
        near = node_of[chunk.static["neighbours"][chunk.rows]]
        wanted = view.neighbours[chunk.nodes]
        is_same, is_own = near == wanted, near == chunk.nodes[:, None]
        assert (is_same | is_own).all()  # a node stands in for a neighbour that is left out
        missing += (~is_same[:chunk.size]).sum()
        shapes = {name: np.shape(value) for name, value in chunk.static.items()}
        assert shapes == {name: np.shape(value) for name, value in chunks[0].static.items()}
    assert missing == 0 or count > 2 * CHUNK  # more neighbours than the halo has room for


def test_clusters_are_connected_parts_of_bounded_size():
    graph = generate("inception", modules=2)
    for most in (4, 16):
        clusters = clusters_of(graph, most)
        sizes = np.bincount(clusters)
        assert sizes.max() <= most and sizes.mean() > most / 4
        producers, readers = graph.edges
        inside = np.bincount(clusters[producers[clusters[producers] == clusters[readers]]],
                             minlength=len(sizes))
        assert (inside >= sizes - 1).all()  # at least a tree


def test_the_critical_path_explains_the_makespan():
    nodes = [("matmul", (), 2, 4), ("matmul", (), 3, 1), ("matmul", [0], 5, 1),
             ("matmul", [1], 1, 1)]
    graph = graph_of(*nodes)
    simulator = Simulator(graph, machine(2))
    # device 0: node 0 from 0 to 2, node 1 to 5, node 3 to 6; device 1: node 2 from 4.5 to 9.5
    trace = simulator.trace(plan_of(graph, device=[0, 0, 1, 0], priority=[1, 0, 0, 0]))
    assert critical_path(simulator, trace).tolist() == [1, 0, 1, 0]
    # node 0 waits until node 1 is done
    trace = simulator.trace(plan_of(graph, device=[0, 0, 1, 0], priority=[0, 1, 0, 0]))
    assert critical_path(simulator, trace).tolist() == [1, 1, 1, 0]


def test_a_policy_for_other_tasks():
    simulator, start = products()
    with pytest.raises(UsageError, match="the policy decides placement, but the space searches for "
                                         "schedule, fusion"):
        agent_for("placement").search(
            Episode(Space(simulator, start, ("fusion", "schedule"))), 1)
    with pytest.raises(UsageError, match="unknown task 'layout'; known: placement, schedule, fus"):
        Agent(("layout",))


def test_more_devices_than_the_policy_knows():
    simulator, start = products(4, 9)
    with pytest.raises(UsageError, match="the policy places on at most 8 devices, but the machine "
                                         "has 9"):
        Episode(Space(simulator, start))
