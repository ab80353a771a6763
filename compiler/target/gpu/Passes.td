// Passes.td: the passes of the target gpu. docs/spec/passes.md is made from this file.
#ifndef HEDDLE_TARGET_GPU_PASSES_TD
#define HEDDLE_TARGET_GPU_PASSES_TD

include "mlir/Pass/PassBase.td"

def PrintPtxPass : Pass<"heddle-print-ptx", "::mlir::ModuleOp"> {
  let summary = "print the kernels of device 'cuda' as PTX";
  let description = [{
    What is left of the module is the host's, which asks the runtime to launch them.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::heddle::program::ProgramDialect"];
  let options = [Option<"chip", "chip", "std::string", "\"sm_80\"", "GPU, as of `heddle compile --target`">];
}

#endif // HEDDLE_TARGET_GPU_PASSES_TD
