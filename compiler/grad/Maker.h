// Maker: makes ops of the graph dialect whose operands are known to fit, as derivatives need them.
#ifndef HEDDLE_GRAD_MAKER_H
#define HEDDLE_GRAD_MAKER_H

#include "compiler/graph/Graph.h"

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

class Maker {
public:
  Maker(mlir::OpBuilder &builder, mlir::Location location) : builder(builder), location(location) {}

  /// An op whose result type follows from the arguments.
  template <typename Op, typename... Args> Value make(Args &&...args) {
    return builder.create<Op>(location, std::forward<Args>(args)...).getResult();
  }
  /// An op whose result has these sizes and this element type.
  template <typename Op, typename... Args>
  Value typed(ArrayRef<Dim> dims, Type element, Args &&...args) {
    Type type = graph::tensorOf(builder.getContext(), dims, element);
    return builder.create<Op>(location, type, std::forward<Args>(args)...)->getResult(0);
  }

  // Element by element; all operands have one type.
  template <typename Op> Value unary(Value x) { return make<Op>(x.getType(), x); }
  template <typename Op> Value binary(Value x, Value y) { return make<Op>(x.getType(), x, y); }
  Value add(Value x, Value y) { return binary<graph::AddOp>(x, y); }
  Value sub(Value x, Value y) { return binary<graph::SubOp>(x, y); }
  Value mul(Value x, Value y) { return binary<graph::MulOp>(x, y); }
  Value div(Value x, Value y) { return binary<graph::DivOp>(x, y); }
  Value neg(Value x) { return unary<graph::NegOp>(x); }
  // With a number on one side.
  Value add(Value x, double number) { return add(x, like(x, number)); }
  Value mul(Value x, double number) { return mul(x, like(x, number)); }
  Value sub(double number, Value x) { return sub(like(x, number), x); }
  template <typename Op> Value compare(Value x, Value y) { return make<Op>(x, y); }
  Value select(Value condition, Value x, Value y) { return make<graph::SelectOp>(condition, x, y); }
  Value cast(Value x, Type element);
  /// 1 where x is 0, else 0.
  Value whereZero(Value x) { return cast(compare<graph::EqualOp>(x, zeros(x)), elementOf(x)); }
  /// x with 1 for each 0.
  Value withoutZeros(Value x) { return add(x, whereZero(x)); }

  // Constants.
  Value scalar(Type element, double number);
  Value full(ArrayRef<Dim> dims, Type element, double number);
  /// A number in the shape and type of x.
  Value like(Value x, double number) { return full(dimsOf(x), elementOf(x), number); }
  Value zeros(Value x) { return like(x, 0); }
  Value iota(ArrayRef<Dim> dims, int64_t axis);
  /// 0, 1, ... in row-major order, i64.
  Value numbering(ArrayRef<Dim> dims);

  // Movement; each gives x itself where there is nothing to do.
  Value reshape(Value x, ArrayRef<Dim> dims);
  Value broadcast(Value x, ArrayRef<Dim> dims);
  Value transpose(Value x, ArrayRef<int64_t> permutation);
  Value slice(Value x, ArrayRef<Dim> starts, ArrayRef<Dim> sizes, ArrayRef<int64_t> steps);
  /// Zeros around x; negative amounts crop.
  Value pad(Value x, ArrayRef<Dim> low, ArrayRef<Dim> high);

  Value sum(Value x, ArrayRef<int64_t> axes, bool keepDims = false);
  Value matmul(Value a, Value b);

  // Adjoints that several families need.
  /// Of a broadcast from `dims`: the sum over what was repeated, also where only the run knows.
  Value sumTo(Value x, ArrayRef<Dim> dims);
  /// Of a reduction: x, which lacks `axes` or has size 1 there, repeated to `dims`.
  Value spread(Value x, ArrayRef<int64_t> axes, ArrayRef<Dim> dims);
  /// Of a product of many factors by each x: the product of all others. `product` is that of the
  /// factors that are not 0, `zeros` how many are 0: where one is, only that one has a slope, where
  /// two are none.
  Value productOfOthers(Value x, Value product, Value zeros);
  /// Of a slice from a tensor of sizes `dims`.
  Value unslice(Value x, ArrayRef<Dim> starts, ArrayRef<int64_t> steps, ArrayRef<Dim> dims);
  /// Of a gather along `axis` from a tensor of sizes `dims`.
  Value ungather(Value x, Value indices, int64_t axis, ArrayRef<Dim> dims);

  mlir::OpBuilder &builder;
  mlir::Location location;
};

graph::DimsAttr attributeOf(Maker &maker, ArrayRef<Dim> dims);
std::string textOf(ArrayRef<Dim> dims); // "[batch, 3, 2*h]"
Ints inverseOf(ArrayRef<int64_t> permutation);

} // namespace heddle::grad

#endif // HEDDLE_GRAD_MAKER_H
