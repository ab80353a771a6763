// Matrices: the products of an attention in registers that hold matrices.
//
// Queries and weights are rows of bf16 where they lie, filled up to whole steps. The sums of a
// strip and a panel come back through the scratch, from which rows go on one by one.

#include "compiler/lower/attention/Kernel.h"

using namespace mlir;

namespace heddle::lower {

/// A strip's rows are fewer than a tile has where queries end.
void AttentionKernel::forEachRow(Elements &e, const Strip &strip,
                                 llvm::function_ref<void(const Strip &)> body) {
  if (!layout.hasMatrices)
    return body(strip);
  Code &code = kernel.code();
  Value first = strip.rows.front();
  Value rows = code.min(code.number(layout.stripRows), code.sub(kernel.dim(layout.queries), first));
  foldScoped(e, code.number(0), rows, {}, [&](Value i, ValueRange) {
    body({{code.add(first, i)}, code.add(strip.place, i)});
    return Values();
  });
}

/// `rows`: where those of the left factor begin, a stride of numbers in the scratch apart.
void AttentionKernel::multiplyMatrices(const Strip &strip, const Panels &panels, Value rows,
                                       const Dim &stride, Value panel, Value steps) {
  Code &code = kernel.code();
  Value sums = code.at(layout.scratchAt(layout.partsAt), number,
                       code.mul(strip.place, code.number(panels.width)));
  int64_t bytes = graph::bytesOf(number);
  code.b.create<program::MultiplyMatricesOp>(
      code.loc, program::DotKind::ShortFloats, sums, rows, code.number(0),
      kernel.dim(stride * Dim(bytes)), layout.step / layout.together * bytes, panel, code.number(1),
      steps, panel, 0, layout.stripRows, panels.width);
}

void AttentionKernel::multiplyQueries(const Strip &strip, Value panel) {
  Code &code = kernel.code();
  const Panels &panels = layout.keyPanels;
  Value rows = code.at(layout.scratchAt(layout.queriesAt), number,
                       rowOffsets(strip, layout.queryStride).front());
  Value right =
      code.at(layout.scratchAt(Dim(0)), number, code.mul(panel, kernel.dim(panels.stride())));
  multiplyMatrices(strip, panels, rows, layout.queryStride, right,
                   kernel.dim(layout.depth.ceilDiv(Dim(layout.step))));
}

Values AttentionKernel::sumsOf(const Strip &row, const Panels &panels) {
  Code &code = kernel.code();
  Value first = code.mul(row.place, code.number(panels.width));
  Values sums;
  for (int64_t j = 0; j < panels.vectors; ++j)
    sums.push_back(code.loadLanes(number, layout.scratchAt(layout.partsAt),
                                  code.add(first, code.number(j * code.lanes)), {}));
  return sums;
}

/// The first key that is seen begins a step.
void AttentionKernel::emitMatrixValues(Elements &e, const Slab &slab, const Keys &seen) {
  Code &code = kernel.code();
  const Panels &panels = layout.valuePanels;
  Value steps = code.ceilDiv(code.sub(seen.high, seen.low), layout.step);
  Value before = code.div(seen.low, code.number(layout.together)); // numbers of 32 bits
  foldScoped(e, code.number(0), kernel.dim(panels.count()), {}, [&](Value panel, ValueRange) {
    Value start = code.add(code.mul(panel, kernel.dim(panels.stride())),
                           code.mul(before, code.number(panels.width)));
    Value right = code.at(layout.scratchAt(layout.valuesAt), number, start);
    forEachStrip(e, slab, [&](const Strip &strip) {
      Value first = code.add(rowOffsets(strip, layout.stripStride).front(), before);
      Value rows = code.at(layout.scratchAt(layout.stripsAt), number, first);
      multiplyMatrices(strip, panels, rows, layout.stripStride, right, steps);
      forEachRow(e, strip,
                 [&](const Strip &row) { storeValues(e, row, sumsOf(row, panels), panel); });
    });
    return Values();
  });
}

} // namespace heddle::lower
