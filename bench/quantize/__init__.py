"""quantize: models that are quantised here beside those that ONNX Runtime quantises."""
