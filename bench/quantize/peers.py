"""Other quantisers at the settings of ours: activations u8, weights i8 of channels around 0, ranges
from the least value to the greatest, no bias correction. Each takes the model as ONNX Runtime's
preparation makes it, which folds what can be folded."""

import contextlib
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnxruntime import quantization

from bench.models import tool

OPSET = 13  # the least that has a scale for each channel
COMPRESSOR = tool.ROOT / "build" / "neural-compressor" / "bin" / "python"


class Reader(quantization.CalibrationDataReader):
    """Samples as ONNX Runtime asks for them."""

    def __init__(self, feeds):
        self.feeds = iter(feeds)

    def get_next(self):
        return next(self.feeds, None)


@contextlib.contextmanager
def prepared(path):
    """(the path of a prepared model, the path of one to be made)"""
    model = onnx.load(path)
    version = max(each.version for each in model.opset_import if each.domain in ("", "ai.onnx"))
    if version < OPSET:
        model = onnx.version_converter.convert_version(model, OPSET)
    with tempfile.TemporaryDirectory() as folder:
        given, ready, made = (str(Path(folder) / f"{name}.onnx")
                              for name in ("given", "ready", "made"))
        onnx.save(model, given)
        quantization.shape_inference.quant_pre_process(given, ready, skip_symbolic_shape=True)
        yield ready, made


def onnxruntime(path, feeds):
    """By quantize_static."""
    with prepared(path) as (ready, made):
        def make(**more):
            quantization.quantize_static(
                ready, made, Reader(feeds), quant_format=quantization.QuantFormat.QDQ,
                per_channel=True, activation_type=quantization.QuantType.QUInt8,
                weight_type=quantization.QuantType.QInt8, extra_options=more)
            return _with_axes(made)
        try:
            return make()
        except ValueError:  # of its own: scales that it widens for biases have to be single numbers
            return make(QDQDisableWeightAdjustForInt32Bias=True)


def nncf(path, feeds, plain=True):
    """By nncf.quantize; `plain`: at our settings instead of its own ranges and biases."""
    import nncf
    from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, OverflowFix
    from nncf.quantization.range_estimator import RangeEstimatorParametersSet

    more = {"disable_bias_correction": True,
            "activations_range_estimator_params": RangeEstimatorParametersSet.MINMAX}
    with prepared(path) as (ready, _):
        return nncf.quantize(
            onnx.load(ready), nncf.Dataset(feeds), preset=nncf.QuantizationPreset.MIXED,
            advanced_parameters=AdvancedQuantizationParameters(
                overflow_fix=OverflowFix.DISABLE, **(more if plain else {})))


def neural_compressor(path, feeds):
    """By Neural Compressor, which wants an older numpy: in a process of its own."""
    if not COMPRESSOR.exists():
        raise ModuleNotFoundError("no build/neural-compressor; bench/README.md says how it is made")
    with prepared(path) as (ready, made), tempfile.TemporaryDirectory() as samples:
        for number, feed in enumerate(feeds):
            np.savez(Path(samples, f"{number:04}.npz"), **feed)
        script = Path(__file__).with_name("neural_compressor.py")
        done = subprocess.run([COMPRESSOR, script, ready, samples, made], capture_output=True,
                              text=True, env={"OMP_NUM_THREADS": "1"})
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return _with_axes(made)


def _with_axes(path):
    """A model whose biases have their scales along their channels: the axis that ONNX Runtime and
    Neural Compressor write is another one where a bias is a vector or a row, which does no harm as
    long as ONNX Runtime fuses the bias."""
    model = onnx.load(path)
    dims = {tensor.name: list(tensor.dims) for tensor in model.graph.initializer}
    for node in model.graph.node:
        given = dims.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        count = dims.get(node.input[1]) if given else None
        if count and given in (count, [1, *count]):
            del node.attribute[:]
            node.attribute.append(onnx.helper.make_attribute("axis", len(given) - 1))
    return model


PEERS = {"nncf": lambda path, feeds: nncf(path, feeds, plain=False), "onnxruntime": onnxruntime,
         "nncf minmax": nncf, "neural compressor": neural_compressor}
