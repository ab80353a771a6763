"""The networks of benchmarks, in torch and as ONNX files."""
