"""heddle_lab.fuzz.nodes: single nodes of any ONNX op, legal and illegal, run next to unreadable
pages.

    heddle fuzz --nodes --count 100000 --jobs 2 --out findings

A case is a node that is known to be legal (from ONNX's own tests, or from `seeds`), changed in up
to four ways: its opset, attributes, element types, ranks, sizes, values, and which of its inputs
are constants, have fixed sizes, have symbols for sizes, or have shapes known only at run time.
Nobody knows whether it is legal still; so what is judged is that Heddle neither dies nor blames
itself, that what it computes is what its interpreter, ONNX's evaluator or ONNX Runtime compute,
and that it takes what those two take.
SPDX-License-Identifier: Apache-2.0
"""
