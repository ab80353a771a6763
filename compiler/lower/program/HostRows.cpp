// HostRows: lengths of rows, and launches of kernels that compute one row at a time.
//
// A launch of all rows cuts their work, not their number, into equal parts: each worker finds by
// bisection the row where its part begins, and calls the kernel for each row, with pointers to the
// row's part of each tensor. It is what CoRa's thread remapping is for, without a permutation.

#include "compiler/graph/ragged/Ragged.h"
#include "compiler/lower/program/Host.h"

using namespace mlir;

namespace heddle::lower {

using program::kRowParts;

Value Host::isNonzero(Type element, Value memory, Value index) {
  Value value = code->load(element, memory, index);
  Type type = value.getType();
  if (isa<FloatType>(type))
    return builder.create<arith::CmpFOp>(code->loc, arith::CmpFPredicate::UNE, value,
                                         code->constantOf(type, 0));
  return builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne, value,
                                       code->integerOf(type, 0));
}

/// The length of a row, 0 where it is none; whether it is none, as the row of a mask is that has
/// ones after a zero; and what was found.
Values Host::lengthOfRow(Value memory, Value row) {
  graph::RowLengthsOp op = tables.lengths;
  Type element = graph::elementOf(op.getX()), i64 = builder.getI64Type();
  Value zero = code->number(0), size = sizeCode->symbols.at(op.getSize().str()), length, isWrong;
  if (graph::rankOf(op.getX()) == 1) {
    length = code->load(element, memory, row);
    if (element.getIntOrFloatBitWidth() < 64)
      length = element.isSignlessInteger(1) || element.isUnsignedInteger()
                   ? builder.create<arith::ExtUIOp>(code->loc, i64, length).getResult()
                   : builder.create<arith::ExtSIOp>(code->loc, i64, length).getResult();
    isWrong =
        builder.create<arith::OrIOp>(code->loc, code->less(length, zero), code->less(size, length));
  } else {
    Value first = code->mul(row, size);
    Values counts = code->fold(zero, size, 1, {zero, zero}, [&](Value i, ValueRange sums) {
      Value isOne = isNonzero(element, memory, code->add(first, i));
      Value one = builder.create<arith::ExtUIOp>(code->loc, i64, isOne);
      // Ones at the end of the ones so far are a prefix.
      Value isPrefix =
          builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::eq, sums[1], i);
      Value inPrefix = builder.create<arith::ExtUIOp>(code->loc, i64, code->both(isOne, isPrefix));
      return Values{code->add(sums[0], one), code->add(sums[1], inPrefix)};
    });
    length = counts[0];
    isWrong =
        builder.create<arith::CmpIOp>(code->loc, arith::CmpIPredicate::ne, counts[0], counts[1]);
  }
  Value checked = builder.create<arith::SelectOp>(code->loc, isWrong, zero, length);
  return {checked, isWrong, length};
}

/// The message for a row whose length is refused, with its number and what was found.
std::string Host::wrongLength() {
  graph::RowLengthsOp op = tables.lengths;
  std::string input = "input '" + graph::sourceName(op.getLoc()) + "': ";
  if (graph::rankOf(op.getX()) == 1)
    return input + "row %lld has the length %lld, which must be from 0 to '" + op.getSize().str() +
           "'";
  return input + "row %lld has ones after a zero (%lld ones): a mask that gives lengths must be "
                 "ones and then zeros";
}

/// In heddle_program_bind: sums over all rows, which sizes name.
void Host::bindTotals(Value inputs, Value given) {
  if (!tables.lengths)
    return;
  Type i64 = builder.getI64Type(), pointer = code->pointerType();
  for (auto &[name, index] : storage.inputSymbols)
    if (!graph::summedBy(name))
      sizeCode->symbols[name] = code->load(i64, given, code->number(index));
  auto input = cast<BlockArgument>(tables.lengths.getX());
  Value address = code->at(inputs, pointer, code->number(input.getArgNumber()));
  Value memory = builder.create<program::LoadOp>(code->loc, pointer, address, 8);
  Value rows = sizeCode->symbols.at(tables.of());
  std::string size = graph::rowSize(tables.lengths.getSize(), tables.of()).symbolName().value();
  Values zeros(tables.totals.size(), code->number(0));
  Values sums = code->fold(code->number(0), rows, 1, zeros, [&](Value row, ValueRange before) {
    Values found = lengthOfRow(memory, row);
    code->when(found[1], [&] { fail(wrongLength(), row, found[2]); });
    Value overflow;
    SizeArithmetic arithmetic{*code, &overflow};
    Values after;
    for (auto [total, sum] : llvm::zip(tables.totals, before))
      after.push_back(arithmetic.add(sum, arithmetic.emit(total, [&](StringRef name) {
        return name == size ? found[0] : sizeCode->symbols.at(name.str());
      })));
    failIf(overflow, "the sum of the lengths is larger than any memory");
    return after;
  });
  for (auto [total, sum] : llvm::zip(tables.totals, sums))
    code->store(i64, code->max(sum, code->number(0)), given,
                code->number(storage.inputSymbols.at(
                    graph::overRows(total, tables.of()).symbolName().value())));
}

Value Host::tableAt(Value table, Value rows, int64_t sum) {
  Value stride = code->add(rows, code->number(1));
  return code->at(table, builder.getI64Type(), code->mul(stride, code->number(1 + sum)));
}

/// The tables, once the lengths are there. They are read again, so that what was checked before is
/// held against what is found now: the caller may have changed them meanwhile.
void Host::writeTables(graph::RowLengthsOp op) {
  Type i64 = builder.getI64Type();
  auto buffer = storage.bufferOf.find(op.getLengths());
  Value table = buffer == storage.bufferOf.end()
                    ? alloc(dim(tables.bytes()))
                    : code->at(arena, builder.getI8Type(), offsets[buffer->second]);
  pointers[op.getLengths()] = table;
  Value memory = pointerOf(op.getX()), rows = dim(tables.rows()), zero = code->number(0);
  std::string size = graph::rowSize(op.getSize(), tables.of()).symbolName().value();
  std::vector<Check> checks = rowChecks();
  code->when(isFine(), [&] {
    size_t sums = tables.sums.size(), totals = tables.totals.size();
    Values initial(sums + totals + tables.greatest.size(), zero);
    Values last = code->fold(zero, rows, 1, initial, [&](Value row, ValueRange before) {
      Values found = lengthOfRow(memory, row), after;
      code->when(found[1], [&] { fail(wrongLength(), row, found[2]); });
      code->store(i64, found[0], table, row);
      sizeCode->symbols[size] = found[0];
      for (const Check &check : checks)
        failUnless(check);
      Value overflow;
      SizeArithmetic arithmetic{*code, &overflow};
      for (auto [i, sum] : llvm::enumerate(tables.sums)) {
        code->store(i64, before[i], tableAt(table, rows, i), row);
        after.push_back(arithmetic.add(before[i], code->max(sizeCode->of(sum, &overflow), zero)));
      }
      for (auto [i, total] : llvm::enumerate(tables.totals))
        after.push_back(arithmetic.add(before[sums + i], sizeCode->of(total, &overflow)));
      for (auto [i, each] : llvm::enumerate(tables.greatest))
        after.push_back(code->max(before[sums + totals + i], sizeCode->of(each, &overflow)));
      failIf(overflow, "sizes of a row are larger than any memory");
      sizeCode->symbols.erase(size);
      return after;
    });
    for (size_t i = 0; i < sums; ++i)
      code->store(i64, last[i], tableAt(table, rows, i), rows);
    for (auto [i, total] : llvm::enumerate(tables.totals))
      requireSize(last[sums + i], dim(graph::overRows(total, tables.of())),
                  "the sum of the lengths");
    for (size_t i = 0; i < tables.greatest.size(); ++i)
      code->store(i64, last[sums + totals + i], tableAt(table, rows, sums), code->number(i));
  });
}

/// What groups of rows promise of the sizes of each row.
std::vector<Host::Check> Host::rowChecks() {
  std::vector<Check> checks;
  std::set<std::string> seen;
  std::string of = tables.of();
  model.walk([&](Operation *op) {
    if (graph::rowsOf(op).empty())
      return;
    forEachCheck(op, [&](Check check) {
      check.a = graph::inRow(check.a, of);
      check.b = graph::inRow(check.b, of);
      check.shape = graph::inRow(check.shape, of);
      check.told = graph::inRow(check.told, of);
      bool isOfRow = !graph::rowsOf(check.a).empty() || !graph::rowsOf(check.b).empty();
      std::string key = std::to_string(check.kind) + "|" + check.a.str() + "|" + check.b.str() +
                        "|" + std::to_string(check.shape.size());
      if (isOfRow && seen.insert(key).second)
        checks.push_back(std::move(check));
    });
  });
  return checks;
}

namespace {
/// A word of a kernel's arguments that is another one for each row.
struct RowArgument {
  int64_t slot, sum;
  int64_t scale; // bytes of a unit of what is summed; 0: the row's own value, no place
};
} // namespace

/// Runs the parts [begin, end) of the work of all rows. Slots: the table, the number of rows, then
/// those of the kernel, as they are for row 0.
func::FuncOp Host::rowDispatcher(func::FuncOp target, const Kernel &kernel, const Phase &phase) {
  SmallVector<RowArgument> varying;
  for (auto [slot, argument] : llvm::enumerate(kernel.arguments)) {
    int64_t number = slot;
    if (argument.kind == Argument::Kind::Tensor &&
        graph::hasRows(graph::dimsOf(argument.tensor), kernel.rows))
      varying.push_back({number,
                         tables.sumOf(RowTables::elementsOfRow(argument.tensor, kernel.rows)),
                         graph::bytesOf(graph::elementOf(argument.tensor))});
    if (argument.kind == Argument::Kind::Temporary)
      varying.push_back({number, tables.sumOf(kernel.ofRow[argument.index]), 1});
    if (argument.kind == Argument::Kind::Size)
      if (Dim size = *Dim::parse(argument.text); !graph::rowsOf(size).empty())
        varying.push_back({number, tables.sumOf(size), 0});
  }
  int64_t taskSum = tables.sumOf(RowTables::tasksOf(kernel, phase)),
          workSum = tables.sumOf(RowTables::workOf(kernel, phase)), count = kernel.arguments.size();
  std::string key = ("rows " + target.getSymName() + " " + Twine(count) + " " + Twine(taskSum) +
                     " " + Twine(workSum))
                        .str();
  for (const RowArgument &each : varying)
    key += (" " + Twine(each.slot) + ":" + Twine(each.sum) + ":" + Twine(each.scale)).str();
  func::FuncOp &known = dispatchers[key];
  if (known)
    return known;
  OpBuilder b(builder.getContext());
  b.setInsertionPoint(function);
  known = b.create<func::FuncOp>(code->loc, "rows" + std::to_string(dispatchers.size()),
                                 target.getFunctionType());
  known.setPrivate();
  Block *body = known.addEntryBlock();
  b.setInsertionPointToEnd(body);
  Code inside(b, code->loc, 1);
  Type i64 = b.getI64Type(), pointer = inside.pointerType();
  Value slots = body->getArgument(0), zero = inside.number(0), one = inside.number(1);
  Value own = b.create<program::ArrayOp>(code->loc, count);
  Value table = b.create<program::ArgumentOp>(code->loc, pointer, slots, 0, false);
  Value rows = inside.load(i64, slots, one), stride = inside.add(rows, one);
  auto sumsOf = [&](int64_t sum) {
    return inside.at(table, i64, inside.mul(stride, inside.number(1 + sum)));
  };
  Value tasks = sumsOf(taskSum), work = sumsOf(workSum);
  for (int64_t i = 0; i < count; ++i)
    if (llvm::none_of(varying, [&](const RowArgument &each) { return each.slot == i; }))
      inside.store(i64, inside.load(i64, slots, inside.number(2 + i)), own, inside.number(i));
  // total * part / kRowParts, without a product that could leave int64.
  Value total = inside.load(i64, work, rows), parts = inside.number(kRowParts);
  auto before = [&](Value part) {
    Value whole = inside.mul(inside.div(total, parts), part);
    return inside.add(whole, inside.div(inside.mul(inside.rem(total, parts), part), parts));
  };
  Value low = before(body->getArgument(1)), high = before(body->getArgument(2));
  // The last row that begins at `low` or before.
  Value steps = inside.number(64);
  Values found = inside.fold(zero, steps, 1, {zero, rows}, [&](Value, ValueRange range) {
    Value middle = inside.div(inside.add(range[0], range[1]), inside.number(2));
    Value isAfter = inside.less(low, inside.load(i64, work, middle));
    auto select = [&](Value x, Value y) -> Value {
      return b.create<arith::SelectOp>(code->loc, isAfter, x, y);
    };
    return Values{select(range[0], middle), select(middle, range[1])};
  });
  inside.forEach(found[0], rows, 1, [&](Value row) {
    Value next = inside.add(row, one);
    Value start = inside.load(i64, work, row), end = inside.load(i64, work, next);
    Value all = inside.sub(inside.load(i64, tasks, next), inside.load(i64, tasks, row));
    Value ofTask = inside.max(inside.div(inside.sub(end, start), inside.max(all, one)), one);
    auto taskAt = [&](Value place) {
      Value inRow = inside.max(inside.sub(place, start), zero);
      return inside.min(inside.div(inRow, ofTask), all);
    };
    Value first = taskAt(low), last = taskAt(high);
    inside.when(inside.less(first, last), [&] {
      for (const RowArgument &each : varying) {
        Value sums = sumsOf(each.sum), place = inside.load(i64, sums, row);
        Value value = inside.sub(inside.load(i64, sums, next), place);
        if (each.scale)
          value = inside.add(inside.load(i64, slots, inside.number(2 + each.slot)),
                             inside.mul(place, inside.number(each.scale)));
        inside.store(i64, value, own, inside.number(each.slot));
      }
      b.create<func::CallOp>(code->loc, target, ValueRange{own, first, last, body->getArgument(3)});
    });
  });
  b.create<func::ReturnOp>(code->loc);
  return known;
}

void Host::launchRows(graph::GroupOp group) {
  const Kernel &kernel = *kernels.at(group);
  Type i64 = builder.getI64Type();
  int64_t base = openSlots;
  Value table = pointerOf(tables.lengths.getLengths()), rows = dim(tables.rows());
  code->store(i64, builder.create<program::WordOp>(code->loc, table), arguments,
              code->number(base));
  code->store(i64, rows, arguments, code->number(base + 1));
  storeArguments(group, base + 2);
  Value slots = code->at(arguments, i64, code->number(base));
  int64_t number = llvm::find(program.kernels, group.getName()) - program.kernels.begin();
  profile(group, [&] {
    for (const Phase &phase : kernel.phases) {
      program.rowLaunches.push_back({number, RowTables::tasksOf(kernel, phase).str(),
                                     RowTables::workOf(kernel, phase).str()});
      func::FuncOp dispatcher = rowDispatcher(functionOf(phase), kernel, phase);
      bool needsScratch = !phase.scratchBytes.isConstant(0);
      code->when(isFine(), [&] {
        Value greatest = code->load(i64, tableAt(table, rows, tables.sums.size()),
                                    code->number(tables.greatestOf(phase.scratchBytes)));
        Value all = code->load(
            i64, tableAt(table, rows, tables.sumOf(RowTables::workOf(kernel, phase))), rows);
        launch(dispatcher, slots, code->number(kRowParts), all, greatest, needsScratch);
      });
      ++program.launches;
    }
  });
}

} // namespace heddle::lower
