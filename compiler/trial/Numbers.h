// Numbers: what a trial runs on, and whether two results are the same.
#ifndef HEDDLE_TRIAL_NUMBERS_H
#define HEDDLE_TRIAL_NUMBERS_H

#include "compiler/reference/Tensor.h"
#include "compiler/trial/Group.h"

namespace heddle::trial {

/// Numbers of about 1, or of the range [low, high] where one is given.
reference::Tensor randomTensor(mlir::Type element, llvm::ArrayRef<int64_t> shape,
                               mlir::Attribute range, Random &random);

/// Whether the attribute reads [low, high].
bool isRange(mlir::Attribute range);

/// An error when a size is not constant.
llvm::Expected<mlir::ElementsAttr> randomConstant(mlir::RankedTensorType type,
                                                  mlir::Attribute range, Random &random);

/// Sizes where kernels go wrong first: 1, odd, about `lanes` and its multiples, and rarely one of
/// 0. They are made smaller until a run of the interpreter is quick.
Sizes randomSizes(mlir::func::FuncOp main, int64_t lanes, bool mayBeEmpty, Random &random);

/// Whether a run of the interpreter takes more than half a minute or so.
bool isTooSlow(mlir::func::FuncOp main, const Sizes &sizes);

/// One tensor for each argument; nullopt if a size is negative or a tensor is too large.
std::optional<reference::Tensors> randomInputs(mlir::func::FuncOp main, const Sizes &sizes,
                                               Random &random);

/// A difference beyond what the order of roundings explains, and beyond `slack`; "" if there is
/// none.
std::string difference(const reference::Tensor &expected, const reference::Tensor &found,
                       double slack = 0);

} // namespace heddle::trial

#endif // HEDDLE_TRIAL_NUMBERS_H
