// Verify: see Verify.h.

#include "compiler/pipeline/Verify.h"

#include "compiler/graph/Function.h"
#include "compiler/mechanism/Schedules.h"
#include "compiler/support/Error.h"

using namespace mlir;

namespace heddle {

LogicalResult verifyStage(ModuleOp module) {
  if (failed(verify(module)))
    return failure();
  auto main = module.lookupSymbol<func::FuncOp>("main");
  if (!main) // kernels and the program around them
    return success();
  return failed(mechanism::verifySchedules(main)) ? failure() : graph::verifyFunction(main);
}

llvm::Error requireValid(ModuleOp module, StringRef when) {
  std::string messages;
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream(messages) << "\n" << diagnostic.getLocation() << ": " << diagnostic;
    return success();
  });
  if (succeeded(verifyStage(module)))
    return llvm::Error::success();
  return makeError(ErrorCode::Internal,
                   "internal error: the module " + when + " is not valid:" + messages);
}

} // namespace heddle
