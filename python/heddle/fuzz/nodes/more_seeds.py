"""more_seeds: legal nodes of ops for which ONNX has no tests: (op, domain, opset, attributes,
inputs, number of outputs).

SPDX-License-Identifier: Apache-2.0
"""

MORE = []
