"""Where programs look for the exceptions of ONNX Runtime."""
