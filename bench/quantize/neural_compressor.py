"""Quantises with Neural Compressor, in its own environment, whose numpy is older than ours.

    python neural_compressor.py GIVEN.onnx SAMPLES MADE.onnx

SAMPLES is a folder of .npz files, one run each. bench/README.md says how the environment is made.
"""

import sys
from pathlib import Path

import numpy as np
from onnx_neural_compressor import data_reader
from onnx_neural_compressor.quantization import QuantFormat, config, quantize


class Reader(data_reader.CalibrationDataReader):
    """The samples, as often as they are asked for."""

    def __init__(self, folder):
        self.files = sorted(Path(folder).glob("*.npz"))
        self.rewind()

    def rewind(self):
        self.left = iter(self.files)

    def get_next(self):
        path = next(self.left, None)
        return path and dict(np.load(path))


def main():
    given, samples, made = sys.argv[1:]
    quantize(given, made, config.StaticQuantConfig(
        Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
        execution_provider="CPUExecutionProvider"))


if __name__ == "__main__":
    main()
