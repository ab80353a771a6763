// Direct: an attention of few queries, which reads keys and values where they lie: packing them
// would take longer than what is computed with them.
//
// A strip is one row. Scores are products of vectors along the depth, as many keys at a time as a
// vector has lanes; values are weighed row by row, chunk by chunk, so that all queries of a head
// have found a chunk in the L1 but the first.

#include "compiler/lower/attention/Kernel.h"

using namespace mlir;

namespace heddle::lower {

/// Makes `value` 0 in lanes that do not count.
static Value zeroBeyond(Elements &e, Value value, Value zero) {
  if (!e.mask)
    return value;
  return e.code().b.create<arith::SelectOp>(e.code().loc, e.mask, value, zero);
}

/// The row times the keys of a panel: a lane of the result for each.
Values AttentionKernel::dotsOf(Elements &e, const Strip &strip, Value panel) {
  Code &code = kernel.code();
  Value keysOf = layout.parts.scores.getB(), zero = code.spread(code.constantOf(number, 0));
  Value last = code.sub(kernel.dim(layout.keys), code.number(1));
  Value first = code.mul(panel, code.number(code.lanes));
  Value row = code.at(layout.scratchAt(layout.queriesAt), number,
                      code.mul(strip.place, kernel.dim(layout.queryStride)));
  Indices place = operandBatch(e, layout.parts.scores, keysOf);
  place.append(2, Index());
  Values sums =
      foldLanes(e, code.number(0), kernel.dim(layout.depth), Values(code.lanes, zero),
                [&](Value k, ValueRange in) {
                  Values next;
                  Value query = zeroBeyond(e, code.loadLanes(number, row, k, e.mask), zero);
                  place[place.size() - 2] = {k, 1, {}};
                  for (int64_t i = 0; i < code.lanes; ++i) {
                    place.back() = e.uniform(code.min(code.add(first, code.number(i)), last));
                    Value key = code.spread(widen(e, e.at(keysOf, place), number));
                    next.push_back(code.b.create<math::FmaOp>(code.loc, query,
                                                              zeroBeyond(e, key, zero), in[i]));
                  }
                  return next;
                });
  return {code.sumRows(sums)};
}

/// `start` and the values of a chunk of keys, columns of a panel, each times the row's weight.
Values AttentionKernel::weighed(Elements &e, const Strip &strip, Value panel, const Keys &chunk,
                                ValueRange start) {
  Code &code = kernel.code();
  Value valuesOf = layout.parts.values.getB();
  Value row = code.at(layout.scratchAt(layout.stripsAt), number,
                      code.mul(strip.place, kernel.dim(layout.stripStride)));
  Value first = code.mul(panel, code.number(layout.valuePanels.width));
  Indices place = operandBatch(e, layout.parts.values, valuesOf);
  place.append(2, Index());
  auto add = [&](Value key, ValueRange in) {
    Value weight = code.spread(code.load(number, row, key));
    place[place.size() - 2] = e.uniform(key);
    Values next;
    for (int64_t j = 0; j < layout.valuePanels.vectors; ++j) {
      Elements::Scope scope(e);
      Value column = code.add(first, code.number(j * code.lanes));
      e.mask = maskOfColumns(e, layout.valuePanels.columns, layout.valuePanels.width, column);
      place.back() = {column, 1, {}};
      Value value = code.spread(widen(e, e.at(valuesOf, place), number));
      next.push_back(code.b.create<math::FmaOp>(code.loc, weight, value, in[j]));
      e.mask = {};
    }
    return next;
  };
  // Two keys at a time have sums of their own, so that none waits for the one before.
  int64_t count = start.size();
  Value two = code.number(2), pairs = code.div(code.sub(chunk.high, chunk.low), two);
  Values sums(start);
  sums.append(count, code.spread(code.constantOf(number, 0)));
  sums = foldScoped(e, code.number(0), pairs, sums, [&](Value pair, ValueRange in) {
    Value key = code.add(chunk.low, code.mul(pair, two));
    Values next = add(key, in.take_front(count));
    next.append(add(code.add(key, code.number(1)), in.drop_front(count)));
    return next;
  });
  for (int64_t j = 0; j < count; ++j)
    sums[j] = code.b.create<arith::AddFOp>(code.loc, sums[j], sums[count + j]);
  sums.truncate(count);
  return foldScoped(e, code.add(chunk.low, code.mul(pairs, two)), chunk.high, sums, add);
}

/// Rows [first, end) of a batch, at most as many as the scratch has room for.
void AttentionKernel::emitDirect(Elements &e, Value batch, Value first, Value end) {
  Elements::Scope scope(e);
  Code &code = kernel.code();
  layout.batch = batch;
  Value rows = code.sub(code.min(end, kernel.dim(layout.queries)), first);
  emitSlab(e, {first, rows}, {});
}

} // namespace heddle::lower
