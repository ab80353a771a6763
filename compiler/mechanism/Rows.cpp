// Rows: reductions over trailing dimensions, a row at a time.

#include "compiler/mechanism/Checks.h"
#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::mechanism {

using graph::DimVector;

/// Folds of the same trailing dimensions, with elementwise ops of the rows and of their values.
static Fit fitsRows(const Mechanism &, Ops ops, std::string &why) {
  DimVector rows;
  size_t axes = 0;
  for (Operation *op : ops) {
    ArrayRef<int64_t> folded = foldedAxes(op);
    if (folded.empty()) {
      if (!isElementwise(op) && !isFree(op))
        return refuse(why, named(op) + " is neither a fold nor computed element by element");
      continue;
    }
    DimVector dims = graph::dimsOf(op->getOperand(0));
    if (rows.empty()) {
      rows = dims;
      axes = folded.size();
    }
    for (size_t i = dims.size() - folded.size(); i < dims.size(); ++i)
      if (!llvm::is_contained(folded, (int64_t)i))
        return refuse(why, named(op) + " does not fold trailing dimensions");
    if (dims != rows || folded.size() != axes)
      return refuse(why, named(op) + " folds other dimensions than the folds before it");
    if (!staysInRow(op->getResult(0), rows, axes))
      return refuse(why, "the result of " + named(op) + " is read outside of its row");
  }
  if (rows.empty())
    return Fit::Partial;
  Value result = ops.back()->getResult(0);
  bool isComplete = graph::dimsOf(result) == rows || isRowShape(graph::dimsOf(result), rows, axes);
  return isComplete ? Fit::Full : Fit::Partial;
}

static constexpr StringLiteral kKnobs[] = {"rows"};
const Mechanism kRows = {
    .name = "rows", .check = fitsRows, .knobs = kKnobs, .storesElements = true};

} // namespace heddle::mechanism
