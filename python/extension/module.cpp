// module: the Python module of the extension, which heddle/library.py loads.
// SPDX-License-Identifier: Apache-2.0
#define HEDDLE_IMPORTS_NUMPY
#include "python/extension/library.h"
#include "python/extension/result.h"
#include "python/extension/session.h"
#include "python/extension/tensor.h"

namespace heddle::python {

static int placeOf(const Signature &signature, PyObject *name) {
  for (int i = 0; i < signature.count; ++i)
    if (PyUnicode_CompareWithASCIIString(name, signature.names[i]) == 0)
      return i;
  return -1;
}

bool parse(const Signature &signature, PyObject *const *given, Py_ssize_t count, PyObject *keywords,
           PyObject **values) {
  if (count > signature.positional) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments by position, but %zd were given",
                 signature.function, signature.positional, count);
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i)
    values[i] = given[i];
  for (Py_ssize_t i = 0, named = keywords ? PyTuple_Size(keywords) : 0; i < named; ++i) {
    PyObject *name = PyTuple_GetItem(keywords, i);
    int place = placeOf(signature, name);
    if (place < 0 || values[place]) {
      PyErr_Format(PyExc_TypeError, "%s() got %s argument '%U'", signature.function,
                   place < 0 ? "an unknown" : "twice the", name);
      return false;
    }
    values[place] = given[count + i];
  }
  for (int i = 0; i < signature.required; ++i) {
    if (!values[i]) {
      PyErr_Format(PyExc_TypeError, "%s() misses the argument '%s'", signature.function,
                   signature.names[i]);
      return false;
    }
  }
  return true;
}

namespace {

heddle_tensor_t *tensorAt(PyObject *arguments, int &kind) {
  unsigned long long address;
  if (!isOpen() || !PyArg_ParseTuple(arguments, "Ki", &address, &kind))
    return nullptr;
  return reinterpret_cast<heddle_tensor_t *>(uintptr_t(address));
}

PyObject *adoptAt(PyObject *, PyObject *arguments) {
  int kind;
  heddle_tensor_t *tensor = tensorAt(arguments, kind);
  return tensor ? adopt(*tensor, kind) : nullptr;
}

PyObject *copyAt(PyObject *, PyObject *arguments) {
  int kind;
  const heddle_tensor_t *tensor = tensorAt(arguments, kind);
  return tensor ? copy(*tensor, kind) : nullptr;
}

bool add(PyObject *module, const char *name, PyObject *object) {
  if (object && PyModule_AddObject(module, name, object) == 0)
    return true;
  Py_XDECREF(object);
  return false;
}

} // namespace
} // namespace heddle::python

PyMODINIT_FUNC PyInit_extension() {
  using namespace heddle::python;
  import_array();
  static PyMethodDef functions[] = {
      {"open", open, METH_VARARGS, "open(path, arrays, errors): the library that all here calls."},
      {"guarded", guarded, METH_VARARGS, "guarded(function, failures): a callback for C."},
      {"adopt", adoptAt, METH_VARARGS, "adopt(address of a heddle_tensor_t that a run gave, kind)"},
      {"copy", copyAt, METH_VARARGS, "copy(address of a heddle_tensor_t, kind)"},
      {},
  };
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "heddle.extension",
                                   "Runs of compiled models.",
                                   -1,
                                   functions,
                                   nullptr,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  PyObject *module = PyModule_Create(&definition);
  if (!module || !add(module, "Session", makeSessionType()) ||
      !add(module, "Tensor", makeTensorType())) {
    Py_XDECREF(module);
    return nullptr;
  }
  return module;
}
