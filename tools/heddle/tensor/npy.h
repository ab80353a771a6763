// Npy: NumPy's file format for one array, version 1 to 3.
//
// bfloat16 is the raw type V2 and the 8-bit floats V1, as NumPy writes what ml_dtypes defines;
// their kind is known from the tensor that is wanted. 4-bit integers are written one a byte.
#ifndef HEDDLE_TOOLS_HEDDLE_TENSOR_NPY_H
#define HEDDLE_TOOLS_HEDDLE_TENSOR_NPY_H

#include "tools/heddle/tensor/tensor.h"

namespace heddle::cli {

/// `wanted` decides what raw types and bytes of 4-bit integers mean; nothing else is converted.
Tensor readNpy(const std::string &path, int32_t wanted);
void writeNpy(const std::string &path, const Tensor &tensor);

} // namespace heddle::cli

#endif
