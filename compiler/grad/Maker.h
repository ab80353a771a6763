// Maker: graph::Build with the adjoints that several families need.
#ifndef HEDDLE_GRAD_MAKER_H
#define HEDDLE_GRAD_MAKER_H

#include "compiler/graph/edit/Build.h"

namespace heddle::grad {

using graph::Dim;
using graph::dimsOf;
using graph::DimVector;
using graph::elementOf;
using graph::rankOf;
using llvm::ArrayRef;
using mlir::Type;
using mlir::Value;
using Ints = llvm::SmallVector<int64_t>;

class Maker : public graph::Build {
public:
  using Build::Build;

  /// 1 where x is 0, else 0.
  Value whereZero(Value x) { return cast(compare<graph::EqualOp>(x, zeros(x)), elementOf(x)); }
  /// x with 1 for each 0.
  Value withoutZeros(Value x) { return add(x, whereZero(x)); }
  /// 0, 1, ... in row-major order, i64.
  Value numbering(ArrayRef<Dim> dims);

  /// Gradient of a broadcast from `dims`: the sum over repeated dimensions, also if known only at
  /// run time.
  Value sumTo(Value x, ArrayRef<Dim> dims);
  /// Gradient of a reduction: x, which lacks `axes` or has size 1 there, repeated to `dims`.
  Value spread(Value x, ArrayRef<int64_t> axes, ArrayRef<Dim> dims);
  /// Gradient of a product of many factors by each x: the product of all others. `product` is that
  /// of the factors that are not 0, `zeros` the number of those that are 0: if one is, only that
  /// one has a slope, if two are, none has.
  Value productOfOthers(Value x, Value product, Value zeros);
  /// Gradient of a slice from a tensor of sizes `dims`.
  Value unslice(Value x, ArrayRef<Dim> starts, ArrayRef<int64_t> steps, ArrayRef<Dim> dims);
  /// Gradient of a gather along `axis` from a tensor of sizes `dims`.
  Value ungather(Value x, Value indices, int64_t axis, ArrayRef<Dim> dims);
};

graph::DimsAttr attributeOf(Maker &maker, ArrayRef<Dim> dims);
std::string textOf(ArrayRef<Dim> dims); // "[batch, 3, 2*h]"

} // namespace heddle::grad

#endif // HEDDLE_GRAD_MAKER_H
