// Graph: the graph dialect's C++ face, and the questions that every stage asks of its types.
#ifndef HEDDLE_GRAPH_GRAPH_H
#define HEDDLE_GRAPH_GRAPH_H

#include "compiler/Prelude.h"
#include "compiler/graph/Dim.h"

// Properties of ops, each named beside the op in its .td file: no stage lists ops.
namespace heddle::graph {

/// E1: operands and result have one shape (element types may differ).
template <typename ConcreteOp>
class Elementwise : public mlir::OpTrait::TraitBase<ConcreteOp, Elementwise> {
public:
  static mlir::LogicalResult verifyTrait(mlir::Operation *op);
};
mlir::LogicalResult verifyElementwise(mlir::Operation *op);
template <typename ConcreteOp>
mlir::LogicalResult Elementwise<ConcreteOp>::verifyTrait(mlir::Operation *op) {
  return verifyElementwise(op);
}

#define HEDDLE_TRAIT(NAME)                                                                         \
  template <typename ConcreteOp> class NAME : public mlir::OpTrait::TraitBase<ConcreteOp, NAME> {};

/// Says of each element whether something holds.
HEDDLE_TRAIT(TruthValued)
/// Says it of how two numbers compare.
HEDDLE_TRAIT(Comparison)
/// Takes many instructions an element.
HEDDLE_TRAIT(Costly)
/// Its elements are never below 0.
HEDDLE_TRAIT(NeverNegative)
/// Its elements are not below 0 where those of all operands are not.
HEDDLE_TRAIT(KeepsNonNegative)

/// Combines the elements along `axes` into one by an operation whose order is free.
HEDDLE_TRAIT(Reduction)
/// The index, along `axis`, of the element that comes first in an order.
HEDDLE_TRAIT(ArgReduction)
/// Sums of products of two operands.
HEDDLE_TRAIT(SumsProducts)
/// A product each of whose operands' elements serves many results.
HEDDLE_TRAIT(Contraction)
/// Has images among its operands; `channels_last` says their layout.
HEDDLE_TRAIT(OnImages)
/// Says of dimensions what it says by their numbers, so that they may as well be in another order.
HEDDLE_TRAIT(Reorderable)

/// Only says where an element of another tensor is, or what lies beside it.
HEDDLE_TRAIT(Movement)
/// A movement of one tensor: each element of the result is an element of it.
HEDDLE_TRAIT(Rearrangement)
/// Reads no tensor: its elements are constants or follow from sizes.
HEDDLE_TRAIT(Leaf)
/// Reads elements of its first operand at places that the second one names.
HEDDLE_TRAIT(Gathers)
/// Replaces elements of its first operand at places that the second one names.
HEDDLE_TRAIT(Scatters)

/// Its results have sizes that it binds itself while running.
HEDDLE_TRAIT(BindsSizes)
/// Has a kernel of its own; that of a scatter also computes what the scatter reads.
HEDDLE_TRAIT(Standalone)
/// No kernel computes it: the program around the kernels carries it out.
HEDDLE_TRAIT(OutsideKernels)
/// No kernel computes it: the program around the kernels calls a service of the runtime.
HEDDLE_TRAIT(Hosted)
/// A hosted op on tensors of numbers alone: its service is one of runtime/routine.
HEDDLE_TRAIT(Routine)
/// A hosted op on strings.
HEDDLE_TRAIT(OnStrings)

#undef HEDDLE_TRAIT

} // namespace heddle::graph

namespace heddle::graph {
/// TN1: whether each dynamic size of a ranked tensor has a name.
bool hasNamedSizes(mlir::Type tensor);
} // namespace heddle::graph

#include "compiler/graph/Dialect.h.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/graph/Types.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/graph/Attrs.h.inc"
#define GET_OP_CLASSES
#include "compiler/graph/Ops.h.inc"

namespace heddle::graph {

using mlir::RankedTensorType;

/// Sizes of a tensor type: constants, or the expressions that its encoding names; no value of what
/// no op takes (TN1).
DimVector dimsOf(mlir::Type tensor);
inline DimVector dimsOf(mlir::Value value) { return dimsOf(value.getType()); }
/// The tensor type of these sizes; it has an encoding only where a size is not constant.
RankedTensorType tensorOf(mlir::MLIRContext *context, llvm::ArrayRef<Dim> dims, mlir::Type element);
inline mlir::Type elementOf(mlir::Value value) {
  return mlir::cast<RankedTensorType>(value.getType()).getElementType();
}
inline int64_t rankOf(mlir::Value value) {
  return mlir::cast<RankedTensorType>(value.getType()).getRank();
}
/// The product of the sizes; that of a ragged tensor is summed over its rows (ragged/Ragged.h).
Dim elementCount(llvm::ArrayRef<Dim> dims);

/// Element types that are no numbers to compute with (see Graph.td).
inline bool isFloat4(mlir::Type element) { return mlir::isa<Float4Type>(element); }
inline bool isFloat8Scale(mlir::Type element) { return mlir::isa<Scale8Type>(element); }
inline bool isString(mlir::Type element) { return mlir::isa<StringType>(element); }
inline bool isBits(mlir::Type element) {
  return mlir::isa<Float4Type, Scale8Type, StringType>(element);
}
/// The integer that such an element is kept as; other element types themselves.
mlir::Type storageOf(mlir::Type element);
inline mlir::Type storageOf(mlir::Value value) { return storageOf(elementOf(value)); }
inline ListType listOf(mlir::Value value) { return mlir::dyn_cast<ListType>(elementOf(value)); }
/// The kind of a list of one tensor: it stands for a tensor whose rank is known only at run time.
inline constexpr llvm::StringLiteral kAnyRank = "any_rank";
/// The scalar tensor that holds a list.
RankedTensorType listTensor(mlir::MLIRContext *context, llvm::StringRef kind, mlir::Type element,
                            int64_t rank);
/// The module's table of strings.
constexpr llvm::StringLiteral kStrings = "graph.strings";

DimsAttr dimsAttr(mlir::MLIRContext *context, llvm::ArrayRef<Dim> dims);
DimVector dimsOf(DimsAttr attr);

/// A symbol that no type below `anchor`'s module uses yet: "$<stem>.<number>".
Dim freshSymbol(mlir::Operation *anchor, llvm::StringRef stem);

/// Attribute of an op: its result is stored where it is computed, and not computed again by its
/// readers.
constexpr llvm::StringLiteral kIsStored = "graph.is_stored";
/// Attribute of a product of f32: the type of 16 bits that both of its factors have in the model. A
/// device may round them to it.
constexpr llvm::StringLiteral kFactors = "graph.factors";

// One meaning for each question that stages ask of an op.
inline bool isElementwise(mlir::Operation *op) { return op->hasTrait<Elementwise>(); }
inline bool isContraction(mlir::Operation *op) { return op->hasTrait<Contraction>(); }
inline bool isMovement(mlir::Operation *op) { return op->hasTrait<Movement>(); }
inline bool isRearrangement(mlir::Operation *op) { return op->hasTrait<Rearrangement>(); }
inline bool isLeaf(mlir::Operation *op) { return op->hasTrait<Leaf>(); }
inline bool isGather(mlir::Operation *op) { return op->hasTrait<Gathers>(); }
inline bool isScatter(mlir::Operation *op) { return op->hasTrait<Scatters>(); }
inline bool bindsSizes(mlir::Operation *op) { return op->hasTrait<BindsSizes>(); }
/// Whether the program around the kernels carries it out.
inline bool isOutsideKernels(mlir::Operation *op) {
  return op->hasTrait<OutsideKernels>() || op->hasTrait<Hosted>();
}
/// Axes of a Reduction; none of other ops.
llvm::ArrayRef<int64_t> reducedAxes(mlir::Operation *op);
/// Axes of a Reduction, and the one of an ArgReduction.
llvm::SmallVector<int64_t> combinedAxes(mlir::Operation *op);
/// A reshape that keeps indices.
bool isView(mlir::Operation *op);
/// The value whose memory this one shows in another shape, outside of kernels.
mlir::Value unshaped(mlir::Value value);
/// Costs no pass over memory: a repetition, a leaf, or a view.
bool isFree(mlir::Operation *op);
/// Takes many instructions an element.
bool isCostly(mlir::Operation *op);

/// Elements of a small integer tensor, row-major, as size expressions, when they follow from the
/// shapes of tensors and constants alone. Walks back at most through shape arithmetic.
std::optional<DimVector> shapeValue(mlir::Value value);

/// Bytes of a constant, row-major, element by element (i1 and 4-bit types take one byte each).
/// Points into the attribute when it is a dense resource; else `storage` is filled, with the
/// numbers that a stored matrix stands for.
llvm::ArrayRef<char> constantBytes(mlir::ElementsAttr value, std::vector<char> &storage);
/// Elements of a constant of integers (or i1) as int64, or its codes.
std::optional<llvm::SmallVector<int64_t>> constantIntegers(mlir::Value value);
/// A constant attribute from raw bytes in the form of `constantBytes`; small ones (<= 64 elements)
/// are printed, larger ones are resources that own a copy.
mlir::ElementsAttr constantAttr(RankedTensorType type, llvm::ArrayRef<char> bytes);
/// A constant of `type` from one of the integers that its elements are kept as, which is the
/// constant itself where they are numbers.
mlir::ElementsAttr constantAttr(RankedTensorType type, mlir::ElementsAttr codes);
/// The integers that a constant's elements are kept as: codes of #graph.bits, or the constant.
mlir::ElementsAttr codesOf(mlir::ElementsAttr value);
/// As constantAttr, but the bytes stay where they are; they must outlive the context.
mlir::ElementsAttr mappedConstantAttr(RankedTensorType type, llvm::ArrayRef<char> bytes,
                                      llvm::StringRef name);
/// Bytes that one element takes in memory: 1 for i1, 4-bit and 2-bit types, 8 for a list's handle.
int64_t bytesOf(mlir::Type element);

/// onnx.TensorProto.DataType of an element type.
int32_t onnxTypeOf(mlir::Type element);

/// The origin of the op: the name of the ONNX node, or the op's own location.
std::string sourceName(mlir::Location location);

/// Attribute of a product whose left rows the model allows to be rounded to 8 bits.
inline constexpr llvm::StringLiteral kAllowsIntegers = "graph.allows_integers";

} // namespace heddle::graph

#endif // HEDDLE_GRAPH_GRAPH_H
