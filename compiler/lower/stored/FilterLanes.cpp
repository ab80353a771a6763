// FilterLanes: see FilterLanes.h.

#include "compiler/lower/stored/FilterLanes.h"
#include "compiler/estimate/Thresholds.h"

using namespace mlir;

namespace heddle::lower {

/// Places of `lanes` columns from k on. A division for each would take longer than to move them.
static Values placesFrom(Code &code, const ColumnPlaces &places, Value k) {
  Values found;
  if (!places.taps) {
    for (int64_t i = 0; i < code.lanes; ++i)
      found.push_back(code.add(places.first, code.mul(code.add(k, code.number(i)), places.outer)));
    return found;
  }
  Value tap = code.rem(k, places.taps), end = code.sub(places.taps, code.number(1));
  Value at =
      code.add(code.mul(code.div(k, places.taps), places.outer), code.mul(tap, places.inner));
  Value wrap = code.sub(places.outer, code.mul(end, places.inner));
  for (int64_t i = 0; i < code.lanes; ++i) {
    found.push_back(code.add(places.first, at));
    Value isLast = code.less(code.sub(end, code.number(1)), tap);
    auto choose = [&](Value yes, Value no) -> Value {
      return code.b.createOrFold<arith::SelectOp>(code.loc, isLast, yes, no);
    };
    at = code.add(at, choose(wrap, places.inner));
    tap = choose(code.number(0), code.add(tap, code.number(1)));
  }
  return found;
}

void storeColumns(Elements &e, Value low, Value high, const ColumnPlaces &places,
                  llvm::function_ref<Value(int64_t, Value)> row) {
  Code &code = e.code();
  forLanes(e, low, high, [&](Value k) {
    Values square;
    for (int64_t number = 0; number < code.lanes; ++number)
      square.push_back(row(number, k));
    square = code.transpose(square);
    Values at = placesFrom(code, places, k);
    Value beyond = code.sub(high, k);
    for (int64_t i = 0; i < code.lanes; ++i) {
      auto store = [&] { code.storeLanes(places.element, square[i], places.pointer, at[i], {}); };
      if (e.mask) // the last, partial square
        code.when(code.less(code.number(i), beyond), store);
      else
        store();
    }
  });
}

static Value asFloats(Code &code, Value lanes, Type element) {
  Type floats = code.vectorOf(code.b.getF32Type());
  if (element.isUnsignedInteger())
    return code.b.create<arith::UIToFPOp>(code.loc, floats, lanes);
  if (element.isInteger(8))
    return code.b.create<arith::SIToFPOp>(code.loc, floats, lanes);
  return lanes;
}

Value filterLanes(Elements &e, Value filters, Value number, Value terms, Value k) {
  Code &code = e.code();
  Type element = graph::storageOf(filters);
  Value last = code.sub(e.kernel.dim(graph::dimsOf(filters)[0]), code.number(1));
  Value at = code.add(code.mul(code.min(number, last), terms), k);
  Value pointer = e.kernel.pointer(filters);
  int64_t ahead = estimate::thresholdAt(e.block()->getParentOp(), estimate::kFetchFilters);
  code.prefetch(pointer, element, code.add(at, code.number(ahead)));
  return asFloats(code, code.loadLanes(element, pointer, at, e.mask), element);
}

} // namespace heddle::lower
