"""network: a graph network that orders the candidates of a group (Kaufman et al., MLSys 2021;
TpuGraphs, NeurIPS 2023).

GraphSAGE with the early join: the candidate's features are added to each node of the group before
the first of three layers, h' = norm(leaky(h W + mean of makers(h) U + mean of readers(h) V + b)).
Mean and maximum over nodes, with the candidate again, give a score: ListMLE over the candidates of
a group, and the mean square of their logarithms. Adjacency is dense, of groups padded to one number
of nodes.

The network is an ONNX model. `heddle.training.Trainer` trains it, and Heddle compiles its form for
inference. Unlike TpuGraphs, neighbours are averaged, not summed, what a node reads and what reads
it have weights of their own, and the maximum is taken beside the mean.
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import onnx
from onnx import TensorProto

from heddle import Session, compile
from heddle.onnx_graph import Graph
from heddle.training import Trainer, cosine

from .corpus import FEATURES_VERSION

MOST_NODES = 256
WIDTH, WORDS, LAYERS = 64, 32, 3
LISTED = 16  # candidates of a group in a step
BATCH = 8  # groups in a step
SQUARES = 1.0  # the weight of the mean square


class _Builder(Graph):
    """The graph of a cost model as it grows."""

    def dense(self, x, name, inputs, outputs, bias=True):
        y = self.op("MatMul", x, self.weight(inputs, outputs, name=f"{name}.weight",
                                             scale=(2.0 / inputs) ** 0.5))
        if not bias:
            return y
        return self.op("Add", y, self.constant(np.zeros(outputs, np.float32), f"{name}.bias"))

    def sum(self, x, axis, keepdims=1):
        return self.op("ReduceSum", x, self.constant(np.array([axis], np.int64)),
                       keepdims=keepdims)


def _scores(g, scaling, words):
    """[batch, candidates] of ops [batch, nodes], nodes [batch, nodes, features], makers and readers
    [batch, nodes, nodes], mask [batch, nodes, 1] and candidates [batch, candidates, features]."""
    (node_mean, node_scale), (mean, scale) = scaling

    def normal(x, mean, scale):
        return g.op("Mul", g.op("Sub", x, g.constant(mean)), g.constant(scale))

    word = g.op("Gather", g.weight(words, WORDS, name="words.weight", scale=0.3), "ops")
    node = g.op("Concat", word, normal("nodes", node_mean, node_scale), axis=-1)
    candidate = normal("candidates", mean, scale)
    axis = {i: g.constant(np.array([i], np.int64)) for i in (1, 2)}
    mask = g.op("Unsqueeze", "mask", axis[2])  # [batch, nodes, 1, 1]
    joined = g.op("Add",
                  g.op("Unsqueeze", g.dense(node, "node", WORDS + len(node_mean), WIDTH), axis[2]),
                  g.op("Unsqueeze", g.dense(candidate, "candidate", len(mean), WIDTH, bias=False),
                       axis[1]))
    h = g.op("Mul", g.op("LeakyRelu", joined, alpha=0.1), mask)
    flat = g.constant(np.array([0, 0, -1], np.int64))
    apart = g.constant(np.array([0, 0, -1, WIDTH], np.int64))
    for layer in range(LAYERS):
        rows, y = g.op("Reshape", h, flat), g.dense(h, f"own{layer}", WIDTH, WIDTH)
        for side in ("makers", "readers"):
            near = g.op("Reshape", g.op("MatMul", side, rows), apart)
            y = g.op("Add", y, g.dense(near, f"{side}{layer}", WIDTH, WIDTH, bias=False))
        y = g.op("LeakyRelu", y, alpha=0.1)
        square = g.op("ReduceMean", g.op("Mul", y, y), g.constant(np.array([-1], np.int64)),
                      keepdims=1)
        length = g.op("Sqrt", g.op("Add", square, g.constant(np.float32(1e-5))))
        h = g.op("Mul", g.op("Div", y, length), mask)
    count = g.op("Unsqueeze", g.sum("mask", 1), axis[2])
    average = g.op("Squeeze", g.op("Div", g.sum(h, 1), count), axis[1])
    absent = g.op("Mul", g.op("Sub", mask, g.constant(np.float32(1))), g.constant(np.float32(1e4)))
    most = g.op("ReduceMax", g.op("Add", h, absent), axis[1], keepdims=0)
    alone = g.op("LeakyRelu", g.dense(candidate, "late", len(mean), WIDTH), alpha=0.1)
    y = g.op("LeakyRelu", g.dense(g.op("Concat", average, most, alone, axis=-1), "head", 3 * WIDTH,
                                  WIDTH), alpha=0.1)
    return g.op("Squeeze", g.dense(y, "score", WIDTH, 1, bias=False), axis[2])


def _loss(g, scores):
    """Loss of candidates listed from the fastest on; `valid` is 0 for those that fill the list up.
    A score is a logarithm of seconds."""
    one = g.constant(np.float32(1))
    negative = g.op("Neg", scores)
    absent = g.op("Mul", g.op("Sub", "valid", one), g.constant(np.float32(1e4)))
    present = g.op("Add", negative, absent)
    most = g.op("ReduceMax", present, g.constant(np.array([1], np.int64)), keepdims=1)
    power = g.op("Exp", g.op("Sub", present, most))
    later = g.constant(np.tril(np.ones((LISTED, LISTED), np.float32)))  # those that are not faster
    rest = g.op("Add", g.op("MatMul", power, later), g.constant(np.float32(1e-20)))
    each = g.op("Sub", g.op("Add", g.op("Log", rest), most), negative)
    every = g.constant(np.array([0, 1], np.int64))
    count = g.op("ReduceSum", "valid", every, keepdims=0)
    listed = g.op("Div", g.op("ReduceSum", g.op("Mul", each, "valid"), every, keepdims=0), count)
    own = g.op("Mul", scores, "valid")
    middle = g.op("Div", g.sum(own, 1), g.sum("valid", 1))
    away = g.op("Mul", g.op("Sub", g.op("Sub", scores, middle), "target"), "valid")
    squares = g.op("Div", g.op("ReduceSum", g.op("Mul", away, away), every, keepdims=0), count)
    weighed = g.op("Mul", squares, g.constant(np.float32(SQUARES)))
    return g.op("Add", listed, weighed)


def _outside(g, least, most):
    """How many features of each candidate are outside of these ranges: [batch, candidates]."""
    low = g.op("Less", "candidates", g.constant(least))
    high = g.op("Greater", "candidates", g.constant(most))
    either = g.op("Cast", g.op("Or", low, high), to=TensorProto.FLOAT)
    return g.sum(either, 2, keepdims=0)


def _model(g, inputs, outputs):
    for name, (dtype, shape) in inputs.items():
        g.input(name, shape, dtype)
    for name, shape in outputs.items():
        g.output(name, shape)
    model = g.model(20, 9)
    onnx.checker.check_model(model)
    return model


def _inputs(batch, nodes, candidates, widths):
    node_width, width = widths
    return {"ops": (TensorProto.INT64, [batch, nodes]),
            "nodes": (TensorProto.FLOAT, [batch, nodes, node_width]),
            "makers": (TensorProto.FLOAT, [batch, nodes, nodes]),
            "readers": (TensorProto.FLOAT, [batch, nodes, nodes]),
            "mask": (TensorProto.FLOAT, [batch, nodes, 1]),
            "candidates": (TensorProto.FLOAT, [batch, candidates, width])}


def _scaling(rows):
    """(mean, 1 / deviation); a feature that never differs counts for nothing."""
    deviation = rows.std(0)
    scale = np.where(deviation > 1e-6, 1 / np.maximum(deviation, 1e-6), 0)
    return rows.mean(0).astype(np.float32), scale.astype(np.float32)


def _means(of, others, nodes):
    """A matrix that takes for each node of `of` the mean over its `others`."""
    matrix = np.zeros((nodes, nodes), np.float32)
    matrix[of, others] = 1
    return matrix / np.maximum(1, matrix.sum(1, keepdims=True))


def feeds_of(groups, nodes):
    """All inputs but the candidates, of groups padded to so many nodes."""
    count, width = len(groups), groups[0].nodes.shape[1]
    feeds = {"ops": np.zeros((count, nodes), np.int64),
             "nodes": np.zeros((count, nodes, width), np.float32),
             "makers": np.stack([_means(*group.edges.T[::-1], nodes) for group in groups]),
             "readers": np.stack([_means(*group.edges.T, nodes) for group in groups]),
             "mask": np.zeros((count, nodes, 1), np.float32)}
    for i, group in enumerate(groups):
        own = len(group.ops)
        feeds["ops"][i, :own] = group.ops
        feeds["nodes"][i, :own] = group.nodes
        feeds["mask"][i, :own] = 1
    return feeds


def feeds_of_one(group, words):
    """All inputs for a group; ops beyond the number of those that are known are unknown ones."""
    feeds = {**feeds_of([group], len(group.ops)), "candidates": group.candidates[None]}
    feeds["ops"] = np.where(feeds["ops"] < words, feeds["ops"], 0)
    return feeds


class Network:
    name = "network"

    def __init__(self, seed=0, epochs=40, threads=1, say=None):
        self.seed, self.epochs, self.threads, self.say = seed, epochs, threads, say
        self.losses = []  # the mean of each epoch
        self.scale = 1.0  # of the scores

    def fit(self, groups, names, words=None):
        """`words`: how many ops there are; those beyond, of a later heddle, count as the first."""
        groups = [g for g in groups if len(g.seconds) > 1 and len(g.ops) <= MOST_NODES]
        self.words = words or 1 + max(int(group.ops.max()) for group in groups)
        candidates = np.concatenate([group.candidates for group in groups])
        self.scaling = (_scaling(np.concatenate([group.nodes for group in groups])),
                        _scaling(candidates))
        slack = np.float32(1e-3)  # of what was rounded
        self.ranges = candidates.min(0) - slack, candidates.max(0) + slack
        g = _Builder(self.seed)
        loss = _loss(g, _scores(g, self.scaling, self.words))
        inputs = {**_inputs(BATCH, "count", LISTED, (groups[0].nodes.shape[1], len(names))),
                  "valid": (TensorProto.FLOAT, [BATCH, LISTED]),
                  "target": (TensorProto.FLOAT, [BATCH, LISTED])}
        steps = self.epochs * max(1, len(groups) // BATCH)
        trainer = Trainer(_model(g, inputs, {loss: []}), loss="output", optimizer="adam",
                          learning_rate=cosine(2e-3, steps, warmup=min(50, steps // 10)),
                          trainable=["*.weight", "*.bias"], clip_norm=1.0, seed=self.seed,
                          threads=self.threads)
        random = np.random.default_rng(self.seed)
        for epoch in range(self.epochs):
            losses = [trainer.step(feeds) for feeds in self._batches(groups, random)]
            self.losses.append(float(np.mean(losses)))
            if self.say:
                self.say(f"epoch {epoch + 1} of {self.epochs}: loss {self.losses[-1]:.4f}")
        self.weights = {name: array.copy() for name, array in trainer.weights.items()}
        self._session = None
        return self

    def _batches(self, groups, random):
        """Groups of like sizes together, each with some of its candidates, the fastest first."""
        order = sorted(random.permutation(len(groups)), key=lambda i: len(groups[i].ops) // 4)
        starts = list(range(0, len(order), BATCH))
        random.shuffle(starts)
        for start in starts:
            some = [groups[i] for i in order[start:start + BATCH]]
            while len(some) < BATCH:
                some.append(groups[random.integers(len(groups))])
            nodes = -(-max(len(group.ops) for group in some) // 8) * 8
            yield {**feeds_of(some, nodes), **self._lists(some, random)}

    @staticmethod
    def _lists(groups, random):
        width = groups[0].candidates.shape[1]
        feeds = {"candidates": np.zeros((BATCH, LISTED, width), np.float32),
                 "valid": np.zeros((BATCH, LISTED), np.float32),
                 "target": np.zeros((BATCH, LISTED), np.float32)}
        for i, group in enumerate(groups):
            count = min(LISTED, len(group.seconds))
            chosen = random.permutation(len(group.seconds))[:count]
            chosen = chosen[np.argsort(group.seconds[chosen])]
            logs = np.log(group.seconds[chosen])
            feeds["candidates"][i, :count] = group.candidates[chosen]
            feeds["valid"][i, :count] = 1
            feeds["target"][i, :count] = logs - logs.mean()
        return feeds

    def model(self):
        """The form for inference: one group, any numbers of nodes and candidates. Its outputs are
        scores, how many features of a candidate are outside of what was trained with, and the
        version of the features with the number of ops that it knows. compiler/api/CostModelFile.cpp
        runs an artefact of it."""
        g = _Builder(self.seed)
        version = g.constant(np.array([FEATURES_VERSION, self.words], np.float32))
        scores = g.op("Mul", _scores(g, self.scaling, self.words),
                      g.constant(np.float32(self.scale)))
        outputs = {"scores": scores,
                   "outside": _outside(g, *self.ranges), "version": version}
        for name, value in outputs.items():
            g.op("Identity", value, name=name)
        g.arrays.update(self.weights)
        widths = (len(self.scaling[0][0]), len(self.scaling[1][0]))
        shapes = {name: [2] if name == "version" else [1, "listed"] for name in outputs}
        return _model(g, _inputs(1, "count", "listed", widths), shapes)

    def predict(self, group):
        """Scores: logarithms of seconds, up to a constant of the group."""
        if self._session is None:
            module = compile(self.model(), threads=self.threads, cache=False,
                             typical={"count": 16, "listed": LISTED})
            self._session = Session(module, threads=self.threads)
        if len(group.ops) > MOST_NODES:
            return np.zeros(len(group.seconds))
        return np.asarray(self._session.run(None, feeds_of_one(group, self.words))[0])[0]
