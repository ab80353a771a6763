// ControlOps: verifiers of ops with regions, and what a group says of itself.

#include "compiler/graph/Graph.h"

using namespace mlir;

namespace heddle::graph {

static LogicalResult checkYield(Operation *op, Region &region, unsigned expected, StringRef label) {
  auto yield = dyn_cast<YieldOp>(region.front().back());
  if (!yield)
    return op->emitOpError() << label << ": a region must end with graph.yield";
  if (yield.getValues().size() != expected)
    return op->emitOpError() << label << ": a region yields " << yield.getValues().size()
                             << " values, but " << expected << " are needed";
  return success();
}

LogicalResult IfOp::verify() {
  auto elements = elementCount(dimsOf(getCondition())).constant();
  if (!elementOf(getCondition()).isInteger(1) || elements.value_or(1) != 1)
    return emitOpError("I1: the condition must be one element of i1, but is ")
           << getCondition().getType();
  for (Region *region : {&getThenRegion(), &getElseRegion()}) {
    if (failed(checkYield(*this, *region, getNumResults(), "I2")))
      return failure();
    for (auto [yielded, result] :
         llvm::zip(cast<YieldOp>(region->front().back()).getValues(), getResults()))
      if (elementOf(yielded) != elementOf(result) || rankOf(yielded) != rankOf(result))
        return emitOpError("I2: a branch yields ")
               << yielded.getType() << " for a result of " << result.getType();
  }
  return success();
}

LogicalResult LoopOp::verify() {
  unsigned carried = getInits().size();
  if (const auto count = static_cast<int64_t>(getScanCount()); count < 0)
    return emitOpError("L1: scan_count must not be negative, but is ") << count;
  if (getBody().getNumArguments() != carried + 2)
    return emitOpError("L1: the region needs ") << carried + 2 << " arguments";
  if (getNumResults() != carried + getScanCount())
    return emitOpError("L1: must have ") << carried + getScanCount() << " results";
  return checkYield(*this, getBody(), 1 + carried + getScanCount(), "L1");
}

LogicalResult ScanOp::verify() {
  if (getStateCount() > getInputs().size() || getStateCount() > getNumResults())
    return emitOpError("SC1: state_count is ")
           << static_cast<int64_t>(getStateCount())
           << ", but must be from 0 to the number of operands and of results";
  if (getBody().getNumArguments() != getInputs().size())
    return emitOpError("SC1: the region needs ") << getInputs().size() << " arguments";
  return checkYield(*this, getBody(), getNumResults(), "SC1");
}

void GroupOp::build(OpBuilder &builder, OperationState &state, TypeRange results, StringRef name,
                    StringRef mechanism) {
  build(builder, state, results, builder.getStringAttr(name), builder.getStringAttr(mechanism), {},
        {}, {}, {}, {}, {});
}

/// Whether a kernel can compute the op; what cannot is the business of the program around kernels.
static bool isOfKernel(Operation *op) {
  return isa_and_nonnull<GraphDialect>(op->getDialect()) && !isOutsideKernels(op) &&
         !isa<YieldOp>(op);
}

LogicalResult GroupOp::verify() {
  if (getNumResults() == 0)
    return emitOpError("GR1: a group has at least one result; remove the group of ops that nobody "
                       "reads");
  if (failed(checkYield(*this, getBody(), getNumResults(), "GR1")))
    return failure();
  if (auto outer = (*this)->getParentOfType<GroupOp>())
    return emitOpError("GR2: group '")
           << getName() << "' is in group '" << outer.getName() << "'; no group is in a group";
  Block &body = getBody().front();
  if (llvm::hasSingleElement(body))
    return emitOpError("GR3: the body has no op beside its yield, so that there is nothing to "
                       "compute; read the value itself");
  for (auto [i, yielded] : llvm::enumerate(body.back().getOperands())) {
    if (yielded.getType() != getResult(i).getType())
      return emitOpError("GR1: result ")
             << i << " is of " << getResult(i).getType() << ", but the body yields "
             << yielded.getType() << "; both must be of one type";
    if (yielded.getParentBlock() != &body)
      return emitOpError("GR3: value ") << i
                                        << " that the body yields is made outside of it; read "
                                           "the value itself, not a result of the group";
  }
  for (Operation &op : body.without_terminator())
    if (!isOfKernel(&op) && !isa<GroupOp>(op))
      return emitOpError("GR5: '") << op.getName()
                                   << "' cannot be in a kernel, and so in no group; "
                                      "move it out of the group";
  if (deviceNumber() < 0)
    return emitOpError("GR6: 'device' is ")
           << deviceNumber() << ", but devices are numbered from 0 on";
  if (auto precision = getPrecision(); precision && !isShort())
    return emitOpError("GR7: 'precision' is '") << *precision << "', but must be '" << kShort
                                                << "', or left out for that of the operands";
  DictionaryAttr schedule = getScheduleAttr();
  if (schedule && !schedule.getAs<StringAttr>(getMechanismAttrName()))
    return emitOpError("GR4: 'schedule' must be a dictionary with the name of a mechanism, such as "
                       "{mechanism = \"pointwise\"}, but is ")
           << schedule;
  return success();
}

StringRef GroupOp::chosenMechanism() {
  DictionaryAttr schedule = getScheduleAttr();
  auto chosen = schedule ? schedule.getAs<StringAttr>(getMechanismAttrName()) : StringAttr();
  return chosen ? chosen.getValue() : "";
}

void GroupOp::clearChoice() {
  removeCardAttr();
  removeCardHashAttr();
  removePrecisionAttr();
  removeScheduleAttr();
}

} // namespace heddle::graph
