// Rows: lengths, tables and launches of rows.

#include "compiler/lower/host/Rows.h"

#include "compiler/graph/edit/Words.h"
#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle::lower {

using program::kRowParts;

Value Lengths::isNonzero(Value memory, Value index) {
  Code &code = host.code;
  OpBuilder &builder = host.builder;
  Value value = code.load(graph::storageOf(op.getX()), memory, index);
  Type type = value.getType();
  if (isa<FloatType>(type))
    return builder.create<arith::CmpFOp>(code.loc, arith::CmpFPredicate::UNE, value,
                                         code.constantOf(type, 0));
  return builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, value,
                                       code.integerOf(type, 0));
}

/// The length of a row, 0 if it is none; whether it is none, as the row of a mask is that has
/// ones after a zero; and what was found.
Values Lengths::found(Value memory, Value row) {
  Code &code = host.code;
  OpBuilder &builder = host.builder;
  Type element = graph::storageOf(op.getX()), i64 = builder.getI64Type();
  Value zero = code.number(0), size = sizes.symbols.at(op.getSize().str()), length, isWrong;
  if (graph::rankOf(op.getX()) == 1) {
    length = code.load(element, memory, row);
    if (element.getIntOrFloatBitWidth() < 64)
      length = element.isSignlessInteger(1) || element.isUnsignedInteger()
                   ? builder.create<arith::ExtUIOp>(code.loc, i64, length).getResult()
                   : builder.create<arith::ExtSIOp>(code.loc, i64, length).getResult();
    isWrong =
        builder.create<arith::OrIOp>(code.loc, code.less(length, zero), code.less(size, length));
  } else {
    Value first = code.mul(row, size);
    Values counts = code.fold(zero, size, 1, {zero, zero}, [&](Value i, ValueRange sums) {
      Value isOne = isNonzero(memory, code.add(first, i));
      Value one = builder.create<arith::ExtUIOp>(code.loc, i64, isOne);
      // Ones at the end of the ones so far are a prefix.
      Value isPrefix =
          builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::eq, sums[1], i);
      Value inPrefix = builder.create<arith::ExtUIOp>(code.loc, i64, code.both(isOne, isPrefix));
      return Values{code.add(sums[0], one), code.add(sums[1], inPrefix)};
    });
    length = counts[0];
    isWrong =
        builder.create<arith::CmpIOp>(code.loc, arith::CmpIPredicate::ne, counts[0], counts[1]);
  }
  Value checked = builder.create<arith::SelectOp>(code.loc, isWrong, zero, length);
  return {checked, isWrong, length};
}

/// The message for a row whose length is refused, with its number and what was found.
std::string Lengths::wrongLength() {
  std::string input = "input '" + graph::sourceName(op.getLoc()) + "': ";
  if (graph::rankOf(op.getX()) == 1)
    return input + "row %lld has the length %lld, which must be from 0 to '" + op.getSize().str() +
           "'";
  return input + "row %lld has ones after a zero (%lld ones): a mask that gives lengths must be "
                 "ones and then zeros";
}

Value Lengths::of(Value memory, Value row) {
  Values length = found(memory, row);
  host.code.when(length[1], [&] { host.fail(wrongLength(), row, length[2]); });
  return length[0];
}

Value Rows::tableAt(Value table, Value rows, int64_t sum) {
  Value stride = code.add(rows, code.number(1));
  return code.at(table, builder.getI64Type(), code.mul(stride, code.number(1 + sum)));
}

void Rows::writeTables() {
  graph::RowLengthsOp op = tables.lengths;
  Type i64 = builder.getI64Type();
  Lengths lengths(host, written, op);
  Value table = memory.makeRoom(op.getLengths(), tables.bytes());
  Value given = memory.pointerOf(op.getX()), rows = sizes.dim(tables.rows()), zero = code.number(0);
  std::string size = graph::rowSize(op.getSize(), tables.of()).symbolName().value();
  std::vector<Check> ofRow = checksOfRow();
  code.when(host.isFine(), [&] {
    size_t sums = tables.sums.size(), totals = tables.totals.size();
    Values initial(sums + totals + tables.greatest.size(), zero);
    Values last = code.fold(zero, rows, 1, initial, [&](Value row, ValueRange before) {
      Value length = lengths.of(given, row);
      Values after;
      code.store(i64, length, table, row);
      sizes.symbols[size] = length;
      for (const Check &check : ofRow)
        checks.failUnless(check);
      Value overflow;
      SizeArithmetic arithmetic{code, &overflow};
      for (auto [i, sum] : llvm::enumerate(tables.sums)) {
        code.store(i64, before[i], tableAt(table, rows, i), row);
        after.push_back(arithmetic.add(before[i], code.max(written.of(sum, &overflow), zero)));
      }
      for (auto [i, total] : llvm::enumerate(tables.totals))
        after.push_back(arithmetic.add(before[sums + i], written.of(total, &overflow)));
      for (auto [i, each] : llvm::enumerate(tables.greatest))
        after.push_back(code.max(before[sums + totals + i], written.of(each, &overflow)));
      host.failIf(overflow, "sizes of a row are larger than any memory");
      sizes.symbols.erase(size);
      return after;
    });
    for (size_t i = 0; i < sums; ++i)
      code.store(i64, last[i], tableAt(table, rows, i), rows);
    for (auto [i, total] : llvm::enumerate(tables.totals))
      sizes.requireSize(last[sums + i], sizes.dim(graph::overRows(total, tables.of())),
                        "the sum of the lengths");
    for (size_t i = 0; i < tables.greatest.size(); ++i)
      code.store(i64, last[sums + totals + i], tableAt(table, rows, sums), code.number(i));
  });
}

/// Checks of the sizes of each row, as groups of rows promise them.
std::vector<Check> Rows::checksOfRow() {
  std::vector<Check> found;
  std::set<std::string> seen;
  std::string of = tables.of();
  host.model.walk([&](Operation *op) {
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
        found.push_back(std::move(check));
    });
  });
  return found;
}

namespace {
/// A word of a kernel's arguments that is another one for each row.
struct RowArgument {
  int64_t slot, sum;
  int64_t scale; // bytes of a unit of what is summed; 0: the row's own value, no place
};
/// Numbers that a launch of all rows reads.
struct RowPlan {
  SmallVector<RowArgument> varying;
  int64_t tasks, work; // the numbers of their sums
  int64_t slots;       // of the kernel
};
} // namespace

/// Runs the parts [begin, end) of the work of all rows. Slots: the table, the number of rows, then
/// those of the kernel, as they are for row 0.
static void writeParts(Code &code, Block &body, func::FuncOp target, const RowPlan &plan) {
  Type i64 = code.b.getI64Type(), pointer = code.pointerType();
  Value slots = body.getArgument(0), zero = code.number(0), one = code.number(1);
  Value own = code.b.create<program::ArrayOp>(code.loc, plan.slots);
  Value table = code.b.create<program::ArgumentOp>(code.loc, pointer, slots, 0, false);
  Value rows = code.load(i64, slots, one), stride = code.add(rows, one);
  auto sumsOf = [&](int64_t sum) {
    return code.at(table, i64, code.mul(stride, code.number(1 + sum)));
  };
  Value tasks = sumsOf(plan.tasks), work = sumsOf(plan.work);
  for (int64_t i = 0; i < plan.slots; ++i)
    if (llvm::none_of(plan.varying, [&](const RowArgument &each) { return each.slot == i; }))
      code.store(i64, code.load(i64, slots, code.number(2 + i)), own, code.number(i));
  // total * part / kRowParts, without a product that could leave int64.
  Value total = code.load(i64, work, rows), parts = code.number(kRowParts);
  auto before = [&](Value part) {
    Value whole = code.mul(code.div(total, parts), part);
    return code.add(whole, code.div(code.mul(code.rem(total, parts), part), parts));
  };
  Value low = before(body.getArgument(1)), high = before(body.getArgument(2));
  // The last row that begins at `low` or before.
  Value steps = code.number(64);
  Values found = code.fold(zero, steps, 1, {zero, rows}, [&](Value, ValueRange range) {
    Value middle = code.div(code.add(range[0], range[1]), code.number(2));
    Value isAfter = code.less(low, code.load(i64, work, middle));
    auto select = [&](Value x, Value y) -> Value {
      return code.b.create<arith::SelectOp>(code.loc, isAfter, x, y);
    };
    return Values{select(range[0], middle), select(middle, range[1])};
  });
  code.forEach(found[0], rows, 1, [&](Value row) {
    Value next = code.add(row, one);
    Value start = code.load(i64, work, row), end = code.load(i64, work, next);
    Value all = code.sub(code.load(i64, tasks, next), code.load(i64, tasks, row));
    Value ofTask = code.max(code.div(code.sub(end, start), code.max(all, one)), one);
    auto taskAt = [&](Value place) {
      Value inRow = code.max(code.sub(place, start), zero);
      return code.min(code.div(inRow, ofTask), all);
    };
    Value first = taskAt(low), last = taskAt(high);
    code.when(code.less(first, last), [&] {
      for (const RowArgument &each : plan.varying) {
        Value sums = sumsOf(each.sum), place = code.load(i64, sums, row);
        Value value = code.sub(code.load(i64, sums, next), place);
        if (each.scale)
          value = code.add(code.load(i64, slots, code.number(2 + each.slot)),
                           code.mul(place, code.number(each.scale)));
        code.store(i64, value, own, code.number(each.slot));
      }
      code.b.create<func::CallOp>(code.loc, target,
                                  ValueRange{own, first, last, body.getArgument(3)});
    });
  });
}

func::FuncOp Rows::dispatcherOf(func::FuncOp target, const Kernel &kernel, const Phase &phase) {
  RowPlan plan;
  for (auto [slot, argument] : llvm::enumerate(kernel.arguments)) {
    int64_t number = slot;
    if (argument.kind == Argument::Kind::Tensor &&
        graph::hasRows(graph::dimsOf(argument.tensor), kernel.rows))
      plan.varying.push_back({number,
                              tables.sumOf(RowTables::elementsOfRow(argument.tensor, kernel.rows)),
                              graph::bytesOf(graph::storageOf(argument.tensor))});
    if (argument.kind == Argument::Kind::Temporary)
      plan.varying.push_back({number, tables.sumOf(kernel.ofRow[argument.index]), 1});
    if (argument.kind == Argument::Kind::Size)
      if (Dim size = *Dim::parse(argument.text); !graph::rowsOf(size).empty())
        plan.varying.push_back({number, tables.sumOf(size), 0});
  }
  plan.tasks = tables.sumOf(RowTables::tasksOf(kernel, phase));
  plan.work = tables.sumOf(RowTables::workOf(kernel, phase));
  plan.slots = kernel.arguments.size();
  std::string key = ("rows " + target.getSymName() + " " + Twine(plan.slots) + " " +
                     Twine(plan.tasks) + " " + Twine(plan.work))
                        .str();
  for (const RowArgument &each : plan.varying)
    key += (" " + Twine(each.slot) + ":" + Twine(each.sum) + ":" + Twine(each.scale)).str();
  return launcher.dispatcher("rows", key, target.getFunctionType(), [&](Code &inside, Block &body) {
    writeParts(inside, body, target, plan);
  });
}

void Rows::launch(graph::GroupOp group, const Kernel &kernel) {
  Type i64 = builder.getI64Type();
  int64_t base = launcher.firstSlot();
  Value table = memory.pointerOf(tables.lengths.getLengths()), rows = sizes.dim(tables.rows());
  launcher.store(builder.create<program::WordOp>(code.loc, table), base);
  launcher.store(rows, base + 1);
  launcher.storeArguments(group, base + 2);
  Value slots = launcher.slotsFrom(base);
  int64_t number = llvm::find(host.program.kernels, group.getName()) - host.program.kernels.begin();
  launcher.profile(group, [&] {
    for (const Phase &phase : kernel.phases) {
      host.program.rowLaunches.push_back({number, RowTables::tasksOf(kernel, phase).str(),
                                          RowTables::workOf(kernel, phase).str()});
      func::FuncOp dispatcher =
          dispatcherOf(launcher.functionOf(phase, kernel.arguments.size()), kernel, phase);
      bool needsScratch = !phase.scratchBytes.isConstant(0);
      code.when(host.isFine(), [&] {
        Value greatest = code.load(i64, tableAt(table, rows, tables.sums.size()),
                                   code.number(tables.greatestOf(phase.scratchBytes)));
        Value all = code.load(
            i64, tableAt(table, rows, tables.sumOf(RowTables::workOf(kernel, phase))), rows);
        launcher.launch(dispatcher, slots, code.number(kRowParts), all, greatest, needsScratch);
      });
      ++host.program.launches;
    }
  });
}

} // namespace heddle::lower
