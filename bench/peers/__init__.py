"""Heddle beside the other engines that run ONNX models or torch modules on a CPU."""
