// tensor: see tensor.h. SPDX-License-Identifier: Apache-2.0
#include "python/extension/tensor.h"

#include "python/extension/dlpack.h"
#include "python/extension/library.h"
#include "python/extension/result.h"

#include <new>

namespace heddle::python {
namespace {

struct Object {
  PyObject_HEAD heddle_tensor_t tensor; // `owner` is set when the runtime allocated it
  Keep *keep;                           // else what it points into
  bool isWritable;
};

PyTypeObject *type;

Object *self(PyObject *object) { return reinterpret_cast<Object *>(object); }

Object *allocate() { return self(PyType_GenericAlloc(type, 0)); } // zeroed

/// Tensor(value, name="value", dtype=0, kind=0)
PyObject *make(PyTypeObject *, PyObject *arguments, PyObject *keywords) {
  static const char *names[] = {"value", "name", "dtype", "kind", nullptr};
  PyObject *value, *name = nullptr;
  Value wanted;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|Uii:Tensor", const_cast<char **>(names),
                                   &value, &name, &wanted.dtype, &wanted.kind))
    return nullptr;
  if (!isOpen())
    return nullptr;
  wanted.name = name ? Ref::borrow(name) : Ref(PyUnicode_FromString("value"));
  Object *made = allocate();
  if (!made)
    return nullptr;
  Ref owned(reinterpret_cast<PyObject *>(made));
  made->keep = new (std::nothrow) Keep;
  if (!made->keep || !wanted.name)
    return PyErr_NoMemory();
  try {
    if (!feed(value, wanted, made->tensor, *made->keep))
      return nullptr;
  } catch (const std::bad_alloc &) {
    return PyErr_NoMemory();
  }
  // Shared memory is as writable as what it is shared with.
  PyObject *held = made->keep->last();
  if (held && tensorIn(held))
    made->isWritable = isWritable(held);
  else if (!held)
    made->isWritable = made->keep->isLastWritable();
  else
    made->isWritable =
        PyArray_Check(held) && PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject *>(held));
  return owned.release();
}

void destroy(PyObject *object) {
  if (self(object)->tensor.owner)
    api.tensor_release(&self(object)->tensor);
  delete self(object)->keep;
  PyTypeObject *own = Py_TYPE(object);
  reinterpret_cast<freefunc>(PyType_GetSlot(own, Py_tp_free))(object);
  Py_DECREF(reinterpret_cast<PyObject *>(own));
}

PyObject *shape(PyObject *object, void *) {
  const heddle_tensor_t &tensor = self(object)->tensor;
  Ref made(PyTuple_New(tensor.rank));
  for (int i = 0; made && i < tensor.rank; ++i)
    PyTuple_SetItem(made.get(), i, PyLong_FromLongLong(tensor.dims[i]));
  return made.release();
}

PyObject *dtype(PyObject *object, void *) {
  return PyUnicode_FromString(api.dtype_name(self(object)->tensor.dtype));
}

PyObject *number(PyObject *object, void *) { return PyLong_FromLong(self(object)->tensor.dtype); }

PyObject *bytes(PyObject *object, void *) {
  return PyLong_FromLongLong(self(object)->tensor.bytes);
}

PyObject *address(PyObject *object, void *) {
  return PyLong_FromVoidPtr(self(object)->tensor.data);
}

PyObject *structure(PyObject *object, void *) { return PyLong_FromVoidPtr(&self(object)->tensor); }

PyObject *numpy(PyObject *object, PyObject *) {
  return view(self(object)->tensor, object, self(object)->isWritable);
}

/// __array__(dtype=None, copy=None)
PyObject *array(PyObject *object, PyObject *const *given, Py_ssize_t count, PyObject *keywords) {
  static const char *names[] = {"dtype", "copy"};
  PyObject *values[2] = {};
  if (!parse({"__array__", 0, 2, 2, names}, given, count, keywords, values))
    return nullptr;
  Ref made(numpy(object, nullptr));
  bool hasType = values[0] && values[0] != Py_None;
  bool isCopy = values[1] && values[1] != Py_None && PyObject_IsTrue(values[1]) > 0;
  if (!made || (!hasType && !isCopy))
    return made.release();
  if (hasType)
    return PyObject_CallMethod(made.get(), "astype", "O", values[0]);
  return PyObject_CallMethod(made.get(), "copy", nullptr);
}

/// __dlpack__(stream=None, max_version=None, dl_device=None, copy=None)
PyObject *dlpack(PyObject *object, PyObject *const *given, Py_ssize_t count, PyObject *keywords) {
  static const char *names[] = {"stream", "max_version", "dl_device", "copy"};
  PyObject *values[4] = {};
  if (!parse({"__dlpack__", 0, 1, 4, names}, given, count, keywords, values))
    return nullptr;
  if (values[0] && values[0] != Py_None) {
    PyErr_SetString(PyExc_BufferError, "memory of the CPU has no streams");
    return nullptr;
  }
  if (values[2] && values[2] != Py_None) {
    int kind, id;
    if (!PyArg_ParseTuple(values[2], "ii;dl_device is (type, id)", &kind, &id))
      return nullptr;
    if (kind != 1) {
      PyErr_SetString(PyExc_BufferError, "a tensor is on the CPU, and goes to no other device");
      return nullptr;
    }
  }
  bool isVersioned = false;
  if (values[1] && values[1] != Py_None) {
    int major, minor;
    if (!PyArg_ParseTuple(values[1], "ii;max_version is (major, minor)", &major, &minor))
      return nullptr;
    isVersioned = major >= 1;
  }
  if (values[3] && values[3] != Py_None && PyObject_IsTrue(values[3]) > 0) {
    PyErr_SetString(PyExc_BufferError, "a tensor shares its memory; copy what takes it");
    return nullptr;
  }
  if (!isVersioned && !self(object)->isWritable) {
    PyErr_SetString(PyExc_BufferError, "a read-only tensor needs DLPack 1, which can say so");
    return nullptr;
  }
  return exportDlpack(self(object)->tensor, object, isVersioned, self(object)->isWritable);
}

PyObject *dlpackDevice(PyObject *, PyObject *) { return Py_BuildValue("(ii)", 1, 0); }

PyObject *text(PyObject *object) {
  Ref dims(shape(object, nullptr));
  return dims ? PyUnicode_FromFormat("<heddle.Tensor %s %S>",
                                     api.dtype_name(self(object)->tensor.dtype), dims.get())
              : nullptr;
}

} // namespace

const heddle_tensor_t *tensorIn(PyObject *object) {
  return Py_TYPE(object) == type ? &self(object)->tensor : nullptr;
}

bool isWritable(PyObject *tensor) { return self(tensor)->isWritable; }

PyObject *wrap(heddle_tensor_t &result) {
  Object *made = allocate();
  if (!made) {
    api.tensor_release(&result);
    return nullptr;
  }
  made->tensor = result;
  made->isWritable = true;
  result.owner = result.data = nullptr;
  return reinterpret_cast<PyObject *>(made);
}

PyObject *makeTensorType() {
  static PyGetSetDef properties[] = {
      {"shape", shape, nullptr, "sizes, a tuple", nullptr},
      {"dtype", dtype, nullptr, "type of the elements: 'float32', 'bfloat16', 'string'", nullptr},
      {"number", number, nullptr, "type of the elements as onnx.TensorProto.DataType", nullptr},
      {"nbytes", bytes, nullptr, "bytes of its memory", nullptr},
      {"data_ptr", address, nullptr, "address of its memory", nullptr},
      {"_structure", structure, nullptr, "address of its heddle_tensor_t", nullptr},
      {},
  };
  static PyMethodDef methods[] = {
      {"numpy", numpy, METH_NOARGS, "An array over the same memory; strings are copied."},
      {"__array__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array)),
       METH_FASTCALL | METH_KEYWORDS, nullptr},
      {"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dlpack)),
       METH_FASTCALL | METH_KEYWORDS, nullptr},
      {"__dlpack_device__", dlpackDevice, METH_NOARGS, nullptr},
      {},
  };
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char *>(
                      "Tensor(value): a tensor of the runtime's, or over the memory of anything "
                      "array-like. Others share it through __dlpack__, and numpy().")},
      {Py_tp_new, reinterpret_cast<void *>(make)},
      {Py_tp_dealloc, reinterpret_cast<void *>(destroy)},
      {Py_tp_repr, reinterpret_cast<void *>(text)},
      {Py_tp_getset, properties},
      {Py_tp_methods, methods},
      {},
  };
  static PyType_Spec spec = {"heddle.Tensor", sizeof(Object), 0, Py_TPFLAGS_DEFAULT, slots};
  PyObject *made = PyType_FromSpec(&spec);
  type = reinterpret_cast<PyTypeObject *>(made);
  return made;
}

} // namespace heddle::python
