// ServiceOps: verifiers of ops on lists and strings.

#include "compiler/graph/Graph.h"

using namespace mlir;

namespace heddle::graph {

static LogicalResult checkList(Operation *op, Value value, StringRef what) {
  if (listOf(value))
    return success();
  return op->emitOpError("LS1: ") << what << " must be a list, but is " << value.getType();
}

static LogicalResult checkString(Operation *op, Value value, StringRef what) {
  if (isString(elementOf(value)))
    return success();
  return op->emitOpError("ST1: ") << what << " must have strings, but is " << value.getType();
}

/// LS2: what goes in or comes out has the list's element type.
static LogicalResult checkElement(Operation *op, Value list, Value element) {
  if (listOf(list).getElement() == elementOf(element))
    return success();
  return op->emitOpError("LS2: a list of ")
         << listOf(list).getElement() << " cannot hold " << element.getType();
}

static LogicalResult checkPosition(Operation *op, Value position) {
  if (!position)
    return success();
  Type element = elementOf(position);
  if ((element.isSignlessInteger(32) || element.isSignlessInteger(64)) &&
      elementCount(dimsOf(position)).isConstant(1))
    return success();
  return op->emitOpError("LS3: a position must be one i32 or i64, but is ") << position.getType();
}

LogicalResult ListMakeOp::verify() {
  if (failed(checkList(*this, getResult(), "the result")))
    return failure();
  for (Value x : getXs())
    if (failed(checkElement(*this, getResult(), x)))
      return failure();
  if (listOf(getResult()).getKind() != "sequence" && getXs().size() > 1)
    return emitOpError("LS4: an optional holds at most one tensor");
  if (listOf(getResult()).getKind() == kAnyRank && getXs().empty())
    return emitOpError("LS4: a list of the kind any_rank holds one tensor");
  return success();
}

LogicalResult ListInsertOp::verify() {
  if (failed(checkList(*this, getList(), "the operand")) ||
      failed(checkList(*this, getResult(), "the result")) ||
      failed(checkPosition(*this, getPosition())))
    return failure();
  return checkElement(*this, getList(), getX());
}

LogicalResult ListEraseOp::verify() {
  if (failed(checkList(*this, getList(), "the operand")) ||
      failed(checkList(*this, getResult(), "the result")))
    return failure();
  return checkPosition(*this, getPosition());
}

LogicalResult ListAtOp::verify() {
  if (failed(checkList(*this, getList(), "the operand")) ||
      failed(checkPosition(*this, getPosition())))
    return failure();
  return checkElement(*this, getList(), getResult());
}

LogicalResult ListLengthOp::verify() { return checkList(*this, getList(), "the operand"); }

LogicalResult ListRankOp::verify() {
  if (ListType list = listOf(getList()); list && list.getKind() == kAnyRank)
    return success();
  return emitOpError("LS1: the operand must be a list of the kind any_rank, but is ")
         << getList().getType();
}

LogicalResult ListConcatOp::verify() {
  if (failed(checkList(*this, getList(), "the operand")))
    return failure();
  if (static_cast<int64_t>(getAxis()) < 0 || static_cast<int64_t>(getAxis()) >= rankOf(getResult()))
    return emitOpError("AX1: axis ") << getAxis() << " is outside of rank " << rankOf(getResult());
  return checkElement(*this, getList(), getResult());
}

LogicalResult ListSplitOp::verify() {
  if (failed(checkList(*this, getResult(), "the result")))
    return failure();
  if (static_cast<int64_t>(getAxis()) < 0 || static_cast<int64_t>(getAxis()) >= rankOf(getX()))
    return emitOpError("AX1: axis ") << getAxis() << " is outside of rank " << rankOf(getX());
  if (getSizes() && (rankOf(getSizes()) > 1 || !elementOf(getSizes()).isSignlessInteger()))
    return emitOpError("LS5: sizes must be a scalar or a vector of integers, but is ")
           << getSizes().getType();
  return checkElement(*this, getResult(), getX());
}

LogicalResult ListCastOp::verify() {
  if (failed(checkList(*this, getList(), "the operand")) ||
      failed(checkList(*this, getResult(), "the result")))
    return failure();
  if (listOf(getList()).getElement() != listOf(getResult()).getElement())
    return emitOpError("LS6: element types of the lists differ");
  return success();
}

LogicalResult StringConcatOp::verify() {
  if (getX().getType() != getY().getType() || getX().getType() != getResult().getType())
    return emitOpError("E1: operands and result must have one type");
  return checkString(*this, getX(), "x");
}

LogicalResult StringSplitOp::verify() {
  if (rankOf(getPieces()) != rankOf(getX()) + 1)
    return emitOpError("SP1: the pieces must have a dimension more than x");
  if (failed(checkString(*this, getX(), "x")))
    return failure();
  Type element = elementOf(getDelimiter());
  DimVector table = dimsOf(getDelimiter());
  if (isString(element) ? !table.empty()
                        : table.size() != 2 || !table[1].isConstant(259) || !element.isInteger(32))
    return emitOpError("SP2: the delimiter must be a string or i32[states, 259], but is ")
           << getDelimiter().getType();
  return success();
}

LogicalResult StringNormalizeOp::verify() {
  if (failed(checkString(*this, getX(), "x")) ||
      failed(checkString(*this, getStopwords(), "the stop words")))
    return failure();
  if (rankOf(getX()) < 1 || rankOf(getX()) > 2 || rankOf(getResult()) != rankOf(getX()))
    return emitOpError("NO1: x must have rank 1 or 2, and the result the same");
  if (!llvm::is_contained({"none", "lower", "upper"}, getLetterCase()))
    return emitOpError("NO2: letter_case is '") << getLetterCase() << "', not none, lower or upper";
  return success();
}

LogicalResult RunSeedOp::verify() {
  auto type = cast<RankedTensorType>(getResult().getType());
  if (type.getRank() != 0 || !type.getElementType().isUnsignedInteger(64))
    return emitOpError("SD1: the result must be a scalar of ui64, but is ") << type;
  return success();
}

LogicalResult ImageDecodeOp::verify() {
  if (rankOf(getX()) != 1 || rankOf(getResult()) != 3 || !elementOf(getX()).isUnsignedInteger(8) ||
      !elementOf(getResult()).isUnsignedInteger(8))
    return emitOpError("IM1: x must be ui8[n] and the result ui8[height, width, channels]");
  if (!llvm::is_contained({"rgb", "bgr", "gray"}, getPixelFormat()))
    return emitOpError("IM2: pixel_format is '") << getPixelFormat() << "', not rgb, bgr or gray";
  if (!dimsOf(getResult())[2].isConstant(getPixelFormat() == "gray" ? 1 : 3))
    return emitOpError("IM3: a result of ")
           << getPixelFormat() << " pixels cannot be " << getResult().getType();
  return success();
}

LogicalResult StringMatchOp::verify() {
  DimVector dims = dimsOf(getTransitions());
  if (dims.size() != 2 || !dims[1].isConstant(257) || !elementOf(getTransitions()).isInteger(32))
    return emitOpError("MA1: transitions must be i32[states, 257], but are ")
           << getTransitions().getType();
  return checkString(*this, getX(), "x");
}

LogicalResult StringCastOp::verify() {
  if (dimsOf(getX()) != dimsOf(getResult()))
    return emitOpError("E1: operand and result must have one shape");
  if (isString(elementOf(getX())) == isString(elementOf(getResult())))
    return emitOpError("CA1: either the operand or the result must have strings");
  return success();
}

} // namespace heddle::graph
