// Emit: the functions are made ready, printed, and put between the tables and the entries.

#include "compiler/target/c/Emit.h"

#include "compiler/program/Identifier.h"
#include "compiler/target/c/Interface.h"
#include "compiler/target/c/Printer.h"
#include "compiler/target/floats/NarrowFloats.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace heddle::c {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#define GEN_PASS_DEF_PREPAREPASS
#define GEN_PASS_DEF_PRINTPASS
#include "compiler/target/c/Passes.h.inc"

namespace {

struct PreparePass : impl::PreparePassBase<PreparePass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    target::populateNarrowFloatPatterns(set, /*convertsHalves=*/false);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }
  void runOnOperation() override {
    getOperation().walk([](program::PrefetchOp op) { op.erase(); }); // C has no word for it
    if (failed(target::applyAll(getOperation(), patterns)))
      signalPassFailure();
  }
  FrozenRewritePatternSet patterns;
};

struct PrintPass : impl::PrintPassBase<PrintPass> {
  void runOnOperation() override {
    auto text = printFunctions(getOperation());
    if (!text) {
      getOperation().emitError() << llvm::toString(text.takeError());
      return signalPassFailure();
    }
    llvm::outs() << *text;
    getOperation().getBody()->clear();
  }
};

/// Copies what a value is computed of, where the sizes of inputs decide it; null if they do not.
Value copyOf(Value value, Value run, OpBuilder &b, IRMapping &known) {
  if (Value found = known.lookupOrNull(value))
    return found;
  Operation *op = value.getDefiningOp();
  auto area = dyn_cast_or_null<program::AreaOp>(op);
  bool readsSizes = area && area.getArea() == program::Area::Symbols;
  bool isKnown = op && op->getNumRegions() == 0 &&
                 (isMemoryEffectFree(op) || readsSizes || isa<program::LoadOp>(op));
  if (!isKnown)
    return {};
  for (Value operand : op->getOperands())
    if (!copyOf(operand, run, b, known))
      return {};
  b.clone(*op, known);
  return known.lookup(value);
}

/// @heddle_program_scratch(run) -> i64: the most memory that a launch asks for, and all that the
/// program allocates, as far as the sizes of inputs decide it. Allocations in a loop count once.
void addScratch(ModuleOp module) {
  auto run = module.lookupSymbol<func::FuncOp>("heddle_program_run");
  OpBuilder b(module.getBodyRegion());
  b.setInsertionPointToEnd(module.getBody());
  Location loc = run.getLoc();
  Type pointer = program::pointerType(module.getContext());
  auto made = b.create<func::FuncOp>(loc, "heddle_program_scratch",
                                     b.getFunctionType({pointer}, {b.getI64Type()}));
  Block *body = made.addEntryBlock();
  b.setInsertionPointToStart(body);
  IRMapping known;
  known.map(run.getArgument(0), body->getArgument(0));
  Value most = b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(0));
  run.walk([&](program::LaunchOp launch) {
    if (Value bytes = copyOf(launch.getScratch(), body->getArgument(0), b, known))
      most = b.create<arith::MaxSIOp>(loc, most, bytes);
  });
  Value rounding = b.create<arith::ConstantOp>(loc, b.getI64IntegerAttr(63));
  run.walk([&](program::AllocOp alloc) {
    if (Value bytes = copyOf(alloc.getBytes(), body->getArgument(0), b, known))
      most = b.create<arith::AddIOp>(loc, most, b.create<arith::AddIOp>(loc, bytes, rounding));
  });
  b.create<func::ReturnOp>(loc, most);
}

/// Adds a @heddle_program_bind if no value of an input is a size.
void addBind(ModuleOp module) {
  if (module.lookupSymbol("heddle_program_bind"))
    return;
  OpBuilder b(module.getBodyRegion());
  b.setInsertionPointToEnd(module.getBody());
  Location loc = module.getLoc();
  Type pointer = program::pointerType(module.getContext());
  auto made = b.create<func::FuncOp>(loc, "heddle_program_bind",
                                     b.getFunctionType({pointer}, {b.getI32Type()}));
  b.setInsertionPointToStart(made.addEntryBlock());
  Value none = b.create<arith::ConstantOp>(loc, b.getI32IntegerAttr(0));
  b.create<func::ReturnOp>(loc, none);
}

llvm::Error refuse(const program::Program &program, const Twine &what) {
  return makeError(ErrorCode::Refused,
                   "error: '" + program.model + "': " + what +
                       ", which needs heddle's runtime and cannot be written as C\nnote: compile "
                       "it for a CPU ('--target host'), or take that part out of the model");
}

/// Refuses programs that C cannot express.
llvm::Error check(const program::Program &program) {
  for (const auto *ios : {&program.inputs, &program.outputs})
    for (const program::Io &io : *ios) {
      if (io.kind != program::IoKind::Tensor)
        return refuse(program, "'" + io.name + "' is " +
                                   (io.kind == program::IoKind::AnyRank
                                        ? "a tensor whose rank differs from run to run"
                                        : "a sequence or an optional"));
      if (!elementTypeOf(io.dtype))
        return refuse(program, "'" + io.name + "' has elements of type " +
                                   (io.dtype == 8 ? "string" : std::to_string(io.dtype)));
    }
  llvm::Error problem = llvm::Error::success();
  program.module.get()->walk([&](program::ServiceOp op) {
    std::string node;
    if (auto name = op.getLoc()->findInstanceOf<NameLoc>())
      node = "node '" + name.getName().str() + "' ";
    problem = refuse(program, node + "takes the service '" +
                                  program::stringifyService(op.getService()) + "'");
    return WalkResult::interrupt();
  });
  return problem;
}

llvm::Error makeReady(ModuleOp module) {
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  manager.addNestedPass<func::FuncOp>(createPreparePass());
  manager.addNestedPass<func::FuncOp>(createCSEPass());
  manager.addPass(createSymbolDCEPass());
  if (failed(manager.run(module)))
    return makeError(ErrorCode::Internal, "internal error: kernels could not be made C");
  return llvm::Error::success();
}

} // namespace

llvm::Expected<std::string> printFunctions(ModuleOp module) {
  if (StringRef space = program::otherSpaceIn(module); !space.empty())
    return makeError(ErrorCode::Refused, "error: target 'c' has the host's memory alone, but the "
                                         "program is of memory '" +
                                             space + "'");
  if (llvm::Error error = makeReady(module))
    return std::move(error);
  Printer printer;
  std::string declarations;
  for (auto function : module.getOps<func::FuncOp>()) {
    declarations += printer.signatureOf(function) + ";\n";
    if (llvm::Error error = printer.print(function))
      return std::move(error);
  }
  std::string vectors;
  for (const auto &[name, lanes] : printer.vectors)
    vectors += "typedef struct " + name + " {\n  " + lanes + ";\n} " + name + ";\n";
  return vectors + "\n" + helperText(printer.helpers) + declarations + printer.functions;
}

llvm::Expected<std::string> emit(const program::Program &program) {
  if (llvm::Error error = check(program))
    return std::move(error);
  OwningOpRef<ModuleOp> module = OwningOpRef<ModuleOp>(program.module.get().clone());
  addScratch(*module);
  addBind(*module);
  auto functions = printFunctions(*module);
  if (!functions)
    return functions.takeError();
  std::string prefix = program::identifierOf(program);
  return declarationsOf(program, prefix) + tablesOf(program) + *functions + entriesOf(prefix);
}

void registerPasses() { registerGeneratedPasses(); }

} // namespace heddle::c
