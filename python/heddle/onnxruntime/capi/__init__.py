"""Module in which programs look for the exceptions of ONNX Runtime."""
