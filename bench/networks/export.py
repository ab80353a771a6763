"""Exports the networks of published.py to build/models/NAME.onnx, and quantises two of them.

    python -m bench.networks.export [NAME...]      (all when none is named)

Opset 17, through torch's tracing exporter; batch, lengths and cache are dynamic. A file that is
there is kept. Each is run by ONNX Runtime at sizes other than those that it was traced with, and
its outputs compared with torch's, before it gets its name.
"""

import sys
import warnings

import numpy as np
import onnxruntime
import torch

from bench.models.sources import STORE
from bench.networks import published

OPSET = 17
QUANTISED = {"resnet50_int8": "resnet50", "bert_base_int8": "bert_base"}


def run(path, feeds):
    """Outputs of ONNX Runtime."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def as_feeds(tensors):
    return {name: value.numpy() for name, value in tensors.items()}


def write(name, partial):
    """Traces the network into the file and checks it."""
    recipe, network = published.NETWORKS[name], published.make(name)
    example, other = recipe.example(2), recipe.example(3)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(network, tuple(example.values()), str(partial),
                          input_names=list(example), output_names=recipe.outputs,
                          opset_version=OPSET, dynamo=False, dynamic_axes=recipe.axes)
        expected = network(*other.values())
    expected = expected if isinstance(expected, tuple) else (expected,)
    for wanted, actual in zip(expected, run(partial, as_feeds(other)), strict=True):
        scale = float(wanted.abs().max())
        np.testing.assert_allclose(actual, wanted.numpy(), atol=1e-3 * scale, rtol=1e-3)


def quantise(source, partial):
    """QDQ form with int8 weights per channel and int8 activations, calibrated on random inputs."""
    from onnxruntime.quantization import (CalibrationDataReader, QuantFormat, QuantType,
                                          quantize_static, quant_pre_process)

    class Batches(CalibrationDataReader):
        def __init__(self):
            self.left = iter([as_feeds(published.NETWORKS[source].example(2)) for _ in range(4)])

        def get_next(self):
            return next(self.left, None)

    torch.manual_seed(published.SEED)
    prepared = partial.with_suffix(".prepared.onnx")
    quant_pre_process(str(export(source)), str(prepared), skip_symbolic_shape=True)
    quantize_static(str(prepared), str(partial), Batches(), quant_format=QuantFormat.QDQ,
                    per_channel=True, activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8, op_types_to_quantize=["Conv", "MatMul", "Gemm",
                                                                       "Add", "MaxPool",
                                                                       "GlobalAveragePool"]
                    if source == "resnet50" else ["MatMul", "Gemm"])
    prepared.unlink()
    run(partial, as_feeds(published.NETWORKS[source].example(3)))


def export(name):
    """Path of the network's ONNX file, written when it is not there."""
    path = STORE / f"{name}.onnx"
    if not path.exists():
        STORE.mkdir(parents=True, exist_ok=True)
        partial = STORE / f"{name}.partial.onnx"
        if name in QUANTISED:
            quantise(QUANTISED[name], partial)
        else:
            write(name, partial)
        partial.replace(path)
    return path


def main(names):
    """Exports the networks of those names, or all; exit status 1 when one failed."""
    known, failed = [*published.NETWORKS, *QUANTISED], 0
    for name in names or known:
        if name not in known:
            sys.exit(f"export: no network '{name}'; there are: {', '.join(known)}")
        try:
            path = export(name)
            print(f"{path} {path.stat().st_size / 1e6:.1f} MB", flush=True)
        except Exception as failure:  # noqa: BLE001: the others can still be exported
            failed = 1
            print(f"{name}: {type(failure).__name__}: {failure}", file=sys.stderr, flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
