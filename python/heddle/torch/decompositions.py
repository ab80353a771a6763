"""decompositions: which ATen ops torch takes apart before Heddle sees them.

SPDX-License-Identifier: Apache-2.0
"""

import functools
import math

import torch
from torch.nn import functional

aten = torch.ops.aten
# Those that the table of core ATen leaves whole: derivatives, normalisations in training, and ops
# that others are enough for.
MORE = (
    aten._addmm_activation, aten.batch_norm_backward, aten.cumprod, aten.dist, aten.ldexp,
    aten.tril_indices, aten.triu_indices,
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
         aten.native_dropout, aten.upsample_linear1d, aten.upsample_trilinear3d, aten.leaky_relu,
         aten.elu)


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


def weight_norm_backward(grad_w, saved_v, saved_g, saved_norms, dim):
    """The gradients of w = v g / |v|, whose norm is along all dimensions but one."""
    others = [axis for axis in range(saved_v.dim()) if axis != dim % saved_v.dim()]
    inner = (grad_w * saved_v).sum(others, keepdim=True)
    norms, gains = (x.view(inner.shape) for x in (saved_norms, saved_g))
    grad_v = gains / norms * (grad_w - saved_v * inner / (norms * norms))
    return grad_v, (inner / norms).view(saved_g.shape)


def adaptive_max_pool(self, output_size):
    """The largest of each window, and its place in the image. A window is as long as the longest,
    and repeats its last element for that."""
    count, place = len(output_size), torch.zeros((), dtype=torch.int64)
    sizes, lead = self.shape[-count:], self.shape[:-count]
    for axis, (size, out) in enumerate(zip(sizes, output_size)):
        number = torch.arange(out)
        begin, last = number * size // out, ((number + 1) * size - 1) // out
        longest = max(-(-(i + 1) * size // out) - i * size // out for i in range(out))
        own = torch.minimum(begin[:, None] + torch.arange(longest), last[:, None])
        shape = [1] * (2 * count)
        shape[axis], shape[count + axis] = own.shape
        place = place * size + own.view(shape)
    place = place.reshape(math.prod(output_size), -1)
    windows = self.reshape(*lead, -1)[..., place.flatten()].view(*lead, *place.shape)
    found, best = windows.max(-1)
    places = place.expand(windows.shape).gather(-1, best.unsqueeze(-1))
    return found.view(*lead, *output_size), places.view(*lead, *output_size)


def adaptive_max_pool_backward(count, grad_output, self, indices):
    """Adds each slope, in an image of `count` dimensions, where the largest was."""
    lead = self.shape[:-count]
    found = torch.zeros_like(self).reshape(*lead, -1)
    return found.scatter_add(-1, indices.reshape(*lead, -1),
                             grad_output.reshape(*lead, -1)).view(self.shape)


def hardshrink_backward(grad_out, self, lambd):
    return torch.where(self.abs() <= lambd, 0, grad_out)


def replication_pad_backward(grad_output, self, padding):
    """Each element of a border is added to the one that it is a copy of."""
    found = grad_output
    for i in range(len(padding) // 2):
        axis, size = self.dim() - 1 - i, self.shape[self.dim() - 1 - i]
        origin = torch.arange(found.shape[axis]) - padding[2 * i]
        sizes = [*found.shape[:axis], size, *found.shape[axis + 1:]]
        found = found.new_zeros(sizes).index_add(axis, origin.clamp(0, size - 1), found)
    return found


def places_of(mask):
    """How many elements are true before each, in a row."""
    return mask.flatten().cumsum(0) - mask.flatten().long()


def masked_scatter(self, mask, source):
    """The true places have the elements of `source`, in order."""
    self, mask = torch.broadcast_tensors(self, mask)
    taken = source.flatten()[places_of(mask).clamp(max=source.numel() - 1)]
    return torch.where(mask, taken.view(self.shape), self)


def masked_scatter_backward(grad_output, mask, sizes):
    count = math.prod(sizes)
    mask = mask.expand(grad_output.shape)
    place = torch.where(mask.flatten(), places_of(mask).clamp(max=count), count)
    found = grad_output.new_zeros(count + 1).scatter(0, place, grad_output.flatten())
    return found[:count].view(sizes)


def distances(x1, x2, p, compute_mode):
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


def distances_backward(grad, x1, x2, p, cdist):
    """The gradient of x1; that of x2 is another call."""
    apart = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    grad, far = grad.unsqueeze(-1), cdist.unsqueeze(-1)
    if p == 1:
        slope = grad * apart.sign()
    elif p == 2:
        slope = torch.where(far == 0, 0, grad * apart / far)
    else:
        return NotImplemented
    return slope.sum(-2)


OWN = {aten._transformer_encoder_layer_fwd.default: encoder_layer,
       aten._native_multi_head_attention.default: multi_head_attention,
       aten._weight_norm_interface_backward.default: weight_norm_backward,
       aten.adaptive_max_pool2d.default: adaptive_max_pool,
       aten.adaptive_max_pool3d.default: adaptive_max_pool,
       aten.adaptive_max_pool2d_backward.default: functools.partial(adaptive_max_pool_backward, 2),
       aten.adaptive_max_pool3d_backward.default: functools.partial(adaptive_max_pool_backward, 3),
       aten.hardshrink_backward.default: hardshrink_backward,
       aten.softshrink_backward.default: hardshrink_backward,
       aten.masked_scatter.default: masked_scatter,
       aten.masked_scatter_backward.default: masked_scatter_backward,
       aten._cdist_forward.default: distances, aten._cdist_backward.default: distances_backward,
       **{op.default: replication_pad_backward for op in (
           aten.replication_pad1d_backward, aten.replication_pad2d_backward,
           aten.replication_pad3d_backward)}}


@functools.cache
def table():
    """{overload: decomposition}."""
    found = dict(torch._decomp.core_aten_decompositions())
    found.update(torch._decomp.get_decompositions(MORE))
    for op in (*KEPT, *WHOLE):
        for overload in op.overloads():
            found.pop(getattr(op, overload), None)
    return found | OWN
