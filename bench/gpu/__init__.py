"""Models on a GPU, beside their form for the CPU, PyTorch, TorchInductor and JAX."""
