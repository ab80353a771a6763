"""session_test: modules and sessions over artefacts that were written by hand in C.

Needs a C compiler, and libheddle.so or libheddle_runtime.so. SPDX-License-Identifier: Apache-2.0
"""

import concurrent.futures
import gc
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import heddle
from heddle import arrays, library

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "runtime" / "executable" / "testing"


def built_runtimes():
    """All libheddle_runtime.so but those that need their sanitizer loaded first."""
    return [path for path in sorted(ROOT.glob("build/*/lib/libheddle_runtime.so"))
            if path.parts[-3] not in ("asan", "tsan")]


@pytest.fixture(scope="session", autouse=True)
def any_library():
    """libheddle.so if there is one, else the runtime alone."""
    found = any(isinstance(path, Path) and path.exists() for path in library.candidates())
    runtimes = built_runtimes()
    if not found and "HEDDLE_LIBRARY" not in os.environ:
        if not runtimes:
            pytest.skip("neither libheddle.so nor libheddle_runtime.so is built")
        os.environ["HEDDLE_LIBRARY"] = str(runtimes[-1])


@pytest.fixture(scope="session")
def artefact(tmp_path_factory):
    """artefact(name): path of the artefact made of runtime/executable/testing/<name>.c."""

    def build(name):
        path = tmp_path_factory.mktemp("artefact") / f"{name}.so"
        command = ["cc", "-shared", "-fPIC", f"-I{ROOT}", f"-D{name}_executable=heddle_executable"]
        if name == "increment":
            command.pop()  # exports that name already
        subprocess.run([*command, str(SOURCES / f"{name}.c"), "-o", str(path)], check=True)
        return path

    return build


@pytest.fixture
def increment(artefact):
    return heddle.load(artefact("increment"))


def expected(x, z):
    return x + (z + 1)[:, None]


def feeds(batch):
    x = np.random.default_rng(batch).standard_normal((batch, 4)).astype(np.float32)
    return {"x": x, "z": np.arange(batch, dtype=np.float32)}


def test_shapes_are_known_before_a_run(increment):
    session = heddle.Session(increment, threads=1)
    assert session.output_shapes(feeds(3)) == {"y": (3, 4)}
    assert session.get_outputs()[0].numpy_dtype == np.float32
    with pytest.raises(heddle.UsageError, match="'z'.* are missing") as error:
        session.output_shapes({"x": feeds(3)["x"]})
    assert error.value.code == 2


def test_describes_as_onnx_runtime_does(increment):
    session = heddle.InferenceSession(increment, threads=1)
    (x, z), (y,) = session.get_inputs(), session.get_outputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["batch", 4])
    assert (z.name, z.shape) == ("z", ["batch"])
    assert (y.name, y.type) == ("y", "tensor(float)")
    assert increment.info["model"] == "increment"
    assert "x: tensor(float)['batch', 4]" in repr(increment)


@pytest.mark.parametrize("batch", [0, 1, 3, 100])
def test_runs(increment, batch):
    given = feeds(batch)
    for threads in (None, 1, 2):
        session = heddle.Session(increment, threads=threads)
        (y,) = session.run(None, given)
        np.testing.assert_array_equal(y, expected(**given))
        assert session.memory["arena_bytes"] == 4 * batch
    np.testing.assert_array_equal(increment(given["x"], z=given["z"]), y)
    np.testing.assert_array_equal(increment.run(["y"], given)[0], y)


def test_large_results_use_memory_again_that_was_given_up(increment):
    session, given = heddle.Session(increment, threads=1), feeds(25000)
    (first,) = session.run(None, given)
    address = first.ctypes.data
    (second,) = session.run(None, given)
    assert second.ctypes.data != address
    np.testing.assert_array_equal(first, expected(**given))
    part = first[7:9]  # holds it all
    del first
    assert session.memory["kept_bytes"] == 0
    del part
    assert session.memory["kept_bytes"] >= second.nbytes
    (third,) = session.run(None, given)
    assert third.ctypes.data == address


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_takes_anything_like_an_array(increment):
    given = feeds(3)
    want = expected(**given)
    strided = np.asfortranarray(given["x"])
    swapped = given["x"].astype(">f4")
    backing = np.zeros(49, np.uint8)
    backing[1:] = given["x"].view(np.uint8).reshape(-1)
    unaligned = backing[1:].view(np.float32).reshape(3, 4)
    for x in (OnlyDlpack(given["x"]), strided, swapped, unaligned, memoryview(given["x"])):
        np.testing.assert_array_equal(increment(x, given["z"]), want)


def test_wrong_feeds_are_usage_errors(increment):
    session = heddle.Session(increment)
    x, z = feeds(2).values()
    with pytest.raises(heddle.UsageError, match=r"\['z'\] are missing; \['w'\] are not known"):
        session.run(None, {"x": x, "w": z})
    with pytest.raises(heddle.UsageError, match=r"'x': its shape is \[2,3\], but \[batch,4\]"):
        session.run(None, {"x": x[:, :3], "z": z})
    with pytest.raises(heddle.UsageError, match=r"'z': its dtype is float64 \(11\)"):
        session.run(None, {"x": x, "z": z.astype(np.float64)})
    with pytest.raises(heddle.UsageError, match="'batch' is 2 in dim 0"):
        session.run(None, {"x": x, "z": z[:1]})
    with pytest.raises(heddle.UsageError, match="its elements are object"):
        session.run(None, {"x": x, "z": np.array([None, 1])})
    with pytest.raises(heddle.UsageError, match=r"no output is called \['q'\]; there are \['y'\]"):
        session.run(["q"], {"x": x, "z": z})
    with pytest.raises(ValueError):
        heddle.Session(increment, threads=-1)


def test_strings_and_sizes_that_only_the_run_can_tell(artefact):
    session = heddle.Session(artefact("twisted"))
    assert session.get_inputs()[1].type == "tensor(string)"
    picks = np.array(["dog", "cat", "cow"])
    x = np.array([1, -2, 3], np.float32)
    positive, names = session.run(None, {"x": x, "picks": picks})
    assert positive.tolist() == [1, 3]
    assert names.dtype == object and names.tolist() == ["dog", "dog", "cow"]
    names, positive = session.run(["names", "positive"], {"x": -x * 0, "picks": picks})
    assert positive.shape == (0,)
    with pytest.raises(heddle.UsageError, match="element 0 of 'x' is not a number"):
        session.run(None, {"x": x * np.nan, "picks": picks})
    with pytest.raises(MemoryError, match="out of memory: 70368744177"):
        session.run(None, {"x": np.array([2e30, 0, 0], np.float32), "picks": picks})


def test_outputs_outlive_session_and_module(artefact):
    session = heddle.Session(artefact("twisted"))
    x = np.arange(1, 1001, dtype=np.float32)
    positive, _ = session.run(None, {"x": x, "picks": np.full(1000, "cat")})
    del session
    gc.collect()
    np.testing.assert_array_equal(positive, x)


def test_many_threads_run_one_session(increment):
    session = heddle.Session(increment)

    def work(batch):
        given = feeds(batch)
        return all(
            np.array_equal(session.run(None, given)[0], expected(**given)) for _ in range(50)
        )

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(1, 17)))


def test_refusals(tmp_path, artefact):
    with pytest.raises(heddle.UsageError, match="cannot open"):
        heddle.load(tmp_path / "none.so")
    whole = artefact("increment").read_bytes()
    (tmp_path / "half.so").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(heddle.RefusedError, match="is truncated"):
        heddle.load(tmp_path / "half.so")


def test_four_bit_elements_are_packed():
    values = np.arange(-8, 7, dtype=np.int8)
    packed = arrays.pack(values)
    assert packed.nbytes == 8
    pytest.importorskip("ml_dtypes")
    assert arrays.unpack(packed, 22, (3, 5)).astype(np.int8).reshape(-1).tolist() == values.tolist()


def test_maps_are_lists_of_dicts():
    info = heddle.NodeArg("p", 1, ["n", 2], library.INT_MAP, ["3", "7"])
    rows = np.array([[0.25, 0.75], [1, 0]], np.float32)
    assert info.type == "seq(map(int64,tensor(float)))"
    assert arrays.present(rows, info) == [{3: 0.25, 7: 0.75}, {3: 1.0, 7: 0.0}]
    info = heddle.NodeArg("p", 1, ["n", 2], library.MAP, ["3", "b"])
    assert info.type == "seq(map(string,tensor(float)))"
    assert arrays.present(rows, info)[1] == {"3": 1.0, "b": 0.0}


def test_narrow_elements_are_packed():
    pytest.importorskip("ml_dtypes")
    for number in arrays.PACKED:
        for count in range(10):
            values = np.arange(count, dtype=np.uint8) % (1 << arrays.PACKED[number])
            packed = arrays.pack(values, arrays.PACKED[number])
            assert packed.nbytes == -(-count * arrays.PACKED[number] // 8)
            again = arrays.unpack(packed, number, (count,))
            assert again.dtype == arrays.numpy_dtype(number)
            bits = again.view(np.uint8) & ((1 << arrays.PACKED[number]) - 1)
            assert bits.tolist() == values.tolist()


def test_lists_are_checked():
    info = heddle.NodeArg("s", 1, [], kind=library.SEQUENCE)
    assert info.type == "seq(tensor(float))"
    tensor, _ = arrays.feed([np.zeros((2, 3), np.float32)], info)
    assert (tensor.dtype, tensor.dims[0]) == (arrays.SEQUENCE, 1)
    with pytest.raises(heddle.UsageError, match="input 's': it is None, but a list is allowed"):
        arrays.feed(None, info)
    with pytest.raises(heddle.UsageError, match="input 's': it is a int, but a list is allowed"):
        arrays.feed(3, info)
    info = heddle.NodeArg("o", 8, [], kind=library.OPTIONAL)
    assert info.type == "optional(tensor(string))"
    assert arrays.feed(None, info)[0].dims[0] == -1
    tensor, alive = arrays.feed(np.array(["a", "bä"]), info)
    assert arrays.copied(tensor, library.OPTIONAL).tolist() == ["a", "bä"]
    with pytest.raises(heddle.UsageError, match="holds a float, but str is allowed"):
        arrays.feed(np.array([1.5], object), info)


def test_a_file_that_was_replaced_is_loaded_anew(artefact, tmp_path):
    """While the old one is in use, and runs on."""
    path = tmp_path / "model.so"
    os.link(artefact("increment"), path)
    old = heddle.load(path)
    os.link(artefact("twisted"), tmp_path / "next.so")
    os.replace(tmp_path / "next.so", path)
    new = heddle.load(path)
    assert [info.name for info in new.outputs] != [info.name for info in old.outputs]
    assert new.outputs == heddle.load(path).outputs
    given = feeds(2)
    np.testing.assert_array_equal(old.run(None, given)[0], expected(**given))
