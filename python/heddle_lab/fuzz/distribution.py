"""distribution: the ops that give random numbers, whose results are judged by their distribution.

Mean, variance and the greatest distance of the cumulative distributions (Kolmogorov-Smirnov) of
100,000 samples stay within bounds that a right generator misses once in about a million times.
SPDX-License-Identifier: Apache-2.0
"""

import math

import numpy as np
import onnx

import heddle
from heddle.onnx_graph import make_model, make_node

SAMPLES = 100_000
DEVIATIONS = 5.0  # of the mean of the samples
KOLMOGOROV = 2.7  # P(sqrt(n) D > 2.7) = 2 exp(-2 * 2.7^2) = 9e-7


def uniform(low, high):
    def cumulative(x):
        return np.clip((x - low) / (high - low), 0, 1)

    return (low + high) / 2, (high - low) ** 2 / 12, cumulative


def normal(mean, deviation):
    erf = np.vectorize(math.erf)

    def cumulative(x):
        return 0.5 * (1 + erf((x - mean) / (deviation * math.sqrt(2))))

    return mean, deviation**2, cumulative


def bernoulli(probability):
    return probability, probability * (1 - probability), None


SUBJECTS = {
    "RandomUniform": (uniform(-1, 3), {"low": -1.0, "high": 3.0, "shape": [SAMPLES]}),
    "RandomNormal": (normal(2, 0.5), {"mean": 2.0, "scale": 0.5, "shape": [SAMPLES]}),
    "RandomUniformLike": (uniform(0, 1), {}),
    "RandomNormalLike": (normal(0, 1), {}),
    "Bernoulli": (bernoulli(0.3), {}),
}


def model_of(op, attributes):
    """One node, with the seed 17; the -Like ops take their shape, Bernoulli its chances, from x."""
    inputs = {} if "shape" in attributes else {"x": [SAMPLES]}
    node = make_node(op, list(inputs), "y", op, seed=17.0, **attributes)
    return make_model([node], inputs, {"y": [SAMPLES]}, opset=21)


def judge(samples, expected):
    """None, or in words what is wrong with the samples."""
    mean, variance, cumulative = expected
    samples = np.sort(np.asarray(samples, np.float64).reshape(-1))
    count = samples.size
    if abs(samples.mean() - mean) > DEVIATIONS * math.sqrt(variance / count):
        return f"mean {samples.mean():.5g}, not {mean:.5g}"
    fourth = np.mean((samples - samples.mean()) ** 4)
    bound = DEVIATIONS * math.sqrt(max(fourth - variance**2, 1e-12) / count) + 1e-6
    if abs(samples.var() - variance) > bound:
        return f"variance {samples.var():.5g}, not {variance:.5g}"
    if cumulative is None:
        return None if set(np.unique(samples)) <= {0.0, 1.0} else "elements that are not 0 or 1"
    ideal, steps = cumulative(samples), np.arange(count + 1) / count
    gap = max(np.max(steps[1:] - ideal), np.max(ideal - steps[:-1]))
    if gap * math.sqrt(count) > KOLMOGOROV:
        return f"distribution off by {gap:.4g}, allowed {KOLMOGOROV / math.sqrt(count):.4g}"
    return None


def check_distributions():
    """(op, what is wrong) of those that are wrong. Ops that Heddle refuses have no distribution."""
    findings = []
    for op, (expected, attributes) in SUBJECTS.items():
        model = model_of(op, attributes)
        onnx.checker.check_model(model)
        try:
            module = heddle.compile(model, cache=False)
            feeds = {"x": np.full(SAMPLES, 0.3, np.float32)} if model.graph.input else {}
            text = judge(module.run(None, feeds)[0], expected)
        except heddle.RefusedError:
            continue
        except heddle.Error as error:
            text = str(error)
        if text:
            findings.append((op, text))
    return findings
