// Product: see Product.h.

#include "compiler/lower/threads/Product.h"

#include "compiler/lower/elements/Definitions.h"
#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::lower {

ThreadProduct::ThreadProduct(const Parts &parts)
    : kernel(parts.kernel), group(parts.group), results(parts.results), product(parts.product),
      operands(kernel, product), sum(accumulatorType(graph::storageOf(product.root->getResult(0)))),
      factors(parts.factors), wishedRows(parts.schedule.knob("m", 0)),
      wishedColumns(parts.schedule.knob("n", 0)) {}

std::unique_ptr<ThreadProduct> ThreadProduct::make(KernelBuilder &kernel, Block *group,
                                                   const Schedule &schedule,
                                                   ArrayRef<Value> results) {
  std::string why;
  auto product = mechanism::readProduct(mechanism::opsOf(*group), results, why);
  if (!product)
    return nullptr;
  if (auto matmul = dyn_cast<graph::MatmulOp>(product->root); matmul && matmul.getBlock()) {
    (void)kernel.refuse("its product rounds rows in blocks");
    return nullptr;
  }
  Parts parts{kernel,  group,    schedule,
              results, *product, mechanism::factorsInThreads(product->root, schedule.isShort)};
  for (auto form : {makeColumnProduct, makeTiledProduct})
    if (auto made = form(parts))
      return made;
  (void)kernel.refuse("it has " + Twine(product->parts) + " parts, and there is no tile of m = " +
                      Twine(schedule.knob("m", 0)) + " by n = " + Twine(schedule.knob("n", 0)) +
                      " (0: of any size) with as many columns");
  return nullptr;
}

Value ThreadProduct::guardedBy(Elements &e, Value isThere, llvm::function_ref<Value()> value) {
  Code &code = kernel.code();
  if (!isThere)
    return value();
  return guarded(e, isThere, sum, value, [&] { return code.constantOf(sum, 0); });
}

Value ThreadProduct::widened(Elements &e, Value x, unsigned operand) {
  Type element = graph::storageOf(product.root->getOperand(operand));
  return widen(e, x, sum, element.isUnsignedInteger());
}

void ThreadProduct::emitResults(Elements &e, ArrayRef<Index> place,
                                llvm::function_ref<Value(int64_t)> sumOf) {
  Elements::Scope scope(e);
  Value made = product.root->getResult(0);
  auto bindSum = [&](int64_t part) {
    Value value = narrow(e, sumOf(part), graph::storageOf(made));
    e.bind(made, [value](ArrayRef<Index>) { return value; });
  };
  bindSum(0);
  for (graph::SliceOp slice : product.slices) {
    int64_t part = mechanism::partOf(slice);
    bindSum(part);
    Indices whole(place);
    whole.back() = e.shift(place.back(), kernel.dim(operands.columns * Dim(part)));
    Value value = e.at(slice.getX(), whole);
    e.bind(slice.getResult(), [value](ArrayRef<Index>) { return value; });
  }
  for (Value result : results)
    if (store)
      store(e, result, e.at(result, place), place);
    else
      e.store(result, e.at(result, place), place);
  e.unbind(made);
  for (graph::SliceOp slice : product.slices)
    e.unbind(slice.getResult());
}

Dim ThreadProduct::work() const {
  return operands.matrices * operands.rows * operands.columns * Dim(product.parts) *
         operands.length * operands.taps;
}

LogicalResult emitThreadProduct(KernelBuilder &kernel, Block *group, const Schedule &schedule) {
  auto product = ThreadProduct::make(kernel, group, schedule, llvm::to_vector(outputsOf(group)));
  if (!product)
    return failure();
  if (!kernel.isTrial)
    product->emit();
  return success();
}

} // namespace heddle::lower
