// session: the base of heddle.Session: a session of the C API and its runs.
// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_PYTHON_EXTENSION_SESSION_H
#define HEDDLE_PYTHON_EXTENSION_SESSION_H

#include "python/extension/python.h"

namespace heddle::python {

PyObject *makeSessionType();

} // namespace heddle::python

#endif
