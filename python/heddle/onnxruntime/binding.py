"""binding: IOBinding: feeds and places that stay from run to run.

SPDX-License-Identifier: Apache-2.0
"""

import ctypes

import numpy as np

from .. import arrays
from .capi.onnxruntime_pybind11_state import InvalidArgument, named
from .value import OrtValue, check_device, dtype_number, unwrap


def _at(address, element_type, shape):
    """An array over memory at an address, for which the caller answers."""
    with named():
        dtype = arrays.numpy_dtype(dtype_number(element_type))
    if dtype == object:
        raise InvalidArgument("strings have no buffer; bind an array")
    count = 1
    for size in shape:
        if not isinstance(size, (int, np.integer)) or size < 0:
            raise InvalidArgument(f"the shape is {list(shape)}, but sizes of 0 or more are allowed")
        count *= int(size)
    if not count:
        return np.empty(tuple(shape), dtype)
    if not address:
        raise InvalidArgument("the buffer is NULL")
    memory = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(int(address))
    return np.frombuffer(memory, dtype).reshape(tuple(shape))


class IOBinding:
    """Inputs and outputs of runs with `InferenceSession.run_with_iobinding`."""

    def __init__(self, session):
        self._session = session
        self._inputs, self._outputs, self._results = {}, {}, []

    def _check(self, name, infos, side):
        known = [info.name for info in infos]
        if name not in known:
            raise InvalidArgument(f"no {side} is called '{name}'; there are {known}")

    def _input(self, name, value):
        self._check(name, self._session.get_inputs(), "input")
        self._inputs[name] = value

    def _output(self, name, place):
        self._check(name, self._session.get_outputs(), "output")
        self._outputs[name] = place

    def bind_cpu_input(self, name, arr_on_cpu):
        self._input(name, arr_on_cpu)

    def bind_input(self, name, device_type, device_id, element_type, shape,
                   buffer_ptr):  # noqa: ARG002
        check_device(device_type)
        self._input(name, _at(buffer_ptr, element_type, shape))

    def bind_ortvalue_input(self, name, ortvalue):
        self._input(name, ortvalue)

    def bind_output(self, name, device_type="cpu", device_id=0, element_type=None, shape=None,
                    buffer_ptr=None):  # noqa: ARG002
        check_device(device_type)
        if buffer_ptr is None:
            self._output(name, None)
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated "
                             "memory is provided")
        self._output(name, _at(buffer_ptr, element_type, shape))

    def bind_ortvalue_output(self, name, ortvalue):
        self._output(name, ortvalue)

    def synchronize_inputs(self):
        """Nothing: the CPU's memory is always up to date."""

    def synchronize_outputs(self):
        """Nothing: a run has ended when it returns."""

    def clear_binding_inputs(self):
        self._inputs.clear()

    def clear_binding_outputs(self):
        self._outputs.clear()
        self._results = []

    def get_outputs(self):
        """OrtValues of the last run, in the order in which outputs were bound."""
        return list(self._results)

    def copy_outputs_to_cpu(self):
        """Arrays of the last run, in that order, which later runs do not write to."""
        return [np.array(value.numpy()) if value.is_tensor() else value._value
                for value in self._results]

    def _run(self, run_options):
        if not self._outputs:
            self._results = []
            raise InvalidArgument("no output is bound; bind_output says where one is to go")
        places = {name: unwrap(place) for name, place in self._outputs.items() if place is not None}
        feeds = {name: unwrap(value) for name, value in self._inputs.items()}
        results = self._session._values(list(self._outputs), feeds, run_options, places or None)
        self._results = [
            place if isinstance(place, OrtValue)
            else OrtValue.ortvalue_from_numpy(result) if isinstance(result, np.ndarray)
            else OrtValue(result)
            for place, result in zip(self._outputs.values(), results)
        ]


SessionIOBinding = IOBinding
