// result: tensors of the C API as objects of Python. SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_PYTHON_EXTENSION_RESULT_H
#define HEDDLE_PYTHON_EXTENSION_RESULT_H

#include "heddle/runtime.h"
#include "python/extension/python.h"

namespace heddle::python {

/// An array over a result, whose memory goes back to the runtime with the array; strings and lists
/// are copied. The result is released in any case.
PyObject *adopt(heddle_tensor_t &result, int32_t kind);

/// An array, a list of arrays or None: a copy of memory that does not live long.
PyObject *copy(const heddle_tensor_t &tensor, int32_t kind);

/// An array over a plain tensor's memory, which `owner` keeps alive.
PyObject *view(const heddle_tensor_t &tensor, PyObject *owner, bool isWritable);

} // namespace heddle::python

#endif
