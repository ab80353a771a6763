"""ops: builders of ONNX nodes for ATen ops, by category.

A builder is called with the translator and the arguments of the op's schema by name, but for those
that say where and how a tensor is stored, and returns the name of the result, or a tuple of names.
What it does not take it refuses by `t.refuse`. SPDX-License-Identifier: Apache-2.0
"""

from . import (attention, creation, derivative, elementwise, fourier, images, indexing, movement,
               products, recurrent, reduction)
from .table import BUILDERS

__all__ = ["BUILDERS", "attention", "creation", "derivative", "elementwise", "fourier", "images",
           "indexing", "movement", "products", "recurrent", "reduction"]
