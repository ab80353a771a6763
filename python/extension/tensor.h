// tensor: heddle.Tensor, a tensor of the C API as an object of Python, which others share through
// DLPack and NumPy without a copy. SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_PYTHON_EXTENSION_TENSOR_H
#define HEDDLE_PYTHON_EXTENSION_TENSOR_H

#include "python/extension/feed.h"

namespace heddle::python {

/// Makes the type, once.
PyObject *makeTensorType();

/// The tensor in a heddle.Tensor, or NULL when the object is none. It lives as long as the object.
const heddle_tensor_t *tensorIn(PyObject *object);
/// Whether a run may write into it.
bool isWritable(PyObject *tensor);

/// Takes a result of a run over, which is then released with the object.
PyObject *wrap(heddle_tensor_t &result);

} // namespace heddle::python

#endif
