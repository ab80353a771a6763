// Tensor: a dense tensor that the command line owns, of any dtype of the C API.
//
// Elements are reached through double, which is right for every dtype but 64-bit integers beyond
// 2^53; those are compared and parsed as integers.
#ifndef HEDDLE_TOOLS_HEDDLE_TENSOR_TENSOR_H
#define HEDDLE_TOOLS_HEDDLE_TENSOR_TENSOR_H

#include "heddle/runtime.h"

#include <string>
#include <vector>

namespace heddle::cli {

struct Tensor {
  int32_t dtype = HEDDLE_FLOAT32;
  std::vector<int64_t> dims;
  std::vector<char> bytes;
  std::vector<std::string> strings;                 // the elements where dtype is HEDDLE_STRING
  mutable std::vector<heddle_string_t> stringViews; // those of the last view

  int64_t count() const;
  /// The tensor as the C API takes it; the view points into this tensor.
  heddle_tensor_t view() const;
};

/// Whether a byte holds several elements.
bool isPacked(int32_t dtype);

/// Refuses a rank or a size that no tensor has.
void checkDims(const std::vector<int64_t> &dims, const std::string &what);
/// How many elements there are, or INT64_MAX where they are more.
int64_t countOf(const std::vector<int64_t> &dims);

/// Zeros. Fails with HEDDLE_LIMIT where this machine has not got the memory; `what` names the
/// tensor in the message.
Tensor makeTensor(int32_t dtype, std::vector<int64_t> dims, const std::string &what);
Tensor copyOf(const heddle_tensor_t &tensor);

bool isFloating(int32_t dtype);
bool isInteger(int32_t dtype); // not bool
bool isSigned(int32_t dtype);
bool isComplex(int32_t dtype);

double element(const Tensor &tensor, int64_t index);         // complex: numbers in pairs
int64_t integerElement(const Tensor &tensor, int64_t index); // uint64 keeps its bits
void setElement(Tensor &tensor, int64_t index, double value);
void setInteger(Tensor &tensor, int64_t index, int64_t value);

/// "float32", "f32", "bf16", "bool"; 0 when it names none.
int32_t dtypeOf(const std::string &name);
std::vector<std::string> dtypeNames();

std::string formatDims(const std::vector<int64_t> &dims);       // "2x3", "scalar"
std::string formatElement(const Tensor &tensor, int64_t index); // "0.25", "true"
std::string formatFirst(const Tensor &tensor, int64_t limit);   // "0.25 1 2 ..."

} // namespace heddle::cli

#endif
