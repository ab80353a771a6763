"""heddle_lab.fuzz: random ONNX models, held against the reference interpreter and ONNX Runtime.

    python -m heddle_lab.fuzz --count 2000 --seed 1 --out findings
    python -m heddle_lab.fuzz --gradients --count 2000
    python -m heddle_lab.fuzz reduce model.onnx -o small.onnx

A model is grown a node at a time, and each node is evaluated as it is added, so that every model is
legal, its values are finite, and no result hangs on a rounding error. Model i of seed s is always
the same. Needs the package onnx; onnxruntime is used when there.
SPDX-License-Identifier: Apache-2.0
"""
