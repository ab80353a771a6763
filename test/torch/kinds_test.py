"""torch.compile(backend="heddle"): kinds of tensors and of processes that torch has."""

import multiprocessing
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

import heddle.torch  # noqa: E402, F401
from heddle.torch.fallback import FallbackWarning  # noqa: E402
from torch.testing._internal.two_tensor import TwoTensor  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler", "fresh")
LAYOUT = "has the layout torch.{}, but must be dense"


@pytest.fixture
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def twice(x, **options):
    return torch.compile(lambda x: 2 * x, backend="heddle", options=options)(x)


@pytest.mark.parametrize("make, said", [
    (lambda: torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 4)],
                                        layout=torch.jagged), LAYOUT.format("jagged")),
    (lambda: torch.randn(2, 4).to_mkldnn(), LAYOUT.format("_mkldnn")),
    (lambda: torch.randn(4, dtype=torch.complex64).conj(), "complex numbers are not supported")])
def test_those_that_are_not_for_heddle_run_as_they_came(make, said):
    x = make()
    with pytest.warns(FallbackWarning, match=said):
        found = twice(x)
    wanted = 2 * x
    if x.is_nested:
        found, wanted = found.values(), wanted.values()
    elif x.layout != torch.strided:
        found, wanted = found.to_dense(), wanted.to_dense()
    assert torch.equal(found, wanted)


class Tagged(torch.Tensor):
    """A class of its own, with torch's functions."""


def test_subclasses_are_what_they_were():
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        x = torch.randn(3).as_subclass(Tagged)
        found = twice(x)
        assert type(found) is Tagged and torch.equal(found, 2 * x)
        pair = TwoTensor(torch.randn(3), torch.randn(3))
        found = twice(pair)
        assert type(found) is TwoTensor
        assert torch.equal(found.a, 2 * pair.a) and torch.equal(found.b, 2 * pair.b)


@pytest.mark.parametrize("turned", [False, True])
def test_numbers_that_memory_holds_with_the_other_sign(turned):
    """An imaginary part of a conjugate is a view with a bit, which says so."""
    x = torch.randn(3, 5, dtype=torch.complex64).conj().imag
    x = x.T if turned else x
    assert x.is_neg()
    assert torch.equal(twice(x, fallback="raise"), 2 * x)
    model = torch.nn.Linear(3 if turned else 5, 2)
    model.weight = torch.nn.Parameter(torch._neg_view(torch.randn_like(model.weight)))
    run = torch.compile(model, backend="heddle", options={"fallback": "raise"})
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(run(x), model(x))
            model.weight.mul_(3)


def test_there_is_no_device_but_the_cpu():
    x = torch.empty(3, device="meta")
    with pytest.raises(Exception, match="the device 'meta', but must be on the CPU"):
        twice(x, fallback="raise")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_that_forks_after_the_first_call():
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 64))
    run, x = torch.compile(model, backend="heddle"), torch.randn(32, 64)
    with torch.no_grad():
        wanted = run(x)
        context = multiprocessing.get_context("fork")
        queue = context.Queue()

        def work():
            queue.put(torch.equal(run(x), wanted))

        child = context.Process(target=work, daemon=True)
        child.start()
        assert queue.get(timeout=60)
        child.join(60)
        assert child.exitcode == 0 and torch.equal(run(x), wanted)
