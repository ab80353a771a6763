"""Kernels one by one: what a card is worth on its own."""
