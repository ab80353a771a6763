"""Inputs that are bound to a session, and tensors that come and go by DLPack's functions for C."""

import gc
import threading

import heddle
import numpy as np
import pytest
from heddle.onnx_graph import make_model, make_node

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.fixture
def session():
    model = make_model([make_node("Mul", "x w", "m"), make_node("Add", "m z", "y")],
                       {"x": ["n", 4], "w": [4], "z": [1]}, {"y": ["n", 4]})
    return heddle.Session(heddle.compile(model, threads=1), threads=1)


X, W, Z = np.ones((3, 4), np.float32), np.arange(4, dtype=np.float32), np.ones(1, np.float32)


def test_what_is_bound_is_fed_until_it_is_bound_anew(session):
    w = W.copy()
    session.bind({"w": w, "z": Z})
    assert session.bound["w"].data_ptr == w.ctypes.data
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * W + 1)
    w *= 2  # read where it lies
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * W * 2 + 1)
    np.testing.assert_array_equal(session.run(None, {"x": X, "z": Z + 1})[0], X * W * 2 + 2)
    assert session.output_shapes({"x": X}) == {"y": (3, 4)}
    session.bind({"w": W[::-1]})  # copied, since it is not dense
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * W[::-1] + 1)
    session.bind({"w": None})
    with pytest.raises(heddle.UsageError, match=r"\['w'\] are missing"):
        session.run(None, {"x": X})
    with pytest.raises(heddle.UsageError, match=r"\['v'\] are not known"):
        session.run(None, {"x": X, "w": W, "v": W})


def test_a_bound_array_lives_as_long_as_it_is_bound(session):
    session.bind({"w": W.copy(), "z": Z.copy()})
    gc.collect()
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], X * W + 1)


@pytest.mark.parametrize("given, said", [
    ({"q": W}, r"no input is called 'q'; there are \['x', 'w', 'z'\]"),
    ({"w": np.ones(3, np.float32)}, r"input 'w': its shape is \[3\], but \[4\] is allowed"),
    ({"w": np.ones((1, 4), np.float32)}, r"input 'w': its shape is \[1, 4\]"),
    ({"w": np.ones(4)}, "input 'w': its elements are float64, but float32 is allowed"),
    ({"w": "text"}, "input 'w'")])
def test_what_does_not_fit_is_refused_and_nothing_is_bound(session, given, said):
    with pytest.raises(heddle.UsageError, match=said):
        session.bind({"z": Z, **given})
    assert session.bound == {}


def test_binding_while_another_thread_runs(session):
    session.bind({"w": W, "z": Z})
    wrong = []

    def work():
        for _ in range(300):
            y = session.run(None, {"x": X})[0]
            scale = y[0, 1] - 1
            if not np.array_equal(y, X * W * scale + 1):
                wrong.append(y)

    thread = threading.Thread(target=work)
    thread.start()
    for scale in range(300):
        session.bind({"w": W * np.float32(scale % 7)})
    thread.join()
    assert not wrong


# torch.

@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


def test_torch_gives_and_takes_without_a_copy(session, torch):
    x, w = torch.randn(3, 4), torch.nn.Parameter(torch.randn(4))
    session.bind({"w": w, "z": torch.ones(1)})
    assert session.bound["w"].data_ptr == w.data_ptr()
    (y,) = session.run(None, {"x": x}, tensors=torch.Tensor)
    assert type(y) is torch.Tensor and torch.equal(y, x * w + 1)
    place = y
    session.run(None, {"x": x * 2}, out={"y": heddle.Tensor(place)})
    torch.testing.assert_close(y, x * 2 * w + 1)


def test_results_of_torch_outlive_the_session(torch):
    model = make_model([make_node("Neg", "x", "y")], {"x": ["n"]}, {"y": ["n"]})
    session = heddle.Session(heddle.compile(model, threads=1), threads=1)
    results = [session.run(None, {"x": torch.full((100,), float(i))}, tensors=torch.Tensor)[0]
               for i in range(20)]
    del session
    gc.collect()
    for i, y in enumerate(results):
        assert torch.equal(y, torch.full((100,), -float(i)))


def test_tensors_of_torch_that_are_not_plain(session, torch):
    given = {"w": torch.arange(8.0)[::2], "z": torch.ones(1, requires_grad=True)}
    (y,) = session.run(None, {"x": torch.ones(4, 3).t(), **given}, tensors=torch.Tensor)
    assert torch.equal(y, torch.ones(3, 4) * given["w"] + 1)
    (y,) = session.run(None, {"x": torch.zeros(0, 4), **given}, tensors=torch.Tensor)
    assert y.shape == (0, 4)
    for bad in (torch.ones(3, 4, device="meta"), torch.ones(3, 4).to_sparse(),
                torch.ones(3, 4, dtype=torch.complex64), torch.ones(3, 4, dtype=torch.float64)):
        with pytest.raises(heddle.UsageError, match="input 'x'"):
            session.run(None, {"x": bad, **given})


def test_a_type_without_the_functions_is_refused(session):
    with pytest.raises(heddle.UsageError, match="'tensors' is <class 'int'>, but True, False or"):
        session.run(None, {"x": X, "w": W, "z": Z}, tensors=int)
