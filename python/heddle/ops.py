"""ops: ops of the domain `heddle`, each as the ONNX function that it means.

    model.functions.append(heddle.ops.vgemm())
    helper.make_node("Vgemm", ["A", "B", "m", "k", "n"], ["C"], domain=heddle.ops.DOMAIN)

A model that carries the function runs in any engine of ONNX; Heddle knows it, and does less.
SPDX-License-Identifier: Apache-2.0
"""

from .packages import need

DOMAIN = "heddle"

_VGEMM = """<domain: "heddle", opset_import: ["" : 17]>
Vgemm (A, B, m, k, n) => (C) {
  zero_i = Constant <value_int = 0> ()
  one_i = Constant <value_int = 1> ()
  zero_f = Constant <value_float = 0.0> ()
  axis_0 = Constant <value_ints = [0]> ()
  axis_1 = Constant <value_ints = [1]> ()
  axis_2 = Constant <value_ints = [2]> ()
  zero = CastLike (zero_f, A)
  M_1 = Shape <start = 1, end = 2> (A)
  K_1 = Shape <start = 2, end = 3> (A)
  N_1 = Shape <start = 2, end = 3> (B)
  M = Squeeze (M_1, axis_0)
  K = Squeeze (K_1, axis_0)
  N = Squeeze (N_1, axis_0)
  rows = Range (zero_i, M, one_i)
  depths = Range (zero_i, K, one_i)
  columns = Range (zero_i, N, one_i)
  m_1 = Unsqueeze (m, axis_1)
  k_1 = Unsqueeze (k, axis_1)
  n_1 = Unsqueeze (n, axis_1)
  in_m = Less (rows, m_1)
  in_k = Less (depths, k_1)
  in_n = Less (columns, n_1)
  m_down = Unsqueeze (in_m, axis_2)
  k_down = Unsqueeze (in_k, axis_2)
  k_along = Unsqueeze (in_k, axis_1)
  n_along = Unsqueeze (in_n, axis_1)
  in_A = And (m_down, k_along)
  in_B = And (k_down, n_along)
  in_C = And (m_down, n_along)
  A_0 = Where (in_A, A, zero)
  B_0 = Where (in_B, B, zero)
  AB = MatMul (A_0, B_0)
  C = Where (in_C, AB, zero)
}"""


_TRIANGULAR = """<domain: "heddle", opset_import: ["" : 17]>
%s <upper: int = 0> (A, B) => (C) {
  %s
}"""


def _function(text):
    return need("onnx.parser", "heddle.ops", "training").parse_function(text)


def vgemm():
    """The onnx.FunctionProto of Vgemm(A[B, M, K], B[B, K, N], m[B], k[B], n[B]) -> C[B, M, N].

    C[b, i, j] is the sum of A[b, i, p] * B[b, p, j] over p < k[b] where i < m[b] and j < n[b], else
    0. What is beyond the sizes in A and B counts for nothing, NaN included.
    """
    return _function(_VGEMM)


def trmm():
    """The onnx.FunctionProto of Trmm(A[..., M, K], B[..., K, N]) -> C[..., M, N]: A times B, where
    A counts as 0 above its diagonal, or, with the attribute upper=1, below it.
    """
    return _function(_TRIANGULAR % ("Trmm", """T = Trilu <upper: int = @upper> (A)
  C = MatMul (T, B)"""))


def tradd():
    """The onnx.FunctionProto of Tradd(A[..., M, N], B[..., M, N]) -> C[..., M, N]: A plus B on and
    below the diagonal, or, with the attribute upper=1, on and above it; 0 elsewhere.
    """
    return _function(_TRIANGULAR % ("Tradd", """S = Add (A, B)
  C = Trilu <upper: int = @upper> (S)"""))


def trmul():
    """As tradd, but A times B, element by element."""
    return _function(_TRIANGULAR % ("Trmul", """P = Mul (A, B)
  C = Trilu <upper: int = @upper> (P)"""))
