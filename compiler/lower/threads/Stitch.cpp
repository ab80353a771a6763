// Stitch: a product and the reductions over its rows as two phases: no block has all columns of a
// row. What lies between them is small, and stays in the cache of all processors.

#include "compiler/mechanism/Stitch.h"
#include "compiler/lower/Schedule.h"
#include "compiler/lower/rows/Rows.h"
#include "compiler/lower/threads/Product.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult emitBlockStitch(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  Value between = mechanism::betweenOf(mechanism::opsOf(*group));
  auto product = between ? ThreadProduct::make(kernel, group, schedule, between) : nullptr;
  RowKernel rows(kernel, group, schedule.knob("threads", 0));
  if (!product || failed(rows.prepare(between)))
    return failure();
  if (kernel.isTrial)
    return success();
  Type element = graph::storageOf(between);
  bool isResult = llvm::is_contained(outputsOf(group), between);
  int64_t copy = isResult ? -1
                          : kernel.addTemporary(graph::elementCount(graph::dimsOf(between)) *
                                                Dim(graph::bytesOf(element)));
  auto memory = [&] { return isResult ? kernel.pointer(between) : kernel.temporary(copy); };
  if (!isResult)
    product->store = [&](Elements &e, Value, Value value, ArrayRef<Index> place) {
      e.code().store(element, value, memory(), e.linear(e.sizesOf(between), place).base);
    };
  product->emit();
  rows.emitTogether([&](Elements &e) {
    e.bind(between, [&, between](ArrayRef<Index> place) {
      return e.read(element, memory(), e.sizesOf(between), place);
    });
  });
  return success();
}

} // namespace heddle::lower
