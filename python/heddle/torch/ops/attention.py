"""attention: torch's fused attention of the CPU. SPDX-License-Identifier: Apache-2.0"""

import math

import torch

from .table import aten, builds, value_of


@builds(aten._scaled_dot_product_flash_attention_for_cpu)
def attention(t, query, key, value, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
    """ONNX's Attention, which shares key heads as torch does. The second result, logarithms of
    sums, serves a derivative that is traced from other ops."""
    if dropout_p:
        t.refuse("attention with a dropout is not supported here")
    if any(user.args[1] != 0 for user in t.node.users):
        t.refuse("the second result of the fused attention is not supported")
    dtype = value_of(query).dtype
    mask = attn_mask if attn_mask is None else t.value(attn_mask)
    found = t.op("Attention", query, key, value, mask, is_causal=int(is_causal), scale=scale)
    if mask is None:
        return found, None
    # A row that may see nothing is zero.
    most = t.op("ReduceMax", mask, t.ints(-1), keepdims=1)
    nothing = t.op("Equal", most, t.scalar(-math.inf, value_of(attn_mask).dtype))
    return t.op("Where", nothing, t.scalar(0, dtype), found), None


@builds(aten.scaled_dot_product_attention)
def whole_attention(t, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False,
                    scale=None, enable_gqa=False):
    """The op before torch has chosen a form of it, as torch.export keeps it."""
    if dropout_p:
        t.refuse("attention with a dropout is not supported here")
    mask = attn_mask if attn_mask is None else t.value(attn_mask)
    found = t.op("Attention", query, key, value, mask, is_causal=int(is_causal), scale=scale)
    if mask is None:
        return found
    kind = value_of(attn_mask).dtype
    if kind == torch.bool:
        seen = t.op("ReduceMax", t.converted(mask, torch.uint8), t.ints(-1), keepdims=1)
        nothing = t.op("Equal", seen, t.scalar(0, torch.uint8))
    else:
        nothing = t.op("Equal", t.op("ReduceMax", mask, t.ints(-1), keepdims=1),
                       t.scalar(-math.inf, kind))
    return t.op("Where", nothing, t.scalar(0, value_of(query).dtype), found)
