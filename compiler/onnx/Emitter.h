// Emitter: makes ops of the graph dialect at one location, with ONNX's broadcasting spelt out.
//
// Every op is verified when it is made, so that a wrong model is refused at the node that is wrong.
// A refusal is a C++ exception: thrown by any helper, caught where a node's import began
// (Reader.cpp).
#ifndef HEDDLE_ONNX_EMITTER_H
#define HEDDLE_ONNX_EMITTER_H

#include "compiler/graph/Graph.h"
#include "compiler/support/Error.h"

namespace heddle::onnx {

using graph::Dim;
using graph::elementOf;
using graph::rankOf;
using graph::shapeValue;
using mlir::Type;
using mlir::Value;
using Ints = llvm::SmallVector<int64_t>;

struct Refusal {
  std::string message, note;
  ErrorCode code = ErrorCode::Refused;
};
[[noreturn]] void refuse(const llvm::Twine &message, const llvm::Twine &note = "");

/// HEDDLE_MAX_RANK of the public API.
constexpr int64_t kMostRank = 16;

/// Sizes of a tensor. A model may give any operand any rank: to ask for a dimension that is not
/// there refuses the node.
class DimVector : public graph::DimVector {
public:
  using llvm::SmallVector<Dim, 6>::SmallVector;
  DimVector() = default;
  DimVector(const graph::DimVector &dims) : graph::DimVector(dims) {}
  DimVector(graph::DimVector &&dims) : graph::DimVector(std::move(dims)) {}

  Dim &operator[](size_t i) { return (require(i), graph::DimVector::operator[](i)); }
  const Dim &operator[](size_t i) const { return (require(i), graph::DimVector::operator[](i)); }
  Dim &front() { return (*this)[0]; }
  const Dim &front() const { return (*this)[0]; }
  Dim &back() { return (*this)[size() - 1]; }
  const Dim &back() const { return (*this)[size() - 1]; }

private:
  void require(size_t i) const {
    if (i >= size())
      refuseDimension(i, size());
  }
  [[noreturn]] static void refuseDimension(size_t i, size_t rank);
};
inline DimVector dimsOf(Value x) { return graph::dimsOf(x); }
inline DimVector dimsOf(Type type) { return graph::dimsOf(type); }
inline DimVector dimsOf(graph::DimsAttr attr) { return graph::dimsOf(attr); }

/// Makes single ops.
class OpEmitter {
public:
  OpEmitter(mlir::OpBuilder &builder, mlir::Location location, std::string &diagnostics)
      : builder(builder), location(location), diagnostics(diagnostics) {}

  mlir::MLIRContext *context() const { return builder.getContext(); }
  Type f32() { return builder.getF32Type(); }
  Type i64() { return builder.getI64Type(); }
  Type i32() { return builder.getI32Type(); }
  Type i1() { return builder.getI1Type(); }

  // Attributes of an op, to be listed in a call of infer or typed.
  mlir::NamedAttribute integer(llvm::StringRef name, int64_t value);
  mlir::NamedAttribute flag(llvm::StringRef name, bool value);
  mlir::NamedAttribute text(llvm::StringRef name, llvm::StringRef value);
  mlir::NamedAttribute list(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
  mlir::NamedAttribute dims(llvm::StringRef name, llvm::ArrayRef<Dim> values);
  mlir::NamedAttribute named(llvm::StringRef name, mlir::Attribute value);

  using Attributes = llvm::ArrayRef<mlir::NamedAttribute>;
  /// Makes an op and verifies it.
  mlir::Operation *emit(mlir::OperationState &state);
  /// Verifies an op whose regions were filled after it was made.
  void check(mlir::Operation *op);
  /// Begins region `number` of an op: its arguments. The builder is in it then.
  llvm::SmallVector<Value> beginRegion(mlir::Operation *op, unsigned number,
                                       llvm::ArrayRef<Type> arguments);
  void yield(llvm::ArrayRef<Value> values);
  template <typename Op> Value typed(Type type, mlir::ValueRange operands, Attributes attrs = {}) {
    mlir::OperationState state(location, Op::getOperationName(), operands, type, attrs);
    return emit(state)->getResult(0);
  }
  /// Makes an op with the result type of its shape rule.
  template <typename Op> Value infer(mlir::ValueRange operands, Attributes attrs = {}) {
    mlir::OperationState state(location, Op::getOperationName(), operands, {}, attrs);
    auto dictionary = state.attributes.getDictionary(context());
    using Properties = typename Op::template InferredProperties<Op>;
    Properties properties{};
    if constexpr (!std::is_same_v<Properties, mlir::EmptyProperties>)
      if (failed(Op::setPropertiesFromAttr(properties, dictionary,
                                           [&] { return mlir::emitError(location); })))
        refuseDiagnostics();
    llvm::SmallVector<Type> types;
    if (failed(Op::inferReturnTypes(context(), location, operands, dictionary,
                                    mlir::OpaqueProperties(&properties), {}, types)))
      refuseDiagnostics();
    state.addTypes(types);
    return emit(state)->getResult(0);
  }
  mlir::RankedTensorType tensor(llvm::ArrayRef<Dim> dims, Type element) {
    return graph::tensorOf(context(), dims, element);
  }
  Dim freshSymbol(llvm::StringRef stem);

  mlir::OpBuilder &builder;
  mlir::Location location;

private:
  [[noreturn]] void refuseDiagnostics();

  std::string &diagnostics; // what MLIR said since it was last emptied
  int64_t made = 0;         // ops
};

/// Constants, and tensors in another shape (EmitterShape.cpp).
class TensorEmitter : public OpEmitter {
public:
  using OpEmitter::OpEmitter;

  Value constant(mlir::ElementsAttr value);
  Value scalar(Type element, double value);
  Value integerScalar(Type element, int64_t value);
  Value lowest(Type element);                     // the number that no other one is below
  Value integers(llvm::ArrayRef<int64_t> values); // 1-D i64
  Value full(llvm::ArrayRef<Dim> dims, Type element, double value);
  Value sizes(llvm::ArrayRef<Dim> values); // 1-D i64
  Value size(const Dim &value);            // 0-D i64
  Value runSeed();                         // ui64
  Value iota(llvm::ArrayRef<Dim> dims, int64_t axis, Type element);

  DimVector broadcastDims(llvm::ArrayRef<Dim> a, llvm::ArrayRef<Dim> b);
  void broadcastTogether(llvm::ArrayRef<Value *> values);
  Value broadcast(Value x, llvm::ArrayRef<Dim> dims);
  Value reshape(Value x, llvm::ArrayRef<Dim> dims);
  Value transpose(Value x, llvm::ArrayRef<int64_t> permutation);
  Value unsqueeze(Value x, llvm::ArrayRef<int64_t> axes); // axes of the result, normalised
  Value squeeze(Value x, llvm::ArrayRef<int64_t> axes);
  Value concat(mlir::ValueRange xs, int64_t axis);
  Value slice(Value x, llvm::ArrayRef<Dim> starts, llvm::ArrayRef<Dim> sizes,
              llvm::ArrayRef<int64_t> steps);
  /// `size` elements from `start` along one axis.
  Value sliceAlong(Value x, int64_t axis, const Dim &start, const Dim &size);
  Value gather(Value x, Value indices, int64_t axis);
  Value pad(Value x, Value value, llvm::ArrayRef<Dim> low, llvm::ArrayRef<Dim> high,
            llvm::StringRef mode = "constant");
  /// A vector of `dims[axis]` elements, shaped to broadcast along that axis of a tensor of `rank`.
  Value alongAxis(Value vector, int64_t axis, int64_t rank);
};

/// Ops on tensors.
class Emitter : public TensorEmitter {
public:
  using TensorEmitter::TensorEmitter;

  // Element-wise ops; operands are broadcast against one another.
  template <typename Op> Value unary(Value x) { return typed<Op>(x.getType(), x); }
  template <typename Op> Value binary(Value x, Value y, Attributes attrs = {}) {
    requireOneElement(x, y);
    broadcastTogether({&x, &y});
    return typed<Op>(x.getType(), {x, y}, attrs);
  }
  template <typename Op> Value compare(Value x, Value y) {
    requireOneElement(x, y);
    broadcastTogether({&x, &y});
    return infer<Op>({x, y});
  }
  Value select(Value condition, Value x, Value y);
  /// `roundMode` is that of float8e8m0: up, down or nearest.
  Value cast(Value x, Type element, bool saturate = true, llvm::StringRef roundMode = "up");
  /// A list as another kind of list, with another promise of its tensors' rank.
  Value asList(Value list, llvm::StringRef kind, int64_t rank);
  // Ops with a number of the element type of x.
  Value add(Value x, double y) { return binary<graph::AddOp>(x, scalar(elementOf(x), y)); }
  Value mul(Value x, double y) { return binary<graph::MulOp>(x, scalar(elementOf(x), y)); }
  Value div(Value x, double y) { return binary<graph::DivOp>(x, scalar(elementOf(x), y)); }
  Value max(Value x, double y) { return binary<graph::MaxOp>(x, scalar(elementOf(x), y)); }
  Value min(Value x, double y) { return binary<graph::MinOp>(x, scalar(elementOf(x), y)); }
  Value add(Value x, Value y) { return binary<graph::AddOp>(x, y); }
  Value sub(Value x, Value y) { return binary<graph::SubOp>(x, y); }
  Value mul(Value x, Value y) { return binary<graph::MulOp>(x, y); }
  Value div(Value x, Value y) { return binary<graph::DivOp>(x, y); }

  // Sizes known only at run time. `x` is a static tensor of integers with at most one dimension.
  /// Its elements as sizes: those that shapes tell, else symbols that the run binds. The run
  /// refuses negative ones.
  DimVector bindSizes(Value x, llvm::StringRef what);
  /// As bindSizes, but elements may be negative.
  DimVector bindOffsets(Value x, llvm::StringRef what);
  /// The run fails with `message`, in which %lld is the element, or the two that `told` is, where
  /// one of x is negative.
  void requireNotNegative(Value x, const llvm::Twine &message, Value told = {});

  // Products and reductions.
  Value matmul(Value a, Value b,
               Type result = {}); // NumPy's rules for ranks; default type that of a
  template <typename Op> Value reduce(Value x, llvm::ArrayRef<int64_t> axes, bool keepDims = true) {
    return infer<Op>(x, {list("axes", axes), flag("keep_dims", keepDims)});
  }
  Value mean(Value x, llvm::ArrayRef<int64_t> axes, bool keepDims = true);
  Value softmax(Value x, llvm::ArrayRef<int64_t> axes);

private:
  // Types that arithmetic does not know (EmitterCast.cpp).
  Value floatOf(Value bits);
  Value float4Of(Value x);
  Value float8ScaleOf(Value x, bool saturate, llvm::StringRef roundMode);
  void requireOneElement(Value x, Value y);
};

std::string nameOf(Type element);
std::string textOf(llvm::ArrayRef<Dim> dims); // "[batch, 3, 2*h]"

/// f32 for floats that are narrower, else `element`: what sums and powers are computed in.
Type wideType(Emitter &e, Type element);
/// Casts a value computed in wideType(element) to `element`.
Value narrowed(Emitter &e, Value x, Type element);

} // namespace heddle::onnx

#endif // HEDDLE_ONNX_EMITTER_H
