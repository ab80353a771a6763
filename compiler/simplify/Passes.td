// Passes.td: the passes of simplify, in the order in which a model first meets them. docs/spec/passes.md
// is made from this file.
#ifndef HEDDLE_SIMPLIFY_PASSES_TD
#define HEDDLE_SIMPLIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

class Simplify_Pass<string name> : Pass<"heddle-simplify-" # name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::heddle::graph::GraphDialect"];
}

def HalvesPass : Simplify_Pass<"halves"> {
  let summary = "compute floats of 16 bits as f32";
  let description = [{
    Chains of ops on f16 and bf16 become chains on f32 with a cast at each end, so that results in between are not
    rounded. Ops that only move elements keep the narrow type. `--strict` leaves the pass out.
  }];
}

def DynamicPass : Simplify_Pass<"dynamic"> {
  let summary = "compute products with constant weights with 8-bit integers";
  let description = [{
    Rows of the left side are scaled in each run, columns of the weights once. Weights that are integers in blocks stay
    so, and the rows are rounded in these blocks (`block` of `graph.matmul`). Only where `--math int8`, a plan
    (`integers`) or the model (`accuracy_level` 4 of MatMulNBits) says so.
  }];
  let constructor = "::heddle::simplify::createDynamicPass()";
}

def UnsignedPass : Simplify_Pass<"unsigned"> {
  let summary = "quantise the left sides of products without a sign";
  let description = [{
    A tensor of i8 that only left sides of products read becomes one of u8, its zero point 128 more: instructions
    of x86 multiply u8 by i8.
  }];
}

def QuantizedPass : Simplify_Pass<"quantized"> {
  let summary = "compute products of quantised tensors with 8-bit integers";
  let description = [{
    A product or convolution of dequantised tensors becomes one of integers with sums of 32 bits; scales and zero
    points follow it. Steps between a dequantisation and the next quantisation stay integers where that is exact.
  }];
}

def UnfoldedPass : Simplify_Pass<"unfolded"> {
  let summary = "note ops of a quantised model that still compute on dequantised values";
  let description = [{
    Writes the module's attribute `graph.unfolded`: each node with the reason, for the report.
  }];
}

def StoredPass : Simplify_Pass<"stored"> {
  let summary = "keep constant right sides of products in their fewer bits";
  let description = [{
    Weights that are codes of 4 or 8 bits with scales stay so in memory, as `#graph.stored`, and become floats in the
    registers of the kernel. Small ones become floats at compile time (threshold `stored_elements`).
  }];
}

def FoldPass : Simplify_Pass<"fold"> {
  let summary = "compute at compile time ops that depend on constants alone";
  let description = "The engine is `compiler/reference`, so folding and a run agree.";
  let options = [Option<"limitBytes", "limit-bytes", "int64_t", "kFoldLimitBytes",
                        "results larger than this stay ops; 64 MiB by default">];
}

def TreesPass : Simplify_Pass<"trees"> {
  let summary = "move ops that follow from the leaf of a tree into its weights, and join sums of trees";
}

def ShapesPass : Simplify_Pass<"shapes"> {
  let summary = "turn facts about sizes into constants, static ops and types";
}

def AlgebraPass : Simplify_Pass<"algebra"> {
  let summary = "apply the equations of arithmetic, of movement and of broadcasts";
  let description = "One rule, one equation; each has a case of its name in `Rules.mlir` or beside its file.";
}

def ConvScalePass : Simplify_Pass<"conv-scale"> {
  let summary = "carry constant factors of channels into weights";
  let description = "Rounds otherwise than the ops, so `--strict` leaves it out.";
}

def FixpointPass : Simplify_Pass<"fixpoint"> {
  let summary = "fold, shapes, algebra, quantized and conv-scale until nothing changes";
  let description = "Ends after 4 rounds at most.";
  let options = [Option<"foldLimitBytes", "fold-limit-bytes", "int64_t", "kFoldLimitBytes",
                        "folds make no larger results">,
                 Option<"isStrict", "strict", "bool", "false", "apply exact rules only">];
}

def ChannelsLastPass : Simplify_Pass<"channels-last"> {
  let summary = "let convolutions, pools and the ops between them work on channels-last tensors";
  let description = [{
    Transposes are only where a chain of such ops begins and ends. A plan may say the layout of a node (`layouts`).
  }];
  let constructor = "::heddle::simplify::createChannelsLastPass()";
}

def WeightsPass : Simplify_Pass<"weights"> {
  let summary = "make constants of broadcast constants that products take as weights";
}

def TransposedConvPass : Simplify_Pass<"transposed-conv"> {
  let summary = "turn transposed convolutions into convolutions of all phases at once";
  let description = "Needs channels last and constant weights.";
}

def TablesPass : Simplify_Pass<"tables"> {
  let summary = "look up functions of tensors of 8 bits that give 8 bits";
  let description = "A chain of ops on single elements becomes a table of 256 bytes (threshold `table_ops`).";
  let options = [Option<"areCheap", "cheap", "bool", "true",
                        "a lookup costs less than 16 simple ops">];
}

#endif // HEDDLE_SIMPLIFY_PASSES_TD
