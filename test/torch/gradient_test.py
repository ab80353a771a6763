"""Gradients of ops that models rarely have, and the ops, against eager."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import heddle.torch  # noqa: E402, F401
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler")


def resized(mode, **how):
    return lambda x: F.interpolate(x, mode=mode, **how)


def normed(axis):
    layer = nn.utils.parametrizations.weight_norm(nn.Conv1d(3, 4, 3), dim=axis)

    def function(x, v, g):
        names = "parametrizations.weight.original1", "parametrizations.weight.original0"
        return torch.func.functional_call(layer, dict(zip(names, (v, g))), (x,))
    return function


def scattered(x, y):
    mask = torch.arange(x.numel()).view(x.shape) % 3 == 1
    return x.masked_scatter(mask, y)


def filtered(norm, size):
    """A real signal by way of its spectrum, which is cut off."""
    def function(x):
        return torch.fft.irfft(torch.fft.rfft(x, norm=norm), size, norm=norm)
    return function


def grouped(ends):
    def function(x, w):
        ops = torch.ops.transformers
        return ops.grouped_mm_fallback(x, w.transpose(1, 2), torch.tensor(ends, dtype=torch.int32))
    return function


def windows(x):
    """Overlapping windows of a tensor whose dimensions are in another order in memory."""
    x = (x + 1).transpose(0, 1).contiguous().transpose(0, 1)
    batch, count, size = x.shape
    return x.as_strided((batch, 3, 4, size), (x.stride(0), 2 * x.stride(1), x.stride(1),
                                              x.stride(2)))


def shifted(x):
    return (x * 2)[:, 1:].as_strided((2, 3), (21, 4), 7)


LINE, IMAGE, SOLID = (2, 3, 7), (2, 3, 5, 7), (1, 2, 4, 5, 6)
OPS = {
    "linear": (resized("linear", scale_factor=1.7), LINE),
    "linear of corners": (resized("linear", size=4, align_corners=True), LINE),
    "bilinear": (resized("bilinear", scale_factor=(1.3, 2.7)), IMAGE),
    "bicubic": (resized("bicubic", scale_factor=1.5), IMAGE),
    "bicubic of corners": (resized("bicubic", size=(9, 4), align_corners=True), IMAGE),
    "trilinear": (resized("trilinear", scale_factor=1.5), SOLID),
    "trilinear of corners": (resized("trilinear", size=(3, 9, 6), align_corners=True), SOLID),
    "nearest": (resized("nearest", scale_factor=1.6), IMAGE),
    "nearest of a solid": (resized("nearest", size=(7, 3, 11)), SOLID),
    "nearest, exact": (resized("nearest-exact", scale_factor=1.6), IMAGE),
    "nearest, exact, of a line": (resized("nearest-exact", size=3), LINE),
    "adaptive mean": (lambda x: F.adaptive_avg_pool3d(x, (2, 5, 4)), SOLID),
    "adaptive mean of equal parts": (lambda x: F.adaptive_avg_pool3d(x, (2, 1, 3)), SOLID),
    "adaptive mean of all": (lambda x: F.adaptive_avg_pool3d(x, 1), SOLID),
    "adaptive maximum": (lambda x: F.adaptive_max_pool2d(x, (2, 4)), IMAGE),
    "adaptive maximum of equal parts": (lambda x: F.adaptive_max_pool2d(x, (5, 1)), IMAGE),
    "adaptive maximum of a solid": (lambda x: F.adaptive_max_pool3d(x, (2, 2, 5)), SOLID),
    "repeated border": (lambda x: F.pad(x, (1, 2, 3, 0), "replicate"), IMAGE),
    "repeated border of a solid": (lambda x: F.pad(x, (1, 2, 3, 0, 1, 1), "replicate"), SOLID),
    "hardshrink": (lambda x: F.hardshrink(x, 0.4), LINE),
    "softshrink": (lambda x: F.softshrink(x, 0.4), LINE),
    "masked scatter": (scattered, LINE, (20,)),
    "distances": (lambda x, y: torch.cdist(x, y), (2, 5, 3), (2, 4, 3)),
    "distances by sums": (lambda x, y: torch.cdist(x, y, p=1), (5, 3), (4, 3)),
    "products in turn": (lambda x: x.cumprod(1), LINE),
    "a distance": (torch.dist, LINE, LINE),
    "powers of two": (torch.ldexp, LINE, LINE),
    "a triangle": (lambda x: x[tuple(torch.triu_indices(4, 4, 1))], (4, 4)),
    "Fourier transforms": (lambda x: torch.fft.fftn(x, dim=(1, 2)).real, LINE),
    "Fourier transforms back": (lambda x: torch.fft.ifft(x, norm="ortho").real, LINE),
    "a view of a view": (shifted, LINE),
    "weight norm of rows": (normed(0), LINE, (4, 3, 3), (4, 1, 1)),
    "weight norm of columns": (normed(2), LINE, (4, 3, 3), (1, 1, 3)),
}


def check(function, *shapes):
    torch._dynamo.reset()
    torch.manual_seed(0)
    run = torch.compile(function, backend="heddle", fullgraph=True, options={"fallback": "raise"})
    given = [torch.randn(shape, requires_grad=True) for shape in shapes]
    wanted, found = function(*given), run(*given)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    slope = torch.randn(wanted.shape)
    for ours, theirs in zip(torch.autograd.grad(found, given, slope),
                            torch.autograd.grad(wanted, given, slope)):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", OPS)
def test_an_op_and_its_gradients(name):
    check(*OPS[name])


def test_windows_in_memory():
    torch._dynamo.reset()
    x = torch.randn(2, 8, 3)
    run = torch.compile(windows, backend="heddle", options={"fallback": "raise"})
    assert torch.equal(run(x), windows(x))


@pytest.mark.parametrize("ends", [[3, 3, 9, 11], [0, 0, 0, 0], [11] * 4, [1, 2, 5, 8]])
def test_experts_of_rows(ends):
    pytest.importorskip("transformers.integrations.moe", reason="transformers is not installed")
    check(grouped(ends), (11, 6), (4, 5, 6))


@pytest.mark.parametrize("size", [7, 6, 5, None])
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_a_signal_and_its_spectrum(norm, size):
    torch._dynamo.reset()
    torch.manual_seed(0)
    function, x = filtered(norm, size), torch.randn(3, 7)
    run = torch.compile(function, backend="heddle", options={"fallback": "raise"})
    torch.testing.assert_close(run(x), function(x))


def test_sums_of_spectra_are_refused():
    run = torch.compile(lambda x: (torch.fft.fft(x) * 2j).real, backend="heddle",
                        options={"fallback": "raise"})
    with pytest.raises(Exception, match="aten.mul.Tensor of complex numbers is not supported"):
        run(torch.randn(4))


def test_a_histogram():
    def function(x):
        return torch.histc(x, bins=7, min=-1, max=2)

    x = torch.cat([torch.randn(200), torch.tensor([-1.0, 2.0, torch.nan, torch.inf, -1.5])])
    run = torch.compile(function, backend="heddle", options={"fallback": "raise"})
    assert torch.equal(run(x), function(x))
