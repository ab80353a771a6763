// dlpack: tensors of other packages without a copy, through capsules as the DLPack standard has
// them (dmlc.github.io/dlpack), in both directions. SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_PYTHON_EXTENSION_DLPACK_H
#define HEDDLE_PYTHON_EXTENSION_DLPACK_H

#include "heddle/runtime.h"
#include "python/extension/feed.h"
#include "python/extension/python.h"

namespace heddle::python {

/// An array over the memory of an object with __dlpack__, and the dtype of its elements, which
/// NumPy may know by their bits only. The array keeps the memory alive. Without an array, why not
/// is set as an exception.
struct Imported {
  Ref array;
  int32_t dtype = 0;
};
Imported importDlpack(PyObject *value);

/// A capsule over a tensor that lives as long as `owner`. `isVersioned`: of DLPack 1, else of 0.
PyObject *exportDlpack(const heddle_tensor_t &tensor, PyObject *owner, bool isVersioned,
                       bool isWritable);

/// The functions by which a package takes and gives tensors without Python.
struct Exchange;
/// Those of a type of Python, which are asked once for each type; NULL if it has none.
const Exchange *exchangeOf(PyTypeObject *type);
/// Fills the tensor of an object whose memory is read where it lies, and keeps that. False, without
/// an exception, where Python has to be asked.
bool importDirect(PyObject *value, heddle_tensor_t &tensor, Keep &keep);
/// An object of the package's over a tensor that lives as long as `owner`.
PyObject *exportDirect(const Exchange &exchange, const heddle_tensor_t &tensor, PyObject *owner);

} // namespace heddle::python

#endif
