// Host: heddle_program_run from its parts, and the functions beside it.

#include "compiler/lower/host/Host.h"

#include "compiler/graph/edit/Words.h"
#include "compiler/lower/host/Bindings.h"
#include "compiler/lower/host/Checks.h"
#include "compiler/lower/host/Control.h"
#include "compiler/lower/host/Entry.h"
#include "compiler/lower/host/Launcher.h"
#include "compiler/lower/host/Rows.h"
#include "compiler/lower/host/Services.h"
#include "compiler/lower/program/RowBlocks.h"

using namespace mlir;

namespace heddle::lower {

namespace {
/// heddle_program_run while it is written.
class Run {
public:
  Run(func::FuncOp model, program::Program &program, const Kernels &kernels, const Storage &storage,
      RowTables &tables);

  void write();

  EntrySizes entrySizes;

private:
  void writeBlock(Block &block);
  void writeOp(Operation &op);
  void writeGroup(graph::GroupOp group);
  Values savedInputs(func::ReturnOp op);
  void writeOutputs(func::ReturnOp op);

  const Storage &storage;
  Writer host;
  SizeCode written;
  Sizes sizes;
  Regions regions;
  Value arguments;
  Memory memory;
  Checks checks;
  Bindings bindings;
  Launcher launcher;
  Rows rows;
  Services services;
  Routines routines;
  Control control;
};
} // namespace

/// Binds the symbols of inputs; returns the slots of all launches.
static Value enter(Writer &host, SizeCode &sizes, const Storage &storage, int64_t slots) {
  Value given = host.area(program::Area::Symbols);
  Code &code = host.entryCode;
  for (auto &[name, index] : storage.inputSymbols)
    sizes.symbols[name] = code.load(code.b.getI64Type(), given, code.number(index));
  return host.array(slots);
}

static Memory memoryOf(Writer &host, SizeCode &written, Sizes &sizes, const Storage &storage) {
  Values arenas;
  for (int64_t space = 0; space < storage.spaces; ++space)
    arenas.push_back(host.area(program::Area::Arena, space));
  return Memory(host, sizes, storage, arenas, placeBuffers(host.code, written, storage, nullptr));
}

Run::Run(func::FuncOp model, program::Program &program, const Kernels &kernels,
         const Storage &storage, RowTables &tables)
    : storage(storage), host(model, program, "heddle_program_run", 1), written(host.code),
      sizes(host, written, storage, entrySizes), regions(kernels),
      arguments(enter(host, written, storage, regions.argumentSlots(model))),
      memory(memoryOf(host, written, sizes, storage)), checks(host, written, storage),
      bindings(host, sizes, memory, storage),
      launcher(host, sizes, memory, storage, regions, arguments),
      rows(host, written, sizes, memory, checks, launcher, tables), services(host, sizes, memory),
      routines(host, sizes, memory),
      control(host, sizes, memory, [this](Block &block) { writeBlock(block); }) {}

void Run::write() {
  memory.bindEntry();
  checks.assumeEntry();
  writeBlock(host.model.getBody().front());
  Value status = host.builder.create<program::StatusOp>(host.code.loc, host.call());
  host.builder.create<func::ReturnOp>(host.code.loc, status);
}

/// The op's source in the model; if a rewrite made it without saying so, that of the nearest op
/// which reads it, or which it reads, or which is around it.
static Location sourceOf(Operation &op) {
  auto isNamed = [](Location location) { return !graph::sourceName(location).empty(); };
  SmallVector<Operation *> found{&op};
  llvm::SmallPtrSet<Operation *, 16> seen{&op};
  auto visit = [&](Operation *next) {
    if (next && seen.insert(next).second)
      found.push_back(next);
  };
  for (size_t i = 0; i < found.size(); ++i) {
    if (isNamed(found[i]->getLoc()))
      return found[i]->getLoc();
    llvm::for_each(found[i]->getUsers(), visit);
    for (Value operand : found[i]->getOperands())
      visit(operand.getDefiningOp());
    if (Operation *around = found[i]->getParentOp(); !isa<func::FuncOp>(around))
      visit(around);
  }
  return op.getLoc();
}

void Run::writeBlock(Block &block) {
  std::string outer = host.node;
  Location before = host.code.loc;
  checks.beginBlock();
  for (Operation &op : block) {
    host.code.loc = sourceOf(op);
    host.node = graph::nodeText(host.code.loc) + ": ";
    writeOp(op);
  }
  checks.endBlock();
  host.node = outer;
  host.code.loc = before;
}

void Run::writeGroup(graph::GroupOp group) {
  bindings.bindGroup(group);
  checks.write(group);
  const Kernel &kernel = regions.kernelOf(group);
  if (kernel.rows.empty())
    launcher.write(group);
  else
    rows.launch(group, kernel);
}

void Run::writeOp(Operation &op) {
  if (auto group = dyn_cast<graph::GroupOp>(op))
    writeGroup(group);
  else if (auto reshape = dyn_cast<graph::ReshapeOp>(op))
    checks.write(reshape);
  else if (auto branch = dyn_cast<graph::IfOp>(op))
    control.write(branch);
  else if (auto loop = dyn_cast<graph::LoopOp>(op))
    control.write(loop);
  else if (auto scan = dyn_cast<graph::ScanOp>(op))
    control.write(scan);
  else if (auto reshape = dyn_cast<graph::DynamicReshapeOp>(op)) {
    bindings.bind(reshape);
    checks.write(reshape);
  } else if (auto bind = dyn_cast<graph::BindSizesOp>(op))
    bindings.bind(bind);
  else if (isa<graph::RowLengthsOp>(op))
    rows.writeTables();
  else if (op.hasTrait<graph::Routine>() || isa<graph::CustomOp>(op))
    routines.write(&op);
  else if (op.hasTrait<graph::Hosted>())
    services.write(&op);
  else if (auto results = dyn_cast<func::ReturnOp>(op))
    writeOutputs(results);
}

/// Copies of inputs that are outputs themselves, where others take the place of the input: one an
/// output, most of them null.
Values Run::savedInputs(func::ReturnOp op) {
  Values saved(op.getNumOperands());
  for (auto [i, output] : llvm::enumerate(op.getOperands())) {
    auto input = dyn_cast<BlockArgument>(storage.rootOf(output));
    bool isOverwritten = false;
    for (int64_t other = 0; input && other < (int64_t)op.getNumOperands(); ++other)
      isOverwritten |= other != (int64_t)i && storage.sharedInput(other) == input.getArgNumber();
    if (!isOverwritten)
      continue;
    Value bytes = sizes.checkedBytes(output);
    saved[i] = host.alloc(bytes);
    host.copy(saved[i], memory.pointerOf(output), bytes);
  }
  return saved;
}

void Run::writeOutputs(func::ReturnOp op) {
  Code &code = host.code;
  OpBuilder &builder = host.builder;
  Type i64 = builder.getI64Type(), pointer = code.pointerType();
  Values saved = savedInputs(op);
  Value dims = host.area(program::Area::OutputDims);
  int64_t place = 0;
  for (auto [i, output] : llvm::enumerate(op.getOperands())) {
    bool isKnown = storage.isEntryKnown(output);
    for (const Dim &size : graph::dimsOf(output)) {
      if (!isKnown)
        code.store(i64, sizes.dim(size), dims, code.number(place));
      ++place;
    }
    auto direct = storage.outputOf.find(storage.rootOf(output));
    if (direct != storage.outputOf.end() && direct->second == (int64_t)i)
      continue;
    auto late = storage.lateOutputOf.find(storage.rootOf(output));
    if (late != storage.lateOutputOf.end() && late->second == (int64_t)i)
      continue;
    Value bytes = sizes.checkedBytes(output), target;
    int64_t space = storage.spaceOf(storage.rootOf(output));
    Value source = saved[i] ? saved[i] : memory.pointerOf(output, space);
    if (isKnown) {
      Value outputs = host.area(program::Area::Outputs);
      Value address = code.at(outputs, pointer, code.number(i));
      target = builder.create<program::LoadOp>(code.loc, pointer, address, 8);
    } else {
      target = host.allocOutput(i, bytes);
    }
    host.copy(target, source, bytes);
  }
}

void writeHost(func::FuncOp model, const Kernels &kernels, const mechanism::Placements &placements,
               program::Program &program) {
  RowTables tables(model, kernels);
  Storage storage(model, kernels, placements, tables, program);
  Run run(model, program, kernels, storage, tables);
  run.write();
  Entry entry(model, program, storage, tables);
  entry.writeSizes(run.entrySizes); // after the run, which says what has to be checked
  if (program.bindsValues)
    entry.writeBind();
  program.rowBlocks = rowBlocksOf(model, tables, storage);
}

} // namespace heddle::lower
