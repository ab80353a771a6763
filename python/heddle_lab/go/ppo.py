"""ppo: an agent that proposes plans by the policy and learns from what the simulator says of them.

A step asks the policy for scores of the best plan so far, samples changes of it, and tries them one
after the other: those of each sample are made to the best plan by then, and stay if it gets faster.
Then it updates the policy by PPO's clipped objective (Schulman et al., 2017). The advantage of a
sample is by how much it was better than the plan before it, relative to the best sample, less the
mean of the step; what the policy has to learn is which changes help, not which plan is good on
average. So there is no value network, unlike in GO. The best plan so far is what the next step
refines, as in XTAT's use of GO (Phothilimthana et al., PACT 2021, section 5).
SPDX-License-Identifier: Apache-2.0
"""

import itertools

import numpy as np

from heddle import UsageError
from heddle.training import Trainer

from .baselines import TASKS, ordered
from .chunks import chunks_of
from .features import View
from .policy import CHUNK, LAYERS, MOST_DEVICES, SAMPLES, SEGMENT, SIZE, SIZES, network
from .simulator import INVALID_REWARD, reward

MEMORIES = ["modulation", *(f"layer{layer}" for layer in range(LAYERS))]
MOST_CHUNKS = 2  # that an update of a larger graph goes through: graph segment training
# How many clusters a sample is expected to change, and the temperature at which it draws them.
CHANGES = ((1, 3.0), (1, 6.0), (3, 6.0))
DRAWS = 16  # until a sample has any


def tempered(logs, heat):
    """Logarithms of probabilities at a temperature."""
    if heat == 1:
        return logs
    logs = logs / heat
    return logs - np.log(np.exp(logs).sum(1, keepdims=True))


class Agent:
    """The policy for some tasks, with its weights and its optimizer."""

    def __init__(self, tasks=("placement", "schedule", "fusion"), seed=0, learning_rate=1e-3,
                 epochs=2, entropy=1e-3, threads=1):
        self.tasks, self.epochs, self.entropy = ordered(tasks), epochs, entropy
        self.random = np.random.default_rng(seed)
        self.known = None  # a state and what the policy says of it
        self.trainer = Trainer(network(self.tasks, True, seed), "output",
                               optimizer={"name": "adam"}, learning_rate=learning_rate,
                               clip_norm=1.0, threads=threads, seed=seed)

    def _nothing(self):
        """Inputs of the loss where no loss is wanted."""
        found = {"advantage": np.zeros((1, SAMPLES), np.float32), "entropy_share": np.float32(0)}
        for task in self.tasks:
            found[f"actions_{task}"] = np.zeros((CHUNK, SAMPLES), np.int64)
            found[f"before_{task}"] = np.zeros((CHUNK, SAMPLES), np.float32)
            found[f"weight_{task}"] = np.zeros((CHUNK, SAMPLES), np.float32)
            found[f"decides_{task}"] = np.zeros((CHUNK, 1), np.float32)
        return found

    def logs(self, episode):
        """Logarithms of probabilities per task, [node, decision], and the feeds of all chunks."""
        dynamic, of_devices = episode.view.dynamic(episode.state, episode.trace)
        memories = {f"memory_{name}": np.zeros((SEGMENT, SIZE), np.float32) for name in MEMORIES}
        parts, feeds, nothing = {task: [] for task in self.tasks}, [], self._nothing()
        for chunk in episode.chunks:
            feeds.append(chunk.feeds(self.tasks, dynamic, of_devices, episode.state, memories))
            _, outputs = self.trainer.evaluate({**feeds[-1], **nothing})
            memories = {f"memory_{name}": outputs[f"next_{name}"] for name in MEMORIES}
            for task in self.tasks:
                parts[task].append(outputs[f"scores_{task}"][:chunk.size])
        found = {}
        for task in self.tasks:
            scores = np.concatenate(parts[task]).astype(np.float64)
            scores -= scores.max(1, keepdims=True)
            found[task] = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        return found, feeds

    def sample(self, episode, logs):
        """SAMPLES states, per task [sample, node], each with some changes, if it was not drawn in
        vain too often."""
        drawn = {}
        for task, heat in itertools.product(logs, sorted({heat for _, heat in CHANGES})):
            place, scores = TASKS.index(task), tempered(logs[task], heat)
            kept = np.take_along_axis(scores, episode.state[place][:, None].astype(int), 1)[:, 0]
            drawn[task, heat] = scores, -np.expm1(kept) * episode.may[place]
        states = [np.repeat(array[None], SAMPLES, 0) for array in episode.state]
        for number in range(SAMPLES):
            for _ in range(DRAWS):
                if self._draw(episode, drawn, [array[number] for array in states]):
                    break
        return states

    def _draw(self, episode, drawn, state):
        """Changes one task or all, for some clusters of one size, and tells whether it did. The
        noise is the same for all nodes of a cluster, but every node follows its own probabilities,
        made flatter."""
        tasks, view = self.tasks, episode.view
        way = self.random.integers(len(tasks) + (len(tasks) > 1))
        level = self.random.integers(len(view.clusters))
        of_node, share = view.clusters[level], view.shares[level]
        most, heat = CHANGES[self.random.integers(len(CHANGES))]
        is_changed = False
        for task in tasks[way:way + 1] or tasks:
            values, (scores, leaves) = state[TASKS.index(task)], drawn[task, heat]
            expected = max(float(leaves @ share), 1e-9)
            chosen = self.random.random(of_node.max() + 1) < most / expected
            nodes = np.flatnonzero(chosen[of_node] & (leaves > 0))
            noise = self.random.gumbel(size=(len(chosen), scores.shape[1]))
            new = np.argmax(scores[nodes] + noise[of_node[nodes]], 1)
            is_changed |= bool((new != values[nodes]).any())
            values[nodes] = new
        return is_changed

    def step(self, episode, learn=True):
        """Samples changes, keeps those that help, and learns if told so. Returns the gains."""
        if episode.space.tasks != self.tasks:
            raise UsageError(f"the policy decides {', '.join(self.tasks)}, but the space searches "
                             f"for {', '.join(episode.space.tasks)}")
        if self.known is None or self.known[0] is not episode.state:
            self.known = episode.state, self.logs(episode)
        logs, feeds = self.known[1]
        before = episode.state
        states = self.sample(episode, logs)
        gains = episode.took(states)
        if learn:
            self._learn(episode, logs, feeds, (before, states), gains)
        return gains

    def _learn(self, episode, logs, feeds, samples, gains):
        if not gains.max() > 0:
            return
        is_tried = np.isfinite(gains)
        advantage = np.where(is_tried, np.maximum(gains, 0) / gains.max(), 0)
        advantage[is_tried] -= advantage[is_tried].mean()
        numbers = self.random.permutation(len(feeds))[:MOST_CHUNKS]
        batches = [self._batch(episode, number, logs, feeds[number], samples, advantage)
                   for number in numbers]
        self.known = None
        for _ in range(self.epochs):
            for batch in batches:
                self.trainer.step(batch)

    def _batch(self, episode, number, logs, feeds, samples, advantage):
        """Inputs of the loss for a chunk. Each sample counts as much as any other, and its nodes
        that changed share this."""
        chunk, (before, states) = episode.chunks[number], samples
        found = {**feeds, "advantage": advantage.astype(np.float32)[None],
                 "entropy_share": np.float32(self.entropy)}
        for task, old, values, may in zip(SIZES, before, states, episode.may):
            if task not in logs:
                continue
            actions = np.ascontiguousarray(values.T.astype(np.int64))
            found[f"actions_{task}"] = chunk.own(actions)
            found[f"before_{task}"] = chunk.own(
                np.take_along_axis(logs[task], actions, 1).astype(np.float32))
            changed = (values != old).T.astype(np.float32)
            found[f"weight_{task}"] = chunk.own(
                changed / np.maximum(changed.sum(0), 1) / SAMPLES)
            decides = chunk.own(may[:, None].astype(np.float32))
            found[f"decides_{task}"] = decides / max(float(decides.sum()), 1.0)
        return found

    def weights(self):
        """Copies of the policy's weights by name."""
        return {name: array.copy() for name, array in self.trainer.weights.items()}

    def load(self, weights):
        """Takes the weights of another agent for the same tasks; the optimizer begins anew."""
        self.trainer.load_state_dict(weights)
        self.known = None

    def search(self, episode, steps, learn=True):
        """Refines the plan of an episode in so many steps."""
        for _ in range(steps):
            self.step(episode, learn)
        return episode.plan()


def pretrain(agent, spaces, steps, length=20, report=None):
    """Trains one policy for several graphs: by turns a step for each, which begins from its start
    again after `length` steps. `report(step, mean)` is told the mean, over the graphs, of how much
    faster the last whole episode made them."""
    episodes = [Episode(space) for space in spaces]
    gains, taken = [1.0] * len(episodes), [0] * len(episodes)
    for step in range(steps):
        number = step % len(episodes)
        episode = episodes[number]
        agent.step(episode)
        taken[number] += 1
        if taken[number] % length == 0:
            gains[number] = episode.first_seconds / episode.seconds
            episode.restart()
            if report and number == len(episodes) - 1:
                report(step + 1, float(np.exp(np.mean(np.log(gains)))))
    return agent


class Episode:
    """The search for a plan of one graph: the best state so far, and how it was found."""

    def __init__(self, space):
        if space.simulator.machine.devices > MOST_DEVICES:
            raise UsageError(f"the policy places on at most {MOST_DEVICES} devices, but the "
                             f"machine has {space.simulator.machine.devices}")
        self.space, self.view = space, View(space)
        self.chunks = chunks_of(self.view)
        self.may = (space.may_place, space.may_place, space.may_fuse)
        self.restart()

    def restart(self):
        """From the start of the space again."""
        self.state = self.space.state()
        result = self.space.run(*self.state)
        self.trace = self.space.simulator.last_trace(result)
        self.first_seconds = float(result.seconds[0])
        self.seconds = self.first_seconds if result.is_valid[0] else float("inf")
        self.evaluations = 1
        self.curve = [(1, self.seconds)]

    def took(self, states):
        """Tries the changes of each sample on the best plan so far, one after the other. Returns
        by how much each made the reward greater: -inf for a sample without any, which is not
        simulated."""
        before, gains = self.state, np.full(SAMPLES, -np.inf)
        for number in range(SAMPLES):
            changed = [values[number] != old for values, old in zip(states, before)]
            if not any(each.any() for each in changed):
                continue
            candidate = tuple(np.where(each, values[number], now)
                              for each, values, now in zip(changed, states, self.state))
            result = self.space.run(*candidate)
            self.evaluations += 1
            gains[number] = reward(result, self.first_seconds)[0] - self.reward()
            if result.is_valid[0] and result.seconds[0] < self.seconds:
                self.state, self.seconds = candidate, float(result.seconds[0])
                self.trace = self.space.simulator.last_trace(result)
                self.curve.append((self.evaluations, self.seconds))
        return gains

    def reward(self):
        """The reward of the state."""
        return -np.sqrt(self.seconds / self.first_seconds) if np.isfinite(self.seconds) \
            else INVALID_REWARD

    def plan(self):
        return self.space.plan(self.state)
