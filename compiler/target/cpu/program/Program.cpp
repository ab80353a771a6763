// Program: what a CPU makes of the program dialect, each op in its place: pointers are those of
// LLVM.

#include "compiler/program/Dialect.h"
#include "compiler/target/cpu/Lower.h"
#include "compiler/target/cpu/program/Ops.h"

using namespace mlir;

namespace heddle::cpu {

/// Pointers of the dialect are those of LLVM, also in the types of functions and of other ops.
static void replaceTypes(func::FuncOp function) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](program::PtrType type) -> std::optional<Type> {
    return LLVM::LLVMPointerType::get(type.getContext());
  });
  replacer.recursivelyReplaceElementsIn(function, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

/// LLVM's time grows with the square of a basic block, and the program around the kernels of a
/// large model is one: above this it is taken as it is, which costs nanoseconds a kernel.
static void leaveLarge(func::FuncOp function) {
  constexpr int64_t mostOptimised = 4000;
  int64_t count = 0;
  function.walk([&](Operation *) { ++count; });
  if (count > mostOptimised)
    function->setAttr("passthrough",
                      Builder(function.getContext()).getStrArrayAttr({"noinline", "optnone"}));
}

static void replaceAttributes(func::FuncOp function) {
  MLIRContext *context = function.getContext();
  Builder b(context);
  if (function->removeAttr(program::kInline)) {
    function->setAttr("llvm.linkage", LLVM::LinkageAttr::get(context, LLVM::Linkage::LinkonceODR));
    function->setAttr("passthrough", b.getStrArrayAttr({"alwaysinline"}));
  }
}

LogicalResult lowerProgram(func::FuncOp function, const Target &target) {
  if (StringRef space = program::otherSpaceIn(function); !space.empty())
    return function.emitError("target '" + target.name + "' has the host's memory alone, but '" +
                              function.getSymName() + "' is of memory '" + space + "'");
  replaceTypes(function);
  replaceAttributes(function);
  if (failed(configureMatrices(function, target)))
    return failure();
  WalkResult result = function.walk([&](Operation *op) {
    if (!isa_and_nonnull<program::ProgramDialect>(op->getDialect()))
      return WalkResult::advance();
    OpBuilder b(op);
    if (!lowerMemory(b, op) && !lowerRun(b, op) && !lowerVectors(b, op, target) &&
        !lowerMatrices(b, op, target))
      return WalkResult(op->emitOpError("has no instruction on " + target.name));
    op->erase();
    return WalkResult::advance();
  });
  if (!function.isPrivate())
    leaveLarge(function);
  return failure(result.wasInterrupted());
}

} // namespace heddle::cpu
