// RowTables: which sums ragged kernels need.

#include "compiler/lower/program/RowTables.h"

#include "compiler/graph/edit/Clone.h"
#include "compiler/graph/edit/Sizes.h"
#include "compiler/graph/ragged/Ragged.h"

using namespace mlir;

namespace heddle::lower {

static constexpr int64_t kRowAlignment = 64;

RowGroup::RowGroup(graph::GroupOp group, StringRef of) : of(of) {
  auto whole = group->getParentOfType<ModuleOp>();
  module = ModuleOp::create(group.getLoc());
  (*module)->setAttrs(whole->getAttrDictionary());
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  SmallVector<Value> inputs, constants;
  llvm::SmallPtrSet<Operation *, 4> seen;
  for (Value used : graph::usedBy(group)) {
    auto constant = used.getDefiningOp<graph::ConstantOp>();
    if (!constant)
      inputs.push_back(used);
    else if (seen.insert(constant).second)
      constants.push_back(used);
  }
  auto function = builder.create<func::FuncOp>(
      group.getLoc(), "row", builder.getFunctionType(TypeRange(ValueRange(inputs)), {}));
  builder.setInsertionPointToEnd(function.addEntryBlock());
  IRMapping mapping;
  for (auto [from, to] : llvm::zip(inputs, function.getArguments()))
    mapping.map(from, to);
  for (Value constant : constants)
    builder.clone(*constant.getDefiningOp(), mapping);
  copy = cast<graph::GroupOp>(builder.clone(*group, mapping));
  builder.create<func::ReturnOp>(group.getLoc());
  graph::replaceDims(function, [&](const Dim &dim) { return graph::inRow(dim, of); });
  for (auto [from, to] : mapping.getValueMap())
    original[to] = from;
}

/// Rounds bytes up, so that each row's part begins at a vector.
static Dim aligned(const Dim &bytes) {
  return bytes.ceilDiv(Dim(kRowAlignment)) * Dim(kRowAlignment);
}

void RowGroup::restore(Kernel &kernel) const {
  kernel.rows = of;
  for (Argument &argument : kernel.arguments)
    if (argument.kind == Argument::Kind::Tensor)
      argument.tensor = original.lookup(argument.tensor);
  kernel.ofRow = kernel.temporaries;
  for (auto [all, ofRow] : llvm::zip(kernel.temporaries, kernel.ofRow)) {
    ofRow = aligned(ofRow);
    all = graph::overRows(ofRow, of);
  }
}

Dim RowTables::elementsOfRow(Value tensor, StringRef of) {
  return graph::elementCount(graph::inRow(graph::dimsOf(tensor), of));
}

/// 1 if the sizes are within the bounds, else 0.
static Dim areWithin(ArrayRef<Bound> bounds) {
  Dim all(1);
  for (const Bound &bound : bounds)
    all = all * Dim::max(Dim::min(Dim(bound.most + 1) - bound.size, Dim(1)), Dim(0));
  return all;
}

Dim RowTables::tasksOf(const Kernel &kernel, const Phase &phase) {
  Dim tasks = Dim::max(phase.tasks, Dim(0));
  for (int64_t i = 0; i <= phase.version; ++i) {
    Dim isIt = areWithin(kernel.versions[i]);
    tasks = tasks * (i == phase.version ? isIt : Dim(1) - isIt);
  }
  return tasks;
}

Dim RowTables::workOf(const Kernel &kernel, const Phase &phase) {
  Dim ofTask = phase.work.ceilDiv(Dim::max(phase.tasks, Dim(1)));
  return Dim::max(ofTask, Dim(1)) * tasksOf(kernel, phase);
}

void RowTables::add(std::vector<Dim> &to, const Dim &dim) {
  if (!llvm::is_contained(to, dim))
    to.push_back(dim);
}

void RowTables::addTotals(const Dim &dim) {
  for (const std::string &name : dim.symbolNames())
    if (auto product = graph::summedBy(name))
      add(totals, *product);
}

RowTables::RowTables(func::FuncOp model,
                     const std::map<Operation *, std::shared_ptr<Kernel>> &kernels) {
  auto found = model.getOps<graph::RowLengthsOp>();
  if (found.empty())
    return;
  lengths = *found.begin();
  model.walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (isa<RankedTensorType>(result.getType()))
        addTotals(graph::elementCount(graph::dimsOf(result)));
  });
  std::string rows = of();
  model.walk([&](graph::GroupOp group) { // in order, for equal bytes
    const Kernel &kernel = *kernels.at(group);
    for (const Dim &bytes : kernel.temporaries)
      addTotals(bytes);
    if (kernel.rows.empty())
      return;
    for (const Argument &argument : kernel.arguments) {
      if (argument.kind == Argument::Kind::Tensor &&
          graph::hasRows(graph::dimsOf(argument.tensor), rows))
        add(sums, elementsOfRow(argument.tensor, rows));
      if (argument.kind == Argument::Kind::Temporary)
        add(sums, kernel.ofRow[argument.index]);
      if (Dim size = argument.kind == Argument::Kind::Size ? *Dim::parse(argument.text) : Dim(0);
          !graph::rowsOf(size).empty())
        add(sums, size);
    }
    for (const Phase &phase : kernel.phases) {
      add(sums, tasksOf(kernel, phase));
      add(sums, workOf(kernel, phase));
      add(greatest, phase.scratchBytes);
    }
  });
}

int64_t RowTables::sumOf(const Dim &ofRow) const { return llvm::find(sums, ofRow) - sums.begin(); }

int64_t RowTables::greatestOf(const Dim &ofRow) const {
  return llvm::find(greatest, ofRow) - greatest.begin();
}

Dim RowTables::bytes() {
  Dim entries = (rows() + Dim(1)) * Dim(1 + sums.size()) + Dim(greatest.size());
  return entries * Dim(sizeof(int64_t));
}

} // namespace heddle::lower
