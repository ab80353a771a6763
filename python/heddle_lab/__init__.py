"""heddle_lab: what is learned and tried with Heddle, on its public API alone.

`cost` are models of what kernels take, `go` places, orders and fuses graphs in a simulator,
`quadratic` makes networks of quadratic neurons, `fuzz` holds random models against other engines.
SPDX-License-Identifier: Apache-2.0
"""
