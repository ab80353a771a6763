// feed: see feed.h. SPDX-License-Identifier: Apache-2.0
#include "python/extension/feed.h"

#include "python/extension/dlpack.h"
#include "python/extension/library.h"
#include "python/extension/tensor.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace heddle::python {
namespace {

/// Types by NumPy's numbers, which are the same in all of its versions; 0: none of ours.
constexpr int32_t kOfNumpy[] = {
    HEDDLE_BOOL,      HEDDLE_INT8,
    HEDDLE_UINT8,     HEDDLE_INT16,
    HEDDLE_UINT16,    HEDDLE_INT32,
    HEDDLE_UINT32,    HEDDLE_INT64,
    HEDDLE_UINT64,    HEDDLE_INT64,
    HEDDLE_UINT64,    HEDDLE_FLOAT32,
    HEDDLE_FLOAT64,   0,
    HEDDLE_COMPLEX64, HEDDLE_COMPLEX128,
};

/// The dtype of an array's elements, 0 when it is none of ours, -1 with an exception set.
int32_t dtypeOf(PyArrayObject *array) {
  int type = PyArray_TYPE(array);
  if (type >= 0 && type < int(std::size(kOfNumpy)))
    return kOfNumpy[type];
  if (type == NPY_HALF)
    return HEDDLE_FLOAT16;
  if (type < NPY_USERDEF)
    return 0;
  // One of ml_dtypes, perhaps: of these NumPy knows the numbers at run time only.
  Ref number(PyObject_CallMethod(arrays, "number_of", "O",
                                 reinterpret_cast<PyObject *>(PyArray_DESCR(array))));
  return number ? int32_t(PyLong_AsLong(number.get())) : -1;
}

/// The dtype that stands for the bits of one that NumPy lacks, or 0.
int32_t bitsOf(int32_t dtype) {
  switch (dtype) {
  case HEDDLE_BFLOAT16:
    return HEDDLE_UINT16;
  case HEDDLE_FLOAT8E4M3FN:
  case HEDDLE_FLOAT8E4M3FNUZ:
  case HEDDLE_FLOAT8E5M2:
  case HEDDLE_FLOAT8E5M2FNUZ:
  case HEDDLE_FLOAT8E8M0:
    return HEDDLE_UINT8;
  default:
    return 0;
  }
}

bool isString(int type) {
  return type == NPY_OBJECT || type == NPY_UNICODE || type == NPY_STRING || type == NPY_VSTRING;
}

const char *allowedName(const Value &wanted) {
  return wanted.dtype == HEDDLE_STRING ? "str"
         : wanted.dtype                ? api.dtype_name(wanted.dtype)
                                       : "a type of ONNX";
}

bool refuseElements(PyArrayObject *array, const Value &wanted) {
  raise(HEDDLE_USAGE, "input '%U': its elements are %S, but %s is allowed", wanted.name.get(),
        reinterpret_cast<PyObject *>(PyArray_DESCR(array)), allowedName(wanted));
  return false;
}

/// The name of an object's type.
Ref typeName(PyObject *object) {
  return Ref(PyObject_GetAttrString(reinterpret_cast<PyObject *>(Py_TYPE(object)), "__name__"));
}

/// Makes an exception one that names the input, and the object that cannot be taken if it is given.
/// Exceptions that Python itself stops for stay.
void explain(const Value &wanted, PyObject *taken) {
  if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_RecursionError))
    return;
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  Ref first(type), second(error), third(trace), text(PyObject_Str(error));
  Ref name = taken ? typeName(taken) : Ref();
  PyErr_Clear();
  PyObject *what = text ? text.get() : first.get();
  if (name)
    raise(HEDDLE_USAGE, "input '%U': cannot take %U: %S", wanted.name.get(), name.get(), what);
  else
    raise(HEDDLE_USAGE, "input '%U': %S", wanted.name.get(), what);
}

/// Anything array-like as an array, and the dtype of its elements where the array does not tell.
Imported toArray(PyObject *value, const Value &wanted) {
  if (PyArray_Check(value))
    return {Ref::borrow(value), 0};
  if (!PyArray_IsScalar(value, Generic) && PyObject_HasAttrString(value, "__dlpack__")) {
    bool hasArray = PyObject_HasAttrString(value, "__array__");
    Imported imported = importDlpack(value);
    if (imported.array)
      return imported;
    if (!hasArray) {
      explain(wanted, value);
      return {};
    }
    PyErr_Clear();
  }
  Ref array(PyArray_FromAny(value, nullptr, 0, 0, 0, nullptr));
  if (!array)
    explain(wanted, nullptr);
  return {std::move(array), 0};
}

bool isPlain(PyArrayObject *array) {
  uintptr_t needed = std::min<uintptr_t>(uintptr_t(PyArray_ITEMSIZE(array)), 8);
  return PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED) &&
         PyArray_ISNOTSWAPPED(array) &&
         (needed < 2 || reinterpret_cast<uintptr_t>(PyArray_DATA(array)) % needed == 0);
}

/// Dense, aligned, and in this machine's order of bytes.
Ref plainCopy(PyArrayObject *array) {
  PyArray_Descr *type = PyArray_DESCR(array);
  if (PyArray_ISNOTSWAPPED(array))
    Py_INCREF(type);
  else
    type = PyArray_DescrNewByteorder(type, NPY_NATIVE);
  if (!type)
    return {};
  return Ref(PyArray_FromArray(array, type,
                               NPY_ARRAY_CARRAY | NPY_ARRAY_ENSURECOPY | NPY_ARRAY_ENSUREARRAY));
}

void setShape(PyArrayObject *array, heddle_tensor_t &tensor) {
  tensor.rank = PyArray_NDIM(array);
  const npy_intp *shape = PyArray_DIMS(array);
  for (int i = 0; i < tensor.rank; ++i)
    tensor.dims[i] = shape[i];
}

bool feedStrings(PyArrayObject *array, const Value &wanted, heddle_tensor_t &tensor, Keep &keep) {
  if (!isString(PyArray_TYPE(array)))
    return refuseElements(array, wanted);
  // Dense, and our own: elements of the caller's may be replaced while the run goes on.
  Ref objects(PyArray_FromArray(array, PyArray_DescrFromType(NPY_OBJECT),
                                NPY_ARRAY_CARRAY | NPY_ARRAY_ENSURECOPY | NPY_ARRAY_FORCECAST));
  if (!objects)
    return false;
  setShape(array, tensor);
  npy_intp count = PyArray_SIZE(objects.array());
  auto **texts = static_cast<PyObject **>(PyArray_DATA(objects.array()));
  keep.hold(std::move(objects));
  auto *strings = keep.block<heddle_string_t>(size_t(count));
  for (npy_intp i = 0; i < count; ++i) {
    PyObject *text = texts[i];
    Py_ssize_t size = 0;
    char *bytes = nullptr;
    if (text && PyUnicode_Check(text)) {
      strings[i].data = PyUnicode_AsUTF8AndSize(text, &size);
      if (!strings[i].data) { // surrogates, as those in which results hold what is no UTF-8
        PyErr_Clear();
        Ref encoded(PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape"));
        if (!encoded) {
          explain(wanted, nullptr);
          return false;
        }
        if (PyBytes_AsStringAndSize(keep.hold(std::move(encoded)), &bytes, &size) < 0)
          return false;
        strings[i].data = bytes;
      }
    } else if (text && PyBytes_Check(text)) {
      if (PyBytes_AsStringAndSize(text, &bytes, &size) < 0)
        return false;
      strings[i].data = bytes;
    } else {
      Ref type(text
                   ? PyObject_GetAttrString(reinterpret_cast<PyObject *>(Py_TYPE(text)), "__name__")
                   : PyUnicode_FromString("NULL"));
      if (type)
        raise(HEDDLE_USAGE, "input '%U': it holds a %U, but str is allowed", wanted.name.get(),
              type.get());
      return false;
    }
    strings[i].size = size_t(size);
  }
  tensor.dtype = HEDDLE_STRING;
  tensor.data = strings;
  tensor.bytes = int64_t(count) * int64_t(sizeof *strings);
  return true;
}

bool feedTensor(PyObject *value, const Value &wanted, heddle_tensor_t &tensor, Keep &keep) {
  if (const heddle_tensor_t *given = tensorIn(value)) {
    keep.hold(Ref::borrow(value));
    tensor = *given;
    tensor.owner = nullptr;
    return true;
  }
  if (!PyArray_Check(value) && wanted.dtype != HEDDLE_STRING && importDirect(value, tensor, keep)) {
    if (tensor.dtype == bitsOf(wanted.dtype))
      tensor.dtype = wanted.dtype;
    return true;
  }
  Imported given = toArray(value, wanted);
  if (!given.array)
    return false;
  PyArrayObject *array = given.array.array();
  if (PyArray_NDIM(array) > HEDDLE_MAX_RANK) {
    raise(HEDDLE_USAGE, "input '%U': its rank is %d, but %d is allowed", wanted.name.get(),
          PyArray_NDIM(array), wanted.dtype ? int(wanted.rank) : HEDDLE_MAX_RANK);
    return false;
  }
  bool isText = wanted.dtype ? wanted.dtype == HEDDLE_STRING : isString(PyArray_TYPE(array));
  if (isText)
    return feedStrings(array, wanted, tensor, keep);
  int32_t dtype = given.dtype ? given.dtype : dtypeOf(array);
  if (dtype < 0)
    return false;
  if (!dtype)
    return refuseElements(array, wanted);
  if (dtype && dtype == bitsOf(wanted.dtype))
    dtype = wanted.dtype; // the bits of a dtype that NumPy lacks
  setShape(array, tensor);
  tensor.dtype = dtype;
  Ref plain;
  if (api.dtype_bits(dtype) < 8) // one a byte in NumPy, several a byte here
    plain =
        Ref(PyObject_CallMethod(arrays, "pack", "Oi", given.array.get(), api.dtype_bits(dtype)));
  else
    plain = isPlain(array) ? std::move(given.array) : plainCopy(array);
  if (!plain)
    return false;
  tensor.data = PyArray_DATA(plain.array());
  tensor.bytes = PyArray_NBYTES(plain.array());
  keep.hold(std::move(plain));
  return true;
}

bool feedList(PyObject *value, const Value &wanted, heddle_tensor_t &tensor, Keep &keep) {
  tensor.dtype = HEDDLE_SEQUENCE;
  tensor.rank = 1;
  if (value == Py_None && wanted.kind != HEDDLE_KIND_SEQUENCE) {
    tensor.dims[0] = -1;
    return true;
  }
  Ref items;
  if (wanted.kind == HEDDLE_KIND_OPTIONAL)
    items = Ref(PyTuple_Pack(1, value));
  else if (PyList_Check(value) || PyTuple_Check(value))
    items = Ref(PySequence_Tuple(value)); // the caller's may change meanwhile
  else if (value == Py_None)
    raise(HEDDLE_USAGE, "input '%U': it is None, but a list is allowed", wanted.name.get());
  else {
    Ref type = typeName(value);
    if (type)
      raise(HEDDLE_USAGE, "input '%U': it is a %U, but a list is allowed", wanted.name.get(),
            type.get());
  }
  if (!items)
    return false;
  Py_ssize_t count = PyTuple_Size(items.get());
  auto *tensors = keep.block<heddle_tensor_t>(size_t(count));
  PyObject *held = keep.hold(std::move(items));
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!feedTensor(PyTuple_GetItem(held, i), wanted, tensors[i], keep))
      return false;
  tensor.data = tensors;
  tensor.bytes = int64_t(count) * int64_t(sizeof *tensors);
  tensor.dims[0] = count;
  return true;
}

} // namespace

bool place(PyObject *buffer, const Value &wanted, heddle_tensor_t &tensor, Keep &keep) {
  const char *what = wanted.isWritten ? "input '%U': the buffer that a run is to write"
                                      : "output '%U': its place in 'out'";
  auto refuse = [&](const char *why) {
    raise(HEDDLE_USAGE, (std::string(what) + " %s").c_str(), wanted.name.get(), why);
    return false;
  };
  if (wanted.kind != HEDDLE_KIND_TENSOR || wanted.dtype == HEDDLE_STRING || wanted.isMap)
    return refuse("cannot be: strings, lists, maps and tensors whose rank differs from run to run "
                  "are always allocated by the run");
  if (api.dtype_bits(wanted.dtype) < 8)
    return refuse("cannot be: elements of less than a byte are always allocated by the run");
  int32_t dtype = 0;
  if (const heddle_tensor_t *given = tensorIn(buffer)) {
    if (!isWritable(buffer))
      return refuse("is read-only");
    keep.hold(Ref::borrow(buffer));
    tensor = *given;
    tensor.owner = nullptr;
    dtype = given->dtype;
  } else {
    Imported imported;
    if (PyArray_Check(buffer))
      imported.array = Ref::borrow(buffer);
    else if (!PyObject_HasAttrString(buffer, "__dlpack__"))
      return refuse("is neither an array nor anything with __dlpack__");
    else if (imported = importDlpack(buffer); !imported.array)
      return false;
    PyArrayObject *array = imported.array.array();
    if (PyArray_NDIM(array) > HEDDLE_MAX_RANK)
      return refuse("has more dimensions than a tensor can have");
    if (!PyArray_ISWRITEABLE(array))
      return refuse("is read-only");
    if (!isPlain(array))
      return refuse("is not dense, row by row, aligned and in this machine's order of bytes");
    dtype = imported.dtype ? imported.dtype : dtypeOf(array);
    if (dtype < 0)
      return false;
    if (dtype && dtype == bitsOf(wanted.dtype))
      dtype = wanted.dtype;
    if (dtype != wanted.dtype) {
      raise(HEDDLE_USAGE, (std::string(what) + " has elements of %S, but the run gives %s").c_str(),
            wanted.name.get(), reinterpret_cast<PyObject *>(PyArray_DESCR(array)),
            api.dtype_name(wanted.dtype));
      return false;
    }
    setShape(array, tensor);
    tensor.data = PyArray_DATA(array);
    tensor.bytes = PyArray_NBYTES(array);
    keep.hold(std::move(imported.array));
  }
  if (dtype != wanted.dtype) {
    raise(HEDDLE_USAGE, (std::string(what) + " has elements of %s, but the run gives %s").c_str(),
          wanted.name.get(), api.dtype_name(dtype), api.dtype_name(wanted.dtype));
    return false;
  }
  tensor.dtype = wanted.dtype;
  return true;
}

bool feed(PyObject *value, const Value &wanted, heddle_tensor_t &tensor, Keep &keep) {
  if (wanted.isWritten)
    return place(value, wanted, tensor, keep);
  bool isTensor = wanted.kind == HEDDLE_KIND_TENSOR || wanted.kind == HEDDLE_KIND_ANY_RANK;
  return isTensor ? feedTensor(value, wanted, tensor, keep) : feedList(value, wanted, tensor, keep);
}

} // namespace heddle::python
