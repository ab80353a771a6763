// Indexed: elements of ops whose source place is itself data. Indices are inside of their
// dimensions: IndexChecks.cpp ends the run where they are not.

#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

/// A data index made legal: negative ones count from the end, then clamped to [0, size).
static Index legalIndex(Elements &e, Operation *op, Value raw, Value size) {
  Code &code = e.code();
  Index index = e.fromLanes(raw);
  Value lanes = e.lanesOf(index);
  checkRead(e, op, lanes, size);
  auto like = [&](Value value) { return Code::isVector(lanes) ? code.spread(value) : value; };
  Value zero = like(code.number(0));
  Value isNegative =
      code.b.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::slt, lanes, zero);
  Value wrapped = code.b.createOrFold<arith::AddIOp>(code.loc, lanes, like(size));
  lanes = code.b.createOrFold<arith::SelectOp>(code.loc, isNegative, wrapped, lanes);
  lanes =
      code.b.createOrFold<arith::MinSIOp>(code.loc, lanes, like(code.sub(size, code.number(1))));
  lanes = code.b.createOrFold<arith::MaxSIOp>(code.loc, lanes, zero);
  return e.fromLanes(lanes);
}

static Value gatherElement(Elements &e, graph::GatherOp op, ArrayRef<Index> place) {
  int64_t axis = op.getAxis(), indexRank = graph::rankOf(op.getIndices());
  Value raw = e.at(op.getIndices(), place.slice(axis, indexRank));
  Indices source(place.take_front(axis));
  source.push_back(legalIndex(e, op, raw, e.sizesOf(op.getX())[axis]));
  source.append(place.begin() + axis + indexRank, place.end());
  return e.at(op.getX(), source);
}

static Value gatherNdElement(Elements &e, graph::GatherNdOp op, ArrayRef<Index> place) {
  int64_t batch = op.getBatchDims(), indexRank = graph::rankOf(op.getIndices());
  int64_t depth = *graph::dimsOf(op.getIndices()).back().constant();
  Values sizes = e.sizesOf(op.getX());
  Indices source(place.take_front(batch));
  for (int64_t k = 0; k < depth; ++k) {
    Indices tuple(place.take_front(indexRank - 1));
    tuple.push_back(e.uniform(e.code().number(k)));
    source.push_back(legalIndex(e, op, e.at(op.getIndices(), tuple), sizes[batch + k]));
  }
  source.append(place.begin() + indexRank - 1, place.end());
  return e.at(op.getX(), source);
}

static Value reverseElement(Elements &e, graph::ReverseSequenceOp op, ArrayRef<Index> place) {
  Code &code = e.code();
  Value length = e.lanesOf(e.fromLanes(e.at(op.getLengths(), {place[op.getBatchAxis()]})));
  Value time = e.lanesOf(place[op.getTimeAxis()]);
  if (Code::isVector(length) != Code::isVector(time)) {
    length = code.spread(length);
    time = code.spread(time);
  }
  auto like = [&](Value value) { return Code::isVector(time) ? code.spread(value) : value; };
  Value back = code.b.createOrFold<arith::SubIOp>(
      code.loc, code.b.createOrFold<arith::SubIOp>(code.loc, length, like(code.number(1))), time);
  Value isReversed =
      code.b.createOrFold<arith::CmpIOp>(code.loc, arith::CmpIPredicate::slt, time, length);
  Indices source(place);
  source[op.getTimeAxis()] =
      e.fromLanes(code.b.createOrFold<arith::SelectOp>(code.loc, isReversed, back, time));
  return e.at(op.getX(), source);
}

static Value lookupElement(Elements &e, graph::LookupOp op, ArrayRef<Index> place) {
  Code &code = e.code();
  std::vector<char> bytes;
  ArrayRef<char> table = graph::constantBytes(op.getTable(), bytes);
  Value pointer = e.kernel.data(e.kernel.addData(std::vector<char>(table.begin(), table.end())));
  Value x = e.at(op.getX(), place);
  if (Code::isVector(x) && e.kernel.machine.permutesBytes)
    return code.b.create<program::LookupOp>(code.loc, pointer, x);
  Type i8 = code.b.getI8Type(), i64 = code.b.getI64Type();
  if (!Code::isVector(x))
    return code.load(i8, pointer, code.b.create<arith::ExtUIOp>(code.loc, i64, x));
  Value places = code.b.create<arith::ExtUIOp>(code.loc, code.vectorOf(i64), x);
  return code.gather(i8, pointer, places, e.mask);
}

Value defineIndexed(Elements &e, Operation *op, ArrayRef<Index> place) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](graph::LookupOp op) { return lookupElement(e, op, place); })
      .Case([&](graph::GatherOp op) { return gatherElement(e, op, place); })
      .Case([&](graph::GatherElementsOp op) {
        Indices source(place);
        source[op.getAxis()] =
            legalIndex(e, op, e.at(op.getIndices(), place), e.sizesOf(op.getX())[op.getAxis()]);
        return e.at(op.getX(), source);
      })
      .Case([&](graph::GatherNdOp op) { return gatherNdElement(e, op, place); })
      .Case([&](graph::ReverseSequenceOp op) { return reverseElement(e, op, place); })
      .Default([](Operation *) { return Value(); });
}

} // namespace heddle::lower
