"""heddle_lab.quadratic: networks of quadratic neurons from first-order ones, as ONNX models (Xu et
al., QuadraLib, MLSys 2022).

    model = quadratic.convert(onnx.load("vgg.onnx"), "sum")
    trainer = heddle.training.Trainer(model, ...)

`build` also trains, and takes out the layers that are worth least.
SPDX-License-Identifier: Apache-2.0
"""

from .layers import EPSILON, KINDS, convert, layers_of
from .removal import Built, Indicator, Removal, build, indicators, remove

__all__ = ["EPSILON", "KINDS", "Built", "Indicator", "Removal", "build", "convert", "indicators",
           "layers_of", "remove"]
