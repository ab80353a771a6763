// Attention: see Attention.h.

#include "compiler/lower/threads/Attention.h"

#include "compiler/lower/attention/Operands.h"
#include "compiler/lower/elements/Definitions.h"

using namespace mlir;

namespace heddle::lower {

LogicalResult BlocksOfAttention::read() {
  std::string why;
  auto found = mechanism::readAttention(mechanism::opsOf(*group), why);
  if (!found)
    return failure();
  parts = *found;
  number = accumulatorType(graph::storageOf(parts.scores.getResult()));
  DimVector dims = graph::dimsOf(parts.scores.getResult());
  batches = graph::elementCount(batchDims(parts.scores.getResult()));
  queries = dims[dims.size() - 2];
  keys = dims.back();
  depth = graph::dimsOf(parts.scores.getA()).back();
  columns = graph::dimsOf(parts.values.getResult()).back();
  if (mechanism::fitsBlocks(parts))
    return success();
  return kernel.refuse("its values are not up to " + Twine(mechanism::kMostColumnsOfBlocks) +
                       " columns");
}

void BlocksOfAttention::emitBlocks(int64_t threads, llvm::function_ref<void()> prepare,
                                   llvm::function_ref<void(Elements &)> body) {
  kernel.beginPhase(threads);
  team.emplace(kernel, threads);
  Elements e(kernel, group);
  Code &code = kernel.code();
  prepare();
  kernel.forEachTask([&](Value task) {
    Elements::Scope scope(e);
    Value ofBatch = kernel.dim(queries.ceilDiv(Dim(rows))), ofRow = code.number(keyParts);
    keyPart = code.rem(task, ofRow);
    Value rest = code.div(task, ofRow);
    batch = code.div(rest, ofBatch);
    firstRow = code.mul(code.rem(rest, ofBatch), code.number(rows));
    body(e);
  });
  kernel.endPhase(blocks(), batches * queries * keys * (depth + columns));
}

Value BlocksOfAttention::guardedBy(Elements &e, Value isThere, double otherwise,
                                   llvm::function_ref<Value()> value) {
  return guarded(e, isThere, number, value, [&] { return numberOf(otherwise); });
}

void BlocksOfAttention::bindNumber(Elements &e, Value tensor, Value value) {
  value = narrow(e, value, graph::storageOf(tensor));
  e.bind(tensor, [value](ArrayRef<Index>) { return value; });
}

Value BlocksOfAttention::rowNumber(Value row) {
  Code &code = kernel.code();
  Value last = code.sub(kernel.dim(queries), code.number(1));
  return code.min(code.add(firstRow, row), last);
}

Value BlocksOfAttention::operandAt(Elements &e, graph::MatmulOp product, unsigned operand,
                                   Value row, Value column, Value isThere) {
  return guardedBy(e, isThere, 0, [&] {
    Value tensor = product->getOperand(operand);
    Indices ofResult = indicesOf(e, batchDims(product.getResult()), batch);
    Indices place = operandBatch(e, product, tensor, ofResult);
    place.append({e.uniform(row), e.uniform(column)});
    return widen(e, e.at(tensor, place), number);
  });
}

Indices BlocksOfAttention::placeIn(Elements &e, Value tensor, Value row, Value column) {
  Code &code = kernel.code();
  DimVector dims = graph::dimsOf(tensor);
  dims.pop_back();
  // Groups of queries may be rows of one product and batches elsewhere.
  bool isSplit = dims.back() != queries;
  Indices place = isSplit ? indicesOf(e, dims, code.add(code.mul(batch, kernel.dim(queries)), row))
                          : indicesOf(e, batchDims(tensor), batch);
  if (!isSplit)
    place.push_back(e.uniform(row));
  place.push_back(e.uniform(column));
  return place;
}

Value BlocksOfAttention::valueAt(Elements &e, Value tensor, Value row, Value key,
                                 double otherwise) {
  return guardedBy(e, kernel.code().less(key, kernel.dim(keys)), otherwise, [&] {
    Elements::Scope inside(e);
    return widen(e, e.at(tensor, placeIn(e, tensor, row, key)), number);
  });
}

Value BlocksOfAttention::baseOf(Value largest) {
  Code &code = kernel.code();
  Value isNone =
      code.b.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::OEQ, largest, numberOf(kLowest));
  return code.b.create<arith::SelectOp>(code.loc, isNone, numberOf(0), largest);
}

void BlocksOfAttention::storeResults(Elements &e, Value sums, Value factors,
                                     int64_t columnsOfLine) {
  Code &code = kernel.code();
  storeResults(e, [&](Value row, Value column) {
    Value at = code.add(code.mul(row, code.number(paddedLine(columnsOfLine))), column);
    Value sum = code.load(number, factors, row);
    return std::pair(code.load(number, sums, at), sum);
  });
  team->barrier(); // the next task writes there
}

void BlocksOfAttention::storeResults(Elements &e, SumsAt sumsAt) {
  Code &code = kernel.code();
  Value made = parts.values.getResult();
  int64_t width = *columns.constant();
  team->fold(e, code.number(0), code.number(rows * width), {}, [&](Value i, ValueRange) {
    Value row = code.div(i, code.number(width)), column = code.rem(i, code.number(width));
    code.when(code.less(code.add(firstRow, row), kernel.dim(queries)), [&] {
      Elements::Scope scope(e);
      auto [value, sum] = sumsAt(row, column);
      if (parts.dividesLast)
        value = code.b.create<arith::DivFOp>(code.loc, value, sum);
      else
        bindNumber(e, parts.sum, sum);
      bindNumber(e, made, value);
      Indices target =
          placeAfterMoves(e, parts.moves, placeIn(e, made, code.add(firstRow, row), column));
      e.store(parts.result, e.at(parts.result, target), target);
      e.unbind(made);
      e.unbind(parts.sum);
    });
    return Values();
  });
}

} // namespace heddle::lower
