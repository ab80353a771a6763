"""ppo: an agent that proposes plans by the policy and learns from what the simulator says of them.

A step refines the decisions of the step before: it simulates them, asks the policy for scores,
samples plans, simulates these, and updates the policy by PPO's clipped objective (Schulman et al.,
2017). The advantage of a sample is by how much its reward is better than that of the plan that it
refines, relative to the best sample; the few changes that help are what the policy has to learn,
not which plan is good on average. So there is no value network, unlike in GO. The best plan so far
is what the next step refines, as in XTAT's use of GO (Phothilimthana et al., PACT 2021, section 5).
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from ..library import UsageError
from ..training import Trainer
from .baselines import ordered
from .chunks import chunks_of
from .features import View
from .policy import CHUNK, LAYERS, MOST_DEVICES, SAMPLES, SEGMENT, SIZE, SIZES, network
from .simulator import INVALID_REWARD, reward

MEMORIES = ["modulation", *(f"layer{layer}" for layer in range(LAYERS))]
MOST_CHUNKS = 2  # that an update of a larger graph goes through: graph segment training
# Of a quarter of the samples each: how many decisions per task a sample is expected to change, at
# most, and the temperature at which it draws them.
EXPLORATION = ((np.inf, 1.0), (32, 1.0), (8, 1.5), (2, 3.0))
WORSE = -0.1  # advantage of a sample that is no better than the plan that it refines


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
        dynamic, of_devices, _ = episode.view.dynamic(episode.state)
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
        """SAMPLES states, and per task which nodes each sample decided, [sample, node]; the others
        keep what they have. Samples differ in how many nodes they decide, from all to so few
        that only two changes are expected. They decide whole clusters, of sizes that differ too,
        and draw the same noise for all nodes of one; every node that is decided still follows its
        own probabilities, or flatter ones where few are decided."""
        states = [np.repeat(array[None], SAMPLES, 0) for array in episode.state]
        clusters, decided = [None, *episode.view.clusters], {}
        for task, values, may in zip(SIZES, states, episode.may):
            if task not in logs:
                continue
            decided[task] = np.zeros(values.shape, bool)
            drawn = [tempered(logs[task], heat) for _, heat in EXPLORATION]
            kept = [np.exp(np.take_along_axis(each, values[0][:, None].astype(int), 1)[:, 0])
                    for each in drawn]
            for number in range(SAMPLES):
                of_node = clusters[number % len(clusters)]
                kind = number // len(clusters) % len(EXPLORATION)
                changes = max(float((1 - kept[kind])[may].sum()), 1e-9)
                share = EXPLORATION[kind][0] / changes
                count = len(may) if of_node is None else of_node.max() + 1
                chosen = self.random.random(count) < share
                noise = self.random.gumbel(size=(count, logs[task].shape[1]))
                if of_node is not None:
                    chosen, noise = chosen[of_node], noise[of_node]
                decided[task][number] = chosen = chosen & may
                values[number] = np.where(chosen, np.argmax(drawn[kind] + noise, 1), values[number])
        return states, decided

    def step(self, episode, learn=True):
        """Samples plans, keeps the best, and learns if told so. Returns the rewards."""
        if episode.space.tasks != self.tasks:
            raise UsageError(f"the policy decides {', '.join(self.tasks)}, but the space searches "
                             f"for {', '.join(episode.space.tasks)}")
        logs, feeds = self.logs(episode)
        states, decided = self.sample(episode, logs)
        result = episode.space.run(*states)
        rewards = reward(result, episode.first_seconds)
        if learn:
            self._learn(episode, logs, feeds, (states, decided), rewards)
        episode.took(states, result)
        return rewards

    def _learn(self, episode, logs, feeds, samples, rewards):
        gain = rewards - episode.reward()
        if gain.max() <= 0:
            return
        advantage = np.where(gain > 0, gain / gain.max(), WORSE).astype(np.float32)[None]
        numbers = self.random.permutation(len(feeds))[:MOST_CHUNKS]
        batches = [self._batch(episode, number, logs, feeds[number], samples, advantage)
                   for number in numbers]
        for _ in range(self.epochs):
            for batch in batches:
                self.trainer.step(batch)

    def _batch(self, episode, number, logs, feeds, samples, advantage):
        chunk, (states, decided) = episode.chunks[number], samples
        found = {**feeds, "advantage": advantage, "entropy_share": np.float32(self.entropy)}
        for task, values, may in zip(SIZES, states, episode.may):
            if task not in logs:
                continue
            actions = np.ascontiguousarray(values.T.astype(np.int64))
            found[f"actions_{task}"] = chunk.own(actions)
            found[f"before_{task}"] = chunk.own(
                np.take_along_axis(logs[task], actions, 1).astype(np.float32))
            for name, weight in (("weight", decided[task].T), ("decides", may[:, None])):
                weight = chunk.own(weight.astype(np.float32))
                found[f"{name}_{task}"] = weight / max(float(weight.sum()), 1.0)
        return found

    def weights(self):
        """Copies of the policy's weights by name."""
        return {name: array.copy() for name, array in self.trainer.weights.items()}

    def load(self, weights):
        """Takes the weights of another agent for the same tasks; the optimizer begins anew."""
        self.trainer.load_state_dict(weights)

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
        self.first_seconds = float(result.seconds[0])
        self.seconds = self.first_seconds if result.is_valid[0] else float("inf")
        self.evaluations = 1
        self.curve = [(1, self.seconds)]

    def took(self, states, result):
        """Notes the results of samples; the best one replaces the state if it is better. So does a
        plan with the changes of all samples that were better, the best of them first."""
        self.evaluations += len(result.seconds) + 1  # and the simulation for the features
        seconds = np.where(result.is_valid, result.seconds, np.inf)
        better = np.flatnonzero(seconds < self.seconds)
        if not len(better):
            return
        better = better[np.argsort(-seconds[better], kind="stable")]
        before = self.state
        self._take(tuple(array[better[-1]].copy() for array in states), seconds[better[-1]])
        if len(better) == 1:
            return
        merged = [array.copy() for array in before]
        for sample in better:
            for array, values, old in zip(merged, states, before):
                changed = values[sample] != old
                array[changed] = values[sample][changed]
        again = self.space.run(*merged)
        self.evaluations += 1
        if again.is_valid[0] and again.seconds[0] < self.seconds:
            self._take(tuple(merged), again.seconds[0])

    def _take(self, state, seconds):
        self.state, self.seconds = state, float(seconds)
        self.curve.append((self.evaluations, self.seconds))

    def reward(self):
        """That of the state."""
        return -np.sqrt(self.seconds / self.first_seconds) if np.isfinite(self.seconds) \
            else INVALID_REWARD

    def plan(self):
        return self.space.plan(self.state)
