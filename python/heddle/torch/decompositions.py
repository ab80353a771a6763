"""decompositions: which ATen ops torch takes apart before Heddle sees them.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import torch
from torch.nn import functional

aten = torch.ops.aten
# Those that the table of core ATen leaves whole: derivatives, and normalisations in training.
MORE = (
    aten._batch_norm_no_update, aten._batch_norm_with_update_functional,
    aten._log_softmax_backward_data, aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_functional, aten._softmax_backward_data,
    aten.binary_cross_entropy, aten.binary_cross_entropy_backward,
    aten.elu_backward, aten.embedding_dense_backward, aten.gelu_backward, aten.hardsigmoid_backward,
    aten.hardswish_backward, aten.hardtanh_backward, aten.huber_loss, aten.huber_loss_backward,
    aten.leaky_relu_backward, aten.linalg_vector_norm, aten.mish_backward, aten.mse_loss,
    aten.mse_loss_backward, aten.native_batch_norm, aten.native_batch_norm_backward,
    aten.native_dropout_backward, aten.native_group_norm, aten.native_group_norm_backward,
    aten.native_layer_norm_backward, aten.nll_loss2d_backward, aten.nll_loss2d_forward,
    aten.nll_loss_backward, aten.nll_loss_forward, aten.rms_norm, aten._fused_rms_norm,
    aten.select_backward,
    aten.sigmoid_backward, aten.silu_backward, aten.slice_backward, aten.smooth_l1_loss,
    aten.smooth_l1_loss_backward, aten.softplus_backward, aten.tanh_backward,
    aten.threshold_backward, aten.unfold_backward, aten.upsample_bicubic2d)
# Their rules break what Dynamo makes of torch.tensor([...]) in a model.
KEPT = (aten.detach, aten.lift, aten.lift_fresh)
# Whole ones that Heddle knows, where the table would take them apart.
WHOLE = (aten.hardsigmoid, aten.hardswish, aten.silu, aten.softplus, aten.upsample_bilinear2d,
         aten.upsample_nearest1d, aten.upsample_nearest2d, aten.upsample_nearest3d,
         aten._scaled_dot_product_flash_attention_for_cpu, aten.addmm,
         aten.native_dropout, aten.upsample_linear1d, aten.leaky_relu, aten.elu)


def attend(x, heads, qkv_weight, qkv_bias, mask, mask_type):
    """Attention of [batch, length, size] to itself; a mask is true where nothing is seen, or
    added, and is of keys if its type is 1."""
    batch, length, _ = x.shape
    query, key, value = (part.view(batch, length, heads, -1).transpose(1, 2) for part in
                         functional.linear(x, qkv_weight, qkv_bias).chunk(3, -1))
    if mask is not None:
        mask = mask[:, None, None] if mask_type == 1 else mask
        mask = ~mask if mask.dtype == torch.bool else mask
    found = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return found.transpose(1, 2).reshape(batch, length, -1)


def encoder_layer(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu,
                  norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2,
                  ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, mask_type=None):
    """The op that torch.nn.TransformerEncoderLayer is where no gradients are asked for."""
    def first(x):
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x):
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def seen(x):
        found = attend(x, num_heads, qkv_weight, qkv_bias, mask, mask_type)
        return functional.linear(found, proj_weight, proj_bias)

    def fed(x):
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = functional.gelu(hidden) if use_gelu else functional.relu(hidden)
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    if norm_first:
        src = src + seen(first(src))
        return src + fed(second(src))
    src = first(src + seen(src))
    return second(src + fed(src))


def multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight,
                         proj_bias, mask=None, need_weights=True, average_attn_weights=True,
                         mask_type=None):
    """torch.nn.MultiheadAttention's own, of a tensor to itself, without the weights."""
    if need_weights or query is not key or key is not value:
        return NotImplemented
    found = attend(query, num_head, qkv_weight, qkv_bias, mask, mask_type)
    return functional.linear(found, proj_weight, proj_bias), query.new_empty(0)


OWN = {aten._transformer_encoder_layer_fwd.default: encoder_layer,
       aten._native_multi_head_attention.default: multi_head_attention}


@functools.cache
def table():
    """{overload: decomposition}."""
    found = dict(torch._decomp.core_aten_decompositions())
    found.update(torch._decomp.get_decompositions(MORE))
    for op in (*KEPT, *WHOLE):
        for overload in op.overloads():
            found.pop(getattr(op, overload), None)
    return found | OWN
