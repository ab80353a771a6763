"""seeds: legal nodes of every op: the single nodes of ONNX's own tests, and of ops without any.

SPDX-License-Identifier: Apache-2.0
"""

import functools
from pathlib import Path

import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from .case import Case, case_of
from .more_seeds import MORE

# Their numbers are random, so no two engines agree; test/onnx/random_test.py checks how they lie.
RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
          "Multinomial"}


def load_tensor(path):
    tensor = onnx.TensorProto.FromString(path.read_bytes())
    return numpy_helper.to_array(tensor)


def seed_of(folder):
    """The case of one test of ONNX, or None where it is no single node of tensors."""
    model = onnx.load(folder / "model.onnx")
    about = [value.type.WhichOneof("value") for value in model.graph.input]
    if len(model.graph.node) != 1 or any(kind != "tensor_type" for kind in about):
        return None
    if model.graph.node[0].op_type in RANDOM or "training_dropout" in folder.name:
        return None
    data = folder / "test_data_set_0"
    arrays = [load_tensor(data / f"input_{i}.pb") for i in range(len(model.graph.input))]
    case = case_of(model, arrays)
    if case:
        case.name = folder.name
    return case


@functools.cache
def seeds():
    """All, in an order that does not depend on the file system. Without those of large tensors."""
    found = [seed_of(Path(test.model_dir)) for test in load_model_tests(kind="node")]
    found = [case for case in found if case and
             sum(array.size for array in case.inputs if array is not None) < 1 << 14]
    found += [Case(op, domain, opset, [onnx.helper.make_attribute(*a) for a in attributes.items()],
                   inputs, outputs, ["fixed"] * len(inputs), f"{domain}.{op}")
              for op, domain, opset, attributes, inputs, outputs in MORE]
    return sorted(found, key=lambda case: (case.domain, case.op, case.name))


@functools.cache
def ops():
    """{(domain, op): seeds}"""
    found = {}
    for case in seeds():
        found.setdefault((case.domain, case.op), []).append(case)
    return found
