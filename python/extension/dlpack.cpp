// dlpack: see dlpack.h. SPDX-License-Identifier: Apache-2.0
#include "python/extension/dlpack.h"

#include "python/extension/library.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace heddle::python {
namespace {

// The structures of the standard, versions 0.8 and 1.0.
struct Device {
  int32_t type, id;
};
struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Tensor {
  void *data;
  Device device;
  int32_t rank;
  DataType type;
  int64_t *shape, *strides; // strides in elements; NULL: dense
  uint64_t offset;          // bytes
};
struct Managed {
  Tensor tensor;
  void *context;
  void (*deleter)(Managed *);
};
struct ManagedVersioned {
  uint32_t major, minor;
  void *context;
  void (*deleter)(ManagedVersioned *);
  uint64_t flags;
  Tensor tensor;
};

enum { CPU = 1, CUDA_HOST = 3, ROCM_HOST = 11 };
constexpr uint64_t kReadOnly = 1;
constexpr const char *kName = "dltensor", *kVersionedName = "dltensor_versioned";

struct Row {
  int32_t dtype;
  DataType type;
  int numpy; // NumPy's type of as many bits, if it lacks the type
};
constexpr Row kTypes[] = {
    {HEDDLE_FLOAT32, {2, 32, 1}, NPY_FLOAT},
    {HEDDLE_FLOAT64, {2, 64, 1}, NPY_DOUBLE},
    {HEDDLE_FLOAT16, {2, 16, 1}, NPY_HALF},
    {HEDDLE_BFLOAT16, {4, 16, 1}, NPY_UINT16},
    {HEDDLE_INT8, {0, 8, 1}, NPY_INT8},
    {HEDDLE_INT16, {0, 16, 1}, NPY_INT16},
    {HEDDLE_INT32, {0, 32, 1}, NPY_INT32},
    {HEDDLE_INT64, {0, 64, 1}, NPY_INT64},
    {HEDDLE_UINT8, {1, 8, 1}, NPY_UINT8},
    {HEDDLE_UINT16, {1, 16, 1}, NPY_UINT16},
    {HEDDLE_UINT32, {1, 32, 1}, NPY_UINT32},
    {HEDDLE_UINT64, {1, 64, 1}, NPY_UINT64},
    {HEDDLE_BOOL, {6, 8, 1}, NPY_BOOL},
    {HEDDLE_COMPLEX64, {5, 64, 1}, NPY_COMPLEX64},
    {HEDDLE_COMPLEX128, {5, 128, 1}, NPY_COMPLEX128},
    {HEDDLE_FLOAT8E4M3FN, {10, 8, 1}, NPY_UINT8},
    {HEDDLE_FLOAT8E4M3FNUZ, {11, 8, 1}, NPY_UINT8},
    {HEDDLE_FLOAT8E5M2, {12, 8, 1}, NPY_UINT8},
    {HEDDLE_FLOAT8E5M2FNUZ, {13, 8, 1}, NPY_UINT8},
    {HEDDLE_FLOAT8E8M0, {14, 8, 1}, NPY_UINT8},
};

const Row *rowOf(DataType type) {
  for (const Row &row : kTypes)
    if (row.type.code == type.code && row.type.bits == type.bits && type.lanes == 1)
      return &row;
  return nullptr;
}

/// The array of a tensor that `capsule` keeps alive.
Imported viewOf(const Tensor &tensor, bool isWritable, Ref capsule) {
  if (tensor.device.type != CPU && tensor.device.type != CUDA_HOST &&
      tensor.device.type != ROCM_HOST) {
    raise(HEDDLE_USAGE,
          "its memory is that of a device (DLPack's type %d), but memory of the CPU "
          "is needed: copy it there first",
          int(tensor.device.type));
    return {};
  }
  const Row *row = rowOf(tensor.type);
  if (!row) {
    raise(HEDDLE_USAGE,
          "its elements are of DLPack's type (%d, %d bits, %d lanes), which is not "
          "known",
          int(tensor.type.code), int(tensor.type.bits), int(tensor.type.lanes));
    return {};
  }
  if (tensor.rank < 0 || tensor.rank > HEDDLE_MAX_RANK || (tensor.rank && !tensor.shape)) {
    raise(HEDDLE_USAGE, "its rank is %d, but at most %d is allowed", int(tensor.rank),
          HEDDLE_MAX_RANK);
    return {};
  }
  npy_intp dims[HEDDLE_MAX_RANK], strides[HEDDLE_MAX_RANK];
  int64_t step = row->type.bits / 8;
  bool isEmpty = false, isValid = true;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    dims[i] = tensor.shape[i];
    isValid &= dims[i] >= 0;
    isEmpty |= dims[i] == 0;
    int64_t bytes = step;
    if (tensor.strides)
      isValid &= !__builtin_mul_overflow(tensor.strides[i], int64_t(row->type.bits / 8), &bytes);
    strides[i] = bytes;
    isValid &= isEmpty || !__builtin_mul_overflow(step, int64_t(dims[i]), &step);
  }
  if (!isValid || (!isEmpty && !tensor.data)) {
    raise(HEDDLE_USAGE, "its sizes, strides or memory, as __dlpack__ gives them, cannot be");
    return {};
  }
  char none = 0;
  void *data = tensor.data ? static_cast<char *>(tensor.data) + tensor.offset : &none;
  int flags = isWritable ? NPY_ARRAY_WRITEABLE : 0;
  Imported imported;
  imported.array =
      Ref(PyArray_New(&PyArray_Type, tensor.rank, dims, row->numpy, isEmpty ? nullptr : strides,
                      isEmpty ? nullptr : data, 0, flags, nullptr));
  if (!imported.array)
    return {};
  if (!isEmpty && PyArray_SetBaseObject(imported.array.array(), capsule.release()) < 0)
    return {};
  imported.dtype = row->dtype;
  return imported;
}

/// Whether the memory of a tensor of torch holds its numbers with the other sign, as that of
/// `x.conj().imag` does: DLPack does not tell.
bool hasOtherSign(PyObject *value) {
  static PyObject *const question = PyUnicode_InternFromString("is_neg");
  Ref answer(PyObject_CallMethodObjArgs(value, question, nullptr));
  PyErr_Clear(); // of other types
  return answer.get() == Py_True;
}

} // namespace

Imported importDlpack(PyObject *value) {
  bool isCopied = hasOtherSign(value);
  Ref held =
      isCopied ? Ref(PyObject_CallMethod(value, "resolve_neg", nullptr)) : Ref::borrow(value);
  Ref capsule(held ? PyObject_CallMethod(held.get(), "__dlpack__", nullptr) : nullptr);
  if (!capsule)
    return {};
  // A capsule that keeps its name gives the memory back when it goes.
  if (PyCapsule_IsValid(capsule.get(), kName)) {
    auto *managed = static_cast<Managed *>(PyCapsule_GetPointer(capsule.get(), kName));
    return viewOf(managed->tensor, !isCopied, std::move(capsule));
  }
  if (PyCapsule_IsValid(capsule.get(), kVersionedName)) {
    auto *managed =
        static_cast<ManagedVersioned *>(PyCapsule_GetPointer(capsule.get(), kVersionedName));
    if (managed->major == 1)
      return viewOf(managed->tensor, !isCopied && !(managed->flags & kReadOnly),
                    std::move(capsule));
  }
  raise(HEDDLE_USAGE, "its __dlpack__ gives no capsule of DLPack 0 or 1");
  return {};
}

namespace {

/// A managed tensor with the arrays that it points to.
template <typename M> struct Exported {
  M managed;
  int64_t shape[HEDDLE_MAX_RANK], strides[HEDDLE_MAX_RANK];
};

template <typename M> void destroy(M *managed) {
  // Whoever took the tensor may be done on any thread.
  PyGILState_STATE state = PyGILState_Ensure();
  Py_XDECREF(static_cast<PyObject *>(managed->context));
  PyGILState_Release(state);
  delete reinterpret_cast<Exported<M> *>(managed);
}

template <typename M> void destroyUnused(PyObject *capsule) {
  const char *name = std::is_same_v<M, Managed> ? kName : kVersionedName;
  if (PyCapsule_IsValid(capsule, name)) // a consumer renames what it takes
    destroy(static_cast<M *>(PyCapsule_GetPointer(capsule, name)));
}

template <typename M>
std::unique_ptr<Exported<M>> exported(const heddle_tensor_t &tensor, const Row &row) {
  auto made = std::make_unique<Exported<M>>();
  int64_t step = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    made->shape[i] = tensor.dims[i];
    made->strides[i] = step;
    step *= tensor.dims[i] ? tensor.dims[i] : 1; // no more than its bytes, which were checked
  }
  made->managed.tensor = {tensor.data,   {CPU, 0}, tensor.rank, row.type, made->shape,
                          made->strides, 0};
  made->managed.deleter = destroy<M>;
  return made;
}

template <typename M>
PyObject *exportAs(const heddle_tensor_t &tensor, const Row &row, PyObject *owner, uint64_t flags) {
  auto made = exported<M>(tensor, row);
  if constexpr (std::is_same_v<M, ManagedVersioned>) {
    made->managed.major = 1;
    made->managed.flags = flags;
  }
  const char *name = std::is_same_v<M, Managed> ? kName : kVersionedName;
  PyObject *capsule = PyCapsule_New(&made->managed, name, destroyUnused<M>);
  if (!capsule)
    return nullptr;
  Py_INCREF(owner);
  made.release()->managed.context = owner;
  return capsule;
}

} // namespace

PyObject *exportDlpack(const heddle_tensor_t &tensor, PyObject *owner, bool isVersioned,
                       bool isWritable) {
  for (const Row &row : kTypes) {
    if (row.dtype != tensor.dtype)
      continue;
    if (!isVersioned)
      return exportAs<Managed>(tensor, row, owner, 0);
    return exportAs<ManagedVersioned>(tensor, row, owner, isWritable ? 0 : kReadOnly);
  }
  PyErr_Format(PyExc_BufferError, "DLPack has no elements of type %s",
               api.dtype_name(tensor.dtype));
  return nullptr;
}

/// DLPackExchangeAPI of DLPack 1.3; functions that nothing here calls have no type.
struct Exchange {
  uint32_t major, minor;
  const Exchange *older;
  void *allocate;
  int (*fromObject)(void *object, ManagedVersioned **made);
  int (*toObject)(ManagedVersioned *tensor, void **made);
  void *peek, *stream;
};

const Exchange *exchangeOf(PyTypeObject *type) {
  static std::vector<std::pair<PyTypeObject *, const Exchange *>> known; // types live for ever
  for (auto [each, exchange] : known)
    if (each == type)
      return exchange;
  auto *object = reinterpret_cast<PyObject *>(type);
  Ref capsule(PyObject_GetAttrString(object, "__dlpack_c_exchange_api__"));
  const char *name = "dlpack_exchange_api";
  if (!capsule || !PyCapsule_IsValid(capsule.get(), name)) {
    PyErr_Clear();
    return nullptr;
  }
  auto *found = static_cast<const Exchange *>(PyCapsule_GetPointer(capsule.get(), name));
  while (found && found->major != 1)
    found = found->older;
  if (found) {
    Py_INCREF(object);
    known.emplace_back(type, found);
    capsule.release(); // the functions stay
  }
  return found;
}

bool importDirect(PyObject *value, heddle_tensor_t &tensor, Keep &keep) {
  const Exchange *exchange = exchangeOf(Py_TYPE(value));
  ManagedVersioned *managed = nullptr;
  if (!exchange || hasOtherSign(value))
    return false;
  if (exchange->fromObject(value, &managed) != 0 || !managed) {
    PyErr_Clear(); // __dlpack__ says it again
    return false;
  }
  auto end = [](void *held) {
    auto *given = static_cast<ManagedVersioned *>(held);
    if (given->deleter)
      given->deleter(given);
  };
  keep.hold(managed, end, !(managed->flags & kReadOnly));
  const Tensor &found = managed->tensor;
  const Row *row = rowOf(found.type);
  if (found.device.type != CPU || !row || found.rank < 0 || found.rank > HEDDLE_MAX_RANK)
    return false;
  int64_t count = 1, width = row->type.bits / 8;
  for (int i = found.rank - 1; i >= 0; --i) {
    bool isNext = found.shape[i] == 1 || !found.strides || found.strides[i] == count;
    if (!isNext || __builtin_mul_overflow(count, found.shape[i], &count) || count <= 0)
      return false;
    tensor.dims[i] = found.shape[i];
  }
  auto *data = static_cast<char *>(found.data) + found.offset;
  if (!found.data || reinterpret_cast<uintptr_t>(data) % std::min<uintptr_t>(width, 8))
    return false;
  tensor.data = data;
  tensor.bytes = count * width;
  tensor.dtype = row->dtype;
  tensor.rank = found.rank;
  return true;
}

PyObject *exportDirect(const Exchange &exchange, const heddle_tensor_t &tensor, PyObject *owner) {
  for (const Row &row : kTypes) {
    if (row.dtype != tensor.dtype)
      continue;
    auto made = exported<ManagedVersioned>(tensor, row);
    made->managed.major = 1;
    made->managed.context = owner;
    Py_INCREF(owner);
    void *object = nullptr;
    if (exchange.toObject(&made->managed, &object) == 0 && object) {
      made.release(); // its deleter ends it
      return static_cast<PyObject *>(object);
    }
    Py_DECREF(owner);
    if (!PyErr_Occurred())
      raise(HEDDLE_INTERNAL, "a tensor could not be given to another package");
    return nullptr;
  }
  PyErr_Format(PyExc_BufferError, "DLPack has no elements of type %s",
               api.dtype_name(tensor.dtype));
  return nullptr;
}

} // namespace heddle::python
