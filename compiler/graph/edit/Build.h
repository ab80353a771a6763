// Build: makes ops of the graph dialect at one location, of operands that are known to fit. Ops of
// a model that may be wrong are made by the importer's Emitter, which checks each.
#ifndef HEDDLE_GRAPH_EDIT_BUILD_H
#define HEDDLE_GRAPH_EDIT_BUILD_H

#include "compiler/graph/Graph.h"

namespace heddle::graph {

class Build {
public:
  Build(mlir::OpBuilder &builder, mlir::Location location) : builder(builder), location(location) {}
  Build(mlir::OpBuilder &builder, mlir::Operation *op) : Build(builder, op->getLoc()) {}
  /// Builds at the location of an op or a value.
  template <typename At>
    requires requires(At at) { at.getLoc(); }
  Build(mlir::OpBuilder &builder, At at) : Build(builder, at.getLoc()) {}

  /// An op whose result type follows from the arguments.
  template <typename Op, typename... Args> mlir::Value make(Args &&...args) {
    return builder.create<Op>(location, std::forward<Args>(args)...).getResult();
  }
  /// An op whose result has these sizes and this element type.
  template <typename Op, typename... Args>
  mlir::Value typed(llvm::ArrayRef<Dim> dims, mlir::Type element, Args &&...args) {
    mlir::Type type = tensorOf(builder.getContext(), dims, element);
    return builder.create<Op>(location, type, std::forward<Args>(args)...)->getResult(0);
  }

  // Per element; all operands have one type.
  template <typename Op> mlir::Value unary(mlir::Value x) { return make<Op>(x.getType(), x); }
  template <typename Op> mlir::Value binary(mlir::Value x, mlir::Value y) {
    return make<Op>(x.getType(), x, y);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) { return binary<AddOp>(x, y); }
  mlir::Value sub(mlir::Value x, mlir::Value y) { return binary<SubOp>(x, y); }
  mlir::Value mul(mlir::Value x, mlir::Value y) { return binary<MulOp>(x, y); }
  mlir::Value div(mlir::Value x, mlir::Value y) { return binary<DivOp>(x, y); }
  mlir::Value neg(mlir::Value x) { return unary<NegOp>(x); }
  // Ops with a number on one side.
  mlir::Value add(mlir::Value x, double number) { return add(x, like(x, number)); }
  mlir::Value mul(mlir::Value x, double number) { return mul(x, like(x, number)); }
  mlir::Value sub(double number, mlir::Value x) { return sub(like(x, number), x); }
  template <typename Op> mlir::Value compare(mlir::Value x, mlir::Value y) {
    return make<Op>(x, y);
  }
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y) {
    return make<SelectOp>(condition, x, y);
  }

  // Constants.
  mlir::Value scalar(mlir::Type element, double number);
  mlir::Value full(llvm::ArrayRef<Dim> dims, mlir::Type element, double number);
  /// A number in the shape and type of x.
  mlir::Value like(mlir::Value x, double number) { return full(dimsOf(x), elementOf(x), number); }
  mlir::Value zeros(mlir::Value x) { return like(x, 0); }
  /// The index along `axis`, i64.
  mlir::Value iota(llvm::ArrayRef<Dim> dims, int64_t axis);

  // Movement; each returns x itself if there is nothing to do.
  mlir::Value cast(mlir::Value x, mlir::Type element);
  mlir::Value reshape(mlir::Value x, llvm::ArrayRef<Dim> dims);
  mlir::Value broadcast(mlir::Value x, llvm::ArrayRef<Dim> dims);
  mlir::Value transpose(mlir::Value x, llvm::ArrayRef<int64_t> permutation);
  mlir::Value slice(mlir::Value x, llvm::ArrayRef<Dim> starts, llvm::ArrayRef<Dim> sizes,
                    llvm::ArrayRef<int64_t> steps);
  /// Zeros around x; negative amounts crop.
  mlir::Value pad(mlir::Value x, llvm::ArrayRef<Dim> low, llvm::ArrayRef<Dim> high);
  /// x without its sizes of 1.
  mlir::Value withoutOnes(mlir::Value x);
  /// A vector along `axis`, or one number, repeated to `dims`.
  mlir::Value along(mlir::Value vector, int64_t axis, llvm::ArrayRef<Dim> dims);

  mlir::Value sum(mlir::Value x, llvm::ArrayRef<int64_t> axes, bool keepDims = false);
  /// The sizes of batches are equal or 1.
  mlir::Value matmul(mlir::Value a, mlir::Value b);

  mlir::OpBuilder &builder;
  mlir::Location location;
};

/// tensor<element> of one number, rounded to nearest; integers are truncated.
mlir::ElementsAttr scalarAttr(mlir::Type element, double number);

/// result[i] = sizes[permutation[i]].
DimVector permuted(llvm::ArrayRef<Dim> sizes, llvm::ArrayRef<int64_t> permutation);
llvm::SmallVector<int64_t> inverse(llvm::ArrayRef<int64_t> permutation);
bool isIdentity(llvm::ArrayRef<int64_t> permutation);
/// Whether dimensions other than those of size 1 keep their order, so that a reshape permutes.
bool isReshape(llvm::ArrayRef<Dim> sizes, llvm::ArrayRef<int64_t> permutation);

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_EDIT_BUILD_H
