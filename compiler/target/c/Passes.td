// Passes.td: the passes of the target c. docs/spec/passes.md is made from this file.
#ifndef HEDDLE_TARGET_C_PASSES_TD
#define HEDDLE_TARGET_C_PASSES_TD

include "mlir/Pass/PassBase.td"

class C_Pass<string name, string operation> : Pass<name, operation> {
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def PreparePass : C_Pass<"heddle-c-prepare", "::mlir::func::FuncOp"> {
  let summary = "leave only ops that C has";
  let description = [{
    Narrow floats are computed in f32, and converted with integers. Prefetches go: C has no word for them.
  }];
}

def PrintPass : C_Pass<"heddle-print-c", "::mlir::ModuleOp"> {
  let summary = "print the functions of a module as C";
  let description = "Prepares the functions first. The module is empty afterwards.";
}

#endif // HEDDLE_TARGET_C_PASSES_TD
