"""call_test: what callers may hand to a run, and get from it, that is no plain array: DLPack,
memory of their own, and everything wrong that Python can hold.

Needs a C compiler for artefacts that were written by hand. SPDX-License-Identifier: Apache-2.0
"""

import concurrent.futures
import copy
import gc
import mmap
import pickle
import re
import sys
import weakref

import numpy as np
import pytest

import heddle

from session_test import (  # noqa: F401: fixtures
    OnlyDlpack,
    any_library,
    artefact,
    expected,
    feeds,
    increment,
)


@pytest.fixture
def session(increment):  # noqa: F811
    return heddle.Session(increment, threads=1)


def test_results_go_where_the_caller_wants(session):
    given, place = feeds(3), np.full((3, 4), np.nan, np.float32)
    (y,) = session.run(None, given, out={"y": place})
    assert y is place
    np.testing.assert_array_equal(place, expected(**given))
    shared = OnlyDlpack(np.zeros((3, 4), np.float32))
    (y,) = session.run(["y"], given, out={"y": shared})
    assert y is shared
    np.testing.assert_array_equal(shared.array, expected(**given))
    tensor = heddle.Tensor(np.zeros((3, 4), np.float32))
    session.run(None, given, out={"y": tensor})
    np.testing.assert_array_equal(tensor.numpy(), expected(**given))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (np.zeros((3, 3), np.float32), r"has the shape \[3, 3\], but the run gives \[3, 4\]"),
        (np.zeros((12,), np.float32), r"has the shape \[12\], but the run gives \[3, 4\]"),
        (np.zeros((3, 4)), "has elements of float64, but the run gives float32"),
        (np.zeros((3, 4), ">f4"), "is not dense"),
        (np.zeros((4, 3), np.float32).T, "is not dense"),
        (np.zeros((3, 4), object), "has elements of object"),
        (heddle.Tensor(np.zeros((3, 4))), "has elements of float64, but the run gives float32"),
        ([[0.0] * 4] * 3, "is neither an array nor anything with __dlpack__"),
        (None, "is neither an array"),
    ],
)
def test_places_that_do_not_fit(session, place, message):
    with pytest.raises(heddle.UsageError, match=f"output 'y': its place in 'out' {message}"):
        session.run(None, feeds(3), out={"y": place})


def test_other_wrong_places(session):
    given, place = feeds(3), np.zeros((3, 4), np.float32)
    with pytest.raises(heddle.UsageError, match=r"no output is called \['q'\]; there are \['y'\]"):
        session.run(None, given, out={"q": place})
    with pytest.raises(heddle.UsageError, match="'out' is a .*list"):
        session.run(None, given, out=[place])
    shifted = np.zeros(16, np.float32)
    with pytest.raises(heddle.UsageError, match="its buffer overlaps input 'x'"):
        session.run(None, {**given, "x": shifted[:12].reshape(3, 4)},
                    out={"y": shifted[4:].reshape(3, 4)})
    place.flags.writeable = False
    with pytest.raises(heddle.UsageError, match="is read-only"):
        session.run(None, given, out={"y": place})


def test_places_of_sizes_that_only_the_run_can_tell(artefact):  # noqa: F811
    session = heddle.Session(artefact("twisted"))
    given = {"x": np.array([1, -2, 3], np.float32), "picks": np.full(3, "cat")}
    place = np.zeros(2, np.float32)
    assert session.run(["positive"], given, out={"positive": place})[0] is place
    assert place.tolist() == [1, 3]
    with pytest.raises(heddle.UsageError, match=r"has the shape \[3\], but the run gave \[2\]"):
        session.run(["positive"], given, out={"positive": np.zeros(3, np.float32)})
    with pytest.raises(heddle.UsageError, match="its buffer has 4 bytes, but it needs 8"):
        session.run(["positive"], given, out={"positive": np.zeros(1, np.float32)})
    with pytest.raises(heddle.UsageError, match="strings, lists, maps and .* are always allocated"):
        session.run(None, given, out={"names": np.zeros(3, object)})


def test_results_are_shared_through_dlpack(session):
    given = feeds(500)
    (y,) = session.run(None, given, tensors=True)
    assert isinstance(y, heddle.Tensor) and y.shape == (500, 4) and y.dtype == "float32"
    assert y.__dlpack_device__() == (1, 0) and repr(y) == "<heddle.Tensor float32 (500, 4)>"
    views = [np.from_dlpack(y), y.numpy(), np.asarray(y)]
    for view in views:
        assert view.ctypes.data == y.data_ptr
        np.testing.assert_array_equal(view, expected(**given))
    again = weakref.ref(views[0])
    del y, view
    gc.collect()
    np.testing.assert_array_equal(views.pop(0), expected(**given))
    assert again() is None
    np.testing.assert_array_equal(views[0], expected(**given))


def test_a_tensor_is_a_feed(session):
    given = feeds(5)
    tensors = {name: heddle.Tensor(array) for name, array in given.items()}
    assert tensors["x"].data_ptr == given["x"].ctypes.data
    np.testing.assert_array_equal(session.run(None, tensors)[0], expected(**given))
    with pytest.raises(heddle.UsageError, match=r"its shape is \[5\], but \[batch,4\]"):
        session.run(None, {"x": tensors["z"], "z": tensors["z"]})


def test_types_that_numpy_lacks_go_through_dlpack():
    dtypes = pytest.importorskip("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        values = np.arange(6).astype(getattr(dtypes, name)).reshape(2, 3)
        first = heddle.Tensor(values)
        second = heddle.Tensor(OnlyDlpack(first))
        assert second.number == first.number and second.data_ptr == values.ctypes.data
        np.testing.assert_array_equal(second.numpy(), values)
        assert second.numpy().dtype == values.dtype


def test_torch_and_heddle_share_memory(session):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    given = {name: torch.from_numpy(array) for name, array in feeds(300).items()}
    place = torch.zeros(300, 4)
    session.run(None, given, out={"y": place})
    np.testing.assert_array_equal(place.numpy(), expected(**feeds(300)))
    (y,) = session.run(None, given, tensors=True)
    assert torch.equal(torch.from_dlpack(y), place)
    half = torch.arange(4, dtype=torch.bfloat16)
    assert heddle.Tensor(half).dtype == "bfloat16"
    assert heddle.Tensor(half).data_ptr == half.data_ptr()


def test_a_tensor_whose_memory_has_the_other_sign(session):
    """torch marks such views, but DLPack does not: they are copied, and never written."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    given = feeds(3)
    marked = {name: torch._neg_view(torch.from_numpy(-array)) for name, array in given.items()}
    np.testing.assert_array_equal(session.run(None, marked)[0], expected(**given))
    place = torch._neg_view(torch.zeros(3, 4))
    with pytest.raises(heddle.UsageError, match="read-only"):
        session.run(None, given, out={"y": place})
    assert not place.any()


class Raises:
    def __array__(self, *_, **__):
        raise RuntimeError("no array today")


class Fake:
    def __dlpack__(self, **_):
        return "no capsule"


@pytest.mark.parametrize(
    "value",
    [None, 3, "text", b"bytes", [1, [2]], {}, {"a": 1}, object(), Raises(), Fake(), np.float32(1),
     np.zeros((2, 4)), np.zeros((2, 4), object), np.zeros((2, 4), "M8[s]"), np.zeros((2, 4), "V3"),
     np.zeros((2, 4), [("a", "f4")]), np.zeros((2, 4), np.longdouble), np.zeros((2, 4), "U3"),
     np.zeros((1,) * 32, np.float32), np.ma.masked_array(np.zeros((2, 4)), True), [], lambda: 1,
     np.zeros((2, 4), np.complex64), np.array(3, np.float32), np.zeros((2, 0), np.float32)],
    ids=lambda value: re.sub(" at 0x[0-9a-f]+", "", repr(value)),  # the same in each process
)
def test_nothing_that_is_given_crashes(session, value):
    with pytest.raises(heddle.Error):
        session.run(None, {"x": value, "z": np.zeros(2, np.float32)})
    with pytest.raises(heddle.Error):
        session.run(None, {"x": np.zeros((2, 4), np.float32), "z": np.zeros(2, np.float32)},
                    out={"y": value})


def test_every_layout_gives_the_same(session):
    given = feeds(6)
    want = expected(**given)
    wide = np.repeat(given["x"], 2, axis=1)
    record = np.zeros(6, [("pad", "u1"), ("x", "f4", 4)])
    record["x"] = given["x"]
    for x in (wide[:, ::2], given["x"][::-1][::-1], given["x"].view(np.matrix), record["x"],
              np.ma.masked_array(given["x"]), np.asfortranarray(given["x"]),
              given["x"].astype(">f4")[::-1][::-1], np.broadcast_to(given["x"], (6, 4))):
        np.testing.assert_array_equal(session.run(None, {**given, "x": x})[0], want)
    zeros = np.broadcast_to(np.float32(0), (6, 4))
    np.testing.assert_array_equal(session.run(None, {**given, "x": zeros})[0],
                                  expected(zeros, given["z"]))


def test_wrong_calls(session):
    x = feeds(2)
    for call, message in (
        (lambda: session.run(), "run.. misses the argument 'output_names'"),
        (lambda: session.run(None), "run.. misses the argument 'feeds'"),
        (lambda: session.run(None, x, None, None), "at most 3 arguments by position"),
        (lambda: session.run(None, x, other=1), "got an unknown argument 'other'"),
        (lambda: session.run(None, x, feeds=x), "got twice the argument 'feeds'"),
    ):
        with pytest.raises(TypeError, match=message):
            call()
    for wrong in (None, 3, [x], "x"):
        with pytest.raises(heddle.UsageError, match="the feeds are a"):
            session.run(None, wrong)
    with pytest.raises(RuntimeError, match="never initialised"):
        heddle.Session.__new__(heddle.Session).run(None, x)
    with pytest.raises(RuntimeError, match="initialised once"):
        session.__init__(session._module)


class Forgets(heddle.Session):
    def __init__(self):
        pass


@pytest.mark.parametrize("use", [
    lambda session: session.run(None, feeds(2)), lambda session: session.memory,
    lambda session: session.threads, lambda session: session.seed(1),
    lambda session: session.get_inputs(), lambda session: session.get_outputs()])
@pytest.mark.parametrize("kind", [Forgets, lambda: heddle.Session.__new__(heddle.Session)])
def test_sessions_that_were_never_initialised(kind, use):
    with pytest.raises(RuntimeError, match="subclass of heddle.Session calls super.*__init__"):
        use(kind())


@pytest.mark.parametrize("kind", [heddle.Tensor, heddle.Module])
def test_nothing_is_made_of_nothing(kind):
    for use in (repr, lambda made: made.info, lambda made: made.numpy()):
        with pytest.raises((TypeError, AttributeError)):
            use(kind.__new__(kind))


def test_a_copy_is_the_object_itself(artefact):  # noqa: F811
    module = heddle.load(artefact("increment"))
    session = heddle.Session(module, threads=1)
    for held in (module, session):
        assert copy.copy(held) is held
        for move in (copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="belongs to its process"):
                move(held)
    again = copy.copy(module)
    del module, held
    gc.collect()
    assert again.info["model"] == "increment"


def test_results_go_into_no_memory_that_may_only_be_read(session, tmp_path):
    (tmp_path / "file").write_bytes(bytes(48))
    with open(tmp_path / "file", "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    array = np.zeros((3, 4), np.float32)
    array.flags.writeable = False
    for memory in (memoryview(bytes(48)).cast("f", (3, 4)), memoryview(mapped).cast("f", (3, 4)),
                   array, heddle.Tensor(array)):
        tensor = heddle.Tensor(memory)
        assert not tensor.numpy().flags.writeable
        assert session.run(None, {"x": tensor, "z": feeds(3)["z"]})[0].shape == (3, 4)
        for place in (tensor, tensor.numpy()):
            with pytest.raises(heddle.UsageError, match="output 'y': its place in 'out' is read-o"):
                session.run(None, feeds(3), out={"y": place})
    written = bytearray(48)
    session.run(None, feeds(3), out={"y": heddle.Tensor(memoryview(written).cast("f", (3, 4)))})
    np.testing.assert_array_equal(np.frombuffer(written, np.float32).reshape(3, 4),
                                  expected(**feeds(3)))


def test_references_are_given_back(session):
    given, place = feeds(100), np.zeros((100, 4), np.float32)

    def once():
        session.run(None, given)
        session.run(["y"], given, out={"y": place})
        session.run(None, given, tensors=True)[0].numpy()
        for wrong in ({"x": 1, "z": None}, {}, {**given, "x": given["z"]}, {**given, "z": [1, []]}):
            with pytest.raises(heddle.Error):
                session.run(None, wrong)

    once()
    counts = [sys.getrefcount(each) for each in (*given.values(), place, given, session)]
    for _ in range(50):
        once()
    assert counts == [sys.getrefcount(each) for each in (*given.values(), place, given, session)]


def test_feeds_that_change_while_runs_go_on(session):
    given = feeds(64)

    def disturb():
        for i in range(2000):
            given["x"] = feeds(64)["x"] if i % 2 else given["x"].copy()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        pool.submit(disturb)
        for found in pool.map(lambda _: session.run(None, given)[0], range(300)):
            np.testing.assert_array_equal(found, expected(**feeds(64)))
