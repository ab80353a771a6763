"""Builders of heddle.torch against eager, on the samples that torch tests its own ops with.

The samples of an op and a type are one graph, so that each takes one compilation.
"""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("heddle.torch", reason="torch is too old")

from functorch.compile import aot_function  # noqa: E402
from heddle.torch import decompositions, dynamo  # noqa: E402
from heddle.torch.call import Call  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")
MOST = 8  # samples of an op
FLOAT, INT, BOOL = torch.float32, torch.int64, torch.bool
OPS = """
abs acos acosh add addcdiv addcmul addmm addmv all amax amin aminmax any arange argmax argmin asin
asinh atan atan2 atanh baddbmm bitwise_and bitwise_not bitwise_or bitwise_xor bmm broadcast_to cat
ceil chunk clamp clamp_max clamp_min clone constant_pad_nd cos cosh cumsum diagonal diff div dot
einsum eq erf erfc exp exp2 expand expm1 eye fill flatten flip floor floor_divide fmax fmin fmod
frac full full_like gather ge gt heaviside index_add index_fill index_put index_select isfinite
isinf isnan le lerp linalg.vector_norm linspace log log10 log1p log2 logaddexp logical_and
logical_not logical_or logical_xor logsumexp lt masked_fill matmul max maximum mean meshgrid min
minimum mm movedim mul mv nan_to_num ne neg new_full nn.functional.adaptive_avg_pool2d
nn.functional.avg_pool2d nn.functional.batch_norm nn.functional.celu nn.functional.conv1d
nn.functional.conv2d nn.functional.conv3d nn.functional.conv_transpose1d
nn.functional.conv_transpose2d nn.functional.cosine_similarity nn.functional.cross_entropy
nn.functional.elu nn.functional.embedding nn.functional.gelu nn.functional.glu
nn.functional.grid_sample nn.functional.group_norm nn.functional.hardshrink
nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh nn.functional.huber_loss
nn.functional.instance_norm nn.functional.interpolate nn.functional.layer_norm
nn.functional.leaky_relu nn.functional.linear nn.functional.logsigmoid nn.functional.max_pool2d
nn.functional.mish nn.functional.mse_loss nn.functional.nll_loss nn.functional.normalize
nn.functional.pad nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.prelu
nn.functional.relu nn.functional.relu6 nn.functional.rms_norm
nn.functional.scaled_dot_product_attention nn.functional.selu nn.functional.silu
nn.functional.smooth_l1_loss nn.functional.softmin nn.functional.softplus nn.functional.softsign
nn.functional.tanhshrink nn.functional.threshold nn.functional.unfold
nn.functional.upsample_bilinear nn.functional.upsample_nearest norm ones_like outer permute pow prod
reciprocal remainder repeat repeat_interleave reshape roll round rsqrt rsub scatter scatter_add
scatter_reduce select select_scatter sigmoid sign sin sinc sinh slice slice_scatter softmax sort
split split_with_sizes sqrt square squeeze stack std std_mean sub sum take_along_dim tan tanh tile
topk transpose tril triu true_divide trunc unbind unflatten unfold unsqueeze var var_mean view where
xlogy zeros_like
""".split()
WHOLE = set("""abs add all amax any argmax bitwise_and bitwise_not cat clamp cumsum div eq
floor_divide fmod ge gather index_put index_select isnan logical_and logical_not lt max maximum mean
mul ne neg pow prod remainder scatter_add sort sub sum topk where""".split())


def is_left_out(name, sample):
    """Samples of what is refused: what a size known only at run time or a dropout takes."""
    given, kwargs = (sample.input, *sample.args), sample.kwargs
    if name in ("index_put", "index_fill"):
        leaves = torch.utils._pytree.tree_leaves(sample.args)
        return any(isinstance(x, torch.Tensor) and x.dtype == BOOL for x in leaves)
    return (name == "nn.functional.scaled_dot_product_attention" and kwargs.get("dropout_p")
            or name == "nn.functional.grid_sample" and (
                kwargs.get("mode"), kwargs.get("padding_mode")) == ("bicubic", "border")
            or name == "nn.functional.embedding" and kwargs.get("max_norm")
            or name == "nn.functional.avg_pool2d" and (
                len(given) > 6 or kwargs.get("divisor_override"))
            or name == "repeat_interleave" and any(
                isinstance(x, torch.Tensor) for x in (*given[1:], *kwargs.values())))


def samples_of(info, dtype):
    """Functions of tensors, and the tensors, of the op's samples."""
    torch.manual_seed(0)
    found = []
    for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
        if is_left_out(info.name, sample):
            continue
        leaves, spec = torch.utils._pytree.tree_flatten(
            (sample.input, sample.args, sample.kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

        def function(*tensors, leaves=leaves, spec=spec, places=places):
            given = list(leaves)
            for place, tensor in zip(places, tensors):
                given[place] = tensor
            first, args, kwargs = torch.utils._pytree.tree_unflatten(given, spec)
            found = [x for x in torch.utils._pytree.tree_leaves(info.op(first, *args, **kwargs))
                     if isinstance(x, torch.Tensor)]
            # Which of equal elements comes first is open where a sort is not stable.
            return found[:1] if info.name in ("sort", "topk") and dtype != FLOAT else found

        found.append((function, [leaves[i] for i in places]))
    return found[::max(1, len(found) // MOST)][:MOST]


def compiled(function, tensors):
    options = dynamo.Options.of({"threads": 1})
    return aot_function(
        function, lambda graph, _: Call(graph, {}, options, dynamo.translate).boxed,
        decompositions=decompositions.table())(*tensors)


def check(info, dtype):
    samples = samples_of(info, dtype)

    def everything(*tensors):
        results, at = [], 0
        for function, given in samples:
            results += function(*tensors[at:at + len(given)])
            at += len(given)
        return results

    tensors = [x for _, given in samples for x in given]
    wanted = everything(*(x.clone() for x in tensors))
    found = compiled(everything, [x.clone() for x in tensors])
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, equal_nan=True)


def cases():
    for info in op_db:
        if info.name in OPS and info.variant_test_name == "":
            for dtype in (FLOAT, INT, BOOL):
                if dtype in info.dtypes and (dtype == FLOAT or info.name in WHOLE
                                             or FLOAT not in info.dtypes):
                    yield pytest.param(info, dtype, id=f"{info.name}-{str(dtype)[6:]}")


@pytest.mark.parametrize("info, dtype", list(cases()))
def test_an_op_is_what_eager_computes(info, dtype):
    check(info, dtype)
