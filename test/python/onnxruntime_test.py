"""onnxruntime_test: the same programs, as ONNX Runtime's documentation has them, with
`onnxruntime` and with `heddle.onnxruntime`. SPDX-License-Identifier: Apache-2.0
"""

import importlib
import inspect
import json
import re
import subprocess
import sys
import threading
import time
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import heddle
import heddle.onnxruntime as ours
from heddle.onnx_graph import make_model, make_node
from heddle.onnxruntime import differences, metadata

onnx = pytest.importorskip("onnx")
theirs = pytest.importorskip("onnxruntime")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "onnxruntime.md"


@pytest.fixture(params=["onnxruntime", "heddle.onnxruntime"])
def ort(request):
    return importlib.import_module(request.param)


def state(ort):
    return importlib.import_module(ort.__name__ + ".capi.onnxruntime_pybind11_state")


@pytest.fixture(scope="module", autouse=True)
def no_cache():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEDDLE_CACHE", "")
        yield


def proto():
    nodes = [make_node("MatMul", "x w", "h"), make_node("Relu", "h", "y"),
             make_node("ReduceSum", "y", "total", keepdims=0)]
    model = make_model(nodes, {"x": ["batch", 3]}, {"y": ["batch", 4], "total": []}, {"w": WEIGHTS},
                       opset=21, producer_name="a test", domain="org.test", model_version=-7,
                       doc_string="of the model")
    model.graph.name, model.graph.doc_string = "two_results", "of the graph"
    for key, value in (("classes", "cat,dog"), ("grüße", "ö")):
        model.metadata_props.add(key=key, value=value)
    return model


WEIGHTS = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
MODEL = proto().SerializeToString()
X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
Y = np.maximum(X @ WEIGHTS, 0)


def session_of(ort, model=MODEL, **attributes):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    for name, value in attributes.items():
        setattr(options, name, value)
    return ort.InferenceSession(model, sess_options=options, providers=["CPUExecutionProvider"])


def test_load_and_run(ort, tmp_path):
    (tmp_path / "m.onnx").write_bytes(MODEL)
    for model in (MODEL, str(tmp_path / "m.onnx"), tmp_path / "m.onnx"):
        session = session_of(ort, model)
        (x,) = session.get_inputs()
        assert (x.name, list(x.shape), x.type) == ("x", ["batch", 3], "tensor(float)")
        assert [(y.name, y.type) for y in session.get_outputs()] == [
            ("y", "tensor(float)"), ("total", "tensor(float)")]
        y, total = session.run(None, {"x": X})
        np.testing.assert_allclose(y, Y, rtol=1e-5)
        assert total.shape == () and abs(total - Y.sum()) < 1e-3
        (total,) = session.run(["total"], {x.name: X}, ort.RunOptions())
        assert abs(total - Y.sum()) < 1e-3
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert "CPUExecutionProvider" in ort.get_available_providers()
    assert ort.get_device().startswith("CPU")


def test_metadata(ort):
    meta = session_of(ort).get_modelmeta()
    assert (meta.producer_name, meta.domain, meta.version) == ("a test", "org.test", -7)
    assert (meta.graph_name, meta.graph_description) == ("two_results", "of the graph")
    assert meta.description == "of the model"
    assert meta.custom_metadata_map == {"classes": "cat,dog", "grüße": "ö"}


def test_io_binding_of_arrays(ort):
    session = session_of(ort)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("total")
    binding.bind_output("y")
    for _ in range(2):
        session.run_with_iobinding(binding)
        total, y = binding.copy_outputs_to_cpu()
        np.testing.assert_allclose(y, Y, rtol=1e-5)
        assert abs(total - Y.sum()) < 1e-3
    total, y = binding.get_outputs()
    assert y.is_tensor() and list(y.shape()) == [2, 4] and y.data_type() == "tensor(float)"
    assert y.device_name() == "cpu"


def test_io_binding_of_another_session(ort):
    binding = session_of(ort).io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_output("y")
    with pytest.raises(ValueError, match="session that created it"):
        session_of(ort).run_with_iobinding(binding)


def test_io_binding_of_buffers(ort):
    session = session_of(ort)
    value, place = ort.OrtValue.ortvalue_from_numpy(X), np.zeros((2, 4), np.float32)
    binding = session.io_binding()
    binding.bind_input(name="x", device_type=value.device_name(), device_id=0,
                       element_type=np.float32, shape=value.shape(), buffer_ptr=value.data_ptr())
    binding.bind_output(name="y", device_type="cpu", device_id=0, element_type=np.float32,
                        shape=place.shape, buffer_ptr=place.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(place, Y, rtol=1e-5)


def test_io_binding_of_values(ort):
    session = session_of(ort)
    x = ort.OrtValue.ortvalue_from_numpy(X.copy())
    y = ort.OrtValue.ortvalue_from_shape_and_type([2, 4], np.float32)
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    binding.synchronize_inputs()
    session.run_with_iobinding(binding)
    binding.synchronize_outputs()
    np.testing.assert_allclose(y.numpy(), Y, rtol=1e-5)
    x.update_inplace(-X)
    session.run_with_iobinding(binding)
    np.testing.assert_allclose(y.numpy(), np.maximum(-X @ WEIGHTS, 0), rtol=1e-5)
    assert binding.get_outputs()[0].data_ptr() == y.data_ptr()


def test_values(ort):
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert (list(value.shape()), value.data_type(), value.element_type()) == \
        ([2, 3], "tensor(int64)", onnx.TensorProto.INT64)
    assert (value.is_tensor(), value.has_value(), value.is_tensor_sequence()) == (True, True, False)
    assert value.tensor_size_in_bytes() == 48
    assert value.data_ptr() == array.ctypes.data
    assert np.shares_memory(value.numpy(), array)
    again = ort.OrtValue.from_dlpack(value)
    assert again.data_ptr() == value.data_ptr() and again.element_type() == value.element_type()
    bits = np.array([0x3F80, 0x4000], np.uint16)
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, onnx.TensorProto.BFLOAT16)
    assert value.data_type() == "tensor(bfloat16)"


def test_run_with_ort_values(ort):
    (y,) = session_of(ort).run_with_ort_values(["y"], {"x": ort.OrtValue.ortvalue_from_numpy(X)})
    assert isinstance(y, ort.OrtValue)
    np.testing.assert_allclose(y.numpy(), Y, rtol=1e-5)


def test_run_async(ort):
    session, done, found = session_of(ort, intra_op_num_threads=2), threading.Event(), []

    def callback(results, user_data, error):
        found.append((results, user_data, error))
        done.set()

    session.run_async(["y"], {"x": X}, callback, "mine")
    assert done.wait(600)
    ((results, user_data, error),) = found
    assert (user_data, error) == ("mine", "")
    np.testing.assert_allclose(results[0], Y, rtol=1e-5)


def test_profiling(ort, tmp_path):
    before = time.time_ns()
    session = session_of(ort, enable_profiling=True, profile_file_prefix=str(tmp_path / "trace"))
    start, made = session.get_profiling_start_time_ns(), time.time_ns()
    time.sleep(0.05)
    session.run(None, {"x": X})
    path = Path(session.end_profiling())
    took = time.time_ns() - before
    assert path.parent == tmp_path
    date, part = re.fullmatch(r"trace_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)_(\d{3})\.json",
                              path.name).groups()
    named = time.mktime(time.strptime(date, "%Y-%m-%d_%H-%M-%S")) + int(part) / 1000
    assert before - 2e6 < named * 1e9 < made and before <= start <= made
    events = json.loads(path.read_text())
    assert {"Session", "Node"} <= {event["cat"] for event in events}
    names = {event["name"]: event for event in events}
    assert 0 <= names["session_initialization"]["ts"] < names["model_run"]["ts"]
    assert (made - start + 0.04e9) / 1000 < names["model_run"]["ts"] < took / 1000
    assert all(isinstance(event[key], int) for event in events for key in ("ts", "dur"))
    assert all({"ph", "ts", "dur", "name", "pid", "tid"} <= event.keys()
               for event in events if event["ph"] == "X")


def test_free_dimensions(ort):
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("batch", 2)
    session = ort.InferenceSession(MODEL, options, providers=["CPUExecutionProvider"])
    assert session.get_inputs()[0].shape == [2, 3]


@pytest.mark.parametrize(
    ("feeds", "names"),
    [({"x": X[:, :2]}, None), ({"x": X.astype(np.float64)}, None), ({"x": X[0]}, None),
     ({"x": X}, ["nothing"]), ({"x": X, "w2": X}, None)],
)
def test_wrong_runs(ort, feeds, names):
    with pytest.raises(state(ort).InvalidArgument):
        session_of(ort).run(names, feeds)


def test_missing_feeds(ort):
    with pytest.raises(ValueError, match="x"):
        session_of(ort).run(None, {})


def test_wrong_models(ort, tmp_path):
    with pytest.raises(state(ort).NoSuchFile):
        ort.InferenceSession(str(tmp_path / "none.onnx"))
    if ort is ours:
        with pytest.raises(state(ort).Fail, match="it is a device .*regular file is needed"):
            ours.InferenceSession("/dev/zero")
    with pytest.raises(state(ort).InvalidProtobuf):
        ort.InferenceSession(b"garbage")
    model = proto()
    model.graph.node[0].op_type = "NoSuchOp"
    wrong = (state(ort).InvalidGraph, state(ort).NotImplemented, state(ort).Fail)
    with pytest.raises(wrong):
        ort.InferenceSession(model.SerializeToString())
    with pytest.raises(AttributeError):
        ort.SessionOptions().no_such_option = 1


def test_options_have_the_same_attributes_and_defaults():
    for name in ("SessionOptions", "RunOptions"):
        real, mine = getattr(theirs, name)(), getattr(ours, name)()
        for attribute, value in mine.DEFAULTS.items():
            found = getattr(real, attribute)
            assert getattr(found, "name", found) == getattr(value, "name", value), attribute


def test_everything_is_there_or_on_the_page():
    """Names of ONNX Runtime's next version are either written, or named with a reason."""
    def public(of):
        return {name for name in dir(of) if not name.startswith("_")
                and not isinstance(getattr(of, name, None), types.ModuleType)}

    assert public(theirs) - public(ours) == differences.names("module")
    for name in ("InferenceSession", "OrtValue", "IOBinding", "OrtDevice"):
        absent = public(getattr(theirs, name)) - public(getattr(ours, name))
        assert absent == differences.names(name), name
    for name in ("SessionOptions", "RunOptions"):
        absent = public(getattr(theirs, name)()) - public(getattr(ours, name)())
        assert absent == differences.names(name), name
    assert differences.tables() in PAGE.read_text(encoding="utf-8")


def test_methods_take_the_same_arguments():
    for name in ("InferenceSession", "OrtValue", "IOBinding"):
        for method, function in vars(getattr(theirs, name)).items():
            mine = getattr(getattr(ours, name), method, None)
            if method.startswith("_") or mine is None or not callable(function):
                continue
            wanted = list(inspect.signature(function).parameters)
            assert list(inspect.signature(mine).parameters)[: len(wanted)] == wanted, method


# ---- What is ours alone.


def test_what_has_no_effect_says_so():
    with pytest.warns(ours.DifferenceWarning, match="will not be written"):
        ours.SessionOptions().optimized_model_filepath = "o.onnx"
    with pytest.warns(UserWarning, match="CUDAExecutionProvider.* not available"):
        ours.InferenceSession(MODEL, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session_of(ours, inter_op_num_threads=1, log_severity_level=3)
    options = ours.RunOptions()
    options.terminate = True
    with pytest.raises(state(ours).Fail, match="terminate"):
        session_of(ours).run(None, {"x": X}, options)
    with pytest.raises(state(ours).Fail, match="the device is 'cuda'"):
        ours.OrtValue.ortvalue_from_numpy(X, "cuda", 0)


def test_places_that_do_not_fit():
    session = session_of(ours)
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    with pytest.raises(state(ours).InvalidArgument, match="no output is bound"):
        session.run_with_iobinding(binding)
    with pytest.raises(state(ours).InvalidArgument, match="no output is called 'q'; there are"):
        binding.bind_output("q")
    place = ours.OrtValue.ortvalue_from_shape_and_type([2, 5], np.float32)
    binding.bind_ortvalue_output("y", place)
    with pytest.raises(state(ours).InvalidArgument, match=r"\[2, 5\], but the run gives \[2, 4\]"):
        session.run_with_iobinding(binding)
    with pytest.raises(state(ours).InvalidArgument, match="sizes of 0 or more"):
        binding.bind_output("y", "cpu", 0, np.float32, [-1, 4], 1)


def test_artefacts_are_models(tmp_path):
    heddle.compile(MODEL, output=tmp_path / "m.so")
    np.testing.assert_allclose(session_of(ours, tmp_path / "m.so").run(["y"], {"x": X})[0], Y,
                               rtol=1e-5)


def test_unchanged_programs():
    """Under the name onnxruntime, in a process of its own."""
    code = ("import heddle.onnxruntime as ours; ours.install(); import onnxruntime as ort;"
            "from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument;"
            "from onnxruntime.quantization import quantize_dynamic;"
            "import onnxruntime.transformers.optimizer;"
            "assert ort.InferenceSession is ours.InferenceSession; print(ort.__version__)")
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "+heddle" in done.stdout


def test_metadata_of_damaged_models():
    for cut in range(len(MODEL)):
        try:
            metadata.read(MODEL[:cut])
        except ValueError:
            pass
    for wrong in (b"\xff" * 20, b"\x0b", b"\x3a\xff\xff\xff\xff\x0f"):
        with pytest.raises(ValueError):
            metadata.read(wrong)
