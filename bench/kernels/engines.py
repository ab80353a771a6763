"""What is timed: the heddle command, a model compiled into this process, ONNX Runtime."""

import ctypes
import json
import subprocess
import sys

import numpy as np

from bench.models import tool


def heddle(*words):
    """What the command prints."""
    return subprocess.run([tool.find_heddle(), *map(str, words)], check=True, capture_output=True,
                          text=True).stdout


def median_us(artefact, seconds, threads=1):
    """The median that `heddle bench` finds, a process of its own."""
    timed = json.loads(heddle("bench", artefact, "--threads", threads, "--time", seconds, "--json"))
    return timed["median_ms"] * 1000


def aligned(shape, dtype=np.float32):
    """An array at a multiple of 64 bytes, as the tensors inside of a network are."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + count].view(dtype).reshape(shape)


class Heddle:
    """A model compiled into this process for one thread, its inputs and outputs in place."""

    def __init__(self, model, feeds):
        sys.path.insert(0, str(tool.ROOT / "python"))
        import heddle as package
        from heddle import arrays, library
        module = package.compile(model, threads=1)
        self.plan = module.compiled.plan
        self._session = package.Session(module, threads=1)
        self._inputs, self._alive = (library.Tensor * len(feeds))(), []
        for i, info in enumerate(self._session.get_inputs()):
            value = aligned(feeds[info.name].shape, feeds[info.name].dtype)
            value[...] = feeds[info.name]
            self._inputs[i], kept = arrays.feed(value, info)
            self._alive.append((value, kept))
        count = len(self._session.get_outputs())
        self._outputs = (library.Tensor * count)()
        library.call("heddle_session_output_shapes", self._session._handle, self._inputs,
                     len(feeds), self._outputs, count)
        self.results = []
        for tensor in self._outputs:
            result = aligned(tuple(tensor.dims[:tensor.rank]), arrays.numpy_dtype(tensor.dtype))
            tensor.data, tensor.bytes = result.ctypes.data, result.nbytes
            self.results.append(result)
        self._run = library.function("heddle_session_run")

    def arguments(self):
        """Those of heddle_session_run, which is first."""
        return (ctypes.cast(self._run, ctypes.c_void_p), self._session._handle,
                ctypes.addressof(self._inputs), len(self._inputs),
                ctypes.addressof(self._outputs), len(self._outputs))

    def call(self):
        """One run."""
        if self._run(self._session._handle, self._inputs, len(self._inputs), self._outputs,
                     len(self._outputs)):
            raise RuntimeError("heddle_session_run gave a status")


def onnxruntime_call(network, feeds):
    """A run of ONNX Runtime with inputs and outputs in place, for one thread, and its results."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    engine = onnxruntime.InferenceSession(
        network if isinstance(network, str) else network.SerializeToString(), options,
        providers=["CPUExecutionProvider"])
    feeds = {place.name: feeds[place.name] for place in engine.get_inputs()}
    results, binding = engine.run(None, feeds), engine.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for place, value in zip(engine.get_outputs(), results):
        binding.bind_ortvalue_output(place.name,
                                     onnxruntime.OrtValue.ortvalue_from_numpy(value.copy()))
    return lambda: engine.run_with_iobinding(binding), results
