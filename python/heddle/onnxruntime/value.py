"""value: OrtValue, a tensor or a list of them, in the CPU's memory.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np

from .. import arrays
from ..library import extension
from .capi.onnxruntime_pybind11_state import Fail, InvalidArgument, named

Tensor = extension.Tensor


class OrtDevice:
    """Only the CPU: another one is refused where it is named."""

    def __init__(self, device_type="cpu", device_id=0):
        check_device(device_type)
        self._id = device_id

    @staticmethod
    def make(ort_device_name, device_id, vendor_id=-1):  # noqa: ARG004
        return OrtDevice(ort_device_name, device_id)

    def device_type(self):
        return "cpu"

    def device_id(self):
        return self._id


def check_device(device_type):
    if str(device_type).lower() != "cpu":
        raise Fail(f"the device is '{device_type}', but Heddle's sessions run on the CPU: 'cpu'")


def dtype_number(element_type):
    """onnx.TensorProto.DataType of a NumPy type or of such a number."""
    if isinstance(element_type, int) and not isinstance(element_type, bool):
        number = element_type
    else:
        try:
            number = arrays.number_of(np.dtype(element_type))
        except TypeError:
            number = 0
    if number not in arrays.DTYPES:
        raise InvalidArgument(f"the element type is {element_type!r}, but a type of NumPy or a "
                              "number of onnx.TensorProto.DataType is allowed")
    return number


def empty(shape, element_type):
    """An array of a shape, which may be a type that NumPy has by way of ml_dtypes."""
    with named():
        return np.zeros(tuple(shape), arrays.numpy_dtype(dtype_number(element_type)))


class OrtValue:
    """Shares memory with what it is made of, and with what is made of it."""

    def __init__(self, value, source=None):
        self._value = value  # a heddle.Tensor, a list of arrays, or None
        self._source = source

    @classmethod
    def ortvalue_from_numpy(cls, numpy_obj, /, device_type="cpu", device_id=0,
                            vendor_id=-1):  # noqa: ARG003
        check_device(device_type)
        with named():
            return cls(Tensor(numpy_obj), numpy_obj)

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(cls, data, /, onnx_element_type):
        number = dtype_number(onnx_element_type)
        with named():
            tensor = Tensor(data, "value", number)
        if tensor.number != number:
            raise InvalidArgument(f"an array of {data.dtype} cannot stand for the bits of "
                                  f"{arrays.DTYPES[number][0]}")
        return cls(tensor, data)

    @classmethod
    def ortvalue_from_shape_and_type(cls, shape, element_type, device_type="cpu", device_id=0,
                                     vendor_id=-1, memory_info=None):  # noqa: ARG003
        check_device(device_type)
        array = empty(shape, element_type)
        return cls(Tensor(array), array)

    @classmethod
    def from_dlpack(cls, data, /):
        """Wraps anything with __dlpack__, without a copy."""
        with named():
            return cls(Tensor(data), data)

    def _tensor(self):
        if not isinstance(self._value, Tensor):
            raise Fail("the value is no tensor, but only tensors have this")
        return self._value

    def data_ptr(self):
        return self._tensor().data_ptr

    def device_name(self):
        return "cpu"

    def shape(self):
        return list(self._tensor().shape)

    def element_type(self):
        return self._tensor().number

    def data_type(self):
        if isinstance(self._value, Tensor):
            return f"tensor({arrays.DTYPES[self._value.number][0]})"
        if not self._value:
            return "seq(tensor(float))"
        return f"seq(tensor({arrays.DTYPES[arrays.number_of(self._value[0].dtype)][0]}))"

    def tensor_size_in_bytes(self):
        return self._tensor().nbytes

    def has_value(self):
        return self._value is not None

    def is_tensor(self):
        return isinstance(self._value, Tensor)

    def is_sparse_tensor(self):
        return False

    def is_tensor_sequence(self):
        return isinstance(self._value, list)

    def numpy(self):
        return self._tensor().numpy()

    def __array__(self, dtype=None, copy=None):
        return self._tensor().__array__(dtype, copy)

    def __dlpack__(self, **options):
        return self._tensor().__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)

    def to_dlpack(self):
        return self._tensor().__dlpack__()

    def update_inplace(self, data):
        """Copies elements into its memory, which stays where it is."""
        target, source = self.numpy(), np.asarray(data)
        if source.shape != target.shape or source.dtype != target.dtype:
            raise InvalidArgument(f"the new elements are {source.dtype} {source.shape}, but "
                                  f"{target.dtype} {target.shape} is allowed")
        if not target.flags.writeable:
            raise Fail("the value was made of a read-only array")
        target[...] = source


def unwrap(value):
    """The value inside of an OrtValue, as a session takes it; anything else as it is."""
    return value._value if isinstance(value, OrtValue) else value
