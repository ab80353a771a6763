"""Timed engines: a model compiled into this process, ONNX Runtime."""

import ctypes

import numpy as np


def aligned(shape, dtype=np.float32):
    """An array at a multiple of 64 bytes, as the tensors inside of a network are."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + count].view(dtype).reshape(shape)


def in_place(value):
    """A copy at a multiple of 64 bytes; strings lie where NumPy has them."""
    value = np.asarray(value)
    if value.dtype == object:
        return value.copy()
    place = aligned(value.shape, value.dtype)
    place[...] = value
    return place


class Heddle:
    """A model compiled into this process, its inputs and outputs in place."""

    def __init__(self, model, feeds, threads=1, **options):
        import heddle as package
        from heddle import arrays, library
        module = package.compile(model, threads=threads, **options)
        self.plan = module.compiled.plan
        self._session = package.Session(module, threads=threads)
        self._inputs, self._alive = (library.Tensor * max(1, len(feeds)))(), []
        self._count = len(feeds)
        for i, info in enumerate(self._session.get_inputs()):
            value = in_place(feeds[info.name])
            self._inputs[i], kept = arrays.feed(value, info)
            self._alive.append((value, kept))
        self.results = [in_place(each) for each in self._session.run(None, feeds)]
        self._outputs = (library.Tensor * len(self.results))()
        for tensor, result in zip(self._outputs, self.results):
            tensor.data, tensor.bytes = result.ctypes.data, result.nbytes
        self._run = library.function("heddle_session_run")

    def arguments(self):
        """Those of heddle_session_run, which is first."""
        return (ctypes.cast(self._run, ctypes.c_void_p), self._session._handle,
                ctypes.addressof(self._inputs), self._count,
                ctypes.addressof(self._outputs), len(self._outputs))

    def call(self):
        """One run."""
        if self._run(self._session._handle, self._inputs, self._count, self._outputs,
                     len(self._outputs)):
            raise RuntimeError("heddle_session_run gave a status")


def runtime_session(network, threads=1):
    """A session of ONNX Runtime for a model or its path."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        network if isinstance(network, str) else network.SerializeToString(), options,
        providers=["CPUExecutionProvider"])


def onnxruntime_call(network, feeds, threads=1):
    """A run of ONNX Runtime with inputs and outputs in place, and its results."""
    from onnxruntime import OrtValue
    engine = runtime_session(network, threads)
    feeds = {place.name: feeds[place.name] for place in engine.get_inputs()}
    results, binding = engine.run(None, feeds), engine.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for place, value in zip(engine.get_outputs(), results):
        binding.bind_ortvalue_output(
            place.name, OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value).copy()))
    return lambda: engine.run_with_iobinding(binding), results
