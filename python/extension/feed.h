// feed: what a caller gives, as tensors of the C API, without a copy where that can be.
// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_PYTHON_EXTENSION_FEED_H
#define HEDDLE_PYTHON_EXTENSION_FEED_H

#include "heddle/runtime.h"
#include "python/extension/python.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace heddle::python {

/// One input or output of a model, as heddle.NodeArg has it.
struct Value {
  Ref name;
  int32_t dtype = 0, kind = 0, rank = 0;
  bool isMap = false;
  bool isWritten = false; // an input where it lies
};

/// Owner of the memory of tensors: objects of Python, and memory of ours. Made and destroyed with
/// Python's lock; its content stays as it is while a run does without.
class Keep {
public:
  Keep() = default;
  Keep(const Keep &) = delete;
  Keep &operator=(const Keep &) = delete;

  PyObject *hold(Ref object) {
    objects.push_back(std::move(object));
    return objects.back().get();
  }
  /// The object that holds the tensor that was just fed, or NULL.
  PyObject *last() const { return objects.empty() ? nullptr : objects.back().get(); }
  template <typename T> T *block(size_t count) {
    size_t bytes = (count ? count : 1) * sizeof(T);
    blocks.push_back(std::make_unique<std::byte[]>(bytes)); // zeroed
    return reinterpret_cast<T *>(blocks.back().get());
  }
  /// Calls `end(what)` with the last. `isWritable`: a run may write what it holds.
  void hold(void *what, void (*end)(void *), bool isWritable) {
    others.emplace_back(what, end);
    isOtherWritable = isWritable;
  }
  bool isLastWritable() const { return isOtherWritable; }

private:
  std::vector<Ref> objects;
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  std::vector<std::unique_ptr<void, void (*)(void *)>> others;
  bool isOtherWritable = false;
};

/// Fills the tensor of one input. `wanted.dtype` 0 takes whatever the elements are. False with an
/// exception set when the value is nothing that could be one; whether dtype and shape are those
/// that the model takes, the runtime says, for all inputs at once.
bool feed(PyObject *value, const Value &wanted, heddle_tensor_t &tensor, Keep &keep);

/// Points the tensor at the caller's memory for a result, whose dims are those of the memory.
bool place(PyObject *buffer, const Value &wanted, heddle_tensor_t &tensor, Keep &keep);

} // namespace heddle::python

#endif
