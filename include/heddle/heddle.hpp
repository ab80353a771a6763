// heddle.hpp: runtime.h for C++17: what owns a handle gives it back, and a status is an exception.
//
//   heddle::Module module("model.so");
//   heddle::Session session(module, /*threads=*/2);
//   std::vector<float> x(3 * 224 * 224);
//   std::vector<heddle::Tensor> results = session.run({heddle::view(x.data(), {1, 3, 224, 224})});
//   const float *scores = results[0].data<float>();
//
// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_HEDDLE_HPP
#define HEDDLE_HEDDLE_HPP

#include "heddle/runtime.h"

#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace heddle {

/// What a status says.
class Error : public std::runtime_error {
public:
  Error(heddle_code_t code, const std::string &message) : std::runtime_error(message), code(code) {}
  heddle_code_t code;
};

/// Throws what a status says, unless it is success.
inline void check(heddle_status_t *status) {
  if (!status)
    return;
  Error error(heddle_status_code(status), heddle_status_message(status));
  heddle_status_destroy(status);
  throw error;
}

/// The dtype of a C++ type.
template <typename T> constexpr heddle_dtype_t dtypeOf() {
  constexpr bool isKnown = std::is_arithmetic_v<T> && sizeof(T) <= 8;
  static_assert(isKnown, "heddle has no elements of this type");
  if constexpr (std::is_same_v<T, bool>)
    return HEDDLE_BOOL;
  else if constexpr (std::is_floating_point_v<T>)
    return sizeof(T) == 4 ? HEDDLE_FLOAT32 : HEDDLE_FLOAT64;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? HEDDLE_INT8 : HEDDLE_UINT8;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? HEDDLE_INT16 : HEDDLE_UINT16;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? HEDDLE_INT32 : HEDDLE_UINT32;
  else
    return std::is_signed_v<T> ? HEDDLE_INT64 : HEDDLE_UINT64;
}

/// Elements of the caller, row-major, which are only read and have to outlive the run.
template <typename T> heddle_tensor_t view(const T *data, const std::vector<int64_t> &shape) {
  if (shape.size() > HEDDLE_MAX_RANK)
    throw Error(HEDDLE_USAGE, "a tensor of rank " + std::to_string(shape.size()) +
                                  ", but at most " + std::to_string(HEDDLE_MAX_RANK) +
                                  " is allowed");
  heddle_tensor_t tensor = {};
  tensor.data = const_cast<T *>(data);
  tensor.dtype = dtypeOf<T>();
  tensor.rank = static_cast<int32_t>(shape.size());
  tensor.bytes = sizeof(T);
  for (size_t i = 0; i < shape.size(); ++i) {
    tensor.dims[i] = shape[i];
    if (__builtin_mul_overflow(tensor.bytes, shape[i], &tensor.bytes))
      throw Error(HEDDLE_LIMIT, "a tensor has more bytes than 63 bits can count");
  }
  return tensor;
}

/// A result, which gives its memory back.
class Tensor {
public:
  Tensor() : tensor() {}
  explicit Tensor(const heddle_tensor_t &owned) : tensor(owned) {}
  Tensor(Tensor &&other) noexcept : tensor(other.tensor) {
    std::memset(&other.tensor, 0, sizeof other.tensor);
  }
  Tensor &operator=(Tensor &&other) noexcept {
    std::swap(tensor, other.tensor);
    return *this;
  }
  ~Tensor() { heddle_tensor_release(&tensor); }

  std::vector<int64_t> shape() const { return {tensor.dims, tensor.dims + tensor.rank}; }
  int32_t dtype() const { return tensor.dtype; }
  int64_t bytes() const { return tensor.bytes; }
  /// The elements; an error where they are of another type.
  template <typename T> const T *data() const {
    if (tensor.dtype != dtypeOf<T>())
      throw Error(HEDDLE_USAGE, std::string("the tensor holds ") + heddle_dtype_name(tensor.dtype) +
                                    ", but " + heddle_dtype_name(dtypeOf<T>()) + " is asked for");
    return static_cast<const T *>(tensor.data);
  }
  /// As the C API has it; strings and sequences are read from there.
  const heddle_tensor_t &raw() const { return tensor; }

private:
  heddle_tensor_t tensor;
};

/// A compiled model.
class Module {
public:
  explicit Module(const std::string &path, bool verify = false) {
    if (verify)
      check(heddle_module_verify(path.c_str()));
    check(heddle_module_load(path.c_str(), &handle));
  }
  /// One that is linked into the program.
  explicit Module(const heddle_executable_t &executable) {
    check(heddle_module_from_executable(&executable, nullptr, nullptr, &handle));
  }
  Module(Module &&other) noexcept : handle(other.handle) { other.handle = nullptr; }
  Module &operator=(Module &&) = delete;
  ~Module() { heddle_module_destroy(handle); }

  heddle_module_info_t info() const { return heddle_module_info(handle); }
  size_t inputCount() const { return heddle_module_input_count(handle); }
  size_t outputCount() const { return heddle_module_output_count(handle); }
  const heddle_value_t &input(size_t i) const { return there(heddle_module_input(handle, i)); }
  const heddle_value_t &output(size_t i) const { return there(heddle_module_output(handle, i)); }
  heddle_module_t *get() const { return handle; }

private:
  static const heddle_value_t &there(const heddle_value_t *value) {
    if (!value)
      throw Error(HEDDLE_USAGE, "the model has no such input or output");
    return *value;
  }
  heddle_module_t *handle = nullptr;
};

/// A module with threads and memory; any number of threads may run it at once.
class Session {
public:
  /// `threads`: 0 for all that the process may use.
  explicit Session(const Module &module, int threads = 0) : outputs(module.outputCount()) {
    heddle_session_options_t options = {};
    options.size = sizeof options;
    options.threads = threads;
    check(heddle_session_create(module.get(), &options, &handle));
  }
  Session(Session &&other) noexcept : handle(other.handle), outputs(other.outputs) {
    other.handle = nullptr;
  }
  Session &operator=(Session &&) = delete;
  ~Session() { heddle_session_destroy(handle); }

  /// Inputs and results stand in the module's order.
  std::vector<Tensor> run(const std::vector<heddle_tensor_t> &inputs) const {
    std::vector<heddle_tensor_t> made(outputs);
    check(heddle_session_run(handle, inputs.data(), inputs.size(), made.data(), made.size()));
    std::vector<Tensor> results;
    results.reserve(made.size());
    for (const heddle_tensor_t &tensor : made)
      results.emplace_back(tensor);
    return results;
  }
  int threads() const { return heddle_session_threads(handle); }
  heddle_memory_t memory() const { return heddle_session_memory(handle); }
  heddle_session_t *get() const { return handle; }

private:
  heddle_session_t *handle = nullptr;
  size_t outputs;
};

} // namespace heddle

#endif // HEDDLE_HEDDLE_HPP
