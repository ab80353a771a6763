"""policy: GO's network as an ONNX model that proposes decisions and, to be trained by Heddle,
computes PPO's loss (Zhou et al., NeurIPS 2020, section 3).

    embedding of kinds and features -> GraphSAGE with max pooling, 2 layers
    -> segments of 256 nodes with recurrent attention: a segment reads itself and the one before
    -> superposition: each layer's result is scaled by a function of one more attention layer
    -> heads for placement, schedule and fusion, each of which reads the one before

A run takes CHUNK nodes of a graph, and up to HALO of their neighbours that are in other chunks, so
memory does not grow with the graph. The last segment of the chunk before comes as an input, by
which no gradient flows. Differences from the paper: the score of a device depends on what is
known about the node and this device, by weights that all devices share, so one policy serves any
number of devices; and every score has a bias for the decision that is refined.
SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from heddle.onnx_graph import FLOAT, INT64, Graph

from .baselines import LEVELS
from .features import DEVICE_FEATURES, FEATURES, NEIGHBOURS
from .graph import KIND_NAMES

CHUNK, SEGMENT, HALO = 512, 256, 256
SIZE, HEADS, LAYERS, HIDDEN = 64, 4, 2, 32
MOST_DEVICES = 8
SAMPLES = 32  # per step
CLIP = 0.2  # of PPO
KEEP = 6.0  # at first, over log(nodes) / 7: the score of the decision that is refined
MASKED = -1e4


class _Model(Graph):
    """The graph of a policy as it grows."""

    def ints(self, *values):
        name = "shape_" + "_".join(str(each).replace("-", "m") for each in values)
        self.arrays.setdefault(name, np.array(values, np.int64))
        return name

    def number(self, value):
        name = f"number_{value:g}".replace("-", "m").replace(".", "_")
        self.arrays.setdefault(name, np.float32(value))
        return name

    def weight(self, name, *shape, scale=None):
        scale = 1 / np.sqrt(shape[0]) if scale is None else scale
        return super().weight(*shape, name=name, scale=scale)

    def filled(self, name, value, *shape):
        return self.constant(np.full(shape, value, np.float32), name)

    def dense(self, x, name, inner, columns, scale=None, bias=True):
        y = self.op("MatMul", x, self.weight(f"{name}.weight", inner, columns, scale=scale))
        return self.op("Add", y, self.filled(f"{name}.bias", 0, columns)) if bias else y

    def normalize(self, x, name, size):
        return self.op("LayerNormalization", x, self.filled(f"{name}.scale", 1, size),
                       self.filled(f"{name}.shift", 0, size))

    def model_of(self, inputs, outputs):
        for name in sorted(inputs, key=lambda each: each in INTEGERS):
            self.input(name, inputs[name], INT64 if name in INTEGERS else FLOAT)
        for name, shape in outputs.items():
            self.output(name, shape)
        made = self.model(18, 9)
        self.onnx.checker.check_model(made)
        return made


INTEGERS = ("kind", "neighbours", "actions_placement", "actions_schedule", "actions_fusion")
SIZES = {"placement": MOST_DEVICES, "schedule": LEVELS, "fusion": 2}


def _graph_sage(m, rows):
    """Features of a chunk and its halo -> [CHUNK, SIZE]."""
    embedded = m.op("Gather", m.weight("kinds", len(KIND_NAMES), 16, scale=0.5), "kind")
    x = m.op("Concat", embedded, "features", axis=1)
    x = m.op("Relu", m.dense(x, "enter", 16 + FEATURES, SIZE))
    for layer in range(2):
        sent = m.op("Relu", m.dense(x, f"sage{layer}.sent", SIZE, SIZE))
        near = m.op("Gather", sent, "neighbours")
        near = m.op("ReduceMax", near, m.ints(1), keepdims=0)
        x = m.op("Relu", m.dense(m.op("Concat", x, near, axis=1), f"sage{layer}.joined", 2 * SIZE,
                                 SIZE))
    return m.op("Slice", x, m.ints(0), m.ints(CHUNK), m.ints(0)) if rows > CHUNK else x


def _attention(m, x, name, memory):
    """One layer over segments: [CHUNK, SIZE] -> the same. `memory` is the last segment of the
    chunk before."""
    segments, each = CHUNK // SEGMENT, SIZE // HEADS
    normal = m.normalize(x, f"{name}.before", SIZE)
    before = m.op("Concat", memory, m.op("Slice", normal, m.ints(0), m.ints(CHUNK - SEGMENT),
                                         m.ints(0)), axis=0)

    def split(value, length):
        value = m.op("Reshape", value, m.ints(segments, length, HEADS, each))
        return m.op("Transpose", value, perm=[0, 2, 1, 3])

    both = m.op("Concat", m.op("Reshape", before, m.ints(segments, SEGMENT, SIZE)),
                m.op("Reshape", normal, m.ints(segments, SEGMENT, SIZE)), axis=1)
    q = split(m.dense(normal, f"{name}.query", SIZE, SIZE, bias=False), SEGMENT)
    k = split(m.dense(both, f"{name}.key", SIZE, SIZE, bias=False), 2 * SEGMENT)
    v = split(m.dense(both, f"{name}.value", SIZE, SIZE, bias=False), 2 * SEGMENT)
    scores = m.op("MatMul", q, m.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = m.op("Add", m.op("Mul", scores, m.number(each**-0.5)), "mask")
    y = m.op("MatMul", m.op("Softmax", scores, axis=-1), v)
    y = m.op("Reshape", m.op("Transpose", y, perm=[0, 2, 1, 3]), m.ints(CHUNK, SIZE))
    x = m.op("Add", x, m.dense(y, f"{name}.out", SIZE, SIZE))
    y = m.normalize(x, f"{name}.after", SIZE)
    y = m.dense(m.op("Relu", m.dense(y, f"{name}.wide", SIZE, 2 * SIZE)), f"{name}.narrow",
                2 * SIZE, SIZE)
    last = m.op("Slice", normal, m.ints(CHUNK - SEGMENT), m.ints(CHUNK), m.ints(0))
    return m.op("Add", x, y), last


def _head(m, x, task, hidden):
    """Scores [CHUNK, decisions] and the hidden layer, which the next head reads."""
    size = SIZE
    if hidden is not None:
        x, size = m.op("Concat", hidden, x, axis=1), SIZE + HIDDEN
    x = m.dense(m.normalize(x, f"{task}.normal", size), f"{task}.hidden", size, HIDDEN)
    if task == "placement":
        by_device = m.dense("of_devices", "placement.devices", DEVICE_FEATURES, HIDDEN)
        each = m.op("Relu", m.op("Add", m.op("Unsqueeze", x, m.ints(1)), by_device))
        scores = m.op("Squeeze", m.dense(each, "placement.score", HIDDEN, 1, scale=0.01,
                                         bias=False), m.ints(2))
        hidden = m.op("Relu", x)
    else:
        hidden = m.op("Relu", x)
        scores = m.dense(hidden, f"{task}.score", HIDDEN, SIZES[task], scale=0.01)
    kept = m.op("Mul", f"given_{task}", m.filled(f"{task}.keep", KEEP, 1))
    return m.op("Add", m.op("Add", scores, kept), f"allowed_{task}"), hidden


def _losses(m, task, scores):
    """PPO's clipped surrogate per node and sample, and the entropy, as weighted sums."""
    logs = m.op("LogSoftmax", scores, axis=-1)
    chosen = m.op("GatherElements", logs, f"actions_{task}", axis=1)
    ratio = m.op("Exp", m.op("Sub", chosen, f"before_{task}"))
    clipped = m.op("Clip", ratio, m.number(1 - CLIP), m.number(1 + CLIP))
    gain = m.op("Min", m.op("Mul", ratio, "advantage"), m.op("Mul", clipped, "advantage"))
    gain = m.op("ReduceSum", m.op("Mul", gain, f"weight_{task}"), keepdims=0)
    entropy = m.op("Mul", m.op("Exp", logs), logs)
    entropy = m.op("ReduceSum", m.op("Mul", entropy, f"decides_{task}"), keepdims=0)
    return m.op("Sub", m.op("Mul", entropy, "entropy_share"), gain)


def network(tasks, with_loss, seed=0):
    """The ONNX model. Outputs: the loss, if any, scores per task, and what the next chunk reads."""
    m, rows = _Model(seed), CHUNK + HALO
    inputs = {"kind": [rows], "features": [rows, FEATURES], "neighbours": [rows, NEIGHBOURS],
              "mask": [CHUNK // SEGMENT, 1, 1, 2 * SEGMENT]}
    h = _graph_sage(m, rows)
    memories = {}

    def attend(x, name):
        inputs[f"memory_{name}"] = [SEGMENT, SIZE]
        x, memories[f"next_{name}"] = _attention(m, x, name, f"memory_{name}")
        return x

    modulation = attend(h, "modulation")
    x = h
    for layer in range(LAYERS):
        x = attend(x, f"layer{layer}")
        gate = m.op("Sigmoid", m.dense(modulation, f"layer{layer}.gate", SIZE, SIZE))
        x = m.op("Mul", x, m.op("Mul", gate, m.number(2.0)))
    outputs, hidden, losses = {}, None, []
    for task in tasks:
        scores, hidden = _head(m, x, task, hidden)
        if task == "placement":
            inputs["of_devices"] = [CHUNK, MOST_DEVICES, DEVICE_FEATURES]
        inputs[f"given_{task}"] = inputs[f"allowed_{task}"] = [CHUNK, SIZES[task]]
        m.op("Identity", scores, name=f"scores_{task}")
        outputs[f"scores_{task}"] = [CHUNK, SIZES[task]]
        if with_loss:
            losses.append(_losses(m, task, scores))
            for name in ("actions", "before", "weight"):
                inputs[f"{name}_{task}"] = [CHUNK, SAMPLES]
            inputs[f"decides_{task}"] = [CHUNK, 1]
    for name, value in memories.items():
        m.op("Identity", value, name=name)
        outputs[name] = [SEGMENT, SIZE]
    if with_loss:
        inputs.update(advantage=[1, SAMPLES], entropy_share=[])
        total = losses[0]
        for each in losses[1:]:
            total = m.op("Add", total, each)
        m.op("Identity", total, name="loss")
        outputs = {"loss": [], **outputs}
    return m.model_of(inputs, outputs)
