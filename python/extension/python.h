// python: Python's stable C API and NumPy's, and references that are given back.
//
// Only what Py_LIMITED_API of 3.10 shows is used, so that one build serves every later Python.
// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_PYTHON_EXTENSION_PYTHON_H
#define HEDDLE_PYTHON_EXTENSION_PYTHON_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030A0000
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_23_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL heddle_numpy
#ifndef HEDDLE_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <utility>

namespace heddle::python {

/// One reference to an object, or none. Needs Python's lock, as all here does.
class Ref {
public:
  Ref() = default;
  /// Takes over a new reference, such as a function gave.
  explicit Ref(PyObject *owned) : object(owned) {}
  Ref(Ref &&other) noexcept : object(std::exchange(other.object, nullptr)) {}
  Ref &operator=(Ref &&other) noexcept {
    std::swap(object, other.object);
    return *this;
  }
  ~Ref() { Py_XDECREF(object); }

  static Ref borrow(PyObject *object) {
    Py_XINCREF(object);
    return Ref(object);
  }

  explicit operator bool() const { return object != nullptr; }
  PyObject *get() const { return object; }
  PyArrayObject *array() const { return reinterpret_cast<PyArrayObject *>(object); }
  PyObject *release() { return std::exchange(object, nullptr); }

private:
  PyObject *object = nullptr;
};

/// The parameters of a METH_FASTCALL | METH_KEYWORDS function: how many may be given by position,
/// and the names of all. False with an exception set when what was given does not fit.
struct Signature {
  const char *function;
  int required, positional, count;
  const char *const *names;
};
bool parse(const Signature &signature, PyObject *const *given, Py_ssize_t count, PyObject *keywords,
           PyObject **values);

} // namespace heddle::python

#endif
