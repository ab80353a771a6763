// result: see result.h. SPDX-License-Identifier: Apache-2.0
#include "python/extension/result.h"

#include "python/extension/library.h"
#include "python/extension/tensor.h"

#include <cstring>

namespace heddle::python {
namespace {

constexpr int64_t kSmall = 1024; // bytes that are copied in less time than an owner is made

/// NumPy's type of elements, or that of ml_dtypes; a new reference.
PyArray_Descr *typeOf(int32_t dtype) {
  switch (dtype) {
  case HEDDLE_FLOAT32:
    return PyArray_DescrFromType(NPY_FLOAT);
  case HEDDLE_UINT8:
    return PyArray_DescrFromType(NPY_UINT8);
  case HEDDLE_INT8:
    return PyArray_DescrFromType(NPY_INT8);
  case HEDDLE_INT32:
    return PyArray_DescrFromType(NPY_INT32);
  case HEDDLE_INT64:
    return PyArray_DescrFromType(NPY_INT64);
  case HEDDLE_BOOL:
    return PyArray_DescrFromType(NPY_BOOL);
  case HEDDLE_FLOAT16:
    return PyArray_DescrFromType(NPY_HALF);
  case HEDDLE_FLOAT64:
    return PyArray_DescrFromType(NPY_DOUBLE);
  default:
    break;
  }
  static PyArray_Descr *known[32];
  bool isKnown = dtype > 0 && dtype < int32_t(std::size(known));
  if (isKnown && known[dtype]) {
    Py_INCREF(known[dtype]);
    return known[dtype];
  }
  Ref found(PyObject_CallMethod(arrays, "numpy_dtype", "i", int(dtype)));
  if (!found)
    return nullptr;
  auto *type = reinterpret_cast<PyArray_Descr *>(found.get());
  if (isKnown) {
    Py_INCREF(type);
    known[dtype] = type; // for as long as the process lives
  }
  found.release();
  return type;
}

/// An array of the tensor's shape over `data`, or of new memory.
Ref arrayOf(const heddle_tensor_t &tensor, void *data, int flags) {
  PyArray_Descr *type = typeOf(tensor.dtype);
  if (!type)
    return {};
  npy_intp dims[HEDDLE_MAX_RANK];
  for (int i = 0; i < tensor.rank; ++i)
    dims[i] = tensor.dims[i];
  return Ref(
      PyArray_NewFromDescr(&PyArray_Type, type, tensor.rank, dims, nullptr, data, flags, nullptr));
}

int64_t countOf(const heddle_tensor_t &tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor.rank; ++i)
    count *= tensor.dims[i];
  return count;
}

/// Unpacks elements that share bytes, to one per byte.
PyObject *unpack(const heddle_tensor_t &tensor) {
  Ref bytes(PyByteArray_FromStringAndSize(static_cast<const char *>(tensor.data),
                                          tensor.data ? Py_ssize_t(tensor.bytes) : 0));
  Ref shape(PyTuple_New(tensor.rank));
  for (int i = 0; shape && i < tensor.rank; ++i)
    PyTuple_SetItem(shape.get(), i, PyLong_FromLongLong(tensor.dims[i]));
  if (!bytes || !shape)
    return nullptr;
  return PyObject_CallMethod(arrays, "unpack_bytes", "OiO", bytes.get(), int(tensor.dtype),
                             shape.get());
}

PyObject *copyStrings(const heddle_tensor_t &tensor) {
  npy_intp dims[HEDDLE_MAX_RANK];
  for (int i = 0; i < tensor.rank; ++i)
    dims[i] = tensor.dims[i];
  Ref array(PyArray_SimpleNew(tensor.rank, dims, NPY_OBJECT));
  if (!array)
    return nullptr;
  auto **place = static_cast<PyObject **>(PyArray_DATA(array.array()));
  const auto *strings = static_cast<const heddle_string_t *>(tensor.data);
  for (int64_t i = 0, count = countOf(tensor); i < count; ++i) {
    PyObject *text = PyUnicode_DecodeUTF8(strings[i].size ? strings[i].data : "",
                                          Py_ssize_t(strings[i].size), "surrogateescape");
    if (!text)
      return nullptr;
    PyObject *before = std::exchange(place[i], text);
    Py_XDECREF(before);
  }
  return array.release();
}

PyObject *copyPlain(const heddle_tensor_t &tensor) {
  Ref array = arrayOf(tensor, nullptr, 0);
  if (array && tensor.data)
    memcpy(PyArray_DATA(array.array()), tensor.data, size_t(PyArray_NBYTES(array.array())));
  return array.release();
}

PyObject *copyList(const heddle_tensor_t &tensor, int32_t kind) {
  int64_t count = tensor.dims[0];
  if (count < 0)
    Py_RETURN_NONE;
  Ref list(PyList_New(Py_ssize_t(count)));
  const auto *items = static_cast<const heddle_tensor_t *>(tensor.data);
  for (int64_t i = 0; list && i < count; ++i) {
    PyObject *item = copy(items[i], HEDDLE_KIND_TENSOR);
    if (!item)
      return nullptr;
    PyList_SetItem(list.get(), Py_ssize_t(i), item);
  }
  if (!list || kind != HEDDLE_KIND_OPTIONAL || count == 0)
    return list.release();
  return Ref::borrow(PyList_GetItem(list.get(), 0)).release();
}

} // namespace

PyObject *copy(const heddle_tensor_t &tensor, int32_t kind) {
  if (tensor.dtype == HEDDLE_SEQUENCE)
    return copyList(tensor, kind);
  if (tensor.dtype == HEDDLE_STRING)
    return copyStrings(tensor);
  return api.dtype_bits(tensor.dtype) < 8 ? unpack(tensor) : copyPlain(tensor);
}

PyObject *view(const heddle_tensor_t &tensor, PyObject *owner, bool isWritable) {
  bool isPlain = tensor.dtype != HEDDLE_SEQUENCE && tensor.dtype != HEDDLE_STRING &&
                 api.dtype_bits(tensor.dtype) >= 8 && tensor.data;
  if (!isPlain)
    return copy(tensor, HEDDLE_KIND_TENSOR);
  Ref array = arrayOf(tensor, tensor.data, isWritable ? NPY_ARRAY_CARRAY : NPY_ARRAY_CARRAY_RO);
  if (!array)
    return nullptr;
  Py_INCREF(owner);
  if (PyArray_SetBaseObject(array.array(), owner) < 0)
    return nullptr;
  return array.release();
}

PyObject *adopt(heddle_tensor_t &result, int32_t kind) {
  bool isCopied = result.bytes <= kSmall || !result.data || result.dtype == HEDDLE_SEQUENCE ||
                  result.dtype == HEDDLE_STRING || api.dtype_bits(result.dtype) < 8;
  if (isCopied) {
    PyObject *copied = copy(result, kind);
    api.tensor_release(&result);
    return copied;
  }
  Ref owner(wrap(result));
  const heddle_tensor_t *held = owner ? tensorIn(owner.get()) : nullptr;
  return held ? view(*held, owner.get(), true) : nullptr;
}

} // namespace heddle::python
