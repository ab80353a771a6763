// Epilogue: the code of what follows a product, where its sums are.

#include "compiler/lower/contraction/Epilogue.h"

#include "compiler/mechanism/Shapes.h"

using namespace mlir;

namespace heddle::lower {

/// If a masked store takes longer, tiles that end within the columns have branches of their own
/// without masks.
void Epilogue::emit(Elements &e, ArrayRef<Value> sums, const Indices &outer,
                    ArrayRef<Value> rowNumbers, Value firstColumn) {
  Code &code = kernel.code();
  bool isExact = layout.arePanelsFull();
  if (isExact || kernel.machine.masksFreely)
    return emitTile(e, sums, outer, rowNumbers, firstColumn, /*isMasked=*/!isExact);
  Value last = code.add(firstColumn, code.number(layout.partWidth() - 1));
  auto emit = [&](bool isMasked) {
    Elements::Scope scope(e);
    emitTile(e, sums, outer, rowNumbers, firstColumn, isMasked);
    return Values();
  };
  code.choose(
      code.less(last, kernel.dim(layout.partColumns)), TypeRange(), [&] { return emit(false); },
      [&] { return emit(true); });
}

/// For each row and vector, what follows the product, with the accumulator in place of it.
void Epilogue::emitTile(Elements &e, ArrayRef<Value> sums, const Indices &outer,
                        ArrayRef<Value> rowNumbers, Value firstColumn, bool isMasked) {
  Code &code = kernel.code();
  int64_t lanes = code.lanes;
  Value product = layout.shape.root->getResult(0);
  Value groupColumn = firstColumn; // outer.back().base holds the first column of the group
  for (int64_t j = 0; j < layout.vectors / layout.parts; ++j) {
    Value column = code.add(groupColumn, code.number(j * lanes));
    Elements::Scope vectorScope(e);
    e.mask = isMasked ? code.maskOf(code.max(code.sub(kernel.dim(layout.partColumns), column),
                                             code.number(0)))
                      : Value();
    for (auto [i, row] : llvm::enumerate(rowNumbers)) {
      Elements::Scope scope(e);
      Indices place(outer);
      place[layout.runs.back().dimension] = e.uniform(row);
      place.back() = {code.add(outer.back().base, column), 1, {}};
      auto bindSum = [&](int64_t part) {
        Value sum = sums[i * layout.vectors + part * (layout.vectors / layout.parts) + j];
        e.bind(product, [sum](ArrayRef<Index>) { return sum; });
      };
      bindSum(0);
      for (graph::SliceOp slice : layout.slices) {
        int64_t part = mechanism::partOf(slice);
        bindSum(part);
        Indices whole(place);
        whole.back() = e.shift(place.back(), kernel.dim(layout.partColumns * Dim(part)));
        Value value = e.at(slice.getX(), whole);
        e.bind(slice.getResult(), [value](ArrayRef<Index>) { return value; });
      }
      for (Value result : layout.results)
        if (store)
          store(e, result, e.at(result, place), row, place.back().base);
        else
          e.store(result, e.at(result, place), place);
    }
    e.mask = {};
  }
  e.unbind(product);
  for (graph::SliceOp slice : layout.slices)
    e.unbind(slice.getResult());
}

} // namespace heddle::lower
