// ElementwiseOps: shape rule and verifier of ops that work element by element.

#include "compiler/graph/Graph.h"

using namespace mlir;

namespace heddle::graph {

LogicalResult verifyElementwise(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  for (Value operand : op->getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (type.getShape() != result.getShape() || type.getEncoding() != result.getEncoding())
      return op->emitOpError("E1: operands and result must have one shape, but found ")
             << type << " and " << result;
  }
  return success();
}

static LogicalResult inferTruth(MLIRContext *context, ValueRange operands,
                                SmallVectorImpl<Type> &results) {
  results.push_back(tensorOf(context, dimsOf(operands.front()), IntegerType::get(context, 1)));
  return success();
}

#define INFER_TRUTH(OP)                                                                            \
  LogicalResult OP::inferReturnTypes(MLIRContext *context, std::optional<Location>,                \
                                     ValueRange operands, DictionaryAttr, OpaqueProperties,        \
                                     RegionRange, SmallVectorImpl<Type> &results) {                \
    return inferTruth(context, operands, results);                                                 \
  }
INFER_TRUTH(EqualOp)
INFER_TRUTH(NotEqualOp)
INFER_TRUTH(LessOp)
INFER_TRUTH(LessEqualOp)
INFER_TRUTH(GreaterOp)
INFER_TRUTH(GreaterEqualOp)
INFER_TRUTH(IsNanOp)
INFER_TRUTH(IsInfOp)
#undef INFER_TRUTH

LogicalResult SelectOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         ValueRange operands, DictionaryAttr, OpaqueProperties,
                                         RegionRange, SmallVectorImpl<Type> &results) {
  results.push_back(operands[1].getType());
  return success();
}

LogicalResult CastOp::verify() {
  if (getFactor() && !(elementOf(getX()).isF32() && elementOf(getResult()).isBF16()))
    return emitOpError("CA1: a factor must be of f32 that become bf16, but is of ")
           << elementOf(getX()) << " that become " << elementOf(getResult());
  return success();
}

LogicalResult BitcastOp::verify() {
  if (bytesOf(elementOf(getX())) != bytesOf(elementOf(getResult())))
    return emitOpError("BC1: element types must have one width");
  return success();
}

LogicalResult LookupOp::verify() {
  ShapedType table = getTable().getShapedType();
  Type element = elementOf(getResult());
  if (!elementOf(getX()).isInteger(8) || !element.isInteger(8))
    return emitOpError("LU1: x and the result must be integers of 8 bits");
  if (table.getShape() != ArrayRef<int64_t>{256} || table.getElementType() != element)
    return emitOpError("LU2: the table must have 256 elements of the result's type, but is ")
           << table;
  return success();
}

bool isCostly(Operation *op) { return op->hasTrait<Costly>(); }

} // namespace heddle::graph
