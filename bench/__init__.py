"""Measurements: the models, the kernels, and how the peers are run."""
