"""weightonly: weights alone as integers of 4 or 8 bits, over activations in f32.

SPDX-License-Identifier: Apache-2.0
"""
