// Operands: copies of the operands of an attention, element by element through Elements,
// so that what moves, casts or scales them needs no copy of its own.

#include "compiler/lower/attention/Operands.h"
#include "compiler/lower/contraction/Microkernel.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

int64_t vectorsOf(const Dim &columns, int64_t wanted, int64_t lanes) {
  auto known = columns.constant();
  if (!known || *known == 0)
    return wanted;
  int64_t vectors = llvm::divideCeil(*known, lanes);
  return llvm::divideCeil(vectors, llvm::divideCeil(vectors, wanted));
}

int64_t wantedVectors(const Schedule &schedule, const program::Machine &machine) {
  int64_t columns = schedule.knob("n", (machine.registers < 32 ? 2 : 4) * machine.lanes);
  return std::max<int64_t>(1, columns / machine.lanes);
}

DimVector batchDims(Value tensor) {
  DimVector dims = graph::dimsOf(tensor);
  dims.pop_back_n(2);
  return dims;
}

Indices operandBatch(Elements &e, graph::MatmulOp product, Value operand, ArrayRef<Index> batch) {
  DimVector from = graph::dimsOf(operand), to = graph::dimsOf(product.getResult());
  Indices place;
  for (auto [index, fromSize, toSize] : llvm::zip(batch, from, to))
    place.push_back(broadcastIndex(e, index, fromSize, toSize));
  return place;
}

Indices placeAfterMoves(Elements &e, ArrayRef<Operation *> moves, Indices place) {
  for (Operation *move : moves) {
    if (auto transpose = dyn_cast<graph::TransposeOp>(move)) {
      Indices next;
      for (int64_t axis : transpose.getPermutation())
        next.push_back(place[axis]);
      place = next;
    } else {
      DimVector from = graph::dimsOf(move->getOperand(0)), to = graph::dimsOf(move->getResult(0));
      place = reshapedPlace(e, to, from, place);
    }
  }
  return place;
}

Value maskOfColumns(Elements &e, const Dim &columns, int64_t width, Value column) {
  if (columns.mod(Dim(width)).isConstant(0))
    return {};
  Code &code = e.code();
  return code.maskOf(code.max(code.sub(e.kernel.dim(columns), column), code.number(0)));
}

bool isRead(Block *group, Value value) {
  for (;;) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != group)
      return true;
    auto scaled = dyn_cast<graph::MulOp>(op);
    auto scales = scaled ? scaled.getY().getDefiningOp<graph::BroadcastOp>() : nullptr;
    bool isScaled = scales && isRead(group, scales.getX());
    if (!graph::isRearrangement(op) && !isa<graph::CastOp>(op) && !isScaled)
      return false;
    value = op->getOperand(0);
  }
}

bool isTransposed(Block *group, Value value) {
  int64_t dimension = graph::rankOf(value) - 2; // followed back; -1 when lost
  while (Operation *op = value.getDefiningOp()) {
    if (op->getBlock() != group || isa<graph::ConstantOp>(op))
      break;
    if (auto transpose = dyn_cast<graph::TransposeOp>(op)) {
      dimension = transpose.getPermutation()[dimension];
    } else if (auto reshape = dyn_cast<graph::ReshapeOp>(op)) {
      DimVector from = graph::dimsOf(reshape.getX()), to = graph::dimsOf(value);
      // The last dimensions in common carry over.
      int64_t fromEnd = (int64_t)to.size() - dimension;
      bool isCommon = fromEnd <= (int64_t)from.size();
      for (int64_t i = 1; isCommon && i <= fromEnd; ++i)
        isCommon = from[from.size() - i] == to[to.size() - i];
      if (!isCommon)
        return false;
      dimension = (int64_t)from.size() - fromEnd;
    } else if (isa<graph::BroadcastOp>(op)) {
      dimension -= graph::rankOf(value) - graph::rankOf(op->getOperand(0));
    } else if (!op->hasTrait<graph::Elementwise>() &&
               !isa<graph::SliceOp, graph::ConcatOp, graph::PadOp>(op)) {
      return false;
    }
    // Follow an elementwise op through the operand that is no broadcast.
    Value next = op->getOperand(0);
    for (Value in : op->getOperands())
      if (op->hasTrait<graph::Elementwise>() && !in.getDefiningOp<graph::BroadcastOp>()) {
        next = in;
        break;
      }
    value = next;
    if (dimension < 0)
      return false;
  }
  return dimension + 1 == graph::rankOf(value);
}

static Indices matrixPlace(ArrayRef<Index> batch, const Index &row, const Index &column) {
  Indices place(batch);
  place.push_back(row);
  place.push_back(column);
  return place;
}

/// Squares of registers: lanes along the rows of the matrix become lanes along its columns.
static void packSquares(Elements &e, const Panels &panels, Value tensor, ArrayRef<Index> batch,
                        Value target, Value column, Value offset) {
  Code &code = e.code();
  Value depth = e.kernel.dim(panels.rows);
  Value last = code.sub(e.kernel.dim(panels.columns), code.number(1));
  forLanes(e, code.number(0), depth, [&](Value k) {
    Values square;
    for (int64_t r = 0; r < code.lanes; ++r) {
      Index here = e.uniform(code.min(code.add(column, code.number(r)), last));
      Value value = e.at(tensor, matrixPlace(batch, {k, 1, {}}, here));
      square.push_back(code.spread(widen(e, value, panels.element)));
    }
    square = code.transpose(square);
    Value zero = code.spread(code.constantOf(panels.element, 0));
    for (int64_t i = 0; i < code.lanes; i += panels.depth) {
      Value row = code.add(k, code.number(i)), value = square[i];
      if (panels.depth == 2) {
        Value odd = square[i + 1];
        if (e.mask)
          odd = code.b.create<arith::SelectOp>(
              code.loc, code.less(code.add(row, code.number(1)), depth), odd, zero);
        value = shortPairs(code, value, odd);
      }
      auto store = [&] {
        Value line = code.div(row, code.number(panels.depth));
        Value at = code.add(offset, code.mul(line, code.number(panels.width)));
        code.storeLanes(getElementTypeOrSelf(value), value, target, at, {});
      };
      if (e.mask) // the last, partial square
        code.when(code.less(row, depth), store);
      else
        store();
    }
  });
}

/// Rows as they are, a panel's vectors of one after the other.
static void packInOrder(Elements &e, const Panels &panels, Value tensor, ArrayRef<Index> batch,
                        Value target) {
  Code &code = e.code();
  Value rows = e.kernel.dim(panels.rows), lines = e.kernel.dim(panels.rows.ceilDiv(panels.depth));
  bool isOdd = !panels.rows.mod(Dim(panels.depth)).isConstant(0);
  Value zero = code.spread(code.constantOf(panels.element, 0));
  foldScoped(e, code.number(0), e.kernel.dim(panels.count()), {}, [&](Value panel, ValueRange) {
    Value first = code.mul(panel, code.number(panels.width));
    Value start = code.mul(panel, e.kernel.dim(panels.stride()));
    Values masks;
    for (int64_t j = 0; j < panels.vectors; ++j)
      masks.push_back(maskOfColumns(e, panels.columns, panels.width,
                                    code.add(first, code.number(j * code.lanes))));
    foldScoped(e, code.number(0), lines, {}, [&](Value line, ValueRange) {
      Value at = code.add(start, code.mul(line, code.number(panels.width)));
      Value row = code.mul(line, code.number(panels.depth));
      for (int64_t j = 0; j < panels.vectors; ++j) {
        Elements::Scope scope(e);
        e.mask = masks[j];
        Value shift = code.number(j * code.lanes);
        Index column{code.add(first, shift), 1, {}};
        auto numbers = [&](Value row) {
          Value value = e.at(tensor, matrixPlace(batch, e.uniform(row), column));
          return code.spread(widen(e, value, panels.element));
        };
        Value value = numbers(row);
        if (panels.depth == 2) {
          Value next = code.add(row, code.number(1)), last = code.sub(rows, code.number(1));
          Value odd = numbers(isOdd ? code.min(next, last) : next);
          if (isOdd)
            odd = code.b.create<arith::SelectOp>(code.loc, code.less(next, rows), odd, zero);
          value = shortPairs(code, value, odd);
        }
        code.storeLanes(getElementTypeOrSelf(value), value, target, code.add(at, shift), {});
        e.mask = {};
      }
      return Values();
    });
    return Values();
  });
}

/// Fills panels up to whole steps.
static void fillPanels(Elements &e, const Panels &panels, Value target) {
  Code &code = e.code();
  if (panels.step == panels.depth || panels.rows.mod(Dim(panels.step)).isConstant(0))
    return;
  Value zero = code.spread(code.constantOf(panels.element, 0)),
        stride = e.kernel.dim(panels.stride());
  Value used = e.kernel.dim(panels.rows.ceilDiv(Dim(panels.depth)) * Dim(panels.width));
  code.forEach(code.number(0), e.kernel.dim(panels.count()), 1, [&](Value panel) {
    Value start = code.mul(panel, stride);
    code.forEach(used, stride, code.lanes, [&](Value at) {
      code.storeLanes(panels.element, zero, target, code.add(start, at), {});
    });
  });
}

void packPanels(Elements &e, const Panels &panels, Value tensor, ArrayRef<Index> batch,
                Value target) {
  fillPanels(e, panels, target);
  if (!isTransposed(e.block(), tensor))
    return packInOrder(e, panels, tensor, batch, target);
  Code &code = e.code();
  // Vectors of columns; beyond the last one nothing needs to be written.
  Value vectors = code.ceilDiv(e.kernel.dim(panels.columns), code.lanes);
  foldScoped(e, code.number(0), vectors, {}, [&](Value vector, ValueRange) {
    Value column = code.mul(vector, code.number(code.lanes));
    Value panel = code.div(vector, code.number(panels.vectors));
    Value shift = code.mul(code.rem(vector, code.number(panels.vectors)), code.number(code.lanes));
    Value start = code.mul(panel, e.kernel.dim(panels.stride()));
    packSquares(e, panels, tensor, batch, target, column, code.add(start, shift));
    return Values();
  });
}

void fillRow(Elements &e, const Panels &panels, Value row, Value length) {
  Code &code = e.code();
  if (panels.step == panels.depth)
    return;
  Value whole = code.mul(code.ceilDiv(length, code.lanes), code.number(code.lanes));
  Value end = code.mul(code.ceilDiv(length, panels.step), code.number(panels.step));
  Type factor = code.b.getI16Type();
  code.forEach(whole, end, code.lanes, [&](Value k) {
    code.storeLanes(factor, code.spread(code.integerOf(factor, 0)), row, k, {});
  });
}

void copyRows(Elements &e, Value tensor, ArrayRef<Index> batch, ArrayRef<Value> rows,
              const Panels &panels, Value target, ArrayRef<Value> offsets) {
  Code &code = e.code();
  Value zero = code.spread(code.constantOf(panels.element, 0));
  forLanes(e, code.number(0), e.kernel.dim(panels.rows), [&](Value k) {
    for (auto [row, offset] : llvm::zip(rows, offsets)) {
      Elements::Scope scope(e);
      Value value = e.at(tensor, matrixPlace(batch, e.uniform(row), {k, 1, {}}));
      value = code.spread(widen(e, value, panels.element));
      if (e.mask && panels.step > panels.depth)
        value = code.b.create<arith::SelectOp>(code.loc, e.mask, value, zero);
      if (panels.depth == 2)
        value = shortBits(code, value);
      code.storeLanes(getElementTypeOrSelf(value), value, code.at(target, panels.element, offset),
                      k, {});
    }
  });
  for (Value offset : offsets)
    fillRow(e, panels, code.at(target, panels.element, offset), e.kernel.dim(panels.rows));
}

} // namespace heddle::lower
