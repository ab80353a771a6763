// Rows: reductions over trailing dimensions, a row at a time.

#include "compiler/mechanism/Checks.h"
#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::mechanism {

/// Reductions of the same trailing dimensions, with elementwise ops of the rows and of their
/// values.
static Fit fitsRows(const Mechanism &, Ops ops, std::string &why) {
  for (Operation *op : ops)
    if (graph::reducedAxes(op).empty() && !graph::isElementwise(op) && !graph::isFree(op))
      return refuse(why, named(op) + " is neither a reduction nor computed element by element");
  if (llvm::all_of(ops, [](Operation *op) { return graph::reducedAxes(op).empty(); }))
    return Fit::Partial;
  auto rows = readRows(ops, {}, why);
  if (!rows)
    return Fit::No;
  for (Operation *op : rows->reductions)
    if (!staysInRow(op->getResult(0), rows->full, rows->full.size() - rows->kept))
      return refuse(why, "the result of " + named(op) + " is read outside of its row");
  return readRows(ops, resultsOf(ops), why) ? Fit::Full : Fit::Partial;
}

static constexpr StringLiteral kKnobs[] = {"rows"}, kThreadKnobs[] = {"threads"};
const Mechanism kRows = {.name = "rows",
                         .check = fitsRows,
                         .knobs = kKnobs,
                         .sharing = kKnobs,
                         .storesElements = true,
                         .takesBlocks = true,
                         .takesThreads = true,
                         .threadKnobs = kThreadKnobs,
                         .takesRows = true,
                         .takesParts = true,
                         .isSplittable = false};

} // namespace heddle::mechanism
