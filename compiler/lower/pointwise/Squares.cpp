// Squares: what is computed with lanes along one axis, stored along another.

#include "compiler/lower/pointwise/Squares.h"

using namespace mlir;

namespace heddle::lower {

/// The values as bits: shuffles of some float types are not known to every target.
static Values asBits(Code &code, Values rows) {
  Type type = getElementTypeOrSelf(rows[0].getType());
  Type bits = code.b.getIntegerType(type.getIntOrFloatBitWidth());
  for (Value &row : rows) {
    row = code.spread(row);
    if (type != bits)
      row = code.b.create<arith::BitcastOp>(code.loc, code.vectorOf(bits), row);
  }
  return rows;
}

static Values fromBits(Code &code, Values rows, Type type) {
  for (Value &row : rows)
    if (getElementTypeOrSelf(row.getType()) != type)
      row = code.b.create<arith::BitcastOp>(code.loc, code.vectorOf(type), row);
  return rows;
}

Values columnsOf(Code &code, Values rows) {
  Type type = getElementTypeOrSelf(rows[0].getType());
  return fromBits(code, code.transpose(asBits(code, std::move(rows))), type);
}

namespace {
struct Writer {
  Elements &elements;
  Value value;
  const Squares &squares;
  ArrayRef<Index> place;
  Code &code = elements.code();
  Type type = program::computeType(graph::storageOf(value));

  /// The value at `count` places of the row from `first` on, each with lanes from `lane` on.
  Values compute(Value lane, Value first, int64_t count, Value valid, int64_t part = 0) {
    Values rows;
    Value before = elements.mask;
    elements.mask = code.maskOf(valid);
    Value end = code.sub(kernelDim(squares.rowExtent), code.number(1));
    for (int64_t j = 0; j < count; ++j) {
      Elements::Scope scope(elements);
      Indices here(place);
      here[squares.lanesAxis] = {lane, 1, {}};
      here[squares.rowAxis] = elements.uniform(code.min(code.add(first, code.number(j)), end));
      if (squares.parts > 1)
        here[squares.partAxis] = elements.uniform(code.number(part));
      rows.push_back(elements.at(value, here));
    }
    elements.mask = before;
    return rows;
  }

  /// Stores of `count` lanes; of all of them where that is null.
  void store(Value row, const Indices &here, Value count) {
    Value before = elements.mask;
    elements.mask = count ? code.maskOf(code.max(count, code.number(0))) : Value();
    elements.store(value, row, here);
    elements.mask = before;
  }

  void storeRow(Value row, Value lane, Value first, Value count) {
    Indices here(place);
    here[squares.lanesAxis] = elements.uniform(lane);
    here[squares.rowAxis] = {first, 1, {}};
    store(row, here, count);
  }

  /// Interleaved vectors of all parts, of `rest` places from `first` on; null means all lanes.
  void storeParts(ArrayRef<Value> columns, Value lane, Value first, Value rest) {
    Value count = rest ? code.mul(rest, code.number(squares.parts)) : Value();
    Indices here(place);
    here[squares.lanesAxis] = elements.uniform(lane);
    here[squares.rowAxis] = elements.uniform(first);
    for (auto [k, row] : llvm::enumerate(fromBits(code, code.interleave(columns), type))) {
      Value start = code.number(k * code.lanes);
      here[squares.partAxis] = {start, 1, {}};
      store(row, here, count ? code.sub(count, start) : Value());
    }
  }

  /// Emits stores twice, as what is masked takes many times as long on machines without mask
  /// registers: without masks where `isWhole` holds, else with them.
  void storeWholeOrPart(Value isWhole, llvm::function_ref<void(bool)> stores) {
    auto as = [&](bool whole) {
      return [&stores, whole] {
        stores(whole);
        return Values();
      };
    };
    code.choose(isWhole, {}, as(true), as(false));
  }

  void storeInterleaved(Value lane, Value valid) {
    int64_t width = *squares.rowExtent.constant();
    Values rows = asBits(code, compute(lane, code.number(0), width, valid));
    Values vectors = fromBits(code, code.interleave(rows), type);
    Value count = code.mul(valid, code.number(width));
    Value isWhole = code.less(code.number(code.lanes - 1), valid);
    storeWholeOrPart(isWhole, [&](bool whole) {
      for (auto [k, row] : llvm::enumerate(vectors)) {
        Value first = code.number(k * code.lanes);
        storeRow(row, lane, first, whole ? Value() : code.sub(count, first));
      }
    });
  }

  void storeTurned(Value lane, Value valid, Span rows) {
    code.forEach(rows.low, rows.high, code.lanes, [&](Value first) {
      Elements::Scope scope(elements);
      SmallVector<Values> columns;
      for (int64_t part = 0; part < squares.parts; ++part)
        columns.push_back(
            code.transpose(asBits(code, compute(lane, first, code.lanes, valid, part))));
      Value rest = code.sub(rows.high, first);
      auto column = [&](int64_t i, Value count) {
        auto each = llvm::map_to_vector(columns, [&](const Values &part) { return part[i]; });
        Value at = code.add(lane, code.number(i));
        if (squares.parts > 1)
          storeParts(each, at, first, count);
        else
          storeRow(fromBits(code, {each[0]}, type)[0], at, first, count);
      };
      Value isWhole = code.less(code.number(code.lanes - 1), code.min(valid, rest));
      storeWholeOrPart(isWhole, [&](bool whole) {
        for (int64_t i = 0; i < code.lanes; ++i)
          if (whole)
            column(i, Value());
          else
            code.when(code.less(code.number(i), valid), [&] { column(i, rest); });
      });
    });
  }

  Value kernelDim(const Dim &dim) { return elements.kernel.dim(dim); }
};
} // namespace

void storeSquares(Elements &elements, ArrayRef<Value> values, const Squares &squares,
                  ArrayRef<Index> place, Span lanes, Span rows) {
  Code &code = elements.code();
  code.forEach(lanes.low, lanes.high, code.lanes, [&](Value lane) {
    Elements::Scope scope(elements);
    Value valid = code.min(code.sub(lanes.high, lane), code.number(code.lanes));
    for (Value value : values) {
      Writer writer{elements, value, squares, place};
      squares.isInterleaved ? writer.storeInterleaved(lane, valid)
                            : writer.storeTurned(lane, valid, rows);
    }
  });
}

} // namespace heddle::lower
