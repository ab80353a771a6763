// library: the functions of libheddle that runs need, in the library that was opened, and its
// statuses as exceptions. Nothing here is linked with libheddle: HEDDLE_LIBRARY may name another.
// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_PYTHON_EXTENSION_LIBRARY_H
#define HEDDLE_PYTHON_EXTENSION_LIBRARY_H

#include "heddle/runtime.h"
#include "python/extension/python.h"

namespace heddle::python {

struct Library {
  decltype(heddle_status_code) *status_code;
  decltype(heddle_status_message) *status_message;
  decltype(heddle_status_destroy) *status_destroy;
  decltype(heddle_dtype_name) *dtype_name;
  decltype(heddle_dtype_bits) *dtype_bits;
  decltype(heddle_tensor_release) *tensor_release;
  decltype(heddle_session_create) *session_create;
  decltype(heddle_session_destroy) *session_destroy;
  decltype(heddle_session_output_shapes) *session_output_shapes;
  decltype(heddle_session_run) *session_run;
};

/// Filled by `open`; whoever has a module, a session or a result has opened it, others ask
/// `isOpen`.
extern Library api;
/// Opens the library if that was not done; false with an exception set when there is none.
bool isOpen();
/// The Python modules heddle.arrays and heddle.library.
extern PyObject *arrays;

/// open(path, arrays, errors): fills `api`; errors are {code: class of exceptions}.
PyObject *open(PyObject *, PyObject *arguments);

/// Sets an exception of the code's class, with a text as PyUnicode_FromFormat makes it.
void raise(heddle_code_t code, const char *format, ...);
/// Sets what a status says, and destroys it.
void raise(heddle_status_t *status);
/// Sets what a callback in Python has raised in this thread; false if none has.
bool raiseOfCallback();

/// guarded(function, failures): a callback for C, 0 or 1. Exceptions of the function, even before
/// its first line as KeyboardInterrupt may be, become failures[thread] instead of being lost.
PyObject *guarded(PyObject *, PyObject *arguments);

} // namespace heddle::python

#endif
