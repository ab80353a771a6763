// Entry: code that reads symbols from values of inputs, before anything is allocated, and that
// computes and checks sizes.

#include "compiler/lower/host/Entry.h"

#include "compiler/graph/edit/Words.h"
#include "compiler/graph/ragged/Ragged.h"
#include "compiler/lower/host/Checks.h"
#include "compiler/lower/host/Memory.h"
#include "compiler/lower/host/Rows.h"

using namespace mlir;

namespace heddle::lower {

/// Whether nobody has bound the symbols that values are, since the caller asks without them; they
/// count as 0 then. Null if there are none.
static Value areUnbound(Writer &host, SizeCode &sizes, const Storage &storage) {
  Code &code = host.code;
  Value isUnbound;
  for (const std::string &name : storage.symbolsOfValues) {
    Value &symbol = sizes.symbols[name], isNegative = code.less(symbol, code.number(0));
    isUnbound =
        isUnbound ? host.builder.create<arith::OrIOp>(code.loc, isUnbound, isNegative) : isNegative;
    symbol = code.max(symbol, code.number(0));
  }
  return isUnbound;
}

void Entry::writeSizes(const EntrySizes &wanted) {
  Writer host(model, program, "heddle_program_sizes", 4);
  Code &code = host.code;
  OpBuilder &builder = host.builder;
  func::FuncOp function = host.function;
  SizeCode sizes(code);
  Type i64 = builder.getI64Type();
  for (auto &[name, index] : storage.inputSymbols)
    sizes.symbols[name] = code.load(i64, function.getArgument(0), code.number(index));
  Value isUnbound = areUnbound(host, sizes, storage);
  auto unless = [&](Value isSo, Value value, Value otherwise) {
    return isSo ? builder.createOrFold<arith::SelectOp>(code.loc, isSo, otherwise, value) : value;
  };
  Value overflow;
  Places places = placeBuffers(code, sizes, storage, &overflow);
  for (auto [space, arenaBytes] : llvm::enumerate(places.totals)) {
    if (overflow) // the runtime's word for it
      arenaBytes =
          builder.createOrFold<arith::SelectOp>(code.loc, overflow, code.number(-1), arenaBytes);
    code.store(i64, arenaBytes, function.getArgument(1), code.number(space));
  }
  int64_t place = 0;
  auto results = cast<func::ReturnOp>(model.getBody().front().getTerminator());
  for (Value output : results.getOperands())
    for (const Dim &size : graph::dimsOf(output)) {
      Value value =
          storage.isEntryKnown(size) ? sizes.of(size, nullptr) : code.number(program::kDynamic);
      if (!storage.isOfShapes(size))
        value = unless(isUnbound, value, code.number(program::kDynamic));
      code.store(i64, value, function.getArgument(2), code.number(place++));
    }
  Value status = Checks(host, sizes, storage).writeEntry(wanted, function.getArgument(3));
  status = unless(isUnbound, status, code.integerOf(builder.getI32Type(), 0));
  builder.create<func::ReturnOp>(code.loc, status);
}

/// Sums over all rows, which sizes name.
void Entry::bindTotals(Writer &host, SizeCode &sizes, Value inputs, Value given) {
  if (!tables.lengths)
    return;
  Code &code = host.code;
  OpBuilder &builder = host.builder;
  Lengths lengths(host, sizes, tables.lengths);
  Type i64 = builder.getI64Type(), pointer = code.pointerType();
  for (auto &[name, index] : storage.inputSymbols)
    if (!graph::summedBy(name))
      sizes.symbols[name] = code.load(i64, given, code.number(index));
  auto input = cast<BlockArgument>(tables.lengths.getX());
  Value address = code.at(inputs, pointer, code.number(input.getArgNumber()));
  Value memory = builder.create<program::LoadOp>(code.loc, pointer, address, 8);
  Value rows = sizes.symbols.at(tables.of());
  std::string size = graph::rowSize(tables.lengths.getSize(), tables.of()).symbolName().value();
  Values zeros(tables.totals.size(), code.number(0));
  Values sums = code.fold(code.number(0), rows, 1, zeros, [&](Value row, ValueRange before) {
    Value length = lengths.of(memory, row);
    Value overflow;
    SizeArithmetic arithmetic{code, &overflow};
    Values after;
    for (auto [total, sum] : llvm::zip(tables.totals, before))
      after.push_back(arithmetic.add(sum, arithmetic.emit(total, [&](StringRef name) {
        return name == size ? length : sizes.symbols.at(name.str());
      })));
    host.failIf(overflow, "the sum of the lengths is larger than any memory");
    return after;
  });
  for (auto [total, sum] : llvm::zip(tables.totals, sums))
    code.store(i64, code.max(sum, code.number(0)), given,
               code.number(storage.inputSymbols.at(
                   graph::overRows(total, tables.of()).symbolName().value())));
}

void Entry::writeBind() {
  Writer host(model, program, "heddle_program_bind", 1);
  Code &code = host.code;
  OpBuilder &builder = host.builder;
  SizeCode sizes(code);
  Type i64 = builder.getI64Type(), pointer = code.pointerType();
  Value inputs = host.area(program::Area::Inputs), given = host.area(program::Area::Symbols);
  for (auto &[op, elements] : storage.boundByValues) {
    auto bind = cast<graph::BindSizesOp>(op);
    std::string message = graph::nodeText(op->getLoc()) + ": " + bind.getMessage().str();
    for (auto [symbol, element] : llvm::zip(graph::dimsOf(bind.getSymbols()), elements)) {
      Value address = code.at(inputs, pointer, code.number(element.input.getArgNumber()));
      Value memory = builder.create<program::LoadOp>(code.loc, pointer, address, 8);
      Value size = host.loadInteger(graph::storageOf(element.input), memory, element.index);
      code.when(code.less(size, code.number(0)), [&] { host.fail(message, size, size); });
      code.store(i64, code.max(size, code.number(0)), given,
                 code.number(storage.inputSymbols.at(*symbol.symbolName())));
    }
  }
  bindTotals(host, sizes, inputs, given);
  Value status = builder.create<program::StatusOp>(code.loc, host.call());
  builder.create<func::ReturnOp>(code.loc, status);
}

} // namespace heddle::lower
