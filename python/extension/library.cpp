// library: see library.h. SPDX-License-Identifier: Apache-2.0
#include "python/extension/library.h"

#include <cstdarg>
#include <cstring>
#include <dlfcn.h>

namespace heddle::python {

Library api;
PyObject *arrays;
static PyObject *errors;

PyObject *open(PyObject *, PyObject *arguments) {
  const char *path;
  PyObject *module, *classes;
  if (!PyArg_ParseTuple(arguments, "sOO", &path, &module, &classes))
    return nullptr;
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    PyErr_SetString(PyExc_OSError, dlerror());
    return nullptr;
  }
  Library found = {};
  const char *missing = nullptr;
  auto find = [&](auto *&function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (!function)
      missing = name;
  };
  find(found.status_code, "heddle_status_code");
  find(found.status_message, "heddle_status_message");
  find(found.status_destroy, "heddle_status_destroy");
  find(found.dtype_name, "heddle_dtype_name");
  find(found.dtype_bits, "heddle_dtype_bits");
  find(found.tensor_release, "heddle_tensor_release");
  find(found.session_create, "heddle_session_create");
  find(found.session_destroy, "heddle_session_destroy");
  find(found.session_output_shapes, "heddle_session_output_shapes");
  find(found.session_run, "heddle_session_run");
  if (missing) {
    PyErr_Format(PyExc_OSError, "'%s' has no %s: it is no libheddle of this version", path,
                 missing);
    return nullptr;
  }
  api = found; // the handle stays open as long as the process lives
  Ref before(std::exchange(arrays, Ref::borrow(module).release()));
  Ref older(std::exchange(errors, Ref::borrow(classes).release()));
  Py_RETURN_NONE;
}

bool isOpen() {
  if (api.session_run)
    return true;
  Ref module(PyImport_ImportModule("heddle.library"));
  return module && Ref(PyObject_CallMethod(module.get(), "library", nullptr)) && api.session_run;
}

static void set(heddle_code_t code, PyObject *text) {
  Ref number(PyLong_FromLong(code)), owned(text);
  if (!text || !number)
    return;
  PyObject *type = errors ? PyDict_GetItemWithError(errors, number.get()) : nullptr;
  if (!PyErr_Occurred())
    PyErr_SetObject(type ? type : PyExc_RuntimeError, text);
}

void raise(heddle_code_t code, const char *format, ...) {
  va_list values;
  va_start(values, format);
  PyObject *text = PyUnicode_FromFormatV(format, values);
  va_end(values);
  set(code, text);
}

/// heddle.library.explained(error), or NULL with an exception set.
static Ref explained(PyObject *error) {
  Ref module(PyImport_ImportModule("heddle.library"));
  return module ? Ref(PyObject_CallMethod(module.get(), "explained", "O", error)) : Ref();
}

bool raiseOfCallback() {
  Ref error = explained(Py_None);
  if (error && error.get() != Py_None)
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.get())), error.get());
  return PyErr_Occurred();
}

static PyObject *callGuarded(PyObject *self, PyObject *arguments) {
  Ref result(PyObject_CallObject(PyTuple_GetItem(self, 0), arguments));
  if (result)
    return PyLong_FromLong(0);
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  if (trace)
    PyException_SetTraceback(error, trace);
  Ref first(type), second(error), third(trace);
  Ref thread(PyLong_FromUnsignedLong(PyThread_get_thread_ident()));
  if (!thread || PyDict_SetItem(PyTuple_GetItem(self, 1), thread.get(), error) < 0)
    PyErr_WriteUnraisable(self);
  return PyLong_FromLong(1);
}

PyObject *guarded(PyObject *, PyObject *arguments) {
  static PyMethodDef method = {"guarded", callGuarded, METH_VARARGS, nullptr};
  PyObject *function, *failures;
  if (!PyArg_ParseTuple(arguments, "OO!", &function, &PyDict_Type, &failures))
    return nullptr;
  return PyCFunction_New(&method, arguments);
}

void raise(heddle_status_t *status) {
  const char *message = api.status_message(status);
  PyObject *text =
      PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(strlen(message)), "replace");
  heddle_code_t code = api.status_code(status);
  api.status_destroy(status);
  set(code, text);
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  Ref first(type), second(error), third(trace), chosen = explained(error);
  if (chosen)
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(chosen.get())), chosen.get());
}

} // namespace heddle::python
