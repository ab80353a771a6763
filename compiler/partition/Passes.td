// Passes.td: the pass of partition. docs/spec/passes.md is made from this file.
#ifndef HEDDLE_PARTITION_PASSES_TD
#define HEDDLE_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def PartitionPass : Pass<"heddle-partition", "::mlir::ModuleOp"> {
  let summary = "wrap ops that share a kernel into groups";
  let description = [{
    Without `cards` no card claims ops. The names of layers are those of `heddle compile --without`; policies say
    which of the kernels that are possible pay.
  }];
  let options = [Option<"hasCards", "cards", "bool", "false", "nests of the built-in cards claim ops">,
                 Option<"policy", "policy", "std::string", "\"lanes\"", "lanes, nothing or all">,
                 ListOption<"without", "without", "std::string", "layers to leave out">,
                 ListOption<"refused", "refused", "std::string", "NAME:STEP of groups not to make">];
}

#endif // HEDDLE_PARTITION_PASSES_TD
