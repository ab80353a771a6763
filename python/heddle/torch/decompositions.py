"""decompositions: which ATen ops torch takes apart before Heddle sees them.

SPDX-License-Identifier: Apache-2.0
"""

import functools

import torch

from .ops import BUILDERS

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


@functools.cache
def table():
    """{overload: decomposition}."""
    found = dict(torch._decomp.core_aten_decompositions())
    found.update(torch._decomp.get_decompositions(MORE))
    for op in (*KEPT, *WHOLE):
        for overload in op.overloads():
            found.pop(getattr(op, overload), None)
    return found


__all__ = ["BUILDERS", "table"]
